"""Boxes: joins buffers that fill a rectangle of sections and bytes into one buffer.

Some buffers end at a step, and others start there. Take a stack of buffers with equal
lifetimes that end at the step, and a stack of buffers with equal lifetimes that start
there. If the sizes of both stacks have the same sum, the two fill one box: a new buffer
that is live as long as both together. Boxes are joined into larger boxes. Where a plan
must be dense, few sums agree by accident, and a search among the remaining boxes has
far fewer wrong choices.

The number of pairs of stacks at a step, divided by their height in units, estimates how
many pairs of that height have equal sums by accident; boxes with a high estimate are
not made. Boxes that get the lifetime of another box come first, because two boxes with
equal lifetimes are often the halves of a larger one. Nothing proves that a box lies in
a good plan. Boxes are therefore drawn again and again, each time without a random share
of the matches.

Wang, "Two Algorithms for Constrained Two-Dimensional Cutting Stock Problems", 1983,
also combines rectangles bottom-up. Buchsbaum et al., "OPT versus LOAD in Dynamic
Storage Allocation", 2003, put buffers into boxes; theirs may waste memory.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from math import comb
from random import Random
from typing import NamedTuple

from .. import deadline
from .sections import Part, parts_of

BOX_WORK = 1500
"""The work of making boxes, per buffer, in sections of `search.py`."""

_MOST = 7  # the most members of a box
_LEFT_OUT = 0.1  # the share of the matches that a draw omits


class _Box(NamedTuple):
    """A buffer (no stacks), or a box of two stacks of boxes, one after the other."""

    first: int  # section
    end: int  # section after its last
    earlier: Sequence[int] = ()  # boxes from the bottom up, by number
    later: Sequence[int] = ()


class _Match(NamedTuple):
    """Two stacks of equal height that may become a box. Likely matches sort first."""

    is_alone: bool  # whether no other box has the lifetime of the new one
    members: int  # boxes in both stacks
    doubt: float  # how many such matches agree by accident, as an estimate
    earlier: Sequence[int]
    later: Sequence[int]


class _Border:
    """The outermost boxes that end, or that start, at a border between sections."""

    def __init__(self, size: Sequence[int], groups: Mapping[int, Sequence[int]]):
        """`size` has the units of each box. `groups` has the boxes with equal
        lifetimes, by their other border."""
        self.groups = groups
        self._size = size
        self.tallest = max(map(self._height, groups.values()), default=0)
        """The height of the highest stack."""
        lengths = list(map(len, groups.values()))
        self.numbers = [
            sum(comb(length, count) for length in lengths)
            for count in range(1, min(max(lengths, default=0) + 1, _MOST))
        ]
        """The number of stacks of 1 box, of 2, ..."""
        self._stacks: dict[int, Mapping[int, Sequence[Sequence[int]]]] = {}

    def stacks(self, count: int) -> Mapping[int, Sequence[Sequence[int]]]:
        """The stacks of `count` boxes, by their height in units."""
        if count not in self._stacks:
            found = defaultdict[int, list[Sequence[int]]](list)
            for group in self.groups.values():
                for stack in combinations(group, count):
                    found[self._height(stack)].append(stack)
            self._stacks[count] = found
        return self._stacks[count]

    def _height(self, stack: Sequence[int]) -> int:
        return sum(map(self._size.__getitem__, stack))


class Borders(NamedTuple):
    """The borders of a part. All draws of boxes begin with these, and share them."""

    part: Part
    ending: Sequence[_Border]  # per border
    starting: Sequence[_Border]

    @classmethod
    def of(cls, part: Part) -> "Borders":
        ending, starting = (
            [defaultdict[int, list[int]](list) for _ in range(part.sections + 1)]
            for _ in range(2)
        )
        for number, (first, end) in enumerate(zip(part.first, part.end, strict=True)):
            ending[end][first].append(number)
            starting[first][end].append(number)
        return cls(
            part,
            [_Border(part.size, groups) for groups in ending],
            [_Border(part.size, groups) for groups in starting],
        )


class Boxes:
    """The buffers of a part in boxes. `part` has the outermost boxes as its buffers."""

    def __init__(
        self, borders: Borders, doubt: float, chance: Random | None = None
    ) -> None:
        """`doubt` is the highest estimate of accidental matches at which a box is made.

        `chance`, if given, omits some matches at random. Ends early at a deadline.
        """
        part = borders.part
        spans = zip(part.first, part.end, strict=True)
        self._boxes = [_Box(*span) for span in spans]
        self._size = list(part.size)  # of the boxes
        self._count = len(part.size)
        self._ending = list(borders.ending)  # of the outermost boxes
        self._starting = list(borders.starting)
        self._fill(doubt, chance)
        outer = sorted(
            number
            for border in self._ending
            for group in border.groups.values()
            for number in group
        )
        lives = [self._boxes[number][:2] for number in outer]
        # A buffer that is live across a step is in a box that is, so there is one part.
        (self.part,) = parts_of(lives, [self._size[number] for number in outer])
        self._outer = [outer[index] for index in self.part.indices]

    def offsets(self, found: Sequence[int]) -> list[int]:
        """Converts the offsets of `part` to offsets of the buffers."""
        offsets = [0] * len(self._boxes)
        for number, offset in zip(self._outer, found, strict=True):
            offsets[number] = offset
        for number in range(len(offsets) - 1, self._count - 1, -1):
            for stack in (self._boxes[number].earlier, self._boxes[number].later):
                offset = offsets[number]
                for member in stack:
                    offsets[member] = offset
                    offset += self._size[member]
        return offsets[: self._count]

    def _fill(self, doubt: float, chance: Random | None) -> None:
        """Makes boxes until no stacks match. Likely matches become boxes first."""
        matches: dict[int, list[_Match]] = {}
        changed = set(range(len(self._ending)))
        while changed and not deadline.passed():
            for border in sorted(changed):
                matches[border] = list(self._matches(border, doubt, chance))
            used: set[int] = set()
            joined: list[_Match] = []
            for match in sorted(chain.from_iterable(matches.values())):
                members = (*match.earlier, *match.later)
                if used.isdisjoint(members):
                    used.update(members)
                    joined.append(match)
            changed = self._join(joined)

    def _matches(
        self, border: int, doubt: float, chance: Random | None
    ) -> Iterator[_Match]:
        """Matches of stacks that end at a border and stacks that start there."""
        before, after = self._ending[border], self._starting[border]
        most = doubt * min(before.tallest, after.tallest)
        for one, number in enumerate(before.numbers, 1):
            if number > most:
                break
            for other, count in enumerate(after.numbers[: _MOST - one], 1):
                pairs = number * count
                if count > most:
                    break
                if pairs > most:
                    continue
                earlier, later = before.stacks(one), after.stacks(other)
                for height in earlier.keys() & later.keys():
                    if pairs > doubt * height:
                        continue
                    for stacks in product(earlier[height], later[height]):
                        if chance and chance.random() < _LEFT_OUT:
                            continue
                        first = self._boxes[stacks[0][0]].first
                        end = self._boxes[stacks[1][0]].end
                        is_alone = end not in self._starting[first].groups
                        doubted = pairs / height
                        yield _Match(is_alone, one + other, doubted, *stacks)

    def _join(self, matches: Sequence[_Match]) -> set[int]:
        """Makes boxes, and returns the borders at which lifetimes changed."""
        ending: dict[int, dict[int, list[int]]] = {}  # the groups at changed borders
        starting: dict[int, dict[int, list[int]]] = {}

        def groups(number: int) -> Iterator[list[int]]:
            """The groups of a box, to be changed."""
            first, end = self._boxes[number][:2]
            for changed, borders, here, other in (
                (ending, self._ending, end, first),
                (starting, self._starting, first, end),
            ):
                if here not in changed:
                    before = borders[here].groups.items()
                    changed[here] = {there: list(group) for there, group in before}
                yield changed[here].setdefault(other, [])

        for match in matches:
            for number in (*match.earlier, *match.later):
                for group in groups(number):
                    group.remove(number)
            first = self._boxes[match.earlier[0]].first
            end = self._boxes[match.later[0]].end
            self._size.append(sum(map(self._size.__getitem__, match.earlier)))
            self._boxes.append(_Box(first, end, match.earlier, match.later))
            for group in groups(len(self._boxes) - 1):
                group.append(len(self._boxes) - 1)
        for changed, borders in (ending, self._ending), (starting, self._starting):
            for border, lives in changed.items():
                kept = {other: group for other, group in lives.items() if group}
                borders[border] = _Border(self._size, kept)
        return ending.keys() | starting.keys()
