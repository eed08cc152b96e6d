"""`auto`: cheap heuristics, then exact searches that can prove a plan optimal.

1. Lifetimes become sections, sizes become units, and the problem is split into
   independent parts (`sections.py`).
2. Heuristics give each part a first plan, and stop at the lower bound:
    * skyline placement in several orders (`skyline.py`);
    * the buffers of the most heavily loaded sections first, as in the search below,
      with little work (`core.py`);
    * greedy-by-size and best-fit (`greedy.py`, `gaps.py`).

   In a large part whose longest-lived buffers carry most of the load, skyline placement
   first tries a single order. If the most heavily loaded sections first give no plan
   near the lower bound, a skyline places only the longest-lived buffers, in orders that
   learn from earlier plans (`backbone.py`, `squeaky.py`), and first fit places the
   others around them. The other orders are tried only if the result is not near the
   lower bound.
3. Searches improve the part with the highest peak. They take turns: next is the one
   with the least work since it last lowered the peak.
    * The most heavily loaded sections first, the others around them, under capacities
      just above the lower bound (`core.py`, `repair.py`).
    * Ejection: buffers that end above a capacity just below the best peak are fitted
      into the rest of the best plan (`repair.py`).
    * In parts that are small enough, skyline placement in orders that learn from
      earlier plans (`squeaky.py`).
    * Valley branch and bound under capacities between the lower bound and the best
      peak, forwards and backwards in time, with growing limits and varied orders
      (`search.py`). In a large part, it searches the pieces into which a spine of few
      buffers splits the part (`spine.py`). If there is no such spine, or its pieces
      cannot get lower, it searches the part as a whole, unless it is too large. In
      parts that are small enough, it also searches among boxes that buffers fill
      without a gap (`boxes.py`).

Skyline placement cannot handle gaps, given offsets or mixed alignments. The first plan
of such a problem is the best of the greedy plans and, without given offsets, of the
plan for the same buffers with gaps filled and alignments made equal. Buffers with gaps
may raise the lower bound (`clique.py`). Then four searches take turns: hill climbing
over the order of first fit (`climb.py`), ejection below the best peak (`repair.py`),
for up to 2,000 buffers, a branch and bound that is exact for these problems, too
(`upward.py`), and all three of them among the buffers of the most heavily loaded
sections, with ejection for the others (`core.py`).

If buffers have hints, the plan of the hints is a candidate, too. If every buffer has a
hint and the hints are a sound plan, this is their plan; otherwise, it is first fit in
the order of the hints. Everything stops at the lower bound, or at the capacity if it is
higher.

Without a time limit, the limit is a number of steps of work: about 10 seconds of
compiled code per pool. The plan is then the same on every machine, with or without
numba. Without numba, a hard problem may take 50 times as long; set a time limit there.
A time limit replaces the limit of work. If it is reached, the plan depends on the speed
of the machine.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count, islice, product
from math import inf, lcm
from time import monotonic
from typing import NamedTuple, TypeAlias

from .. import deadline
from ..problem import Buffer, Limits, Placement, Problem, peak_of
from ..registry import strategy
from ..validate import validate
from . import greedy, orders
from .backbone import backbone, longest
from .boxes import BOX_WORK, Borders, Boxes
from .budget import SearchBudget
from .climb import Climb
from .clique import heaviest_clique
from .core import SLACKS, CoreFirst, CoresOfAny
from .gaps import GAP_WORK, WAITING, Gaps
from .kernels import LARGEST
from .repair import Repair
from .search import FEASIBLE, INFEASIBLE, RULES, UNKNOWN, SearchOutcome, ValleySearch
from .sections import Part, parts_of, unit_of
from .skyline import skyline_plans
from .spine import PIECE, split
from .squeaky import SqueakyWheel
from .upward import UpwardSearch

_SEARCHABLE = 2_000_000  # greatest sum of the sections of all buffers for `_by_valleys`
_CORES = (
    *((1, excess) for excess in (0.01, 0.0)),
    *((4, excess) for excess in (0.0, 0.0025, 0.01, 0.03)),
    *((16, excess) for excess in (0.0, 0.001, 0.0025, 0.01)),
)
"""The tries of core first: the effort, and the excess of the capacity over the lower
bound, as a share of it."""

_PREPARING = 2_000_000
"""Work of the other searches before a search that needs costly preparation begins."""

_FILLED, _IRREGULAR = 0.1, 0.1
"""Shares of the work for irregular problems: with gaps filled, and after that. Few of
these problems can reach the lower bound, and more work rarely helps."""

_NEAR = 0.01
"""If a plan of long-lived buffers first, or of a core, exceeds the load by at most this
share, no other skyline orders are tried. They would take as long, and lower the peak by
little if at all."""

_FIRST_SLACKS = 0.03, 0.015  # of the cores that are tried before other searches
_FIRST_WORK = 40  # work of the search in one of these cores, per buffer of the part

_SMALL = 2000  # the most buffers of a part for boxes and the squeaky wheel
_BOXED = 0.8  # boxes are given up if more than this share of the buffers remains
_BOXED_WORK = 4000  # work of the search among one draw of boxes, per buffer
_DOUBT = 0.1  # `doubt` of `Boxes`: random, from this to ten times as much

_STEPS = 32  # a step of a descent is 1/32 of the way from the peak to the lower bound
_COMPARABLE = 2000  # the most buffers for `UpwardSearch`, which compares all pairs
_UPWARD_WORK = 30_000  # of each try of `UpwardSearch`, at least: 30 ms of plain Python
_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 0.95)  # of the gap: which capacities to try


@strategy("auto")
def auto(problem: Problem, limits: Limits) -> Placement:
    """Searches for a plan at the lower bound, and proves plans optimal where possible.

    It is never worse than greedy-by-size and best-fit, if the time limit leaves time to
    run both.
    """
    used = problem
    if not all(b.size for b in problem.buffers):
        used = Problem([b for b in problem.buffers if b.size], problem.capacity)
    task = _Task(used, limits, SearchBudget(limits, bound := used.lower_bound), bound)
    placement = _any(task)
    found = iter(placement.offsets)
    offsets = [next(found) if b.size else b.offset or 0 for b in problem.buffers]
    return Placement(offsets, placement.exhausted)


class _Task(NamedTuple):
    """A problem, with the limits, the budget and the lower bound of its search."""

    problem: Problem
    limits: Limits
    budget: SearchBudget
    lower_bound: int  # bytes

    @property
    def goal(self) -> int:
        """The peak, in bytes, at which the search stops."""
        return max(self.lower_bound, self.problem.capacity or 0)


def _any(task: _Task) -> Placement:
    buffers = task.problem.buffers
    if not buffers:
        return Placement([], True)
    hinted = _hinted(task.problem)
    if hinted:
        task.budget.report(peak_of(buffers, hinted))
        if peak_of(buffers, hinted) <= task.goal:
            return Placement(hinted)
    alignments = {b.alignment for b in buffers}
    is_plain = not any(b.gaps or b.offset is not None for b in buffers)
    is_regular = len(alignments) == 1 and is_plain and _are_countable(buffers)
    found = _regular(task) if is_regular else _irregular(task)
    if hinted and peak_of(buffers, hinted) < peak_of(buffers, found.offsets):
        return Placement(hinted)
    return found


def _hinted(problem: Problem) -> Sequence[int]:
    """The plan of the hints (see above). Empty if no buffer has a hint."""
    buffers = problem.buffers
    hints = [b.hint if b.offset is None else b.offset for b in buffers]
    if all(b.hint is None for b in buffers):
        return ()
    complete = [hint for hint in hints if hint is not None]
    if len(complete) == len(hints) and validate(problem, complete) is None:
        return complete
    last = max(complete)
    ranks = [(last if h is None else h, h is None, i) for i, h in enumerate(hints)]
    order = sorted(range(len(buffers)), key=ranks.__getitem__)
    return Gaps(buffers).place(order)


def _are_countable(buffers: Sequence[Buffer]) -> bool:
    """Whether the sum of the padded sizes is small enough for the kernels."""
    return sum(b.size + b.alignment for b in buffers) < LARGEST // 2


def _regular(task: _Task) -> Placement:
    """Plans buffers without gaps and given offsets, and with one alignment."""
    plan = _RegularPlan(task)
    plan.place_by_skylines()
    plan.place_greedily()
    highest, floor = plan.search()
    return plan.placement(highest, floor)


class _RegularPlan:
    """The best plan so far of buffers without gaps and given offsets, and with one
    alignment. All offsets are multiples of a unit, in which parts are planned."""

    def __init__(self, task: _Task):
        self.task = task
        self.buffers = task.problem.buffers
        alignment = self.buffers[0].alignment
        padded = [-(-b.size // alignment) for b in self.buffers]
        unit = unit_of(padded)
        sizes = [size // unit for size in padded]
        self.unit = unit * alignment
        """In bytes."""
        self.slack = max(
            p * alignment - b.size for p, b in zip(padded, self.buffers, strict=True)
        )
        """The most bytes of padding after a buffer."""
        self.parts = parts_of([(b.start, b.end) for b in self.buffers], sizes)
        self.backbones = [longest(part) for part in self.parts]
        self.skylines = [skyline_plans(part) for part in self.parts]
        self.cores = [CoreFirst(part) for part in self.parts]
        self.bound = -(-task.lower_bound // self.unit)
        """The lower bound of the peak, in units."""
        self.goal = max(self.bound, (task.problem.capacity or 0) // self.unit)
        """The peak in units at which the search stops, for each part."""
        self.offsets = [0] * len(self.buffers)
        """In bytes."""
        self.greediest: list[int] = []
        """The offsets of the plan with the lowest peak in bytes, without padding, that
        greedy plans gave."""
        self.peaks: list[int] = []
        """The peak of each part, in units."""

    def place_by_skylines(self) -> None:
        """Gives each part a first plan."""
        each = zip(self.parts, self.skylines, self.backbones, strict=True)
        for part, plans, bones in each:
            tried = islice(plans, 1) if bones else plans
            found = _lowest(part, tried, self._stop_at(part))
            _lay(part, found, self.offsets, self.unit)
        self._report()
        self.peaks = [part.peak(self._taken(part)) for part in self.parts]
        self.greediest = list(self.offsets)

    def place_greedily(self) -> None:
        """Tries cores and greedy plans of each part, the highest part first."""
        for number in sorted(range(len(self.parts)), key=lambda n: (-self.peaks[n], n)):
            part = self.parts[number]
            if self._peak_of(part, self.offsets) <= self.task.goal:
                continue
            if deadline.passed():
                break
            self._place_greedily(number, part)
        self._report()

    def _place_greedily(self, number: int, part: Part) -> None:
        is_near = self._place_core(number, part)
        if self._peak_of(part, self.offsets) <= self.task.goal:
            return
        members = [self.buffers[index] for index in part.indices]
        around: Sequence[int] = ()
        if self.backbones[number] and not is_near:
            around = backbone(part, self.backbones[number])
        first = [at if at == WAITING else at * self.unit for at in around]
        for plan in greedy.plans_below(
            members, lambda: self.peaks[number] * self.unit, first
        ):
            self._improve(number, [offset // self.unit for offset in plan])
            if peak_of(members, plan) < self._peak_of(part, self.greediest):
                _lay(part, plan, self.greediest, 1)
            if peak_of(members, plan) <= self.task.goal:
                break
        if around and self.peaks[number] > self._near(part) and not deadline.passed():
            lowest = _lowest(part, self.skylines[number], self._stop_at(part))
            self._improve(number, lowest)

    def _place_core(self, number: int, part: Part) -> bool:
        """Tries a few cores. Returns whether the plan is now near the lower bound."""
        budget, core = self.task.budget, self.cores[number]
        if part.covered > budget.left:
            return False
        slacks = [slack for slack in _FIRST_SLACKS if core.is_small(slack)]
        effort = min(_FIRST_WORK * len(part.size) / core.WORK, 1.0)
        for capacity in self._near(part), self._stop_at(part):
            for slack in slacks:
                if self.peaks[number] > capacity:
                    found = core.fit(capacity, slack, effort, budget)
                    if found is not None:
                        self._improve(number, found)
                        self._report()
            if self.peaks[number] > capacity:
                break
        return self.peaks[number] <= self._near(part)

    def search(self) -> tuple[int, int]:
        """Searches better plans of the highest part: lowering another does not lower
        the peak. Returns the peak of the highest part, and the floor: the peak that no
        plan is below, or needs to be below; both in units."""
        task = self.task
        queue = [(-peak, number) for number, peak in enumerate(self.peaks)]
        heapify(queue)
        floor = self.goal
        begun: dict[int, tuple[_Bounds, Iterator[bool]]] = {}
        while -queue[0][0] > floor and task.budget.left > 0:
            number = queue[0][1]
            if number not in begun:
                part = self.parts[number]
                improved = partial(self._take, part)
                bounds = _Bounds(floor, self.peaks[number], part.peak, improved)
                best = partial(self._taken, part)
                core, seed = self.cores[number], task.limits.seed
                searches = _searches(part, core, best, bounds, seed, task.budget)
                begun[number] = bounds, _minimise(bounds, searches, task.budget)
            bounds, tries = begun[number]
            bounds.low = max(bounds.low, floor)
            if not next(tries, False):
                break
            floor = bounds.low
            heapreplace(queue, (-bounds.high, number))
        return -queue[0][0], floor

    def placement(self, highest: int, floor: int) -> Placement:
        """The plan, and whether it is proved to be optimal, after `search`."""
        # No plan has a lower padded peak. A plan whose topmost buffer has more padding
        # may have a lower peak in bytes. No buffer has more padding than `slack`.
        peak = partial(peak_of, self.buffers)
        offsets = min(self.offsets, self.greediest, key=peak)
        is_padded = highest <= floor and peak(offsets) > self.task.goal
        if self.slack and is_padded and not deadline.passed():
            offsets = min(offsets, self._with_padding_on_top(), key=peak)
        # A goal that is only a capacity, not a lower bound, proves nothing.
        proved = highest <= floor and (self.goal == self.bound or floor > self.goal)
        lowest = floor * self.unit - self.slack
        return Placement(offsets, proved and peak(offsets) <= lowest)

    def _with_padding_on_top(self) -> list[int]:
        """First fit in the order of the plan, with the buffers that have the most
        padding last: padding after the topmost buffer needs no memory."""
        keys = [
            (-b.size % b.alignment, offset)
            for b, offset in zip(self.buffers, self.offsets, strict=True)
        ]
        return Gaps(self.buffers).place(sorted(range(len(keys)), key=keys.__getitem__))

    def _stop_at(self, part: Part) -> int:
        """The peak of a part, in units, at which its search stops."""
        return max(self.goal, max(part.load))

    def _near(self, part: Part) -> int:
        """A peak of a part, in units, that is near the lower bound."""
        return int(self._stop_at(part) * (1 + _NEAR))

    def _peak_of(self, part: Part, offsets: Sequence[int]) -> int:
        """The peak of a part in bytes, without padding."""
        members = [self.buffers[index] for index in part.indices]
        return peak_of(members, [offsets[index] for index in part.indices])

    def _improve(self, number: int, found: Sequence[int]) -> None:
        """Takes a plan of a part, in units, if its peak is lower."""
        part = self.parts[number]
        if part.peak(found) < self.peaks[number]:
            _lay(part, found, self.offsets, self.unit)
            self.peaks[number] = part.peak(found)

    def _take(self, part: Part, found: Sequence[int]) -> None:
        _lay(part, found, self.offsets, self.unit)
        self._report()

    def _taken(self, part: Part) -> list[int]:
        """The offsets of a part, in units."""
        return [self.offsets[index] // self.unit for index in part.indices]

    def _report(self) -> None:
        self.task.budget.report(peak_of(self.buffers, self.offsets))


def _lay(part: Part, found: Sequence[int], offsets: list[int], unit: int) -> None:
    """Writes a part's offsets, in units, to the offsets of all buffers, in bytes."""
    for index, offset in zip(part.indices, found, strict=True):
        offsets[index] = offset * unit


