"""Predicts where the values of a grouped function lie, and which bytes are live."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from xdsl.ir import Block, SSAValue

from ....analysis.operations import Fused
from ....analysis.storage import Home, TensorBuffer, during, storage_of
from ....dialects.tgraph.base import tensor_type_of, typical_bytes
from ....planning.problem import round_up

ALIGNMENT = 64
"""Every buffer takes a multiple of it, in bytes."""


class Liveness:
    """What lives where if a function has these groups as fusions."""

    def __init__(self, block: Block, groups: Sequence[Fused] = ()):
        self._storage = storage_of(block, groups)

    @cached_property
    def profile(self) -> Mapping[str | None, Sequence[int]]:
        """For each device the most bytes that live during each operation."""
        return during(self._storage, ALIGNMENT)

    def buffer(self, value: SSAValue) -> TensorBuffer | None:
        """The memory of the function's own that a value lies in, if any."""
        place = self._storage.places.get(value)
        return place.buffer if place and place.buffer.home is Home.OWN else None

    def bytes(self, value: SSAValue) -> int:
        """The bytes that a value takes, or would if it were stored."""
        place = self._storage.places.get(value)
        if place is None:
            return round_up(typical_bytes(tensor_type_of(value.type)), ALIGNMENT)
        return bytes_of(place.buffer) if place.buffer.home is Home.OWN else 0


def bytes_of(buffer: TensorBuffer) -> int:
    """The bytes that a buffer takes."""
    return round_up(typical_bytes(buffer.type), ALIGNMENT)
