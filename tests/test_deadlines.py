"""Tests that searches respect their deadlines and return the best result so far.

In these tests, deadlines count the CPU time of the process, so other processes do not
matter.
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, process_time

import pytest
from hypothesis import given, settings
from levels import READY, REST, assert_same_values, planned_bytes
from modules import run
from programs import Program, programs
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.passes import driver
from tensorplan.passes.tgraph.fit import TGraphFit
from tensorplan.passes.tgraph.offload import TGraphOffload
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.passes.tgraph.search import TGraphSearch
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.planning import Buffer, Problem, deadline, solve, validate
from tensorplan.planning.scheduling import Task, TaskGraph, peak_of, schedule
from tensorplan.planning.scheduling.rematerialization import rematerialize

MODELS = Path(__file__).parent / "models"


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(deadline, "monotonic", process_time)
    monkeypatch.setattr(driver, "monotonic", process_time)
    gc.freeze()  # the garbage collector ignores the objects of other tests
    yield
    gc.unfreeze()


def hard_graph(count: int = 400) -> TaskGraph:
    """A graph so wide that searches run until their deadline."""
    random = Random(2)
    tasks: list[Task] = []
    for index in range(count):
        some = random.sample(range(index), min(index, random.randint(0, 3)))
        tasks.append(Task(some, (index,)))
    return TaskGraph(tasks, [random.randint(1, 1000) for _ in tasks])


def test_earlier_deadline_wins() -> None:
    assert not deadline.passed()
    with deadline.until(monotonic() - 1), deadline.until(monotonic() + 60):
        assert deadline.passed()
    assert not deadline.passed()


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_schedule_respects_its_deadline(seconds: float, own_clock: None) -> None:
    graph = hard_graph()
    given = peak_of(graph, range(len(graph.tasks)))
    start = process_time()
    with deadline.until(start + seconds):
        found = schedule(graph, effort=100)
    assert process_time() - start < seconds + 0.5
    assert sorted(found.order) == list(range(len(graph.tasks)))
    assert found.peak <= given


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_rematerialization_respects_its_deadline(
    seconds: float, own_clock: None
) -> None:
    graph = hard_graph()
    order = range(len(graph.tasks))
    given = peak_of(graph, order)
    start = process_time()
    with deadline.until(start + seconds):
        found = rematerialize(graph, order, [1] * len(order), given // 3)
    assert process_time() - start < seconds + 0.5
    assert set(found.order) == set(order)
    assert found.peak <= given


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_solver_respects_its_deadline(seconds: float, own_clock: None) -> None:
    random = Random(1)
    buffers: list[Buffer] = []
    for n in range(300):
        start = random.randrange(200)
        end = start + random.randint(1, 60)
        buffers.append(Buffer(f"b{n}", random.randint(1, 10_000), start, end))
    problem = Problem(buffers)
    begin = process_time()
    with deadline.until(begin + seconds):
        plan = solve(problem)
    assert process_time() - begin < seconds + 1  # includes loading numba once
    assert validate(problem, plan.offsets) is None


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "limit"),
    [("lenet_train", 1), ("lstm_scan_train", 2)],
)
def test_search_respects_its_time_limit(
    model: str, limit: int, own_clock: None
) -> None:
    """A search takes at most its time limit, or the time of effort=low if that is
    longer."""
    module = tensorplan.from_stablehlo(MODELS / f"{model}.mlir").module
    start = process_time()
    low = tensorplan.plan(module)
    least = process_time() - start
    start = process_time()
    high = tensorplan.plan(module, effort="high", time_limit=limit)
    assert process_time() - start < max(limit, least) + 1
    assert planned_bytes(high) <= planned_bytes(low)


@pytest.mark.thorough
def test_plan_with_a_budget_respects_its_time_limit(own_clock: None) -> None:
    module = tensorplan.from_stablehlo(MODELS / "lstm_scan_train.mlir").module
    start = process_time()
    with pytest.raises(Exception, match="more than the budget"):
        tensorplan.plan(module, budget=1000, time_limit=1)
    assert process_time() - start < 2


PASSES = (
    TGraphSchedule(effort=10),
    TGraphTile(tiles=64, max_slowdown=1),
    TGraphRematerialize("1KiB"),
    TGraphOffload("1KiB", "cpu:0", "cpu:1"),
    TGraphFit("1KiB", time_limit=0),
    TGraphSearch(time_limit=0),
)


@pytest.mark.parametrize("pass_", PASSES, ids=lambda pass_: pass_.name)
@pytest.mark.parametrize("seconds", [0, 0.02])
@settings(max_examples=5)
@given(programs(max_ops=30))
def test_interrupted_passes_leave_valid_programs(
    pass_: ModulePass, seconds: float, program: Program
) -> None:
    ready = run(program.module, *READY)
    with deadline.until(monotonic() + seconds):
        changed = run(ready, pass_)
    assert_same_values(program, changed, run(changed, *REST))
