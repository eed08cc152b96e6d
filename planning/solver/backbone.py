"""A backbone: the longest-lived buffers of a large part alone, on their own skyline.

Short lives fit between long ones, but not the other way round: on a skyline of all
buffers, short ones come to lie where a long one would have fitted. The longest fiftieth
takes little time to place, so many orders are tried (`squeaky.py`). All else goes
around it by first fit (`greedy.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import deadline
from .gaps import WAITING
from .sections import Part, parts_among
from .skyline import skyline_plans
from .squeaky import SqueakyWheel

_SHARE = 50  # one of so many buffers
_FEWEST = 100  # buffers of a backbone; in a small part searches do better
_CARRIED = 0.75
"""Of the load, by a backbone. Where it was less (up to 0.71 in graphs of 100,000
buffers), no plan around one was the best."""


def longest(part: Part) -> Sequence[Part]:
    """The parts of its backbone; none if the part is small, or little of the load lives
    long.
    """
    count = len(part.size)
    if count < _SHARE * _FEWEST:
        return ()
    lengths = [a - end for a, end in zip(part.first, part.end, strict=True)]
    members = sorted(sorted(range(count), key=lengths.__getitem__)[: count // _SHARE])
    parts = [
        replace(sub, indices=[members[i] for i in sub.indices])
        for sub in parts_among(part, members)
    ]
    carried = max(max(sub.load) for sub in parts)
    return parts if carried >= _CARRIED * max(part.load) else ()


def backbone(part: Part, parts: Sequence[Part]) -> Sequence[int]:
    """The offsets, in units, of these parts of a part; `WAITING` for all else, and none
    if there are no parts."""
    if not parts:
        return ()
    offsets = [WAITING] * len(part.size)
    for sub in parts:
        best = min(_plans(sub), key=sub.peak)
        for i, offset in zip(sub.indices, best, strict=True):
            offsets[i] = offset
    return offsets


def _plans(part: Part) -> Iterator[Sequence[int]]:
    yield from skyline_plans(part)
    wheel = SqueakyWheel(part)
    while not (wheel.is_over or deadline.passed()):
        yield wheel.step()
