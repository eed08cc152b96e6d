"""`naive`: every buffer gets bytes of its own. What reuse is measured against."""

from collections.abc import Sequence

from tensorplan.planning.problem import Buffer, round_up
from tensorplan.planning.registry import strategy


@strategy("naive")
def naive(buffers: Sequence[Buffer]) -> Sequence[int]:
    """No reuse: the buffers one after the other, in the order given."""
    offsets: list[int] = []
    end = 0
    for buffer in buffers:
        offsets.append(round_up(end, buffer.alignment))
        end = offsets[-1] + buffer.size
    return offsets
