"""`naive`: every buffer gets bytes of its own. What reuse is measured against."""

from collections.abc import Sequence

from tensorplan.planning.problem import Buffer, place_in_sequence
from tensorplan.planning.registry import strategy


@strategy("naive")
def naive(buffers: Sequence[Buffer]) -> Sequence[int]:
    """No reuse: the buffers one after the other, in the order given."""
    offsets, _ = place_in_sequence(buffers)
    return offsets
