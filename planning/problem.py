"""The vocabulary, from buffers to offsets, with minimalloc's terms and units.

A lifetime is half-open. A buffer with lifetime [3, 5) is live in steps 3 and 4, and a
buffer with lifetime [5, 7) may use the same bytes. An operation that reads one buffer
and writes another in the same step needs both, so both are live in that step.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd
from typing import NamedTuple, TypeAlias

Steps: TypeAlias = tuple[int, int]
"""A half-open range of steps."""


def common(a: Sequence[Steps], b: Sequence[Steps]) -> Sequence[Steps]:
    """The ranges of steps that `a` and `b` have in common. All are ascending."""
    found: list[Steps] = []
    one = another = 0
    while one < len(a) and another < len(b):
        (start, end), (first, last) = a[one], b[another]
        if max(start, first) < min(end, last):
            found.append((max(start, first), min(end, last)))
        if end < last:
            one += 1
        else:
            another += 1
    return found


@dataclass(frozen=True, slots=True)
class Buffer:
    """A contiguous range of bytes that is needed for some steps.

    Raises `ValueError` for values out of range.
    """

    id: str
    size: int  # bytes, 0 or more
    start: int  # first step in which it is live
    end: int  # first step in which it is no longer live; greater than `start`
    alignment: int = 1  # of the offset, in bytes, 1 or more
    gaps: Sequence[Steps] = ()  # ascending; others may have its bytes
    offset: int | None = None  # the required one, in bytes
    pool: str = ""  # buffers in different pools have different address spaces
    hint: int | None = None  # an offset, in bytes, that searches start from

    def __post_init__(self) -> None:
        def refuse(what: str) -> None:
            raise ValueError(f"buffer {self.id}: {what}")

        if self.size < 0:
            refuse(f"size is {self.size}, expected 0 or more")
        if self.end <= self.start:
            refuse(
                f"live range is [{self.start}, {self.end}), expected an end after the "
                "start"
            )
        if self.alignment < 1:
            refuse(f"alignment is {self.alignment}, expected 1 or more")
        if self.offset is not None and (
            self.offset < 0 or self.offset % self.alignment
        ):
            refuse(
                f"offset is {self.offset}, expected a multiple of {self.alignment}, 0 "
                "or more"
            )
        end = self.start
        for gap in self.gaps:
            if not end < gap[0] < gap[1] < self.end:
                refuse(
                    f"gap is [{gap[0]}, {gap[1]}), expected within [{end}, "
                    f"{self.end}), not touching either end or another gap"
                )
            end = gap[1]

    @property
    def live(self) -> Sequence[Steps]:
        """The lifetime without the gaps, in ascending order."""
        if not self.gaps:
            return ((self.start, self.end),)
        starts = [self.start, *(end for _, end in self.gaps)]
        ends = [*(start for start, _ in self.gaps), self.end]
        return list(zip(starts, ends, strict=True))

    def overlaps(self, other: "Buffer") -> bool:
        """Whether both buffers are live in some step."""
        if self.end <= other.start or other.end <= self.start:
            return False
        if not self.gaps and not other.gaps:
            return True
        mine, others = iter(self.live), iter(other.live)
        (a, b), (other_a, other_b) = next(mine), next(others)
        while not (a < other_b and other_a < b):
            if b <= other_a:
                after = next(mine, None)
                if after is None:
                    return False
                a, b = after
            else:
                after = next(others, None)
                if after is None:
                    return False
                other_a, other_b = after
        return True


@dataclass(frozen=True)
class Problem:
    """Buffers to place, and the optional capacity of each pool in bytes."""

    buffers: Sequence[Buffer]
    capacity: int | None = None

    @property
    def by_pool(self) -> Mapping[str, "Problem"]:
        """A problem for each pool, in order of first appearance."""
        pools: dict[str, list[Buffer]] = {}
        for buffer in self.buffers:
            pools.setdefault(buffer.pool, []).append(buffer)
        return {pool: Problem(b, self.capacity) for pool, b in pools.items()}

    @property
    def total(self) -> int:
        """Bytes without reuse, with each size rounded up to the alignment."""
        return sum(round_up(b.size, b.alignment) for b in self.buffers)

    @cached_property
    def peak_step(self) -> int:
        """The first step in which the most bytes are live; 0 without buffers."""
        changes: dict[int, int] = {}
        for buffer in self.buffers:
            for start, end in buffer.live:
                changes[start] = changes.get(start, 0) + buffer.size
                changes[end] = changes.get(end, 0) - buffer.size
        live, most, at = 0, 0, min(changes, default=0)
        for step in sorted(changes):
            live += changes[step]
            if live > most:
                most, at = live, step
        return at

    @cached_property
    def lower_bound(self) -> int:
        """The largest sum of live bytes, which no plan can undercut.

        The bound is the sum over the pools. Of the buffers whose offsets are multiples
        of some unit, every live one except the topmost takes a multiple of the unit.
        Buffers with a lower alignment may use the bytes left over, so each unit yields
        a bound of its own. The result is the largest over the most frequent units.
        """
        return sum(_lower_bound(p.buffers) for p in self.by_pool.values())


_UNITS = 64
"""The number of alignments with a bound of their own, the most frequent ones."""


def _lower_bound(buffers: Sequence[Buffer]) -> int:
    alignments = Counter(b.alignment for b in buffers)
    units = [gcd(*alignments), *(unit for unit, _ in alignments.most_common(_UNITS))]
    return max(
        _aligned_bound([b for b in buffers if b.alignment % unit == 0], unit)
        for unit in dict.fromkeys(units)
    )


def _aligned_bound(buffers: Sequence[Buffer], unit: int) -> int:
    """The lower bound for buffers whose offsets are multiples of a unit."""
    live_ranges = [(*steps, b.size) for b in buffers for steps in b.live]
    total = len(live_ranges)
    # Twice the step, plus one where a range starts: ends in the step come before.
    times = [2 * start + 1 for start, _, _ in live_ranges]
    times += [2 * end for _, end, _ in live_ranges]
    bound = max((b.offset + b.size for b in buffers if b.offset is not None), default=0)
    live = 0  # bytes, each buffer rounded up to the unit
    slacks: Counter[int] = Counter()  # what rounding up added, per live buffer
    for event in sorted(range(2 * total), key=times.__getitem__):
        size = live_ranges[event % total][2]
        slack = -size % unit
        if event >= total:
            live -= size + slack
            slacks[slack] -= 1
            continue
        live += size + slack
        slacks[slack] += 1
        if live > bound:
            topmost = max(slack for slack, count in slacks.items() if count)
            bound = max(bound, live - topmost)
    return bound


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a search. Simple strategies ignore them.

    Without a time limit, a search counts its work instead, and finds the same plan on
    every machine. `effort` is the fraction of its usual work that it may do.
    """

    time_limit: float | None = None  # seconds on the clock, for all pools
    seed: int = 0
    progress: Callable[["Progress"], None] | None = field(default=None, compare=False)
    effort: float = 1.0  # without a time limit


