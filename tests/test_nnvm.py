"""Tests NNVM's planner beyond recorded vectors: soundness, rejected inputs, buffers."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplan.planning import Buffer, Problem, solve
from tensorplan.planning.baselines.nnvm import (
    DYNAMIC,
    EXTERNAL,
    NOT_ALLOCATED,
    Array,
    Assign,
    Device,
    Entry,
    ExportedGraph,
    Graph,
    InPlace,
    Node,
    Options,
    Tensor,
    decorate_memory_plan,
    find_conflict,
    plan_memory,
    read_graph,
    setup_storage,
)

TEN = Tensor((10,))


def variable(name: str) -> Node:
    return Node(name, [TEN], is_variable=True)


def chain(length: int, *, in_place: bool = False) -> Graph:
    """Returns a variable, and a chain of operations that each read the previous one."""
    pairs = [InPlace(0, 0)] if in_place else []
    operations = [
        Node(f"n{i}", [TEN], [Entry(i)], in_place=pairs) for i in range(length)
    ]
    return Graph([variable("x"), *operations], [Entry(length)])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = [variable("x")]
    tensors = st.builds(
        Tensor,
        st.sampled_from([(1,), (4,), (2, 2), (50,), (0,), None]),
        st.sampled_from(["float32", "int32", "uint8"]),
    )
    for n in range(1, draw(st.integers(1, 10))):
        entries = [
            Entry(i, o) for i, m in enumerate(nodes) for o in range(len(m.outputs))
        ]
        inputs = draw(st.lists(st.sampled_from(entries), max_size=3))
        outputs = draw(st.lists(tensors, min_size=1, max_size=3))
        every_pair = itertools.product(range(len(inputs)), range(len(outputs)))
        pair = st.sampled_from(list(every_pair) or [None])
        pairs = draw(st.lists(pair, unique=True, max_size=4)) if inputs else []
        nodes.append(
            Node(
                f"n{n}",
                outputs,
                inputs,
                in_place=[InPlace(*p, draw(st.booleans())) for p in pairs if p],
                ignored=[i for i in range(len(inputs)) if not draw(st.integers(0, 3))],
                device=draw(st.sampled_from([0, 0, 0, 1])),
            )
        )
    results = [Entry(n) for n in range(1, len(nodes)) if draw(st.booleans())]
    return Graph(nodes, results)


options = st.builds(
    Options,
    match_range=st.sampled_from([0, 1, 2, 16]),
    auto_search=st.booleans(),
    num_colors=st.integers(1, 3),
    element_bytes=st.sampled_from([None, 4]),
)


@given(graphs(), options)
def test_plans_are_sound(graph: Graph, options: Options) -> None:
    plan = plan_memory(graph, options)
    assert find_conflict(graph, plan.storage_ids, plan.in_place) is None
    for node, ids in zip(graph.nodes, plan.storage_ids, strict=True):
        for tensor, storage in zip(node.outputs, ids, strict=True):
            known = tensor.shape is not None and not node.is_variable
            assert (storage >= 0) == known


@given(graphs())
def test_auto_search_is_the_best_of_its_ranges(graph: Graph) -> None:
    best = min(
        plan_memory(graph, Options(match_range=r)).allocated_bytes for r in (1, 2, 4, 8)
    )
    plan = plan_memory(graph, Options(match_range=8, auto_search=True))
    assert plan.allocated_bytes == best


def test_find_conflict_reports_each_fault() -> None:
    graph = Graph(
        [
            variable("x"),
            Node("a", [TEN], [Entry(0)]),
            Node("b", [TEN], [Entry(1)], in_place=[InPlace(0, 0)]),
            Node("c", [TEN, TEN], [Entry(1), Entry(2)]),
        ],
        [Entry(3, 1)],
    )
    none = [[-1], [-1], [-1], [-1, -1]]
    for ids, in_place, conflict in (
        ([[-1], [0], [1], [2, 3]], none, None),
        ([[-1], [0], [1], [2, 2]], none, "outputs of c share a storage"),
        ([[-1], [0], [1], [0, 2]], none, "c overwrites a, its input"),
        ([[-1], [0], [1], [0, 2]], None, None),
        ([[-1], [0], [0], [2, 3]], none, "b overwrites a, its input"),
        (
            [[-1], [0], [0], [2, 3]],
            [[-1], [-1], [0], [-1, -1]],
            "c reads a after it was overwritten",
        ),
    ):
        assert find_conflict(graph, ids, in_place) == conflict
    a_is_a_result = dataclasses.replace(graph, results=[Entry(1)])
    ids = [[-1], [0], [1], [0, 2]]
    conflict = find_conflict(a_is_a_result, ids)
    assert conflict == "result a is overwritten before the end"
    elsewhere = dataclasses.replace(graph.nodes[3], device=1)
    graph = dataclasses.replace(graph, nodes=[*graph.nodes[:3], elsewhere])
    assert find_conflict(graph, ids) == "c has a storage of device 0"


def test_inputs_that_are_not_read_are_not_overwritten() -> None:
    # c ignores a, but d reads it: c must not overwrite a, although one read is left.
    c = Node("c", [TEN], [Entry(1), Entry(2)], in_place=[InPlace(0, 0)], ignored=[0])
    graph = Graph(
        [
            variable("x"),
            Node("a", [TEN], [Entry(0)]),
            Node("b", [TEN], [Entry(0)]),
            c,
            Node("d", [TEN], [Entry(1), Entry(3)]),
        ],
        [Entry(4)],
    )
    plan = plan_memory(graph)
    assert plan.in_place[3] == [-1]
    assert find_conflict(graph, plan.storage_ids, plan.in_place) is None


def test_an_input_is_overwritten_once() -> None:
    pairs = [InPlace(0, 0, identity=True), InPlace(0, 1, identity=True)]
    graph = Graph(
        [
            variable("x"),
            Node("a", [TEN], [Entry(0)]),
            Node("twice", [TEN, TEN], [Entry(1)], in_place=pairs),
        ],
        [Entry(2, 0), Entry(2, 1)],
    )
    plan = plan_memory(graph)
    assert plan.storage_ids == [[NOT_ALLOCATED], [0], [0, 1]]
    assert plan.in_place[2] == [0, -1]


def test_sizes_are_those_of_the_element_types() -> None:
    graph = Graph([Node("a", [Tensor((10,), "float64"), Tensor((3,), "bool")])])
    assert plan_memory(graph).allocated_bytes == 83
    assert plan_memory(graph, Options(element_bytes=4)).allocated_bytes == 52


def test_match_range_zero_reuses_nothing() -> None:
    for auto_search in (False, True):
        plan = plan_memory(chain(4), Options(0, auto_search))
        assert plan.storage_ids == [[NOT_ALLOCATED], [0], [1], [2], [3]]


def test_nodes_of_two_devices_do_not_share() -> None:
    graph = chain(4, in_place=True)
    nodes = [dataclasses.replace(n, device=i % 2) for i, n in enumerate(graph.nodes)]
    plan = plan_memory(dataclasses.replace(graph, nodes=nodes))
    assert plan.storage_ids == [[NOT_ALLOCATED], [0], [1], [0], [1]]


def test_given_storages_stay() -> None:
    plan = plan_memory(chain(3), given={Entry(1): EXTERNAL, Entry(2): DYNAMIC})
    assert plan.storage_ids == [[NOT_ALLOCATED], [EXTERNAL], [DYNAMIC], [0]]
    with pytest.raises(ValueError, match="n0 is given storage 5, expected -2"):
        plan_memory(chain(3), given={Entry(1): 5})


def test_options() -> None:
    assert Options.from_environment({}) == Options(16, False, 1)
    variables = {
        "NNVM_EXEC_MATCH_RANGE": "4",
        "NNVM_AUTO_SEARCH_MATCH_RANGE": "true",
        "NNVM_EXEC_NUM_TEMP": "2",
    }
    assert Options.from_environment(variables) == Options(4, True, 2)
    assert Options(12, auto_search=True).match_ranges == [1, 2, 4, 8]
    with pytest.raises(ValueError, match="SEARCH_MATCH_RANGE is '2', expected 0 or 1"):
        Options.from_environment({"NNVM_AUTO_SEARCH_MATCH_RANGE": "2"})
    with pytest.raises(ValueError, match="MATCH_RANGE is 'all', expected a number"):
        Options.from_environment({"NNVM_EXEC_MATCH_RANGE": "all"})
    with pytest.raises(ValueError, match="match range is -1, expected 0 or more"):
        Options(match_range=-1)
    with pytest.raises(ValueError, match="num colors is 0, expected 1 or more"):
        Options(num_colors=0)


def update(assign: Assign, *, reads: int) -> Graph:
    """Returns `w = assign(w, f(w))`, followed by a reader of version `reads` of w."""
    return Graph(
        [
            variable("w"),
            Node("f", [TEN], [Entry(0)]),
            Node("w1", [TEN], [Entry(0), Entry(1)], assign=assign),
            Node("reader", [TEN], [Entry(0, version=reads)]),
        ],
        [Entry(2), Entry(3)],
    )


def test_assignments_use_the_storage_of_their_variable() -> None:
    for assign, of_f in ((Assign.COPY, 0), (Assign.SIMPLIFIED, 2)):
        graph = update(assign, reads=1)
        ids = decorate_memory_plan(graph, plan_memory(graph))
        assert ids == [[2], [of_f], [2], [0]]  # storage 1 of w1 is unused


def test_stale_reads_and_unknown_shapes_are_refused() -> None:
    for assign in (Assign.COPY, Assign.SIMPLIFIED):
        graph = update(assign, reads=0)
        with pytest.raises(ValueError, match="reader reads w after it was overwritten"):
            decorate_memory_plan(graph, plan_memory(graph))
    graph = Graph([Node("a", [Tensor(None)])], [Entry(0)])
    with pytest.raises(ValueError, match="a is not allocated"):
        decorate_memory_plan(graph, plan_memory(graph))


CPU, GPU = Device(1, 0), Device(2, 1)


def test_setup_storage() -> None:
    graph = ExportedGraph([0, 2, 0], [(3,), (), (2, 2)], ["uint8", "int4x2", "bool"])
    arrays, _ = setup_storage(graph, [GPU, CPU])
    assert arrays == [Array(4, GPU), Array(0, GPU), Array(4, GPU)]
    on_both = dataclasses.replace(graph, device_types=[1, 2, 1])
    arrays, _ = setup_storage(on_both, [GPU, CPU])
    assert arrays == [Array(4, CPU), Array(0, GPU), Array(4, GPU)]


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (
            ExportedGraph([-1], [(1,)], ["float32"]),
            "entry 0 has storage -1, expected 0 or more",
        ),
        (
            ExportedGraph([0], [(1,)], ["int4"]),
            "entry 0 has elements of 4 bits, expected 1 or a multiple of 8",
        ),
        (
            ExportedGraph([0, 0], [(1,)] * 2, ["int8"] * 2, [1, 2]),
            "storage 0 is on devices of type 1 and 2, expected one",
        ),
        (
            ExportedGraph([0], [(1,)], ["complex64"]),
            "dtype is 'complex64', expected one like",
        ),
    ],
)
def test_setup_storage_refuses(graph: ExportedGraph, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        setup_storage(graph, [CPU])


def test_read_graph_refuses() -> None:
    attributes = {
        "storage_id": ["list_int", [0]],
        "shape": ["list_shape", [[1]]],
        "dltype": ["list_str", ["float32"]],
    }
    graph = {
        "nodes": [{"op": "null", "name": "x", "inputs": []}],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1],
        "heads": [[0, 0, 0]],
        "attrs": attributes,
    }
    assert read_graph(graph) == ExportedGraph([0], [(1,)], ["float32"])
    with pytest.raises(ValueError, match="node y is 'exp', expected 'null'"):
        read_graph({**graph, "nodes": [{"op": "exp", "name": "y", "inputs": []}]})
    with pytest.raises(ValueError, match="storage_id has 1 elements, expected"):
        read_graph({**graph, "node_row_ptr": [0, 2]})
    del attributes["dltype"]
    with pytest.raises(ValueError, match="expected 'dltype' too"):
        read_graph(graph)
    with pytest.raises(ValueError, match="graph has the key 'extra', expected nodes, "):
        read_graph({**graph, "extra": 1})


def test_strategy_on_plain_buffers() -> None:
    problem = Problem(
        [
            Buffer("fixed", 10, 0, 4, offset=8),
            Buffer("small", 5, 0, 2, 4),
            Buffer("large", 100, 0, 2),
            Buffer("takes large", 40, 2, 4),
            Buffer("grows small", 17, 2, 4, 4),
            Buffer("new", 1, 4, 5),  # the others are more than 16 times as large
        ]
    )
    plan = solve(problem, "nnvm")
    # Above the fixed one: small, grown to 17 bytes, then large.
    assert plan.offsets == [8, 20, 37, 37, 20, 137]


def test_auto_search_strategy_is_never_worse() -> None:
    # Range 16 puts the small buffer into the large one, so the next one is new.
    problem = Problem(
        [
            Buffer("large", 100, 0, 2),
            Buffer("small", 10, 2, 5),
            Buffer("large again", 100, 3, 5),
        ]
    )
    assert solve(problem, "nnvm").peak == 200
    assert solve(problem, "nnvm-auto-search").peak == 110


def test_strategy_releases_unread_outputs_last() -> None:
    problem = Problem(
        [
            Buffer("one step", 10, 1, 2),
            Buffer("longer", 10, 0, 2),
            Buffer("takes what was released first", 10, 2, 3),
        ]
    )
    plan = solve(problem, "nnvm")
    assert plan.offsets[2] == plan.offsets[1] != plan.offsets[0]
