"""Local search: moves tasks across the peak as long as that lowers it.

The search delays the writer of a value that is live at the peak before anything reads
it, past all adjacent tasks at which as much is live. It advances the last readers of a
value that could be freed before the peak, along with the tasks that they depend on.
"""

from collections.abc import Iterator, Sequence

from .. import deadline
from .graph import TaskGraph, profile

LONGEST = 64
"""Tasks that are moved together, at most."""

WIDEST = 32
"""Values at the peak that are looked at, at most."""


def improve(graph: TaskGraph, order: list[int], tries: int) -> list[int]:
    """An order with a lower peak, or the order itself, after at most `tries` moves."""
    live = profile(graph, order)
    while live:
        worst = max(live)
        at = live.index(worst)
        end = next((i for i in range(at, len(live)) if live[i] < worst), len(live))
        for candidate in _moves(graph, order, at, end):
            if not tries or deadline.passed():
                return order
            tries -= 1
            new = profile(graph, candidate)
            # A peak that is as high, but later or at fewer tasks, is progress too.
            if (max(new), new.count(max(new))) < (worst, live.count(worst)):
                order, live = candidate, new
                break
        else:
            break
    return order


def _moves(
    graph: TaskGraph, order: list[int], at: int, end: int
) -> Iterator[list[int]]:
    """Orders in which something is no longer live at position `at`, largest first.

    What is delayed runs at `end`, or right before its first reader if that is earlier.
    """
    position = [0] * len(order)
    for index, task in enumerate(order):
        position[task] = index
    for value in _live(graph, position, at)[:WIDEST]:
        writer = graph.writer[value]
        uses = [position[reader] for reader in graph.readers[value]]
        if writer is not None and position[writer] < at < min(uses):
            until = min(end, *uses)
            moved = _reached([writer], graph.successors, position, range(until))
            if moved is not None:
                yield _placed(order, moved, until)
        if at < max(uses):
            late = [reader for reader in graph.readers[value] if position[reader] > at]
            moved = _reached(late, graph.predecessors, position, range(at, len(order)))
            if moved is not None and order[at] not in moved:
                yield _placed(order, moved, at)


def _live(graph: TaskGraph, position: Sequence[int], at: int) -> list[int]:
    """The values that are live at a position and that its task does not write or read
    for the last time, the largest first."""
    found: list[int] = []
    for value, readers in enumerate(graph.readers):
        if not readers or not graph.sizes[value]:
            continue
        writer = graph.writer[value]
        written = -1 if writer is None else position[writer]
        if written < at < max(position[reader] for reader in readers):
            found.append(value)
    return sorted(found, key=lambda value: -graph.sizes[value])


def _reached(
    tasks: Sequence[int],
    edges: Sequence[Sequence[int]],
    position: Sequence[int],
    within: range,
) -> set[int] | None:
    """The tasks and all that the edges lead to within the positions; None if many."""
    found = set(tasks)
    stack = list(tasks)
    while stack:
        for other in edges[stack.pop()]:
            if other not in found and position[other] in within:
                found.add(other)
                stack.append(other)
        if len(found) > LONGEST:
            return None
    return found


def _placed(order: Sequence[int], tasks: set[int], at: int) -> list[int]:
    """The order with some tasks, in their order, all put before position `at`."""
    first = [task for task in order[:at] if task not in tasks]
    last = [task for task in order[at:] if task not in tasks]
    return [*first, *(task for task in order if task in tasks), *last]
