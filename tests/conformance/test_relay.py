"""TVM Relay's planner compared with the original.

A parameter is on the device of its readers; the original finds another device.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from relay_programs import Program, program_of

from tensorplan.planning.baselines.relay import TokenPlan, graph_plan_memory

Json = Mapping[str, Any]


@pytest.mark.vectors("tvm_graph_plan_memory")
def test_plan_memory(vector: Json, vectors: Mapping[str, Json]) -> None:
    expected = vector["expected"]
    if "error" in expected:
        with pytest.raises(ValueError, match=r"expected a known|no part of our graph"):
            graph_plan_memory(program_of(vector, vectors).graph()[0])
        return
    program = program_of(vector, vectors)
    graph, place = program.graph()
    plan = graph_plan_memory(graph)

    def storages(name: str) -> list[int]:
        return [plan.storage_ids[place[v]][k] for v, k in program.names[name]]

    if "storage_sizes" in expected:
        first: dict[int, int] = {}  # as the original reports
        largest: dict[int, int] = {}
        for node, ids in zip(graph.nodes, plan.storage_ids, strict=True):
            size = 4 * node.outputs[0].elements
            first.setdefault(ids[0], size)
            largest[ids[0]] = max(size, largest.get(ids[0], 0))
        assert {str(i): size for i, size in first.items()} == expected["storage_sizes"]
        assert dict(enumerate(plan.sizes)) == largest
    if "storage_ids_in_node_order" in expected:
        folded = program.folded
        ids = [i for name in folded for i in storages(name)]
        assert ids == expected["storage_ids_in_node_order"]
        nops = [n for n, is_view in enumerate(folded.values()) if is_view]
        assert nops == expected["nop_nodes"]
    if "plan" in expected:
        check_plan(program, plan, expected)


def check_plan(program: Program, plan: TokenPlan, expected: Json) -> None:
    """Checks the storages of values by name. A name that `program` lacks must have the
    storage of some value."""
    order = program.order()
    place = {value: n for n, value in enumerate(order)}
    assert len(plan.sizes) == expected["num_storages"]
    ours = {tuple(ids) for ids in plan.storage_ids}
    ours |= {(storage,) for ids in plan.storage_ids for storage in ids}
    ours.add(tuple(plan.storage_ids[place[v]][k] for v, k in program.results))
    for name, tensor in expected["plan"].items():
        ids, devices = tensor["storage_id"], tensor["device_type"]
        if name not in program.names:
            assert tuple(ids) in ours
            continue
        entries = program.names[name]
        assert [plan.storage_ids[place[v]][k] for v, k in entries] == ids
        assert all(
            value.device == device or not value.op
            for (value, _), device in zip(entries, devices, strict=True)
        )


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("a=exp(x[10]); b=exp(a); bool", [10, 10, 10]),
        ("a=exp(x[3,4]); r=sum(a,keepdims) [1]; u=tile(r,7)", [48, 48, 4]),
        ("z1..z4=exp chain over x[8]; result z4", [32, 32, 32]),
    ],
)
def test_sizes_are_exact(text: str, sizes: list[int]) -> None:
    assert graph_plan_memory(Program().read(text).graph()[0]).sizes == sizes


@pytest.mark.parametrize(
    "text", ["what a=1 b", "a=exp(x); a+1", "while c: exp(x)", "x y z"]
)
def test_invalid_programs_are_rejected(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        Program().read(text)
