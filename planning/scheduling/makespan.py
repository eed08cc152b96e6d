"""Computes the time of an order whose tasks run concurrently on several queues."""

from collections.abc import Hashable, Iterator, Sequence

from .graph import TaskGraph

BESIDE = 8
"""A copy that runs beside tasks costs its time divided by this number, since both share
the memory bandwidth."""

MIXTURES = 8
"""The number of parts into which two orders are cut; mixtures switch between parts."""


def makespan(
    graph: TaskGraph,
    order: Sequence[int],
    times: Sequence[int],
    queues: Sequence[Hashable],
) -> int:
    """The time at which the last task ends, in the unit of `times`.

    Each queue runs its tasks sequentially, in the given order; a task waits for its
    predecessors.
    """
    free: dict[Hashable, int] = {}
    ends = [0] * len(times)
    for task in order:
        ready = max([ends[other] for other in graph.predecessors[task]], default=0)
        start = max(ready, free.get(queues[task], 0))
        ends[task] = free[queues[task]] = start + times[task]
    return max(ends, default=0)


def mixtures(first: Sequence[int], second: Sequence[int]) -> Iterator[list[int]]:
    """Valid orders that begin like one of two orders and continue like the other."""
    for part in range(MIXTURES - 1, 0, -1):
        at = len(first) * part // MIXTURES
        for start, other in ((first, second), (second, first)):
            begun = set(start[:at])
            yield [*start[:at], *(task for task in other if task not in begun)]
