"""Local search: moves tasks across the peak as long as that lowers it.

The search delays the writer of a value that is live at the peak but not read before,
past all adjacent tasks with equally many live bytes. It advances the last readers of a
value that could be freed before the peak, along with the tasks that they depend on.
"""

from collections.abc import Iterator, Sequence

from .. import deadline
from .graph import TaskGraph, profile

LONGEST = 64
"""The largest number of tasks that are moved together."""

WIDEST = 32
"""The largest number of values at the peak that are tried."""


def improve(graph: TaskGraph, order: list[int], tries: int) -> list[int]:
    """An order with a lower peak, or `order` itself, after at most `tries` moves."""
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
            # An equally high peak that fewer tasks reach is progress, too.
            if (max(new), new.count(max(new))) < (worst, live.count(worst)):
                order, live = candidate, new
                break
        else:
            break
    return order


def _moves(
    graph: TaskGraph, order: list[int], at: int, end: int
) -> Iterator[list[int]]:
    """Orders in which one more value is dead at position `at`, the largest value first.

    Delayed tasks run at `end`, or right before the first reader if that is earlier.
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
    """The values that are live at a position, and that its task neither writes nor
    reads for the last time, the largest first."""
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
    """The tasks, and those reachable along the edges within the positions; None if
    these are more than `LONGEST`."""
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
    """The order with `tasks` moved to position `at`, keeping their relative order."""
    first = [task for task in order[:at] if task not in tasks]
    last = [task for task in order[at:] if task not in tasks]
    return [*first, *(task for task in order if task in tasks), *last]
