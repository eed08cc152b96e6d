"""Boxes: joins buffers that fill a rectangle of sections and bytes into one buffer.

Some buffers end at a step, and others start there. Take a stack of buffers with equal
lifetimes that end at the step, and a stack of buffers with equal lifetimes that start
there. If the sizes of both stacks have the same sum, the two fill one box: a new buffer
that is live as long as both together. Boxes are joined into larger boxes. Where a plan
must be dense, few sums agree by accident, and a search among the remaining boxes has
far fewer wrong choices.

The number of pairs of stacks at a step, divided by their height in units, estimates how
many pairs of that height have equal sums by accident; boxes with a high estimate are
not made. Nothing proves that a box lies in a good plan. Boxes are therefore drawn again
and again, each time without a random share of the matches.

Wang, "Two Algorithms for Constrained Two-Dimensional Cutting Stock Problems", 1983,
also combines rectangles bottom-up. Buchsbaum et al., "OPT versus LOAD in Dynamic
Storage Allocation", 2003, put buffers into boxes; theirs may waste memory.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from math import comb
from random import Random
from typing import NamedTuple

from .. import deadline
from .sections import Part, parts_of

BOX_WORK = 1000
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

    members: int  # boxes in both stacks
    doubt: float  # how many such matches agree by accident, as an estimate
    earlier: Sequence[int]
    later: Sequence[int]


class _Stacks(NamedTuple):
    """All stacks of a given number of boxes with equal lifetimes."""

    number: int  # of stacks
    by_height: Mapping[int, Sequence[Sequence[int]]]  # the stacks, by height in units


class Boxes:
    """The buffers of a part in boxes. `part` has the outermost boxes as its buffers."""

    def __init__(self, part: Part, doubt: float, chance: Random | None = None) -> None:
        """`doubt` is the highest estimate of accidental matches at which a box is made.

        `chance`, if given, omits some matches at random. Ends early at a deadline.
        """
        spans = zip(part.first, part.end, strict=True)
        self._boxes = [_Box(*span) for span in spans]
        self._size = list(part.size)  # of the boxes
        self._count = len(part.size)
        # The outermost boxes: by end, then start; and by start, then end.
        self._ending = _Groups()
        self._starting = _Groups()
        for number in range(self._count):
            self._add(number)
        self._fill(doubt, chance)
        outer = sorted(
            number
            for groups in self._ending.values()
            for group in groups.values()
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

    def _add(self, number: int) -> None:
        first, end = self._boxes[number][:2]
        self._ending[end][first].append(number)
        self._starting[first][end].append(number)

    def _fill(self, doubt: float, chance: Random | None) -> None:
        """Makes boxes until no stacks match. Likely matches become boxes first."""
        matches: dict[int, list[_Match]] = {}
        changed = set(self._ending) & set(self._starting)
        while changed and not deadline.passed():
            for section in sorted(changed):
                matches[section] = list(self._matches(section, doubt, chance))
            changed.clear()
            used: set[int] = set()
            for match in sorted(chain.from_iterable(matches.values())):
                members = (*match.earlier, *match.later)
                if used.isdisjoint(members):
                    used.update(members)
                    changed.update(self._join(match))
            changed &= set(self._ending) & set(self._starting)

    def _matches(
        self, section: int, doubt: float, chance: Random | None
    ) -> Iterator[_Match]:
        """Matches of stacks that end before `section` and stacks that start in it."""
        groups = self._ending[section].values(), self._starting[section].values()
        tallest = min(max(map(self._height, lives)) for lives in groups)
        before, after = (self._stacks(lives, doubt * tallest) for lives in groups)
        for members in range(2, _MOST + 1):
            for count in range(max(1, members - len(after)), members):
                if count > len(before):
                    break
                earlier, later = before[count - 1], after[members - count - 1]
                pairs = earlier.number * later.number
                for height in earlier.by_height.keys() & later.by_height.keys():
                    if pairs > doubt * height:
                        continue
                    for stacks in product(
                        earlier.by_height[height], later.by_height[height]
                    ):
                        if not chance or chance.random() >= _LEFT_OUT:
                            yield _Match(members, pairs / height, *stacks)

    def _stacks(
        self, groups: Iterable[Sequence[int]], most: float
    ) -> Sequence[_Stacks]:
        """The stacks of 1 box, of 2, ..., up to the last count with at most `most`."""
        result: list[_Stacks] = []
        for count in range(1, _MOST):
            number = sum(comb(len(group), count) for group in groups)
            if not 0 < number <= most:
                break
            by_height = defaultdict[int, list[Sequence[int]]](list)
            for group in groups:
                for stack in combinations(group, count):
                    by_height[self._height(stack)].append(stack)
            result.append(_Stacks(number, by_height))
        return result

    def _height(self, stack: Sequence[int]) -> int:
        return sum(map(self._size.__getitem__, stack))

    def _join(self, match: _Match) -> set[int]:
        """Makes a box, and returns the sections at whose start a lifetime changed."""
        changed: set[int] = set()
        for number in (*match.earlier, *match.later):
            first, end = self._boxes[number][:2]
            self._ending[end][first].remove(number)
            self._starting[first][end].remove(number)
            changed |= {first, end}
        first = self._boxes[match.earlier[0]].first
        end = self._boxes[match.later[0]].end
        height = self._height(match.earlier)
        self._size.append(height)
        self._boxes.append(_Box(first, end, match.earlier, match.later))
        self._add(len(self._boxes) - 1)
        return changed


class _Groups(defaultdict[int, dict[int, list[int]]]):
    """The numbers of boxes, by one end of their lifetime and then by the other."""

    def __init__(self) -> None:
        super().__init__(lambda: defaultdict(list))
