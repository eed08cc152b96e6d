"""Tests orders of tasks: valid, never worse than the given order, and optimal if
claimed."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplan.planning.scheduling import (
    Task,
    TaskGraph,
    makespan,
    mixtures,
    peak_of,
    profile,
    schedule,
)
from tensorplan.planning.scheduling.beam import beam
from tensorplan.planning.scheduling.exact import search
from tensorplan.planning.scheduling.graph import least_live
from tensorplan.planning.scheduling.greedy import backwards, forwards
from tensorplan.planning.scheduling.improve import improve
from tensorplan.planning.scheduling.parts import parts, subgraph


@st.composite
def graphs(draw: st.DrawFn, most: int = 7) -> TaskGraph:
    """Random graphs whose tasks write up to two values and read inputs or earlier
    values."""

    def some(count: int, most: int) -> list[int]:
        return draw(st.lists(st.integers(0, count - 1), max_size=most, unique=True))

    sizes = draw(st.lists(st.integers(0, 8), max_size=2))
    tasks: list[Task] = []
    for index in range(draw(st.integers(0, most))):
        reads = some(len(sizes), 3) if sizes else []
        overwrites = [value for value in reads if draw(st.booleans())]
        after = some(index, 1) if index else []
        writes = range(len(sizes), len(sizes) + draw(st.integers(0, 2)))
        sizes += [draw(st.sampled_from([0, 1, 2, 4, 8])) for _ in writes]
        tasks.append(Task(reads, writes, after, overwrites))
    kept = some(len(sizes), 1) if sizes else []
    return TaskGraph(tasks, sizes, kept)


def orders(graph: TaskGraph, start: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All valid orders that start with `start`."""
    if len(start) == len(graph.tasks):
        yield start
    for task, before in enumerate(graph.predecessors):
        if task not in start and all(other in start for other in before):
            yield from orders(graph, (*start, task))


def assert_valid(graph: TaskGraph, order: Sequence[int]) -> None:
    position = {task: at for at, task in enumerate(order)}
    assert sorted(position) == list(range(len(graph.tasks)))
    for task, before in enumerate(graph.predecessors):
        assert all(position[other] < position[task] for other in before)


def live_bytes(graph: TaskGraph, order: Sequence[int], at: int) -> int:
    """The bytes that are live at position `at`, according to the definition."""
    done, task = set(order[:at]), graph.tasks[order[at]]
    later = set(order[at + 1 :])
    total = 0
    freed: list[int] = []
    for value, size in enumerate(graph.sizes):
        writer, readers = graph.writer[value], set(graph.readers[value])
        is_read_later = graph.kept[value] or bool(readers & later)
        is_written = writer is None or writer in done
        if value in task.writes or (is_written and value in task.reads):
            total += size
        elif is_written and is_read_later:
            total += size
        if value in task.reads and not is_read_later:
            freed.append(value)
    if task.writes:
        size = graph.sizes[task.writes[0]]
        if any(v in freed and graph.sizes[v] == size for v in task.overwrites):
            total -= size
    return total


@given(graphs())
def test_live_bytes_follow_the_definition(graph: TaskGraph) -> None:
    order = range(len(graph.tasks))
    want = [live_bytes(graph, order, at) for at in order]
    assert profile(graph, order) == want


@given(graphs(most=5))
def test_least_live_is_a_lower_bound(graph: TaskGraph) -> None:
    for order in orders(graph):
        for task, live in zip(order, profile(graph, order), strict=True):
            assert least_live(graph, task) <= live


def test_no_search_if_the_bound_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("tensorplan.planning.scheduling.schedule")
    monkeypatch.setattr(module, "search", None)
    tasks = [Task([], [0]), Task([0], [1]), Task([1], [2]), Task([0, 2], [3])]
    graph = TaskGraph(tasks, [4, 8, 8, 1], [3])
    assert least_live(graph, 2) == peak_of(graph, range(4)) == 4 + 8 + 8
    assert schedule(graph).optimal


@given(graphs())
def test_schedule_is_valid_and_optimal(graph: TaskGraph) -> None:
    found = schedule(graph)
    assert_valid(graph, found.order)
    assert found.peak == peak_of(graph, found.order)
    assert found.optimal
    assert found.peak == min(peak_of(graph, order) for order in orders(graph))


@given(graphs(30), st.sampled_from([0, 0.001, 0.1]))
def test_schedule_is_never_worse_than_the_given_order(
    graph: TaskGraph, effort: float
) -> None:
    found = schedule(graph, effort)
    assert_valid(graph, found.order)
    assert found.peak == peak_of(graph, found.order)
    assert found.peak <= peak_of(graph, range(len(graph.tasks)))
    assert found == schedule(graph, effort)


@given(graphs(20), st.booleans())
def test_list_schedules_are_valid(graph: TaskGraph, by_growth: bool) -> None:
    order = list(range(len(graph.tasks)))
    for lists in (forwards, backwards):
        assert_valid(graph, lists(graph, order, by_growth))


