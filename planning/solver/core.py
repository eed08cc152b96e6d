"""Core first: plans the most heavily loaded sections first, and the rest around them.

Sections whose load is near the capacity leave no bytes to waste; in sections with a low
load, most orders of placement succeed. The search therefore first places the core: the
buffers that are live in the sections of the highest load. In each part of the core,
buffers that are live throughout lie at the bottom, where they cause no fragmentation.
Skyline placement or branch and bound (`search.py`) places the others. First fit then
places the buffers of lighter and lighter sections around the core, and ejection
(`repair.py`) places the buffers that do not fit.

Cores of buffers with gaps, given offsets or mixed alignments are planned by the caller.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise, product
from typing import NamedTuple

from .. import deadline
from ..problem import Buffer
from . import orders
from .budget import SearchBudget
from .gaps import WAITING
from .kernels import LARGEST
from .repair import Repair
from .search import FEASIBLE, RULES, ValleySearch
from .sections import Part, live_ranges_of, over, parts_among
from .skyline import skyline_plans

SLACKS = (0.015, 0.03, 0.12, 0.06)
"""A section belongs to the core if its load exceeds (1 - slack) * the greatest load."""

_WIDEN = 4  # the factor by which the slack grows from one level outwards to the next
_FIRM = 1000  # weight of the core's buffers


_SKYLINE_WORK = 50  # work of placing a buffer by the skyline, in sections


class PlacedCore(NamedTuple):
    """The result of placing a part of the core."""

    offsets: Sequence[int] | None  # units; None if no plan was found
    work: int  # as search.py counts it


class CoreFirst:
    """Plans one part, with cores of several slacks, under several capacities."""

    WORK = 2_000_000  # limit of the search in a part of the core, per unit of effort

    def __init__(self, part: Part) -> None:
        self._part = part
        self._cores: dict[float, list[_Core]] = {}

    @cached_property
    def _repair(self) -> Repair:
        return Repair(self._part.buffers)

    @cached_property
    def _area(self) -> Sequence[int]:
        part = self._part
        spans = zip(part.size, part.first, part.end, strict=True)
        return [size * (end - first) for size, first, end in spans]

    def fit(
        self, capacity: int, slack: float, effort: float, budget: SearchBudget
    ) -> Sequence[int] | None:
        """Returns offsets within `capacity` (units), or None if it finds no plan.

        The limits of work are proportional to `effort`.
        """
        limit = int(effort * self.WORK)
        offsets = [WAITING] * len(self._part.size)
        for core in self._core(slack):
            since = budget.seconds
            found, work = core.fit(capacity, min(budget.left, limit))
            budget.spend(work, since)
            if found is None:
                return None
            for i, offset in zip(core.members, found, strict=True):
                offsets[i] = offset
        order = _outwards(self._part.tallest, self._area, slack)
        return _around(self._repair, offsets, capacity, order, effort, budget)

    def is_small(self, slack: float) -> bool:
        """Whether each part of the core of this slack has at most half the buffers."""
        level, half = self._level(slack), len(self._part.tallest) // 2
        groups = self._part.connected(level) if len(level) > half else ()
        return all(len(group) <= half for group in groups)

    def _core(self, slack: float) -> "Sequence[_Core]":
        if slack not in self._cores:
            self._cores[slack] = [_Core(*sub) for sub in self._parts(slack)]
        return self._cores[slack]

    def _level(self, slack: float) -> Sequence[int]:
        """The buffers of the core of this slack."""
        return _level(self._part.tallest, slack)

    def _parts(self, slack: float) -> Iterator[tuple[Sequence[int], Part]]:
        """The parts of the core of this slack, each with the indices of its buffers."""
        level = self._level(slack)
        for sub in parts_among(self._part, level):
            yield [level[i] for i in sub.indices], sub


class CoresOfAny:
    """The cores of buffers that may have gaps, given offsets and mixed alignments."""

    SLACKS = (0.03, 0.06, 0.12, 0.24)  # each core lies in the next
    WORK = 1_000_000  # limit of the search in a core, per unit of effort

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        live = live_ranges_of(buffers)
        at, first, end = live.at, live.first, live.end
        load = [0] * (live.sections + 1)
        for i, buffer in enumerate(buffers):
            for each in range(at[i], at[i + 1]):
                load[first[each]] += buffer.size
                load[end[each]] -= buffer.size
        load = list(accumulate(load))
        most = over(load, list(zip(first, end, strict=True)), max)
        self._tallest = [max(most[a:b]) for a, b in pairwise(at)]
        self._area = orders.measures_of_any(buffers)[0]
        self._given = [i for i, b in enumerate(buffers) if b.offset is not None]
        self._repair = Repair(buffers)

    def members(self, slack: float) -> Sequence[int]:
        """The buffers of a core, and those with a given offset, around which a core
        must fit. Empty if these are more than half of all buffers."""
        level = sorted({*_level(self._tallest, slack), *self._given})
        return level if 2 * len(level) <= len(self._tallest) else ()

    def around(
        self,
        core: Mapping[int, int],
        capacity: int,
        slack: float,
        effort: float,
        budget: SearchBudget,
    ) -> Sequence[int] | None:
        """Places the other buffers around those of a core, whose offsets are given.

        Returns all offsets, or None if it finds no plan within the capacity.
        """
        offsets = [core.get(i, WAITING) for i in range(len(self._tallest))]
        order = _outwards(self._tallest, self._area, slack)
        return _around(self._repair, offsets, capacity, order, effort, budget)


def _around(
    repair: Repair,
    offsets: Sequence[int],
    capacity: int,
    order: Sequence[int],
    effort: float,
    budget: SearchBudget,
) -> Sequence[int] | None:
    """Places the buffers that wait for an offset around the others, which are firm."""
    firm = [1 if offset == WAITING else _FIRM for offset in offsets]
    allowed = int((1 + 2 * effort) * repair.pass_work)
    return repair.fit(capacity, offsets, firm, order, allowed, budget)


def _level(tallest: Sequence[int], slack: float) -> Sequence[int]:
    """The buffers of the core of this slack, given their highest loads."""
    bound = max(tallest) * (1 - slack)
    return [i for i, tall in enumerate(tallest) if tall > bound]


def _outwards(
    tallest: Sequence[int], area: Sequence[int], slack: float
) -> Sequence[int]:
    """The buffers by the level of their highest load, then by area, largest first.

    Each level reaches `_WIDEN` times as far below the greatest load as the last.
    """
    most = max(tallest)
    steps = [most * (1 - slack * _WIDEN**n) for n in range(1, 20)]
    bounds = [-bound for bound in steps if bound > 0]
    keys = [
        (bisect_left(bounds, -tall), -size)
        for tall, size in zip(tallest, area, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


class _Core:
    """A part of the core: buffers that are live throughout, and others above them."""

    def __init__(self, members: Sequence[int], part: Part) -> None:
        self.members = members  # indices in the whole part
        self._bottom = [0] * len(members)  # offsets of the buffers live throughout
        self._floor = 0  # units that these take
        others: list[int] = []
        for i, (first, end) in enumerate(zip(part.first, part.end, strict=True)):
            if end - first < part.sections:
                others.append(i)
                continue
            self._bottom[i] = self._floor
            self._floor += part.size[i]
        self._packings = [
            ([others[i] for i in sub.indices], _Packing(sub))
            for sub in parts_among(part, others)
        ]

    def fit(self, capacity: int, limit: int) -> PlacedCore:
        offsets = list(self._bottom)
        work = len(offsets)
        if self._floor > capacity:
            return PlacedCore(None, work)
        for members, packing in self._packings:
            found, spent = packing.fit(capacity - self._floor, limit - work)
            work += spent
            if found is None:
                return PlacedCore(None, work)
            for i, offset in zip(members, found, strict=True):
                offsets[i] = self._floor + offset
        return PlacedCore(offsets, work)


class _Packing:
    """Packs buffers by skyline placement, or else by branch and bound."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._plans = skyline_plans(part)  # not yet tried
        self._packed, self._peak = list[int](), LARGEST  # the best so far, and its peak
        self._search: ValleySearch | None = None

    def fit(self, capacity: int, limit: int) -> PlacedCore:
        part = self._part
        if max(part.load) > capacity:
            return PlacedCore(None, part.sections)
        work = 0
        while self._peak > capacity and work <= limit:
            plan = next(self._plans, None)
            if plan is None:
                break
            work += _SKYLINE_WORK * len(plan)
            if part.peak(plan) < self._peak:
                self._packed, self._peak = plan, part.peak(plan)
        if self._peak <= capacity:
            return PlacedCore(self._packed, work)
        if max(work, 4 * part.covered) > limit:
            return PlacedCore(None, work)
        self._search = search = self._search or ValleySearch(part)
        measures = [orders.by_measure(m) for m in orders.measures(part)]
        patience = max(1, limit // (8 * len(RULES) * len(measures)))
        while work < limit:
            for rule, order in product(RULES, measures):
                allowed = min(patience, limit - work)
                found = search.fit(rule, capacity, order, allowed)
                work += found.work
                if found.status == FEASIBLE:
                    return PlacedCore(found.offsets, work)
                if work >= limit or deadline.passed():
                    return PlacedCore(None, work)
            patience *= 2
        return PlacedCore(None, work)
