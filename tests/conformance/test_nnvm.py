"""NNVM's planner, coloring, assignments and runtime storages, against the original.

If the original's plan is unsound (`find_conflict`), tensorplan's must differ.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tensorplan.planning.baselines.nnvm import (
    Assign,
    Device,
    Entry,
    Graph,
    InPlace,
    Node,
    Options,
    StoragePlan,
    Tensor,
    color_nodes,
    decorate_memory_plan,
    find_conflict,
    plan_memory,
    read_graph,
    setup_storage,
)

Json = Mapping[str, Any]

DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64")


def graph_of(spec: Json, devices: Mapping[str, int]) -> Graph:
    """The graph of a vector, in order of execution."""
    place = {node["name"]: n for n, node in enumerate(spec["nodes"])}
    nodes: list[Node] = []
    for node in spec["nodes"]:
        inputs = [Entry(place[name], *rest) for name, *rest in node.get("inputs", [])]
        nodes.append(
            Node(
                node["name"],
                outputs_of(node, [nodes[e.node].outputs[e.output] for e in inputs]),
                inputs,
                is_variable=node["op"] is None,
                in_place=[
                    InPlace(*pair, identity=bool(identity))
                    for pair, identity in zip(
                        node.get("inplace", []),
                        node.get("identity") or [False] * len(node.get("inplace", [])),
                        strict=True,
                    )
                ],
                ignored=node.get("ignore", []),
                device=devices.get(node["name"], 0),
                after=[place[name] for name in node.get("control_deps", [])],
            )
        )
    results = [entry_of(name, place) for name in spec["outputs"]]
    return Graph(nodes, results).ordered()


def outputs_of(node: Json, inputs: list[Tensor]) -> list[Tensor]:
    """The outputs of a node; omitted properties are those of the first input. NNVM's
    rank 0 is an unknown shape."""
    like = inputs[0] if inputs else Tensor(None)
    if node["op"] is None:
        dtype = DTYPES[int(node.get("attrs", {}).get("dtype", 0))]
        return [Tensor(tuple(node.get("shape", ())) or None, dtype)]
    dtype = DTYPES[node["out_dtype"]] if "out_dtype" in node else like.dtype
    shapes = node.get("out_shapes") or [like.shape or ()] * node.get("num_outputs", 1)
    return [Tensor(tuple(shape) or None, dtype) for shape in shapes]


def entry_of(name: str, place: Mapping[str, int]) -> Entry:
    """Parses an entry: `name` or `name.index`."""
    if name in place:
        return Entry(place[name])
    node, _, output = name.rpartition(".")
    return Entry(place[node], int(output))


def setting(vector: Json, name: str) -> list[str]:
    """The words of the setup lines that start with `name`."""
    lines = [line.split() for line in vector.get("setup", [])]
    return [word for first, *rest in lines if first == name for word in rest]


def pairs(words: Iterable[str]) -> dict[str, int]:
    return {name: int(value) for name, value in (word.split("=") for word in words)}


def graph_and_given(vector: Json) -> tuple[Graph, dict[Entry, int]]:
    graph = graph_of(vector["graph"], pairs(setting(vector, "devvec")))
    place = {node.name: n for n, node in enumerate(graph.nodes)}
    given = pairs(setting(vector, "presto")).items()
    return graph, {entry_of(name, place): storage for name, storage in given}


def as_vector(graph: Graph, plan: StoragePlan) -> Json:
    return {
        "order": [node.name for node in graph.nodes],
        "plan": {
            node.name: {"storage_id": ids, "inplace_index": in_place}
            for node, ids, in_place in zip(
                graph.nodes, plan.storage_ids, plan.in_place, strict=True
            )
        },
        "storage_allocated_bytes": plan.allocated_bytes,
        "storage_num_not_allocated": plan.num_not_allocated,
    }


@pytest.mark.vectors("nnvm_plan_memory")
def test_plan_memory(vector: Json) -> None:
    graph, given = graph_and_given(vector)
    first_and_end = [int(word) for word in setting(vector, "range")]
    options = dataclasses.replace(
        Options.from_environment(vector.get("env", {})), element_bytes=4
    )
    plan = plan_memory(
        graph,
        options,
        node_range=(first_and_end[0], first_and_end[1]) if first_and_end else None,
        given=given,
    )
    ours, expected = as_vector(graph, plan), vector["expected"]
    assert find_conflict(graph, plan.storage_ids, plan.in_place) is None
    assert ours["order"] == expected["order"]
    if is_unsound(graph, expected["plan"]):
        assert ours != expected
    else:
        assert ours == expected


def is_unsound(graph: Graph, plan: Json) -> bool:
    """Whether the original's plan is wrong or missing."""
    if not plan:
        return True
    of_nodes = [plan[node.name] for node in graph.nodes]
    ids = [node["storage_id"] for node in of_nodes]
    in_place = [node["inplace_index"] for node in of_nodes]
    return find_conflict(graph, ids, in_place) is not None


