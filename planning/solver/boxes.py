"""Boxes: buffers that fill a rectangle of sections and bytes, planned as one.

Some buffers end at a step, others start there. If sizes of the former have the same sum
as sizes of the latter, the same lives on either side, both stacks fill one box: a new
buffer that lives as long as they do together. Boxes go into larger boxes. Where a plan
has to be dense, most such sums are no accident, and a search among the boxes that are
left has far fewer ways to go wrong.

Sums that agree by accident are told by numbers: of so many pairs of sets that could be
compared at a step, about this part has the same sum of so many units. Nothing proves
that a box lies in a good plan, so boxes are drawn again and again, each time without
some.

Combining rectangles from below is due to Wang, "Two Algorithms for Constrained
Two-Dimensional Cutting Stock Problems", 1983. Boxes of buffers are those of Buchsbaum
et al., "OPT versus LOAD in Dynamic Storage Allocation", 2003, which also waste memory.
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
"""What making boxes costs for each buffer, in sections of `search.py`."""

_MOST = 7  # members of a box
_LEFT_OUT = 0.1  # share of the boxes that a draw does without


class _Box(NamedTuple):
    """A buffer, or two stacks of boxes."""

    first: int  # section
    end: int  # section after its last
    earlier: Sequence[int] = ()  # boxes from the bottom up, by number
    later: Sequence[int] = ()


class _Match(NamedTuple):
    """Two stacks that may be a box; the likely ones come first."""

    members: int
    doubt: float  # how many such matches are accidents
    earlier: Sequence[int]
    later: Sequence[int]


class _Stacks(NamedTuple):
    """Boxes of the same lives, so many above one another in each."""

    number: int
    by_height: Mapping[int, Sequence[Sequence[int]]]  # units


class Boxes:
    """The buffers of a part in boxes; `part` has those that no other box contains."""

    def __init__(self, part: Part, doubt: float, chance: Random | None = None) -> None:
        """`doubt` is how many accidents a match may be, as expected by numbers.

        With `chance`, some boxes are left out. Ends early at a deadline.
        """
        spans = zip(part.first, part.end, strict=True)
        self._boxes = [_Box(*span) for span in spans]
        self._size = list(part.size)  # of the boxes
        self._count = len(part.size)
        # Boxes that no other one contains: by their end and start, and the reverse.
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
        # What crosses a step is in a box that does, so this is one part as before.
        (self.part,) = parts_of(lives, [self._size[number] for number in outer])
        self._outer = [outer[index] for index in self.part.indices]

    def offsets(self, found: Sequence[int]) -> list[int]:
        """Those of the buffers, from those of `part`."""
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
        """Makes boxes until nothing matches, likely ones first."""
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
        """What may be a box across the start of a section."""
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
        """Those of 1 box, of 2, ..., until there are more than so many."""
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
        """Makes a box; the sections at whose start something changed."""
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
    """Boxes with the same lives, by one end of them and then by the other."""

    def __init__(self) -> None:
        super().__init__(lambda: defaultdict(list))
