"""The order that mutations impose, compared with NNVM's OrderMutation."""

from collections.abc import Mapping
from typing import Any

import pytest

from tensorplan.analysis.dependencies import Access, memory_order

Json = Mapping[str, Any]


@pytest.mark.vectors("nnvm_order_mutation")
def test_order_mutation(vector: Json) -> None:
    nodes = {node["name"]: node for node in vector["graph"]["nodes"]}
    order = vector["expected"]["order"]
    # The original makes some nodes wait for themselves, tensorplan does not.
    expected = {
        name: {before for before in waits if before != name}
        for name, waits in vector["expected"]["control_deps"].items()
    }
    ours = memory_order([accesses_of(nodes[name], nodes) for name in order])
    assert {
        name: {order[before] for before in waits}
        for name, waits in zip(order, ours, strict=True)
        if waits
    } == {name: waits for name, waits in expected.items() if waits}


def accesses_of(node: Json, nodes: Mapping[str, Json]) -> list[Access]:
    """The variables that a node reads and writes."""
    return [
        Access(name, next(iter(version), 0), writes=number in node.get("mutates", ()))
        for number, (name, _, *version) in enumerate(node.get("inputs", ()))
        if nodes[name]["op"] is None and is_mutated(name, nodes)
    ]


def is_mutated(variable: str, nodes: Mapping[str, Json]) -> bool:
    return any(
        node["inputs"][number][0] == variable
        for node in nodes.values()
        for number in node.get("mutates", ())
    )