@given(graphs(12))
def test_searches_return_only_improvements(graph: TaskGraph) -> None:
    order = list(range(len(graph.tasks)))
    peak = peak_of(graph, order)
    found, proved = search(graph, peak, 10_000)
    assert proved
    for better in (found, beam(graph, 16, peak)):
        if better is not None:
            assert_valid(graph, better)
            assert peak_of(graph, better) < peak
    improved = improve(graph, order, 50)
    assert_valid(graph, improved)
    assert peak_of(graph, improved) <= peak
    best = peak if found is None else peak_of(graph, found)
    assert best <= peak_of(graph, improved)


def test_delayed_task_moves_past_the_whole_peak() -> None:
    x, large, early, zeros, sums, result = range(6)
    tasks = [
        Task([x], [early]),
        Task([], [zeros]),
        Task([zeros, x], [sums], [], [zeros]),
        Task([sums, large], [result], [], [sums]),
        Task([early]),
    ]
    graph = TaskGraph(tasks, [3, 20, 1, 10, 10, 10], [result])
    assert profile(graph, range(5)) == [24, 34, 34, 31, 11]
    assert improve(graph, list(range(5)), 50) == [1, 2, 3, 0, 4]
    assert profile(graph, [1, 2, 3, 0, 4]) == [33, 33, 33, 14, 11]


@given(graphs())
def test_parts_are_common_to_all_orders(graph: TaskGraph) -> None:
    given_order = list(range(len(graph.tasks)))
    if not given_order:
        return
    found = parts(graph, given_order)
    assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == len(given_order)
    cuts = {
        at + 1
        for at in given_order[:-1]
        if all(set(o[:at]) == set(range(at)) and o[at] == at for o in orders(graph))
    }
    assert {end for _, end in found[:-1]} == cuts


@given(graphs(12))
def test_part_has_the_live_bytes_of_the_graph(graph: TaskGraph) -> None:
    order = list(range(len(graph.tasks)))
    live = profile(graph, order)
    for start, end in parts(graph, order) if order else ():
        within = subgraph(graph, order, (start, end))
        own = profile(within, range(end - start))
        around = {a - b for a, b in zip(live[start:end], own, strict=True)}
        assert len(around) == 1  # values that the part does not use


def test_two_chains_run_in_sequence() -> None:
    # Two wide values are each reduced to a narrow one, and the narrow ones are added.
    tasks = [
        Task((), (0,)),
        Task((), (1,)),
        Task((0,), (2,)),
        Task((1,), (3,)),
        Task((2, 3), (4,)),
    ]
    graph = TaskGraph(tasks, [100, 100, 1, 1, 1])
    found = schedule(graph)
    assert peak_of(graph, range(5)) == 201
    assert found.peak == 102
    assert found.optimal


def test_order_that_breaks_a_dependency_is_refused() -> None:
    with pytest.raises(ValueError, match="task 0 depends on task 1"):
        TaskGraph([Task((0,), ()), Task((), (0,))], [4])


def test_time_is_nearly_linear_in_graph_size() -> None:
    """The graph has the shape of a training step: forward, backward, and updates at the
    end."""

    def looks(layers: int) -> float:
        from time import process_time

        tasks = [Task((), (0,))]
        sizes = [8]
        for layer in range(layers):  # activations 1 ... layers
            tasks.append(Task((layer,), (layer + 1,)))
            sizes.append(8)
        gradient = layers
        updates: list[Task] = []
        for layer in reversed(range(layers)):
            sizes += [8, 64]  # the gradients of the activation and of the weight
            tasks.append(Task((gradient, layer), (len(sizes) - 2,)))
            tasks.append(Task((gradient, layer), (len(sizes) - 1,)))
            gradient = len(sizes) - 2
            updates.append(Task((len(sizes) - 1,), ()))
        graph = TaskGraph([*tasks, *updates], sizes)
        start = process_time()
        found = schedule(graph, 0)
        seconds = process_time() - start
        assert found.peak <= 8 * layers + 100 < peak_of(graph, range(len(graph.tasks)))
        return seconds

    times = [looks(layers) for layers in (500, 1000, 2000, 4000)]
    assert all(b < 4 * a + 0.05 for a, b in pairwise(times))


def test_makespan_of_concurrent_queues() -> None:
    tasks = [Task((), (0,)), Task((), (1,)), Task((0,), (2,)), Task((1, 2), (3,))]
    graph = TaskGraph(tasks, [1] * 4)
    times, queues = [5, 3, 4, 1], ["a", "a", "b", "a"]
    assert makespan(graph, [0, 1, 2, 3], times, queues) == 5 + 4 + 1
    assert makespan(graph, [1, 0, 2, 3], times, queues) == 3 + 5 + 4 + 1
    assert makespan(graph, [0, 1, 2, 3], times, ["a"] * 4) == sum(times)


@given(graphs(20))
def test_mixtures_of_orders_are_valid(graph: TaskGraph) -> None:
    given, other = range(len(graph.tasks)), schedule(graph, 0.0).order
    for order in mixtures(other, given):
        assert_valid(graph, order)
