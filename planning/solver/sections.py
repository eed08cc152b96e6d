"""The input of the searches: sizes in units, lifetimes in sections, independent parts.

A section stands for a maximal set of buffers that are live together (a maximal clique
of the interval graph). Sections are numbered consecutively in time. Two buffers overlap
if and only if they share a section. Where no buffer is live across a step, the problem
splits into independent parts.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from math import gcd
from operator import add
from typing import NamedTuple

from ..problem import Buffer


@dataclass(frozen=True)
class Part:
    """Buffers without gaps that are connected in time.

    They are sorted by lifespan and size, so that plans do not depend on the order of
    the input.
    """

    indices: Sequence[int]  # of the buffers in the whole problem
    steps: Sequence[int]  # number of steps in which it is live, per buffer
    first: Sequence[int]  # section, per buffer
    end: Sequence[int]  # section after its last, per buffer
    size: Sequence[int]  # units, 1 or more
    sections: int

    @cached_property
    def load(self) -> list[int]:
        """Units that are live, per section."""
        change = [0] * (self.sections + 1)
        for first, end, size in zip(self.first, self.end, self.size, strict=True):
            change[first] += size
            change[end] -= size
        for section in range(self.sections):
            change[section + 1] += change[section]
        return change[:-1]

    @cached_property
    def tallest(self) -> list[int]:
        """The highest load of a buffer's sections, per buffer."""
        return over(self.load, list(zip(self.first, self.end, strict=True)), max)

    @property
    def covered(self) -> int:
        """The sum of the number of sections of each buffer."""
        return sum(self.end) - sum(self.first)

    def peak(self, offsets: Sequence[int]) -> int:
        """The end of the highest buffer, in units."""
        return max(map(add, offsets, self.size))

    @property
    def buffers(self) -> list[Buffer]:
        """`Buffer` objects with sizes in units and lifespans in sections."""
        spans = zip(self.size, self.first, self.end, strict=True)
        return [Buffer("", *span) for span in spans]

    @property
    def backwards(self) -> "Part":
        """This part in reversed time."""
        return replace(
            self,
            first=[self.sections - end for end in self.end],
            end=[self.sections - first for first in self.first],
        )

    def connected(self, members: Iterable[int]) -> Iterator[list[int]]:
        """Splits `members` into groups that share no section, in order of time."""
        group: list[int] = []
        reached = 0
        for i in sorted(members, key=lambda i: (self.first[i], i)):
            if group and self.first[i] >= reached:
                yield group
                group = []
            group.append(i)
            reached = max(reached, self.end[i])
        if group:
            yield group

    def among(self, members: Sequence[int]) -> "Part":
        """The part of `members` alone. `members[0]` must start first."""
        base = self.first[members[0]]
        return Part(
            members,
            [self.steps[i] for i in members],
            [self.first[i] - base for i in members],
            [self.end[i] - base for i in members],
            [self.size[i] for i in members],
            max(self.end[i] for i in members) - base,
        )


def over(
    values: Sequence[int],
    ranges: Sequence[tuple[int, int]],
    best: Callable[[int, int], int],
    default: int = 0,
) -> list[int]:
    """The `best` of the values in each range, or `default` for an empty range."""
    # among[k][s]: the best of the 2**k values from s on.
    among = [values]
    while (width := 1 << (len(among) - 1)) * 2 <= len(values):
        last = among[-1]
        among.append(list(map(best, last, last[width:])))
    result: list[int] = []
    for first, end in ranges:
        level = (end - first).bit_length() - 1
        values = among[level]
        result.append(
            best(values[first], values[end - (1 << level)]) if first < end else default
        )
    return result


def unit_of(sizes: Sequence[int]) -> int:
    """The largest unit of which all sizes are multiples.

    Some optimal plan has only offsets that are sums of sizes, so multiples of the unit
    suffice.
    """
    return reduce(gcd, sizes)


def sections_of(
    lifetimes: Sequence[tuple[int, int]],
) -> tuple[list[int], list[int], int]:
    """The first section of each lifetime, the one after its last, and their number."""
    count = len(lifetimes)
    first, end = [0] * count, [0] * count
    # Twice the step, plus 1 for a start: in each step, ends sort before starts.
    times = [2 * start + 1 for start, _ in lifetimes]
    times += [2 * stop for _, stop in lifetimes]
    section, ended = 0, False
    for event in sorted(range(2 * count), key=times.__getitem__):
        if event < count:
            section += ended
            ended = False
            first[event] = section
        else:
            ended = True
            end[event - count] = section + 1
    return first, end, section + 1


class LiveRanges(NamedTuple):
    """The live ranges, in sections, of buffers that may have gaps."""

    at: Sequence[int]  # buffer i is live in ranges at[i] to at[i + 1]
    first: Sequence[int]  # section, per range
    end: Sequence[int]  # section after its last, per range
    sections: int

    @property
    def hulls(self) -> Sequence[tuple[int, int]]:
        """The first section of each buffer, and the one after its last."""
        return [(self.first[a], self.end[b - 1]) for a, b in pairwise(self.at)]


def live_ranges_of(buffers: Sequence[Buffer]) -> LiveRanges:
    at = list(accumulate((len(b.live) for b in buffers), initial=0))
    return LiveRanges(at, *sections_of([live for b in buffers for live in b.live]))


def overlapping(
    buffers: Sequence[Buffer], by_start: Sequence[int]
) -> Sequence[Sequence[int]]:
    """For each buffer, the indices of the buffers that are live at the same time, in
    the order `by_start`."""
    rank = sorted(range(len(buffers)), key=by_start.__getitem__)
    lives = sorted((*steps, rank[i]) for i, b in enumerate(buffers) for steps in b.live)
    starts, ends, ranks = ([live[n] for live in lives] for n in range(3))
    near: list[set[int]] = [set() for _ in buffers]  # ranks, by rank
    for number, one in enumerate(ranks, start=1):
        # Of the live ranges after it, it overlaps those that start before its end.
        others = ranks[number : bisect_left(starts, ends[number - 1])]
        near[one].update(others)
        for other in others:
            near[other].add(one)
    return [[by_start[other] for other in sorted(near[one])] for one in rank]


def parts_of(lifespans: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[Part]:
    """The parts, in order of time. `sizes` are in units, 1 or more."""
    first, end, _ = sections_of(lifespans)
    parts: list[Part] = []
    members: list[int] = []
    reached = 0  # the section after the last of the members
    for index in sorted(range(len(sizes)), key=lambda i: (*lifespans[i], sizes[i])):
        if members and first[index] >= reached:
            parts.append(_part(members, lifespans, first, end, sizes))
            members = []
        members.append(index)
        reached = max(reached, end[index])
    return [*parts, _part(members, lifespans, first, end, sizes)] if members else []


def parts_among(part: Part, members: Sequence[int]) -> list[Part]:
    """The parts that `members` form. Their indices are positions in `members`."""
    lifespans = [(part.first[i], part.end[i]) for i in members]
    return parts_of(lifespans, [part.size[i] for i in members])


def _part(
    members: Sequence[int],
    lifespans: Sequence[tuple[int, int]],
    first: Sequence[int],
    end: Sequence[int],
    sizes: Sequence[int],
) -> Part:
    base = first[members[0]]
    return Part(
        members,
        [lifespans[i][1] - lifespans[i][0] for i in members],
        [first[i] - base for i in members],
        [end[i] - base for i in members],
        [sizes[i] for i in members],
        max(end[i] for i in members) - base,
    )