@pytest.mark.vectors("nnvm_color_node_group")
def test_color_nodes(vector: Json) -> None:
    graph = graph_of(vector["graph"], {})
    colors = color_nodes(graph, vector["config"]["max_ncolor"])
    assert {
        "order": [node.name for node in graph.nodes],
        "color": {n.name: c for n, c in zip(graph.nodes, colors, strict=True)},
        "num_colors": max(colors) + 1,
    } == vector["expected"]


@pytest.mark.vectors("nnvm_graph_compile_assign")
def test_decorate_memory_plan(vector: Json) -> None:
    graph = fused_graph_of(vector)
    plan = plan_memory(graph, Options(element_bytes=4))
    expected = [node["storage_id"] for node in vector["expected"]["nodes"]]
    if conflict := find_conflict(graph, expected):
        with pytest.raises(ValueError, match=re.escape(conflict)):
            decorate_memory_plan(graph, plan)
    else:
        assert decorate_memory_plan(graph, plan) == expected


def fused_graph_of(vector: Json) -> Graph:
    """The vector's graph after fusion, with assignments marked.

    A fused node has the name, and thus the output, of its last operation. No operation
    runs in place, as compiled functions do not declare that they can.
    """
    original = graph_of(vector["graph"], {})
    outputs = {node.name: node.outputs for node in original.nodes}
    assignments = [n["name"] for n in vector["graph"]["nodes"] if n["op"] == "_assign"]
    nodes: list[Node] = []
    for node in vector["expected"]["nodes"]:
        is_assignment = node["name"] in assignments
        assign = Assign.COPY if is_assignment else Assign.NO
        if node.get("func_name") == "__nop":
            assign = Assign.SIMPLIFIED
        nodes.append(
            Node(
                node["name"],
                outputs[node["name"]],
                [Entry(*entry[:2]) for entry in node["inputs"]],
                is_variable=node["op"] is None,
                assign=assign,
            )
        )
    return Graph(nodes, [Entry(*entry[:2]) for entry in vector["expected"]["outputs"]])


@pytest.mark.vectors("graph_runtime_setup_storage")
def test_setup_storage(vector: Json) -> None:
    contexts = [Device(*context) for context in vector["contexts"]]
    expected = vector["expected"]
    if "error" in expected:
        with pytest.raises(ValueError, match="expected"):
            setup_storage(read_graph(vector["graph_json"]), contexts)
        return
    graph = read_graph(vector["graph_json"])
    arrays, views = setup_storage(graph, contexts)
    assert expected == {
        "pool": [
            {
                "floats": array.bytes // 4,
                "bytes": array.bytes,
                "device_type": array.device.type,
                "device_id": array.device.id,
            }
            for array in arrays
        ],
        "entries": [
            {
                "pool": view.storage,
                "same_address_as_pool": view.storage
                if arrays[view.storage].bytes
                else -1,  # an empty pool has no address
                "shape": list(view.shape),
                "bits": view.bits,
                "alignment": view.alignment,
            }
            for view in views
        ],
        "num_exec": graph.num_operations,
    }
