"""Core first: an exact plan of the heaviest sections, everything else around it.

Where the load is near the capacity nothing may be wasted; where it is low, most orders
of placement do. So the buffers of the sections of the highest load, the core, are
placed first: those that are live in all of a part of it at the bottom, where they cost
nothing, the others by the skyline or by branch and bound. Then ever lighter sections
follow, their buffers placed by ejection around what is there (`repair.py`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from .. import deadline
from . import orders
from .budget import SearchBudget
from .repair import WAITING, Repair
from .search import FEASIBLE, RULES, ValleySearch
from .sections import Part, parts_of
from .skyline import skyline_plans

SLACKS = (0.015, 0.03, 0.12, 0.06)
"""How far below the greatest load the load of a section of the core may be."""

_WIDEN = 4  # how many times as much the slack is on the next level
_FIRM = 1000  # weight of the core's buffers
_SEARCH = 2_000_000  # work of the search in a part of the core, for an effort of 1


class PlacedCore(NamedTuple):
    """What came of placing a part of the core."""

    offsets: Sequence[int] | None  # units
    work: int  # as search.py counts it


class CoreFirst:
    """Places one part, with cores of several slacks under several capacities."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._tall = part.tallest
        self._levels: dict[float, list[tuple[Sequence[int], Repair]]] = {}

    def fit(
        self, capacity: int, slack: float, effort: int, budget: SearchBudget
    ) -> Sequence[int] | None:
        """Offsets within the capacity (units), if it finds some.

        `effort` is how often a level may be gone over, about.
        """
        offsets = [WAITING] * len(self._tall)
        firm = [1] * len(offsets)
        core = True
        while WAITING in offsets:
            for members, repair in self._level(slack):
                limit = budget.left
                if limit <= 0:
                    return None
                if core and 2 * len(members) > len(offsets):
                    return None  # not worth the detour
                if core:
                    since = budget.seconds
                    allowed = min(limit, effort * _SEARCH)
                    found, spent = _exactly(repair.part, capacity, allowed)
                    budget.spend(spent, since)
                    for i in members:
                        firm[i] = _FIRM
                else:
                    placed = [offsets[i] for i in members]
                    weights = [firm[i] for i in members]
                    found = _around(repair, capacity, placed, weights, effort, budget)
                if found is None:
                    return None
                for i, offset in zip(members, found, strict=True):
                    offsets[i] = offset
            core = False
            slack *= _WIDEN
        return offsets

    def _level(self, slack: float) -> list[tuple[Sequence[int], Repair]]:
        """The parts of the sections of this slack: their buffers, how to place them."""
        if slack not in self._levels:
            bound = max(self._tall) * (1 - slack)
            level = [i for i, tall in enumerate(self._tall) if tall > bound]
            self._levels[slack] = [
                ([level[i] for i in sub.indices], Repair(sub))
                for sub in _parts_among(self._part, level)
            ]
        return self._levels[slack]


def _parts_among(part: Part, members: Sequence[int]) -> list[Part]:
    lifespans = [(part.first[i], part.end[i]) for i in members]
    return parts_of(lifespans, [part.size[i] for i in members])


def _exactly(part: Part, capacity: int, limit: int) -> PlacedCore:
    """Places a part of the core: by skyline, then by search."""
    through, others = list[int](), list[int]()
    for i, (first, end) in enumerate(zip(part.first, part.end, strict=True)):
        (through if end - first == part.sections else others).append(i)
    offsets = [0] * len(part.size)
    floor = 0
    for i in through:
        offsets[i] = floor
        floor += part.size[i]
    if floor > capacity:
        return PlacedCore(None, 0)
    work = 0
    for sub in _parts_among(part, others):
        found, spent = _packed(sub, capacity - floor, limit - work)
        work += spent
        if found is None:
            return PlacedCore(None, work)
        for i, offset in zip(sub.indices, found, strict=True):
            offsets[others[i]] = floor + offset
    return PlacedCore(offsets, work)


def _packed(part: Part, capacity: int, limit: int) -> PlacedCore:
    if max(part.load) > capacity:
        return PlacedCore(None, 0)
    for offsets in skyline_plans(part):
        if part.peak(offsets) <= capacity:
            return PlacedCore(offsets, 0)
        if deadline.passed():
            return PlacedCore(None, 0)
    if 4 * part.covered > limit:
        return PlacedCore(None, 0)
    search = ValleySearch(part)
    measures = [orders.by_measure(m) for m in orders.measures(part)]
    work = 0
    patience = max(1, limit // (8 * len(RULES) * len(measures)))
    while work < limit:
        for rule in RULES:
            for order in measures:
                found = search.fit(capacity, order, rule, min(patience, limit - work))
                work += found.work
                if found.status == FEASIBLE:
                    return PlacedCore(found.offsets, work)
                if work >= limit or deadline.passed():
                    return PlacedCore(None, work)
        patience *= 2
    return PlacedCore(None, work)


def _around(
    repair: Repair,
    capacity: int,
    offsets: Sequence[int],
    weights: Sequence[int],
    effort: int,
    budget: SearchBudget,
) -> Sequence[int] | None:
    """Places what is waiting, the largest areas first."""
    part = repair.part
    waiting = [i for i, offset in enumerate(offsets) if offset == WAITING]
    area = {i: part.size[i] * (part.end[i] - part.first[i]) for i in waiting}
    waiting.sort(key=lambda i: (-area[i], i))
    allowed = (1 + 2 * effort) * repair.pass_work
    return repair.fit(capacity, offsets, weights, waiting, allowed, budget)
