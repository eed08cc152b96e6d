"""Computes how long an order takes when several queues run their tasks concurrently."""

from collections.abc import Hashable, Iterator, Sequence

from .graph import TaskGraph

BESIDE = 8
"""Copying costs this part of its time where it runs beside tasks: they share memory's
bandwidth."""

MIXTURES = 8
"""Of two orders, how many are tried, from either side."""


def makespan(
    graph: TaskGraph,
    order: Sequence[int],
    times: Sequence[int],
    queues: Sequence[Hashable],
) -> int:
    """When the last task ends, in the unit of `times`.

    Each queue runs its tasks one after the other, in the given order; a task waits for
    those that it depends on.
    """
    free: dict[Hashable, int] = {}
    ends = [0] * len(times)
    for task in order:
        ready = max([ends[other] for other in graph.predecessors[task]], default=0)
        start = max(ready, free.get(queues[task], 0))
        ends[task] = free[queues[task]] = start + times[task]
    return max(ends, default=0)


def mixtures(first: Sequence[int], second: Sequence[int]) -> Iterator[list[int]]:
    """Orders that begin as one of two and go on as the other, which are possible."""
    for part in range(MIXTURES - 1, 0, -1):
        at = len(first) * part // MIXTURES
        for start, other in ((first, second), (second, first)):
            begun = set(start[:at])
            yield [*start[:at], *(task for task in other if task not in begun)]
