"""Tests plans for several streams: only ordered operations share memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modules import parse, run
from xdsl.passes import ModulePass

from tensorplan.passes.tgraph.fuse_into_loops import TGraphFuseIntoLoops
from tensorplan.passes.tgraph.fuse_updates_into_scan import TGraphFuseUpdatesIntoScan
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.passes.tgraph.split_updates import TGraphSplitUpdates
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.planning import Buffer, Problem, solve
from tensorplan.planning.scheduling.streams import StreamStep, across_streams
from tensorplan.support.remarks import REMARKS


def test_documented_example() -> None:
    operations = [StreamStep(0), StreamStep(0), StreamStep(1), StreamStep(0)]
    a, b, c = Buffer("a", 64, 0, 2), Buffer("b", 64, 2, 3), Buffer("c", 64, 3, 4)
    wide = across_streams([a, b, c], [[0, 1], [2], [3]], operations)
    assert [list(buffer.live) for buffer in wide] == [[(0, 3)], [(2, 4)], [(3, 4)]]
    assert [buffer.gaps for buffer in wide] == [(), (), ()]


def test_dependency_orders_streams() -> None:
    operations = [StreamStep(0), StreamStep(1, [0]), StreamStep(1), StreamStep(0)]
    a = Buffer("a", 64, 0, 1)
    (wide,) = across_streams([a], [[0]], operations)
    assert wide == Buffer("a", 64, 0, 1)


def test_buffer_is_live_only_in_unordered_steps() -> None:
    operations = [
        StreamStep(0),
        StreamStep(0),
        StreamStep(1),
        StreamStep(0),
        StreamStep(1),
    ]
    (wide,) = across_streams([Buffer("a", 64, 0, 1)], [[0]], operations)
    assert list(wide.live) == [(0, 1), (2, 3), (4, 5)]


def test_single_stream_changes_nothing() -> None:
    buffers = [Buffer("a", 8, 0, 2), Buffer("b", 8, 1, 4, gaps=((2, 3),))]
    assert across_streams(buffers, [[0, 1], [1, 3]], [StreamStep()] * 5) == buffers


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[StreamStep], list[list[int]]]:
    """Operations, and for each buffer the steps that access it."""
    operations = [
        StreamStep(
            draw(st.integers(0, 2)),
            sorted(draw(st.sets(st.integers(0, step - 1), max_size=2))) if step else [],
        )
        for step in range(draw(st.integers(1, 14)))
    ]
    step = st.integers(0, len(operations) - 1)
    sets = draw(st.lists(st.sets(step, min_size=1, max_size=3), max_size=8))
    return operations, [sorted(steps) for steps in sets]


@given(programs())
def test_sharing_needs_order(program: tuple[list[StreamStep], list[list[int]]]) -> None:
    operations, accesses = program
    buffers = [
        Buffer(f"b{i}", 64, steps[0], steps[-1] + 1) for i, steps in enumerate(accesses)
    ]
    plan = solve(Problem(across_streams(buffers, accesses, operations)))
    reaches = _reaches(operations)
    for i, a in enumerate(accesses):
        for j, b in enumerate(accesses):
            if i < j and plan.offsets[i] == plan.offsets[j]:
                assert _ordered(a, b, reaches) or _ordered(b, a, reaches)


def _reaches(operations: list[StreamStep]) -> list[set[int]]:
    """For each step, the steps that certainly end before it starts."""
    before: list[set[int]] = []
    for step, operation in enumerate(operations):
        direct = {*operation.depends_on} | {
            s for s in range(step) if operations[s].stream == operation.stream
        }
        before.append(direct.union(*(before[s] for s in direct)))
    return before


def _ordered(first: list[int], then: list[int], before: list[set[int]]) -> bool:
    return all(a in before[b] for a in first for b in then)


def test_independent_streams_leave_few_gaps() -> None:
    operations = [StreamStep(step % 2) for step in range(1000)]
    (wide,) = across_streams([Buffer("a", 64, 0, 1)], [[0]], operations)
    assert list(wide.live) == [(0, 2), (3, 4), (5, 6), (7, 8), (9, 1000)]


@pytest.mark.parametrize(
    ("pass_", "undone"),
    [
        (TGraphFuseIntoLoops(), "nothing is moved into loops"),
        (TGraphFuseUpdatesIntoScan(), "no update is moved"),
        (TGraphRematerialize(), "nothing is recomputed"),
        (TGraphSchedule(), "not reordered"),
        (TGraphSplitUpdates(), "no update is split"),
        (TGraphTile(), "nothing is tiled"),
    ],
)
def test_passes_skip_functions_with_streams(
    pass_: ModulePass, undone: str, caplog: pytest.LogCaptureFixture
) -> None:
    module = parse("""
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tgraph.negate %x {tgraph.stream = 1} : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }""")
    with caplog.at_level("INFO", REMARKS.name):
        assert str(run(module, pass_)) == str(module)
    (message,) = caplog.messages
    assert f"{undone}: its operations have streams" in message