def _lowest(part: Part, plans: Iterable[list[int]], goal: int) -> list[int]:
    """The best of `plans`, in units. Stops at `goal`, or without time for another."""
    best: list[int] = []
    before = inf  # the first plan also takes the time to prepare for all plans
    for offsets in plans:
        if not best or part.peak(offsets) < part.peak(best):
            best = offsets
        now = monotonic()
        if part.peak(best) <= goal or deadline.left() < max(now - before, 0):
            break  # the next plan would take as long
        before = now
    return best


class _Bounds:
    """The interval between the proved lower bound and the best peak of a search."""

    def __init__(
        self,
        low: int,
        high: int,
        peak: Callable[[Sequence[int]], int],
        improved: Callable[[Sequence[int]], None],
    ) -> None:
        self.low = low
        self.high = high
        self._peak = peak
        self._improved = improved

    def take(self, offsets: Sequence[int]) -> None:
        if self._peak(offsets) < self.high:
            self.high = self._peak(offsets)
            self._improved(offsets)

    def refute(self, capacity: int) -> None:
        """Notes a proof that no plan is within a capacity."""
        self.low = max(self.low, capacity + 1)


_Search: TypeAlias = Iterator[int]
"""A generator that narrows the bounds. It yields the work of each try beforehand."""


def _minimise(
    bounds: _Bounds, searches: Sequence[_Search], budget: SearchBudget
) -> Iterator[bool]:
    """Runs the searches in turns, and yields True after each try.

    The next search is the one that will have spent the least work since it last lowered
    the peak.
    """
    if budget.left <= 0:
        return
    # Per search: work after the next try, number, work since it lowered the peak.
    queue = [(next(search, 0), n, 0) for n, search in enumerate(searches)]
    while queue and bounds.low < bounds.high and budget.left > 0:
        _, number, spent = heappop(queue)
        before, high = budget.spent, bounds.high
        allowed = next(searches[number], None)
        if allowed is not None:
            spent = spent + budget.spent - before if bounds.high == high else 0
            heappush(queue, (spent + allowed, number, spent))
        yield True


