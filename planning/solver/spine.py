"""Spine first: splits a large part into pieces that exact searches can plan alone.

At some borders between sections, few buffers are live across the border. These buffers
are the spine: only they connect the two sides. Once the spine is placed at the bottom,
the other buffers form pieces that share no section, and the spine is the floor of each
piece. Each piece is searched separately, and a search that gives up restarts in its
piece only.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from .sections import Part, over
from .skyline import skyline_plans

PIECE = 500  # the most buffers of a piece
_FEW = 16  # at most one buffer in 16 is in the spine
_ROUNDS = 30  # attempts at a spine that leaves enough room for all pieces


class Piece(NamedTuple):
    """Buffers that are connected in time once the spine is placed."""

    part: Part  # its indices are those of the buffers in the whole part
    floor: Sequence[int]  # units that the spine takes, per section

    @property
    def needed(self) -> list[int]:
        """The lower bound per section, in units: the floor plus the load."""
        return list(map(sum, zip(self.floor, self.part.load, strict=True)))


def split(part: Part) -> tuple[Sequence[int], Sequence[Piece]]:
    """The offsets of the spine (units; 0 for other buffers), and the pieces.

    Both are empty if the part is small, or if no spine of few buffers leaves small
    pieces with enough room for each.
    """
    if len(part.size) <= PIECE:
        return [], []
    spine = _spine(part)
    for _ in range(_ROUNDS):
        if not 0 < _FEW * len(spine) <= len(part.size):
            break
        offsets, height = _placed(part, spine)
        rest = set(range(len(part.size))).difference(spine)
        pieces = [_piece(part, group, height) for group in part.connected(rest)]
        fillers = [i for piece in pieces if (i := _filler(part, piece)) is not None]
        if not fillers:
            return offsets, pieces
        spine += fillers
    return [], []


def _piece(part: Part, group: Sequence[int], height: Sequence[int]) -> Piece:
    sub, base = part.among(group), part.first[group[0]]
    return Piece(sub, height[base : base + sub.sections])


def _filler(part: Part, piece: Piece) -> int | None:
    """The buffer of a piece that best fills the hole in the spine below it.

    None if the piece needs no more units than the greatest load of the part.
    """
    needed, load = piece.needed, part.load
    worst = needed.index(max(needed))
    if needed[worst] <= max(load):
        return None
    at = worst + part.first[piece.part.indices[0]]
    hole = needed[worst] - load[at]

    def fit(i: int) -> tuple[bool, bool, int]:
        size = part.size[i]
        return size == hole, size < hole, size * (part.end[i] - part.first[i])

    return max(
        (i for i in piece.part.indices if part.first[i] <= at < part.end[i]), key=fit
    )


def _spine(part: Part) -> list[int]:
    """The buffers that cross a border that few buffers cross."""
    count = len(part.size)
    crossed = [0] * (part.sections + 1)  # buffers that cross it, per border
    for first, end in zip(part.first, part.end, strict=True):
        crossed[first + 1] += 1
        crossed[end] -= 1
    for border in range(part.sections):
        crossed[border + 1] += crossed[border]
    borders = [
        (first + 1, end) for first, end in zip(part.first, part.end, strict=True)
    ]
    weakest = over(crossed, borders, min, count)

    def is_enough(few: int) -> bool:
        rest = [i for i in range(count) if weakest[i] > few]
        return max(map(len, part.connected(rest)), default=0) <= PIECE

    levels = sorted(set(crossed))
    few = levels[bisect_left(levels, True, key=is_enough)]
    return [i for i in range(count) if weakest[i] <= few]


def _placed(part: Part, members: Sequence[int]) -> tuple[list[int], list[int]]:
    """The offsets of the members (units; 0 for others), and the height per section."""
    offsets, height = [0] * len(part.size), [0] * part.sections
    for group in part.connected(members):
        sub = part.among(group)
        for i, offset in zip(group, min(skyline_plans(sub), key=sub.peak), strict=True):
            offsets[i] = offset
            for section in range(part.first[i], part.end[i]):
                height[section] = max(height[section], offset + part.size[i])
    return offsets, height
