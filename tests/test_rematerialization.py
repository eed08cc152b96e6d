"""Tests schedules with rematerialization: valid, within the budget, and cheap."""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from tensorplan.planning.scheduling import Task, TaskGraph, peak_of, profile
from tensorplan.planning.scheduling.rematerialization import (
    cost_of,
    lowest,
    rematerialize,
)

Costs = list[int | None]


@st.composite
def problems(draw: st.DrawFn, most: int) -> tuple[TaskGraph, Costs, int]:
    """A graph, the cost of repeating each task, and a budget."""
    sizes: list[int] = draw(st.lists(st.integers(1, 4), max_size=1))
    tasks: list[Task] = []
    for index in range(draw(st.integers(1, most))):
        some = st.lists(st.integers(0, len(sizes) - 1), max_size=3, unique=True)
        reads = draw(some) if sizes else []
        overwrites = [value for value in reads if draw(st.booleans())]
        after = (
            [draw(st.integers(0, index - 1))] if index and draw(st.booleans()) else ()
        )
        writes = range(len(sizes), len(sizes) + draw(st.sampled_from([1, 1, 1, 0, 2])))
        sizes += [draw(st.sampled_from([1, 2, 4, 4, 8, 0])) for _ in writes]
        tasks.append(Task(reads, writes, after if index % 3 else (), overwrites))
    kept = [v for v in range(len(sizes)) if draw(st.integers(0, 9)) == 0]
    graph = TaskGraph(tasks, sizes, kept)
    costs: Costs = [
        None if draw(st.integers(0, 5)) == 0 else draw(st.integers(1, 20))
        for _ in tasks
    ]
    peak = peak_of(graph, range(len(tasks)))
    return graph, costs, draw(st.integers(peak // 3, max(peak - 1, 1)))


def assert_valid(graph: TaskGraph, costs: Costs, order: Sequence[int]) -> None:
    written = {value for value, task in enumerate(graph.writer) if task is None}
    assert set(order) == set(range(len(graph.tasks)))
    for at, index in enumerate(order):
        task = graph.tasks[index]
        assert written.issuperset(task.reads)
        written.update(task.writes)
        assert costs[index] is not None or order.count(index) == 1
        for other in task.after:
            assert other in order[:at]
            assert other not in order[at:]


def live_bytes(graph: TaskGraph, order: Sequence[int], at: int) -> int:
    """The bytes that are live at position `at`, according to the definition."""

    def is_read_later(value: int) -> bool:
        for index in order[at + 1 :]:
            if value in graph.tasks[index].reads:
                return True
            if value in graph.tasks[index].writes:
                return False
        return graph.kept[value]

    task = graph.tasks[order[at]]
    total, freed = 0, list[int]()
    for value, size in enumerate(graph.sizes):
        writer = graph.writer[value]
        is_there = writer is None or writer in order[:at]
        is_touched = value in task.writes or value in task.reads
        if is_touched or (is_there and is_read_later(value)):
            total += size
        if value in task.reads and not is_read_later(value):
            freed.append(value)
    return total - graph.taken_over(task, freed)


@pytest.mark.thorough
@given(problems(6), st.data())
def test_live_bytes_with_repetitions_follow_the_definition(
    problem: tuple[TaskGraph, Costs, int], data: st.DataObject
) -> None:
    graph = problem[0]
    order = list(range(len(graph.tasks)))
    for _ in range(3):
        at = data.draw(st.integers(0, len(order)))
        if order[:at]:
            order.insert(at, data.draw(st.sampled_from(order[:at])))
    assert profile(graph, order) == [
        live_bytes(graph, order, at) for at in range(len(order))
    ]


@pytest.mark.thorough
@settings(max_examples=examples(500))
@given(problems(30))
def test_order_with_repetitions_is_valid_and_never_higher(
    problem: tuple[TaskGraph, Costs, int],
) -> None:
    graph, costs, budget = problem
    order = range(len(graph.tasks))
    found = rematerialize(graph, order, costs, budget)
    assert_valid(graph, costs, found.order)
    assert found.peak == peak_of(graph, found.order) <= peak_of(graph, order)
    assert found.cost == cost_of(costs, found.order)
    assert found == rematerialize(graph, order, costs, budget)


@settings(max_examples=examples(500))
@given(problems(30), st.integers(0, 100))
def test_lowest_peak_within_a_cost(
    problem: tuple[TaskGraph, Costs, int], most: int
) -> None:
    graph, costs, _ = problem
    order = range(len(graph.tasks))
    found = lowest(graph, order, costs, most)
    assert_valid(graph, costs, found.order)
    assert found.peak == peak_of(graph, found.order) <= peak_of(graph, order)
    assert found.cost == cost_of(costs, found.order) <= most
    assert found == lowest(graph, order, costs, most)


@pytest.mark.parametrize(("most", "peak"), [(0, 102), (300, 80), (1000, 25)])
def test_more_time_allows_a_lower_peak(most: int, peak: int) -> None:
    """The graph has 100 layers, and repeating one costs 10."""
    graph, costs = chain_of_layers(100)
    order = range(len(graph.tasks))
    found = lowest(graph, order, costs, most)
    assert found.peak <= peak
    assert found.cost <= most


def all_repetitions(graph: TaskGraph, costs: Costs) -> Iterator[list[int]]:
    """All orders with repetitions in which first executions keep the given order."""
    count = len(graph.tasks)
    stages = [
        [
            (*repeated, stage)
            for number in range(stage + 1)
            for repeated in combinations(
                [task for task in range(stage) if costs[task] is not None], number
            )
        ]
        for stage in range(count)
    ]
    for choice in product(*stages):
        order = list(chain.from_iterable(choice))
        first = {task: order.index(task) for task in order}
        if all(
            other not in order[first[index] :]
            for index, task in enumerate(graph.tasks)
            for other in task.after
        ):
            yield order


@settings(max_examples=examples(300), deadline=None)
@given(problems(5))
def test_exact_search_finds_the_least_cost(
    problem: tuple[TaskGraph, Costs, int],
) -> None:
    pytest.importorskip("ortools")
    from tensorplan.planning.scheduling.exact_rematerialization import fewest

    graph, costs, budget = problem
    order = range(len(graph.tasks))
    fitting = [
        cost_of(costs, each)
        for each in all_repetitions(graph, costs)
        if peak_of(graph, each) <= budget
    ]
    found = fewest(graph, order, costs, budget)
    assert_valid(graph, costs, found.order)
    assert found.cost == cost_of(costs, found.order)
    assert found.peak == peak_of(graph, found.order)
    assert (found.peak <= budget) >= bool(fitting)
    if fitting:
        assert found.cost <= min(fitting)  # it may also delay a task


def chain_of_layers(count: int) -> tuple[TaskGraph, Costs]:
    """A forward and a backward pass, whose tasks read the activation of their layer."""
    tasks = [Task((), (0,))]
    tasks += [Task((layer,), (layer + 1,)) for layer in range(count)]
    for layer in reversed(range(count)):
        tasks.append(Task((len(tasks) - 1, layer), (len(tasks),)))
    costs: Costs = [10] * (count + 1) + [None] * count
    return TaskGraph(tasks, [1] * len(tasks)), costs


def test_long_chain_is_cut_into_segments() -> None:
    """As Chen et al. show, about twice the square root of the number of layers stays
    live, at the cost of one more forward pass."""
    graph, costs = chain_of_layers(100)
    order = range(len(graph.tasks))
    assert peak_of(graph, order) > 100
    found = rematerialize(graph, order, costs, 25)
    assert_valid(graph, costs, found.order)
    assert found.peak <= 25
    assert found.cost <= 1.2 * 10 * 100


def test_unreachable_budget_still_lowers_the_peak() -> None:
    graph, costs = chain_of_layers(20)
    found = rematerialize(graph, range(len(graph.tasks)), costs, 0)
    assert found.peak < 12


def test_value_read_late_is_computed_late() -> None:
    tasks = [Task((), (0,)), Task((), (1,)), Task((1,), (2,)), Task((0, 2), (3,))]
    graph = TaskGraph(tasks, [8, 8, 1, 1])
    found = rematerialize(graph, range(4), [5, None, None, None], 10)
    assert list(found.order) == [1, 2, 0, 3]
    assert found.cost == 0
