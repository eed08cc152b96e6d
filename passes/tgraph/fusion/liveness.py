"""Predicts the buffers and the live bytes of a function whose groups are fusions."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.ir import Block, SSAValue

from ....analysis.operations import Fused
from ....analysis.storage import Home, TensorBuffer, during, storage_of
from ....dialects.tgraph.base import typical_bytes, value_bytes
from ....planning.problem import round_up

ALIGNMENT = 64
"""In bytes. The size of every buffer is rounded up to a multiple of it."""


class Liveness:
    """The buffers and live bytes of `block` once `groups` are fusions."""

    def __init__(self, block: Block, groups: Sequence[Fused] = ()):
        self._storage = storage_of(block, groups)

    @cached_property
    def profile(self) -> Mapping[str | None, Sequence[int]]:
        """For each device, the bytes that are live during each operation."""
        return during(self._storage, ALIGNMENT)

    def buffer(self, value: SSAValue) -> TensorBuffer | None:
        """The buffer of `value`, or None if the function does not allocate it."""
        place = self._storage.places.get(value)
        return place.buffer if place and place.buffer.home is Home.OWN else None

    def bytes(self, value: SSAValue) -> int:
        """The bytes that `value` takes, or would take if it were stored. 0 if it lies
        in memory that the function does not allocate."""
        place = self._storage.places.get(value)
        if place is None:
            return round_up(value_bytes(value), ALIGNMENT)
        return bytes_of(place.buffer) if place.buffer.home is Home.OWN else 0


def bytes_of(buffer: TensorBuffer) -> int:
    """The bytes that a buffer takes, rounded up to `ALIGNMENT`."""
    return round_up(typical_bytes(buffer.type), ALIGNMENT)
