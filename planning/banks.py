"""Chooses offsets so that buffers that are read together lie in different banks.

The banks of a memory serve one access each at a time. Two buffers that an operation
reads in step, element by element, collide where both elements are in one bank. A move
of one buffer within the arena may avoid that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, inf, lcm
from typing import NamedTuple

from .problem import Buffer, peak_of, round_up

ROUNDS = 4
"""The largest number of rounds, in each of which every colliding buffer may move."""

PLACES = 64
"""The largest number of aligned places in a gap that are all tried. If there are more,
only one is tried for each bank."""


@dataclass(frozen=True, slots=True)
class Banks:
    """The banks of a memory."""

    count: int
    width: int  # bytes in one bank before the next follows
    base: int = 0  # the address at which offsets begin

    @property
    def row(self) -> int:
        """The number of bytes after which the first bank follows again."""
        return self.count * self.width

    def of(self, offset: int) -> int:
        return (self.base + offset) // self.width % self.count


class Together(NamedTuple):
    """Two buffers that are read in step."""

    first: int  # their numbers
    second: int
    strides: tuple[int, int]  # bytes from one element to the next
    elements: int  # of the shorter one


def collisions(banks: Banks, pair: Together, first: int, second: int) -> int:
    """The number of element pairs of two buffers, at the offsets `first` and `second`,
    that lie in the same bank."""
    a, b = pair.strides
    period = lcm(banks.row // gcd(banks.row, a), banks.row // gcd(banks.row, b))
    whole, rest = divmod(pair.elements, period)
    found = _within(banks, first, second, pair.strides, rest)
    if whole:
        found += whole * _within(banks, first, second, pair.strides, period)
    return found


def _within(
    banks: Banks, first: int, second: int, strides: tuple[int, int], count: int
) -> int:
    """The collisions of the first `count` elements, counted by runs in which no bank
    changes."""
    found = done = 0
    while done < count:
        run = count - done
        places = [o + done * s for o, s in zip((first, second), strides, strict=True)]
        for place, stride in zip(places, strides, strict=True):
            left = banks.width - (banks.base + place) % banks.width
            run = min(run, -(-left // stride))
        found += run * (banks.of(places[0]) == banks.of(places[1]))
        done += run
    return found


def total_collisions(
    banks: Banks, pairs: Sequence[Together], offsets: Sequence[int]
) -> int:
    """The collisions of all pairs."""
    return sum(collisions(banks, p, offsets[p.first], offsets[p.second]) for p in pairs)


def spread(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    pairs: Sequence[Together],
    banks: Banks,
    limit: int,
) -> list[int]:
    """Offsets with no more collisions, by a local search. No buffer ends above `limit`,
    in bytes. Of plans with equally many collisions, the one with the lowest peak wins.

    The search starts from `offsets`, and from a second plan that places the buffers in
    the same order, each where it collides least. Then each buffer in turn moves to
    where it collides least, beginning with the one with the most collisions.
    """
    search = _Search(buffers, pairs, banks, limit)
    given = dict(enumerate(offsets))
    if not search.total(given):
        return list(offsets)
    starts = [given, search.rebuilt(offsets)]
    found = [search.improved(start) for start in starts if start]
    placed = [[each[number] for number in range(len(buffers))] for each in found]
    return min(
        placed,
        key=lambda new: (search.total(dict(enumerate(new))), peak_of(buffers, new)),
    )


class _Search:
    def __init__(
        self,
        buffers: Sequence[Buffer],
        pairs: Sequence[Together],
        banks: Banks,
        limit: int,
    ):
        self._buffers = buffers
        self._banks = banks
        self._limit = limit
        self._partners: dict[int, list[Together]] = {}
        for pair in pairs:
            for number in {pair.first, pair.second}:
                self._partners.setdefault(number, []).append(pair)

    def total(self, offsets: dict[int, int]) -> float:
        """The collisions, each counted for both buffers."""
        return sum(self._cost(n, offsets[n], offsets) for n in self._partners)

    def improved(self, offsets: dict[int, int]) -> dict[int, int]:
        """Moves single buffers while this reduces collisions. Returns `offsets`."""
        for _ in range(ROUNDS):
            costs = {n: self._cost(n, offsets[n], offsets) for n in self._partners}
            before = dict(offsets)
            for number in sorted(costs, key=lambda n: (-costs[n], n)):
                if self._buffers[number].offset is None:
                    cost, place = self._best(number, offsets)
                    if cost < self._cost(number, offsets[number], offsets):
                        offsets[number] = place
            if offsets == before:
                break
        return offsets

    def rebuilt(self, offsets: Sequence[int]) -> dict[int, int] | None:
        """Places all buffers in the order of `offsets`; None if a buffer does not fit,
        or has a given offset."""
        found: dict[int, int] = {}
        if any(buffer.offset is not None for buffer in self._buffers):
            return None
        for number in sorted(range(len(offsets)), key=lambda n: (offsets[n], n)):
            cost, place = self._best(number, found)
            if cost == inf:
                return None
            found[number] = place
        return found

    def _best(self, number: int, offsets: dict[int, int]) -> tuple[float, int]:
        """The fewest collisions of a buffer, and the lowest place that has them."""
        places = self._places(number, offsets)
        costs = ((self._cost(number, place, offsets), place) for place in places)
        return min(costs, default=(inf, 0))

    def _cost(self, number: int, offset: int, offsets: dict[int, int]) -> float:
        """The collisions of a buffer at `offset` with the buffers that have offsets."""
        found = 0
        for pair in self._partners.get(number, ()):
            first, second = (
                offset if n == number else offsets.get(n)
                for n in (pair.first, pair.second)
            )
            if first is not None and second is not None:
                found += collisions(self._banks, pair, first, second)
        return found

    def _places(self, number: int, offsets: dict[int, int]) -> Iterator[int]:
        """Offsets for a buffer in the gaps between the buffers that are live with it:
        in each gap, places in different banks."""
        mine, row = self._buffers[number], self._banks.row
        taken = sorted(
            (offset, offset + self._buffers[n].size)
            for n, offset in offsets.items()
            if n != number and self._buffers[n].overlaps(mine)
        )
        step = mine.alignment
        if row // step > PLACES:
            step = round_up(self._banks.width, step)
        low = 0
        for start, end in [*taken, (self._limit, self._limit)]:
            first, last = round_up(low, mine.alignment), start - mine.size
            yield from range(first, min(last + 1, first + row), step)
            low = max(low, end)