class Progress(NamedTuple):
    """A report of a search on its progress."""

    peak: int  # bytes, of the best plan so far
    lower_bound: int  # bytes
    seconds: float  # on the clock, so far


class Placement(NamedTuple):
    """The result of a strategy for the buffers of one pool."""

    offsets: Sequence[int]  # bytes, one for each buffer
    exhausted: bool = False  # whether a search proved that no plan has a lower peak


Strategy: TypeAlias = Callable[[Problem, Limits], Placement]
"""Places the buffers of one pool; those with a given offset must get it.

Strategies are not trusted: `solve` validates what they return. `Problem.capacity` is a
goal: a strategy that cannot meet it returns the best placement that it has.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The offsets of buffers: `offsets[i]`, in bytes, is the offset of
    `problem.buffers[i]`.
    """

    offsets: Sequence[int]
    peak: int  # bytes, the sum over the pools
    lower_bound: int  # bytes, the sum over the pools
    optimal: bool  # proved: the peak is the lower bound, or a search was exhausted
    strategy: str
    seconds: float  # of CPU time
    was_ended: bool = False  # by a deadline, before the strategy was done


def round_up(size: int, alignment: int) -> int:
    """The least multiple of `alignment` at or above `size`."""
    return -(-size // alignment) * alignment


def peak_of(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The end of the highest buffer, in bytes."""
    pairs = zip(offsets, buffers, strict=True)
    return max((offset + b.size for offset, b in pairs), default=0)
