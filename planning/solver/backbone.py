"""Backbone first: places the longest-lived buffers of a large part before all others.

Short-lived buffers fit between long-lived ones, but not the other way round: when a
skyline places all buffers at once, short-lived ones take the place of long-lived ones.
The backbone is the longest-lived 2 % of the buffers. Placing only these is fast, so
many orders are tried (`squeaky.py`). First fit then places all other buffers around the
backbone (`greedy.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import deadline
from .gaps import WAITING
from .sections import Part, parts_among
from .skyline import skyline_plans
from .squeaky import SqueakyWheel

_SHARE = 50  # one buffer in 50 is in the backbone
_FEWEST = 100  # the smallest backbone, in buffers; in smaller parts, searches do better
_CARRIED = 0.75
"""The least share of the load that a backbone must have. Where it had less (up to 0.71
in graphs of 100,000 buffers), no plan around a backbone was the best."""


def longest(part: Part) -> Sequence[Part]:
    """The parts of the backbone of `part`, with the indices of their buffers in `part`.

    Empty if `part` is small, or if its longest-lived buffers have little of the load.
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
    """The offsets, in units, of the buffers of `parts`; `WAITING` for all others.

    Empty if `parts` is empty.
    """
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
