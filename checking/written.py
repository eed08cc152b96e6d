"""Tracks the parts of buffers that have been written, for plan-check.

%v = memref.subview %a[0] [8] [1]        32 of 64 bytes
tgraph.negate ... outs(%v)
memref.copy %a, %b                       also 32 of 64 bytes
tgraph.tanh %b ...                       fault: reads all 64
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import overwrites, says_effects
from ..dialects.tgraph.base import AnyMemRef, element_bytes
from .buffers import ArenaBuffer, numbers_of
from .extents import Extent, covered, extent_of
from .pointees import ONE_REGION_RUNS
from .ranges import most_iterations

_STORES = ("memref.store", "affine.store")
"""Operations that write one element, which is their first operand."""


class Parts:
    """The parts of buffers that can be tracked, as bits: first one for each buffer as a
    whole, then one for each view at a static place, and for each store of an
    element."""

    def __init__(
        self, buffers: Sequence[ArenaBuffer], may_be: Mapping[SSAValue, Sequence[int]]
    ):
        self._sizes = [buffer.size for buffer in buffers]
        self._bit: dict[SSAValue | Operation, int] = {}  # of each view, of each store
        self._parts: list[dict[Extent | Operation, int]] = [{} for _ in buffers]
        self._all = [1 << number for number in range(len(buffers))]
        self._stored: dict[Operation, int] = {}  # upper bound of the bytes of a store
        self._owners = list(range(len(buffers)))  # the buffer of each bit
        for value, numbers in may_be.items():
            number, *others = numbers
            if others:
                continue
            buffer = buffers[number]
            extent = extent_of(value, buffer.value)
            if extent and extent.bytes < buffer.size:
                self._bit[value] = self._add(number, extent)
            for store in (use.operation for use in value.uses):
                if name_of(store) in _STORES and (runs := _most_runs(store)):
                    self._stored[store] = runs * element_bytes(store.operands[0].type)
                    self._bit[store] = self._add(number, store)
        self._copied = self._parts_copied(buffers)

    def _parts_copied(
        self, buffers: Sequence[ArenaBuffer]
    ) -> Mapping[Operation, Sequence[tuple[int, int]]]:
        """By copy of a whole buffer to a whole buffer: the bits of the source, each
        with the bit of the same part of the target, to which missing parts are
        added."""
        number_of = {buffer.value: number for number, buffer in enumerate(buffers)}
        copies = {
            copy: (number_of[copy.source], number_of[copy.destination])
            for copy in (use.operation for value in number_of for use in value.uses)
            if isinstance(copy, memref.CopyOp)
            and copy.source in number_of
            and copy.destination in number_of
            and _are_alike(copy)
        }
        pending = list(dict.fromkeys(copies.values()))
        for source, target in pending:  # grows during the loop
            known = self._parts[target]
            new = [part for part in self._parts[source] if part not in known]
            for part in new:
                self._add(target, part)
            if new:
                pending += [pair for pair in copies.values() if pair[0] == target]
        return {
            copy: [
                (1 << source, 1 << target),
                *(
                    (bit, self._parts[target][part])
                    for part, bit in self._parts[source].items()
                ),
            ]
            for copy, (source, target) in copies.items()
        }

    def after(self, op: Operation, missing: int, written: int) -> int:
        """The bits that are not written after `op`, which writes the bits `written`. A
        copy of a whole buffer writes only the parts that its source has."""
        left = missing & ~written
        for bit, copied in self._copied.get(op, ()):
            if missing & bit:
                left |= copied
        return left

    def _add(self, number: int, part: Extent | Operation) -> int:
        parts = self._parts[number]
        if part not in parts:
            parts[part] = 1 << len(self._owners)
            self._all[number] |= parts[part]
            self._owners.append(number)
        return parts[part]

    def all_of(self, numbers: Iterable[int]) -> int:
        bits = 0
        for number in numbers:
            bits |= self._all[number]
        return bits

    def written(self, number: int, value: SSAValue, user: Operation) -> int:
        """The bits of buffer `number` that `user` writes through `value`: those of a
        known part, or all bits if the part is not known."""
        if user in self._bit:
            return self._bit[user]
        is_known = says_effects(user) and name_of(user) not in _STORES
        if is_known and not overwrites(user, value):
            return 0
        bit = self._bit.get(value)
        return self._all[number] if bit is None else bit

    def missing_in_either(self, one: int, other: int) -> int:
        """The bits that are not written where two paths meet. On a path that may have
        written all bytes of a buffer, in whatever parts, none of its bits is
        missing."""
        for number in {self._owners[bit] for bit in numbers_of(one ^ other)}:
            size = self._sizes[number]
            if self.bytes(number, one) == size:
                one &= ~self._all[number]
            if self.bytes(number, other) == size:
                other &= ~self._all[number]
        return one | other

    def bytes(self, number: int, missing: int) -> int:
        """An upper bound of a buffer's written bytes, given the bits not written."""
        size = self._sizes[number]
        if not missing >> number & 1:
            return size
        written = [p for p, bit in self._parts[number].items() if not missing & bit]
        extents = [part for part in written if isinstance(part, Extent)]
        stored = sum(self._stored[p] for p in written if isinstance(p, Operation))
        return min(size, covered(extents, size) + stored)


def _are_alike(copy: memref.CopyOp) -> bool:
    """Whether equal indices of both buffers have equal offsets."""
    source, target = (cast(AnyMemRef, value.type) for value in copy.operands)
    return source.get_strides() == target.get_strides()


def _most_runs(op: Operation) -> int | None:
    """An upper bound of an operation's runs in each call of its function; None if it is
    not known."""
    runs = 1
    while (around := op.parent_op()) is not None:
        region = op.parent_region()
        if region is not None and len(region.blocks) > 1:
            return None
        if isinstance(around, FuncOp):
            return runs
        if name_of(around) not in ONE_REGION_RUNS:
            iterations = most_iterations(around)
            if iterations is None:
                return None
            runs *= iterations
        op = around
    return None
