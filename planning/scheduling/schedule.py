"""The scheduler: list scheduling, then a search in the part with the peak."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from .beam import beam
from .exact import search
from .graph import TaskGraph, least_live, peak_of, profile
from .greedy import backwards, forwards
from .improve import improve
from .parts import parts, subgraph

ROUNDS = 4
"""The number of passes of list scheduling, alternately forward and backward."""

WORK = 1_000_000
"""The number of tasks that a search visits, at effort 1: about a second."""

NARROWEST = 16
"""The least width of a beam search, in orders: narrower ones are not worthwhile."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of the tasks."""

    order: Sequence[int]
    peak: int  # bytes
    optimal: bool  # whether it is proved that no order has a lower peak


def schedule(graph: TaskGraph, effort: float = 1.0) -> Schedule:
    """An order with a low peak of live bytes, never above that of the given order.

    Deterministic: it counts its work, not seconds, unless there is a deadline. `effort`
    scales the work of the searches; with 0, there is only list scheduling.
    """
    work = int(WORK * effort)
    order = _listed(graph)
    if not work or not order:
        return Schedule(order, peak_of(graph, order), not order)
    order, optimal = _searched(graph, order, work)
    if not optimal:
        order = improve(graph, order, work // len(order))
    return Schedule(order, peak_of(graph, order), optimal)


def _listed(graph: TaskGraph) -> list[int]:
    """The best order of list scheduling, by the given order, then by growth."""
    best = list(range(len(graph.tasks)))
    peak = peak_of(graph, best)
    for by_growth in (False, True):
        order, last = best, peak
        for number in range(ROUNDS):
            lists = forwards if number % 2 == by_growth else backwards
            order = lists(graph, order, by_growth and number == 0)
            new = peak_of(graph, order)
            if new < peak:
                best, peak = order, new
            elif number and new >= last:
                break
            last = new
    return best


def _searched(graph: TaskGraph, order: list[int], work: int) -> tuple[list[int], bool]:
    """The order with its parts searched, the one with the highest peak first, until a
    search fails or the highest part is optimal.

    Also returns whether the peak is proved to be the lowest.
    """
    ranges = parts(graph, order)
    live = profile(graph, order)
    proved: set[tuple[int, int]] = set()
    while True:
        part = max(ranges, key=lambda part: max(live[part[0] : part[1]]))
        if part in proved:
            return order, True
        start, end = part
        within = subgraph(graph, order, part)
        size = end - start
        states = work // size
        during = profile(within, range(size))
        below = max(during)
        least = (least_live(within, i) for i in range(size) if during[i] == below)
        found, exhausted = None, below in islice(least, states)
        if not exhausted and states > size:
            found, exhausted = search(within, below, states)
        if not exhausted and (width := work // size**2) >= NARROWEST:
            found = beam(within, width, below)
        if found is None and not exhausted:
            return order, False
        if exhausted:
            proved.add(part)
        if found is not None:
            order = [*order[:start], *(order[start + i] for i in found), *order[end:]]
            live = profile(graph, order)