def _searches(
    part: Part,
    core: CoreFirst,
    best: Callable[[], Sequence[int]],
    bounds: _Bounds,
    seed: int,
    budget: SearchBudget,
) -> Sequence[_Search]:
    """The searches for a part of a regular problem."""
    searches = [_core_first(core, bounds, budget), _exactly(part, bounds, seed, budget)]
    if len(part.size) <= _SMALL:
        searches.append(_by_wheel(part, bounds, budget))
        searches.append(_in_boxes(part, bounds, seed, budget))
    area = orders.measures(part)[1]
    searches.append(
        _by_descent(part.buffers, part.size, area, best, bounds, seed, budget)
    )
    return searches


def _core_first(core: CoreFirst, bounds: _Bounds, budget: SearchBudget) -> _Search:
    yield _PREPARING
    slacks = [slack for slack in SLACKS if core.is_small(slack)]
    for effort, excess in _CORES:
        for slack in slacks:
            capacity = bounds.low + int(bounds.low * excess)
            if capacity < bounds.high:
                yield effort * core.WORK
                offsets = core.fit(capacity, slack, effort, budget)
                if offsets is not None:
                    bounds.take(offsets)


def _by_wheel(part: Part, bounds: _Bounds, budget: SearchBudget) -> _Search:
    yield _PREPARING
    wheel = SqueakyWheel(part)
    work = wheel.WORK * len(part.size)
    while not wheel.is_over:
        yield work
        since = budget.seconds
        bounds.take(wheel.step())
        budget.spend(work, since)


