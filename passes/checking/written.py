"""What of buffers is written, in parts, for plan-check.

%v = memref.subview %a[0] [8] [1]        32 of 64 bytes
tgraph.negate ... outs(%v)
tgraph.tanh %a ...                       fault: reads all 64
"""

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tensorplan.dialects.diagnostics import name_of
from tensorplan.dialects.memory import overwrites, says_effects
from tensorplan.dialects.tgraph.base import element_bytes
from tensorplan.passes.checking.buffers import ArenaBuffer
from tensorplan.passes.checking.extents import Extent, covered, extent_of
from tensorplan.passes.checking.pointees import ONE_REGION_RUNS


class Parts:
    """What of buffers is written: bits for those that are as a whole, in their order,
    then bits for parts: their views at static places, and single elements."""

    def __init__(
        self, buffers: Sequence[ArenaBuffer], may_be: Mapping[SSAValue, Sequence[int]]
    ):
        self._sizes = [buffer.size for buffer in buffers]
        self._bit: dict[SSAValue | Operation, int] = {}  # of a view, of a store
        self._parts: list[dict[Extent | Operation, int]] = [{} for _ in buffers]
        self._all = [1 << number for number in range(len(buffers))]
        self._count = len(buffers)
        for value, numbers in may_be.items():
            number, *others = numbers
            if others:
                continue
            buffer = buffers[number]
            extent = extent_of(value, buffer.value)
            if extent and extent.bytes < buffer.size:
                self._bit[value] = self._add(number, extent)
            for store in (use.operation for use in value.uses):
                if isinstance(store, memref.StoreOp) and not _may_repeat(store):
                    self._bit[store] = self._add(number, store)

    def _add(self, number: int, part: Extent | Operation) -> int:
        parts = self._parts[number]
        if part not in parts:
            parts[part] = 1 << self._count
            self._all[number] |= 1 << self._count
            self._count += 1
        return parts[part]

    def all_of(self, numbers: Iterable[int]) -> int:
        bits = 0
        for number in numbers:
            bits |= self._all[number]
        return bits

    def written(self, number: int, value: SSAValue, user: Operation) -> int:
        """What of a buffer is written by who writes to `value`: a part that is known,
        else all of it for all we know."""
        if user in self._bit:
            return self._bit[user]
        is_known = says_effects(user) and not isinstance(user, memref.StoreOp)
        if is_known and not overwrites(user, value):
            return 0
        bit = self._bit.get(value)
        return self._all[number] if bit is None else bit

    def bytes(self, number: int, missing: int) -> int:
        """How many bytes of a buffer may be written, given what is not."""
        size = self._sizes[number]
        if not missing >> number & 1:
            return size
        written = [p for p, bit in self._parts[number].items() if not missing & bit]
        extents = [part for part in written if isinstance(part, Extent)]
        stored = sum(_width(part) for part in written if isinstance(part, Operation))
        return min(size, covered(extents, size) + stored)


def _width(store: Operation) -> int:
    """The bytes of the element that a `memref.store` writes."""
    return element_bytes(store.operands[0].type)


def _may_repeat(op: Operation) -> bool:
    """Whether an operation may run more often than its function."""
    while not isinstance(around := op.parent_op(), FuncOp):
        assert around is not None
        if _has_blocks(op) or name_of(around) not in ONE_REGION_RUNS:
            return True
        op = around
    return _has_blocks(op)


def _has_blocks(op: Operation) -> bool:
    """Whether there are several in the region of an operation."""
    region = op.parent_region()
    assert region is not None
    return len(region.blocks) > 1
