"""Splits a graph into parts that run one after the other in every order."""

from collections.abc import Sequence

from .graph import Task, TaskGraph


def parts(graph: TaskGraph, order: Sequence[int]) -> list[tuple[int, int]]:
    """Half-open ranges of positions, one per part, the same in every order.

    A part ends with a task that depends on all tasks before it, and that all tasks
    after it depend on (an articulation point). Takes time near-linear in the graph.
    """
    position = [0] * len(order)
    for at, task in enumerate(order):
        position[task] = at
    last = len(order)
    # Each path back from a task after a cut contains the cut ...
    lowest = last
    leads_back = [False] * last
    for at in range(last - 1, -1, -1):
        leads_back[at] = lowest >= at
        before = (position[task] for task in graph.predecessors[order[at]])
        lowest = min(lowest, max(before, default=-1))
    # ... and so does each path forward from a task before it.
    highest = -1
    starts = [0]
    for at in range(last):
        if highest <= at and leads_back[at] and at + 1 < last:
            starts.append(at + 1)
        after = (position[task] for task in graph.successors[order[at]])
        highest = max(highest, min(after, default=last))
    return list(zip(starts, [*starts[1:], last], strict=True))


def subgraph(
    graph: TaskGraph, order: Sequence[int], part: tuple[int, int]
) -> TaskGraph:
    """The graph of a part's tasks, numbered in the given order, and their values."""
    start, end = part
    number = {task: at for at, task in enumerate(order[start:end])}
    after = set(order[end:])
    values: dict[int, int] = {}
    tasks: list[Task] = []
    for index in number:
        task = graph.tasks[index]
        for value in (*task.reads, *task.writes):
            values.setdefault(value, len(values))
        tasks.append(
            Task(
                [values[value] for value in task.reads],
                [values[value] for value in task.writes],
                [number[other] for other in task.after if other in number],
                [values[value] for value in task.overwrites],
            )
        )
    kept = [
        new
        for value, new in values.items()
        if graph.kept[value] or not after.isdisjoint(graph.readers[value])
    ]
    return TaskGraph(tasks, [graph.sizes[value] for value in values], kept)
