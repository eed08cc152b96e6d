"""The order with the lowest peak, by best-first search over sets of done tasks.

The live values depend on which tasks are done, not on their order. The search thus
reaches each set of tasks only once, with the lowest peak. This is dynamic programming
over ideals, as in Serenity (Ahn et al., MLSys 2020).
"""

from heapq import heappop, heappush
from itertools import count

from .. import deadline
from .graph import TaskGraph
from .partial import OrderBuilder, Partial


def search(graph: TaskGraph, below: int, states: int) -> tuple[list[int] | None, bool]:
    """The order with the lowest peak, if that is below `below` bytes; else None.

    Also returns whether the result is proved. The search gives up when it has reached
    more than `states` sets of tasks.
    """
    builder = OrderBuilder(graph)
    if builder.start.peak >= below:
        return None, True
    everything = (1 << len(graph.tasks)) - 1
    best = {0: builder.start.peak}
    number = count()
    # By peak; among equals, the latest first, which makes the search depth-first.
    heap: list[tuple[int, int, Partial]] = [(builder.start.peak, 0, builder.start)]
    while heap:
        peak, _, partial = heappop(heap)
        if best[partial.done] < peak:
            continue
        if partial.done == everything:
            return partial.order, True
        if len(best) > states or deadline.passed():
            return None, False
        for new in builder.grown(partial):
            if new.peak < best.get(new.done, below):
                best[new.done] = new.peak
                heappush(heap, (new.peak, -next(number), new))
    return None, True
