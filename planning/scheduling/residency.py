"""Chooses values that leave a memory between two uses, so that the rest fits.

    task    0    1    2    3    4    5    6
            writes v       reads v   reads v
    v here  ######         ####      ####        v is away in both of its gaps

While a value is away, its bytes are free. The first chosen gap of a value costs a copy
out, and each gap costs a copy in, or a read of the other memory: of the same bytes, or
fewer if only a part is read. For its step, a use may copy in only the part that it
accesses. The cheapest choice that brings every step to the capacity solves a covering
problem: gaps must free enough bytes in each step above the capacity.

Prices of bytes in each step, by subgradients of the Lagrangian dual (Held and Karp
1971), give a lower bound, and rank the gaps. A greedy cover in that order, without
redundant gaps, is improved by destroying and repairing parts of it (Shaw 1998).
`exact_residency.py` proves an optimum. Register allocators call this spilling; Belady's
rule (1966) takes the value with the furthest next use, which is optimal only for values
of one size that need not be copied out.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import gcd
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .. import deadline

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

OVERHEAD = 500
"""The work of visiting a gap, in steps."""

PRICES = 120
"""The number of rounds in which prices are adjusted."""

REPAIRS = 400
"""The number of rounds of improvement, fewer for large problems."""

WORK = 40_000_000
"""The approximate number of steps in gaps that each part of the search visits."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Two uses of a value, and the steps between them.

    There are no steps between two uses in one step; with `direct` access, the bytes
    are free in that step. A use of a part may last several steps.
    """

    value: int
    start: int  # the first step in which its bytes may be free
    end: int  # the first later step in which they may not be free
    cost: int  # of being away
    contents: int  # the value's contents since its last write, which a copy out stores
    direct: tuple[int, int] = (0, 0)
    """The number of steps of the uses before and after it that may access the value in
    the other memory, or a copy of a part of it; 0 for other uses."""
    staged: tuple[int, int] = (0, 0)
    """The bytes of that copy, which are not free in these steps."""
    saving: int = 0
    """The cost saved if the value's next gap is chosen, too: the use between them
    accesses only a part of the value."""
    needs: Sequence[int] = ()
    """The gaps, by index, that must be chosen if this one is, and those that they need.
    A value that is away at the start of each iteration of a loop is away around the
    loop."""


@dataclass(frozen=True, slots=True)
class ResidencyProblem:
    """The live bytes of each step without gaps, and the gaps to choose from.

    If a use may access the value in the other memory (`direct`), the value's bytes are
    also free in the step of the use, provided that it is away on both sides. The bytes
    that the use copies (`staged`) are not.
    """

    live: Sequence[int]  # bytes, by step
    capacity: int  # bytes
    sizes: Sequence[int]  # bytes, by value
    first: Sequence[int]  # the additional cost of the first gap, by contents
    gaps: Sequence[Gap]  # grouped by value, ascending for each value

    @property
    def crowded(self) -> Sequence[int]:
        """The steps above the capacity if no value is away."""
        return [step for step, b in enumerate(self.live) if b > self.capacity]

    @property
    def lowest(self) -> int:
        """The lowest possible peak: all values are away in all their gaps."""
        every = range(len(self.gaps))
        return int(Choice(replace(self, capacity=0), every).over.max(initial=0))


@dataclass(frozen=True, slots=True)
class Residency:
    """The chosen gaps."""

    gaps: Sequence[int]  # indices, ascending
    cost: int
    bound: int  # a lower bound of the cost
    fits: bool = True  # whether the rest fits the capacity

    @property
    def optimal(self) -> bool:
        return self.fits and self.cost == self.bound


def cheapest(problem: ResidencyProblem) -> Residency:
    """The cheapest gaps that the search finds; all gaps if these do not suffice."""
    every = range(len(problem.gaps))
    if max(problem.live, default=0) <= problem.capacity:
        return Residency([], 0, 0)
    if problem.lowest > problem.capacity:
        cost = Choice(problem, every).cost
        return Residency(every, cost, cost, fits=False)
    return _Search(problem).best()


class Choice:
    """A set of chosen gaps. `over` has the bytes above the capacity in each step that
    exceeds it without gaps; negative numbers are free bytes."""

    def __init__(self, problem: ResidencyProblem, gaps: Sequence[int] = ()):
        self.problem = problem
        excess = np.asarray(problem.live, np.int64) - problem.capacity
        self.over = excess[excess > 0]
        self._before: list[int] = [0, *np.cumsum(excess > 0).tolist()]
        self.taken = [False] * len(problem.gaps)
        self.count = [0] * len(problem.first)
        self.cost = 0
        self._has_savings = any(gap.saving for gap in problem.gaps)
        self._needed_by: dict[int, list[int]] = {}
        for index, gap in enumerate(problem.gaps):
            for other in gap.needs:
                self._needed_by.setdefault(other, []).append(index)
        for gap in gaps:
            if not self.taken[gap]:
                self.take(gap)

    def excess(self, step: int) -> int:
        """The bytes above the capacity in a step that exceeds it without gaps."""
        return int(self.over[self._before[step]])

    def copy(self) -> "Choice":
        other = copy(self)
        other.over, other.taken = self.over.copy(), self.taken.copy()
        other.count = self.count.copy()
        return other

    def size(self, index: int) -> int:
        return self.problem.sizes[self.problem.gaps[index].value]

    def neighbors(self, index: int) -> Iterator[int | None]:
        """The gaps of the same value before and after one; None where there is none."""
        gaps = self.problem.gaps
        for other in (index - 1, index + 1):
            is_there = 0 <= other < len(gaps)
            same = is_there and gaps[other].value == gaps[index].value
            yield other if same else None

    def reach(self, index: int) -> tuple[int, int]:
        """The positions in `over` whose bytes a gap frees, given the other gaps."""
        gap = self.problem.gaps[index]
        start, end = gap.start, gap.end
        if any(gap.direct):
            before, after = self.neighbors(index)
            steps, steps_after = gap.direct
            start -= steps * (before is None or self.taken[before])
            end += steps_after * (after is None or self.taken[after])
        last = len(self._before) - 1
        return self._before[max(start, 0)], self._before[min(end, last)]

    def freed_bytes(self, index: int, start: int, end: int) -> Integers | int:
        """The bytes that a gap frees at each position of its `reach`."""
        size = self.size(index)
        kept = self.kept(index, start, end)
        if not kept:
            return size
        freed = np.full(end - start, size)
        for position, bytes in kept:
            freed[position - start] -= bytes
        return freed

    def kept(self, index: int, start: int, end: int) -> Sequence[tuple[int, int]]:
        """The positions of its `reach` in which the uses around a gap copy parts of the
        value, with the bytes of the parts."""
        gap = self.problem.gaps[index]
        if not any(gap.staged):
            return ()
        before, after = gap.direct
        uses = range(gap.start - before, gap.start), range(gap.end, gap.end + after)
        steps = {
            step: bytes
            for use, bytes in zip(uses, gap.staged, strict=True)
            for step in use
        }
        return [
            (position, bytes)
            for step, bytes in steps.items()
            if start <= (position := self._before[step]) < end
            if self._before[step + 1] > position
        ]

    def together(self, index: int) -> Sequence[int]:
        """The gaps that are chosen, or dropped, together with `index`, the first."""
        gap, is_taken = self.problem.gaps[index], self.taken[index]
        others = self._needed_by.get(index, ()) if is_taken else gap.needs
        return [index, *(i for i in others if self.taken[i] == is_taken)]

    def price(self, index: int) -> int:
        """The cost of a gap, together with the gaps that are chosen or dropped with it,
        given the others."""
        first, *others = self.together(index)
        if not others:
            return self._price_alone(first)
        gaps = [self.problem.gaps[i] for i in (first, *others)]
        count = Counter(gap.contents for gap in gaps if self.taken[index])
        stored = {
            g.contents for g in gaps if self.count[g.contents] == count[g.contents]
        }
        cost = sum(g.cost for g in gaps) + sum(self.problem.first[c] for c in stored)
        return cost - self._saved((first, *others))

    def _price_alone(self, index: int) -> int:
        gap = self.problem.gaps[index]
        is_first = self.count[gap.contents] == self.taken[index]
        cost = gap.cost + self.problem.first[gap.contents] * is_first
        return cost - self._saved((index,)) if self._has_savings else cost

    def _saved(self, indices: Sequence[int]) -> int:
        """The cost saved by choosing all of these gaps, given the others."""
        saved = 0
        for index in indices if self._has_savings else ():
            before, after = self.neighbors(index)
            if before is not None and (self.taken[before] or before in indices):
                saved += self.problem.gaps[before].saving
            if after is not None and self.taken[after] and after not in indices:
                saved += self.problem.gaps[index].saving
        return saved

    def freed(self, index: int) -> int:
        """The bytes above the capacity that a gap would free, summed over all steps."""
        freed = 0
        for each in self.together(index):
            start, end = self.reach(each)
            bytes = self.freed_bytes(each, start, end)
            freed += int(self.over[start:end].clip(0, bytes).sum())
        return freed

    def is_superfluous(self, index: int) -> bool:
        """Whether all steps in which a chosen gap frees bytes fit without it."""
        together = self.together(index)
        over = self.over if len(together) == 1 else self.over.copy()
        for each in together[1:]:
            start, end = self.reach(each)
            over[start:end] += self.freed_bytes(each, start, end)
            if over[start:end].max(initial=0) > 0:
                return False
        start, end = self.reach(index)
        after = over[start:end] + self.freed_bytes(index, start, end)
        return bool(after.max(initial=0) <= 0)

    def take(self, index: int) -> None:
        for each in self.together(index):
            self._change(each, -1)
            self.cost += self._price_alone(each)
            self.taken[each] = True
            self.count[self.problem.gaps[each].contents] += 1

    def drop(self, index: int) -> None:
        for each in self.together(index):
            self.cost -= self._price_alone(each)
            self.taken[each] = False
            self.count[self.problem.gaps[each].contents] -= 1
            self._change(each, 1)

    def _change(self, index: int, sign: int) -> None:
        start, end = self.reach(index)
        self.over[start:end] += sign * self.freed_bytes(index, start, end)

    @property
    def gaps(self) -> list[int]:
        return [index for index, is_taken in enumerate(self.taken) if is_taken]

    @property
    def rank(self) -> tuple[int, int]:
        """A key to minimize: the cost, then the bytes above the capacity."""
        return self.cost, int(self.over.sum())

    @property
    def fits(self) -> bool:
        return bool(self.over.max(initial=0) <= 0)


class _Search:
    """The search for the cheapest choice."""

    def __init__(self, problem: ResidencyProblem):
        self.start = Choice(problem)
        self.dual = _Dual(problem, self.start.over)
        self.random = Random(0)
        costs = (cost for gap in problem.gaps for cost in (gap.cost, gap.saving))
        self.unit = gcd(*costs, *problem.first) or 1
        self.is_direct = any(any(gap.direct) for gap in problem.gaps)
        self.bound = 0

    def best(self) -> Residency:
        best = self._priced(self._completed(self.start.copy()))
        best = self._improved(best)
        return Residency(best.gaps, best.cost, self.bound)

    def _completed(self, choice: Choice, noise: float = 0.0) -> Choice:
        """The choice with more gaps until everything fits, without redundant ones. Gaps
        that free the most bytes for their price come first."""

        def worth(index: int) -> float:
            factor = 1 + noise * self.random.random()
            return choice.freed(index) * factor / (max(choice.price(index), 0) + 1)

        queue = [(-worth(i), i) for i in self.dual.gaps if not choice.taken[i]]
        heapify(queue)
        while queue and not choice.fits:
            _, index = heappop(queue)
            if choice.taken[index] or not (now := worth(index)):
                continue
            if queue and now < -queue[0][0] * (1 - noise):
                heappush(queue, (-now, index))  # others have freed some of its bytes
                continue
            choice.take(index)
            for other in choice.neighbors(index):  # may cost less now, or free more
                if other is not None and not choice.taken[other]:
                    heappush(queue, (-worth(other), other))
        return _pruned(choice)

    def _priced(self, best: Choice) -> Choice:
        """The best choice in the order of prices; also finds the lower bound."""
        pace, highest, since = 1.0, 0.0, 0
        for _ in range(self._rounds(PRICES)):
            lower = self.dual.update()
            since = 0 if lower > highest else since + 1
            highest = max(highest, lower)
            self.bound = -(-int(highest - 1e-6) // self.unit) * self.unit
            if self.bound >= best.cost or deadline.passed():
                break
            if since == 6:
                pace, since = pace / 2, 0
            choice = self._by_prices()
            if choice.fits and choice.rank < best.rank:
                best = choice
            self.dual.step(pace * (best.cost - lower))
        return best

    def _by_prices(self) -> Choice:
        """Chooses gaps by the price of the bytes that they free, relative to cost."""
        choice = self.start.copy()
        for index in self.dual.ranked():
            if choice.fits:
                break
            if not choice.taken[index] and choice.freed(index):
                choice.take(index)
        return _pruned(choice)

    def _improved(self, best: Choice) -> Choice:
        """Improves a choice by dropping parts of it and choosing again."""
        for _ in range(self._rounds(REPAIRS)):
            if best.cost <= self.bound or deadline.passed():
                break
            choice = best.copy()
            for index in self._part(choice.gaps):
                if choice.taken[index]:
                    choice.drop(index)
            for index in self._of_a_value():
                if not choice.taken[index]:
                    choice.take(index)
            choice = self._completed(choice, self.random.choice((0.0, 0.3, 1.0)))
            if choice.fits and choice.rank <= best.rank:
                best = choice
        return best

    def _part(self, gaps: list[int]) -> Sequence[int]:
        """Random gaps to drop: usually consecutive ones."""
        width = min(self.random.choice((2, 4, 8, 16, 32)), len(gaps))
        if self.random.random() < 0.3:
            return self.random.sample(gaps, width)
        at = self.random.randrange(len(gaps))
        return gaps[at : at + width]

    def _of_a_value(self) -> Sequence[int]:
        """All gaps of a random value, in half of the calls if there is direct access:
        some gaps free bytes only together. Else none."""
        gaps = self.dual.gaps
        if not self.is_direct or self.random.random() < 0.5:
            return []
        value = self.start.problem.gaps[self.random.choice(gaps)].value
        return [i for i in gaps if self.start.problem.gaps[i].value == value]

    def _rounds(self, most: int) -> int:
        return max(min(most, WORK // self.dual.work), 3)


def _pruned(choice: Choice) -> Choice:
    """Drops redundant gaps: the costliest first, and among equals those that free the
    fewest bytes."""

    def rank(index: int) -> tuple[int, int, int]:
        start, end = choice.reach(index)
        return -choice.price(index), choice.size(index) * (end - start), index

    for index in sorted(choice.gaps, key=rank):
        if (
            choice.taken[index]
            and choice.price(index) >= 0
            and choice.is_superfluous(index)
        ):
            choice.drop(index)
    for index, gap in enumerate(choice.problem.gaps):  # gaps that make others cheaper
        if gap.saving:
            for other in (index, index + 1):
                if not choice.taken[other] and choice.price(other) < 0:
                    choice.take(other)
    return choice


class _Dual:
    """The Lagrangian dual: a price per byte for each step above the capacity.

    The value of a gap is the price of the bytes that it frees, in each step at most the
    excess. The price of all excess bytes, minus all profits of gaps and contents, is a
    lower bound of the cost of any choice that fits.
    """

    def __init__(self, problem: ResidencyProblem, over: Integers):
        self.over = over
        self.prices = np.zeros(len(over))
        self.first = np.asarray(problem.first, float)
        every = Choice(problem, range(len(problem.gaps)))
        reaches = [every.reach(index) for index in range(len(problem.gaps))]
        self.gaps = [index for index, (a, b) in enumerate(reaches) if a < b]
        """The gaps that free any excess bytes."""
        useful = [problem.gaps[index] for index in self.gaps]
        self.contents = np.array([gap.contents for gap in useful], int)
        self.costs = np.array([gap.cost - gap.saving for gap in useful], float)
        """Lower bounds of the costs."""
        self.starts, self.ends = np.array([reaches[i] for i in self.gaps], int).T
        sizes = np.array([every.size(index) for index in self.gaps])
        self.by_size = {
            size: (np.flatnonzero(sizes == size), np.minimum(size, over))
            for size in dict.fromkeys(sizes.tolist())
        }
        """By size, the gaps of such values, and the most that one frees by step."""
        kept = [
            (number, position, max(bytes - max(every.size(i) - over[position], 0), 0))
            for number, i in enumerate(self.gaps)
            for position, bytes in every.kept(i, *reaches[i])
        ]
        self.keeping, self.kept_at, self.kept = np.array(kept, int).reshape(-1, 3).T
        """The gaps with copies of parts, the positions of these, and how much less than
        that each one frees there."""
        self.work = int((self.ends - self.starts + OVERHEAD).sum())
        self.gains = np.zeros(len(self.gaps))
        self.profits = -self.first

    def update(self) -> float:
        """Computes the gains at the current prices; returns the lower bound."""
        for gaps, freed in self.by_size.values():
            before = np.concatenate(([0.0], np.cumsum(self.prices * freed)))
            self.gains[gaps] = before[self.ends[gaps]] - before[self.starts[gaps]]
        np.subtract.at(self.gains, self.keeping, self.prices[self.kept_at] * self.kept)
        saved = np.maximum(self.gains - self.costs, 0)
        contents = np.bincount(self.contents, saved, len(self.first))
        self.profits = contents - self.first
        paid = _total(self.prices * self.over)
        return paid - _total(np.maximum(self.profits, 0))

    def ranked(self) -> list[int]:
        """The gaps, those with the highest gain per cost first."""
        order = np.argsort(-self.gains / (self.costs.clip(0) + 1), kind="stable")
        return [self.gaps[index] for index in order]

    def step(self, distance: float) -> None:
        """Raises prices where too few bytes are freed, and lowers them elsewhere."""
        is_away = (self.gains > self.costs) & (self.profits[self.contents] > 0)
        missing = self.over.astype(float)
        for gaps, freed in self.by_size.values():
            away = gaps[is_away[gaps]]
            count = np.zeros(len(missing) + 1)
            np.add.at(count, self.starts[away], 1)
            np.add.at(count, self.ends[away], -1)
            missing -= np.cumsum(count)[:-1] * freed
        np.add.at(missing, self.kept_at, self.kept * is_away[self.keeping])
        scale = distance / (_total(missing * missing) or 1.0)
        self.prices = np.maximum(self.prices + scale * missing, 0)


def _total(numbers: Floats | Integers) -> float:
    """The sum, in the same order on every machine."""
    return float(np.cumsum(numbers)[-1])