def _exactly(part: Part, bounds: _Bounds, seed: int, budget: SearchBudget) -> _Search:
    """Searches the pieces around a spine, or, if this does not help, the whole part."""
    if len(part.size) > PIECE:
        yield from _in_pieces(part, bounds, seed, budget)
    if part.covered <= _SEARCHABLE:
        yield from _by_valleys(part, bounds, seed, budget)


def _by_valleys(
    part: Part,
    bounds: _Bounds,
    seed: int,
    budget: SearchBudget,
    floor: Sequence[int] = (),
) -> _Search:
    searches = ValleySearch(part, floor), ValleySearch(part.backwards, floor[::-1])
    fits = [[partial(search.fit, rule) for rule in RULES] for search in searches]
    limit = 2 * len(part.size) * (16 + part.sections // 4)
    measures = orders.measures(part)
    yield from _branch_and_bound(bounds, fits, measures, limit, seed, budget)


def _in_pieces(part: Part, bounds: _Bounds, seed: int, budget: SearchBudget) -> _Search:
    """Searches the highest piece around a spine, as long as it can become lower."""
    yield _PREPARING
    spine, pieces = split(part)
    offsets = list(spine)
    searched = [
        _Bounds(
            max(bounds.low, *piece.needed),
            bounds.high,
            piece.part.peak,
            partial(_lay, piece.part, offsets=offsets, unit=1),
        )
        for piece in pieces
    ]
    searches = [
        _by_valleys(piece.part, inner, seed, budget, piece.floor)
        for piece, inner in zip(pieces, searched, strict=True)
    ]
    while pieces and bounds.low < bounds.high:
        number = max(range(len(pieces)), key=lambda n: searched[n].high)
        inner = searched[number]
        if inner.high < bounds.high:
            bounds.take(offsets)
        if inner.low >= inner.high:
            return
        allowed = next(searches[number])
        yield allowed


def _in_boxes(part: Part, bounds: _Bounds, seed: int, budget: SearchBudget) -> _Search:
    """Searches among boxes of buffers: each of many draws for a short time."""
    yield 0  # before all other searches: a single draw often suffices
    chance = random.Random(seed)
    borders = Borders.of(part)
    made, searched = (work * len(part.size) for work in (BOX_WORK, _BOXED_WORK))
    while True:
        since = budget.seconds
        boxes = Boxes(borders, _DOUBT * 10 ** chance.random(), chance)
        budget.spend(made, since)
        if len(boxes.part.size) > _BOXED * len(part.size):
            return

        def improved(found: Sequence[int], boxes: Boxes = boxes) -> None:
            bounds.take(boxes.offsets(found))

        inner = _Bounds(bounds.low, bounds.high, boxes.part.peak, improved)
        search = _by_valleys(boxes.part, inner, seed, budget)
        until = budget.spent + searched
        for _ in _minimise(inner, [search], budget):
            if budget.spent > until:
                break
        yield made + searched


def _upwards(
    buffers: Sequence[Buffer], bounds: _Bounds, seed: int, budget: SearchBudget
) -> _Search:
    search = UpwardSearch(buffers)
    limit = max(100 * len(buffers), _UPWARD_WORK)
    measures = orders.measures_of_any(buffers)
    yield from _branch_and_bound(bounds, [[search.fit]], measures, limit, seed, budget)


def _by_moves(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    bounds: _Bounds,
    seed: int,
    budget: SearchBudget,
) -> _Search:
    climb = Climb(buffers, offsets, seed)
    while True:
        yield GAP_WORK * len(buffers)
        since = budget.seconds
        found = climb.step(bounds.high)
        budget.spend(GAP_WORK * len(buffers), since)
        if found is not None:
            bounds.take(found)


def _by_descent(
    buffers: Sequence[Buffer],
    sizes: Sequence[int],
    area: Sequence[int],
    best: Callable[[], Sequence[int]],
    bounds: _Bounds,
    seed: int,
    budget: SearchBudget,
) -> _Search:
    """Lowers the capacity in steps, and fits buffers that end above it by ejection.

    A step that fails is repeated with twice the work. Buffers that were hard to place
    in one step are placed more firmly in later steps.
    """
    yield _PREPARING
    repair = Repair(buffers)
    chance = random.Random(seed)
    weights = [1] * len(sizes)
    limit = repair.pass_work
    for number in count():
        yield limit
        if budget.left < limit // 2:
            return  # too little for a useful try
        step = max((bounds.high - bounds.low) // _STEPS, 1)
        capacity = bounds.high - step
        offsets = [
            offset if b.offset == offset or offset + size <= capacity else WAITING
            for offset, size, b in zip(best(), sizes, buffers, strict=True)
        ]
        order = orders.by_measure(area, chance if number else None)
        found = repair.fit(capacity, offsets, weights, order, limit, budget)
        if found is not None:
            bounds.take(found)
        else:
            limit *= 2


def _branch_and_bound(
    bounds: _Bounds,
    fits: Sequence[Sequence[Callable[..., SearchOutcome]]],
    measures: Sequence[Sequence[int]],
    limit: int,
    seed: int,
    budget: SearchBudget,
) -> _Search:
    """Tries the searches with each measure, in rounds with growing limits of work.

    Each round uses the next group of `fits`. Rounds after the first vary the orders at
    random. After a proof that a capacity is too low, the next is just below the best
    peak: another proof ends the search.
    """
    chance = random.Random(seed)
    calm = [orders.by_measure(measure) for measure in measures]
    is_refuted = False  # whether the last capacity is proved to be too low
    for number in count():
        for fraction in _FRACTIONS:
            wish = bounds.low + int((bounds.high - 1 - bounds.low) * fraction)
            if is_refuted:
                wish = bounds.high - 1
            is_refuted = False
            for fit, which in product(fits[number % len(fits)], range(len(measures))):
                yield limit
                capacity = min(max(wish, bounds.low), bounds.high - 1)
                order = calm[which]
                if number:
                    order = orders.by_measure(measures[which], chance)
                since = budget.seconds
                found = fit(capacity, order, min(limit, budget.left))
                budget.spend(found.work, since)
                if found.status == FEASIBLE:
                    bounds.take(found.offsets)
                if found.status == INFEASIBLE:
                    bounds.refute(capacity)
                    is_refuted = True
                if found.status != UNKNOWN:
                    break
        limit = limit * 8 // 5


def _searches_of_any(
    buffers: Sequence[Buffer],
    best: Callable[[], Sequence[int]],
    bounds: _Bounds,
    seed: int,
    budget: SearchBudget,
) -> list[_Search]:
    """The searches for an irregular problem, or for a core of it."""
    sizes, area = [b.size for b in buffers], orders.measures_of_any(buffers)[0]
    searches = [
        _by_moves(buffers, best(), bounds, seed, budget),
        _by_descent(buffers, sizes, area, best, bounds, seed, budget),
    ]
    if len(buffers) <= _COMPARABLE:
        searches.append(_upwards(buffers, bounds, seed, budget))
    return searches


def _cores_of_any(
    buffers: Sequence[Buffer], bounds: _Bounds, seed: int, budget: SearchBudget
) -> _Search:
    """Plans the buffers of the most heavily loaded sections, and the others around
    them. If there is a proof that a core does not fit, nor do all buffers."""
    yield CoresOfAny.WORK
    cores = CoresOfAny(buffers)
    for effort, excess in _CORES:
        for slack in cores.SLACKS:
            capacity = bounds.low + int(bounds.low * excess)
            members = cores.members(slack)
            if not members or capacity >= bounds.high:
                break
            yield effort * cores.WORK
            chosen = [buffers[i] for i in members]
            limit = effort * cores.WORK
            status, found = _fit_core(chosen, capacity, limit, seed, budget)
            if status == INFEASIBLE:
                bounds.refute(capacity)
            if status != FEASIBLE:
                break  # the next core has this one's buffers, too
            core = dict(zip(members, found, strict=True))
            offsets = cores.around(core, capacity, slack, effort, budget)
            if offsets is not None:
                bounds.take(offsets)


def _fit_core(
    buffers: Sequence[Buffer],
    capacity: int,
    limit: int,
    seed: int,
    budget: SearchBudget,
) -> tuple[int, Sequence[int]]:
    """Searches for a plan of a core within a capacity. Returns whether there is one, as
    the status of a `SearchOutcome`, and its offsets."""
    until = budget.spent + limit
    since = budget.seconds
    best = min(greedy.plans(buffers), key=partial(peak_of, buffers))
    budget.spend(2 * GAP_WORK * len(buffers), since)

    def take(offsets: Sequence[int]) -> None:
        nonlocal best
        best = list(offsets)

    peak = partial(peak_of, buffers)
    bounds = _Bounds(capacity, peak(best), peak, take)
    searches = _searches_of_any(buffers, lambda: best, bounds, seed, budget)
    for _ in _minimise(bounds, searches, budget):
        if bounds.low > capacity or budget.spent > until:
            break
    status = INFEASIBLE if bounds.low > capacity else UNKNOWN
    if bounds.high <= capacity:
        status = FEASIBLE
    return status, best


def _irregular(task: _Task) -> Placement:
    """Plans buffers with gaps, given offsets or mixed alignments, in bytes."""
    problem, limits, budget, lower_bound = task
    buffers = problem.buffers
    best: list[int] = []

    def take(offsets: Sequence[int]) -> None:
        nonlocal best
        if not best or peak_of(buffers, offsets) < peak_of(buffers, best):
            best = list(offsets)
            budget.report(peak_of(buffers, best))

    if not any(b.offset is not None for b in buffers):
        common = lcm(*(b.alignment for b in buffers))
        plain = [Buffer(b.id, b.size, b.start, b.end, common) for b in buffers]
        if _are_countable(plain):
            filled = Problem(plain, problem.capacity)
            budget.share = _FILLED
            take(_regular(_Task(filled, limits, budget, filled.lower_bound)).offsets)
    if not best or peak_of(buffers, best) > task.goal:
        for plan in greedy.plans(buffers):
            take(plan)
    low, high = task.goal, peak_of(buffers, best)
    if high > low and any(b.gaps for b in buffers):
        low = heaviest_clique(buffers, low, budget)
    bounds = _Bounds(low, high, partial(peak_of, buffers), take)
    searches = [
        *_searches_of_any(buffers, lambda: best, bounds, limits.seed, budget),
        _cores_of_any(buffers, bounds, limits.seed, budget),
    ]
    budget.share = 1.0
    if limits.time_limit is None:
        budget.share = budget.used + _IRREGULAR
    if bounds.low < bounds.high:
        for _ in _minimise(bounds, searches, budget):
            pass
    is_bound = task.goal == lower_bound or bounds.low > task.goal
    return Placement(best, is_bound and bounds.low == bounds.high)
