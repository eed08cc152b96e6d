"""A backbone: the longest-lived buffers of a large part alone, on their own skyline.

Short lives fit between long ones, but not the other way round: on a skyline of all
buffers, short ones come to lie where a long one would have fitted. The longest fiftieth
takes little time to place, so many orders are tried (`squeaky.py`). All else goes
around it by first fit (`greedy.py`).
"""

from collections.abc import Iterator, Sequence

from .. import deadline
from .gaps import WAITING
from .sections import Part, parts_among
from .skyline import skyline_plans
from .squeaky import SqueakyWheel

_SHARE = 50  # one of so many buffers
_FEWEST = 100  # buffers of a backbone; in a small part searches do better


def backbone(part: Part) -> Sequence[int]:
    """Its offsets, in units; `WAITING` for all other buffers. Empty in a small part."""
    count = len(part.size)
    if count < _SHARE * _FEWEST:
        return ()
    lengths = [a - end for a, end in zip(part.first, part.end, strict=True)]
    longest = sorted(range(count), key=lengths.__getitem__)[: count // _SHARE]
    offsets = [WAITING] * count
    members = sorted(longest)
    for sub in parts_among(part, members):
        best = min(_plans(sub), key=sub.peak)
        for i, offset in zip(sub.indices, best, strict=True):
            offsets[members[i]] = offset
    return offsets


def _plans(part: Part) -> Iterator[Sequence[int]]:
    yield from skyline_plans(part)
    wheel = SqueakyWheel(part)
    while not (wheel.is_over or deadline.passed()):
        yield wheel.step()
