"""The bytes of its memory that a memref may access, for plan-check.

If the layout of a memref is static, its type gives the first element and the strides,
relative to the start of its buffer, or of a `memref.view` of bytes in it. If offsets,
sizes or strides are operands, the bytes are in a range that follows from the ranges of
the operands (ranges.py). Shares no code with the planner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    i8,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.memory import is_view
from ..dialects.tgraph.base import AnyMemRef, element_bytes
from .buffers import SAME_ADDRESS
from .ranges import (
    Known,
    Range,
    add,
    exactly,
    multiply,
    nothing_known,
    range_of,
    varying,
)

if TYPE_CHECKING:  # its import takes 0.1 s, and few programs need it
    import numpy as np


@dataclass(frozen=True, slots=True)
class Extent:
    """The bytes of a strided layout, relative to the start of a buffer."""

    start: int  # the first byte of the first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes
    width: int  # bytes of an element

    @property
    def reach(self) -> Range:
        """The first and the last byte; the extent must not be empty."""
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.start + sum(step for step in steps if step < 0)
        high = self.start + sum(step for step in steps if step > 0)
        return Range(low, high + self.width - 1)

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.width

    def is_like(self, other: "Extent") -> bool:
        """Whether equal indices refer to equal bytes in both."""
        return self._key() == other._key()

    def _key(self) -> object:
        dims = [d for d in zip(self.shape, self.strides, strict=True) if d[0] != 1]
        return self.start, dims, self.width

    def overlaps(self, other: "Extent") -> bool:
        """Whether both share a byte; true if that takes too long to find out."""
        import numpy as np

        most_work: Any = 10_000  # NumPy's stubs know two of its values
        try:
            return np.shares_memory(self._array(), other._array(), max_work=most_work)
        except np.exceptions.TooHardError:
            return True

    def _array(self) -> "np.ndarray[Any, Any]":
        """An array with these addresses, for NumPy to compare; it is never accessed."""
        import numpy as np

        return np.asarray(_Addresses(self))


class _Addresses:
    """NumPy's array interface of an extent."""

    def __init__(self, extent: Extent):
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{extent.width}",
            "data": (2**62 + extent.start, True),
            "shape": extent.shape,
            "strides": extent.strides,
        }


def extent_of(value: SSAValue, base: SSAValue) -> Extent | None:
    """The bytes of a memref, relative to the start of its buffer `base`; None if its
    layout is not static."""
    given: Attribute = value.type
    if not isinstance(given, MemRefType):
        return None
    type, whole = cast(AnyMemRef, given), cast(AnyMemRef, base.type)
    is_bytes = whole.element_type == i8 and whole.get_num_dims() == 1
    shift = _shift(value, base) if is_bytes else 0
    if shift is None:
        return None
    first = whole.get_offset() or 0  # of the buffer in its memory
    shape, strides, offset = type.get_shape(), type.get_strides(), type.get_offset()
    if DYNAMIC_INDEX in shape or strides is None or offset is None or None in strides:
        return None
    width = element_bytes(type.element_type)
    steps = tuple(width * cast(int, stride) for stride in strides)
    return Extent(shift + (offset - first) * width, tuple(shape), steps, width)


def _shift(value: SSAValue, base: SSAValue) -> int | None:
    """The byte of `base` at which the layout of `value` begins: each `memref.view` adds
    its offset. None if it is not known."""
    shift = 0
    while value is not base:
        op = value.owner
        if not isinstance(op, Operation) or not is_view(op):  # control flow forwards it
            return shift if value.type == base.type else None
        if isinstance(op, memref.ViewOp):
            at = range_of(op.byte_shift)
            if at is None or at.least != at.most:
                return None
            shift += at.least
        value = op.operands[0]
    return shift


_MOST_MARKS = 1 << 24


def covered(extents: Sequence[Extent], size: int) -> int:
    """An upper bound of the number of a buffer's bytes that are in any of its parts."""
    total = sum(extent.bytes for extent in extents)
    if total < size or size > _MOST_MARKS:
        return min(total, size)
    import numpy as np

    marks = np.zeros(size, bool)
    for extent in extents:
        shape, strides = (*extent.shape, extent.width), (*extent.strides, 1)
        part = np.lib.stride_tricks.as_strided(marks[extent.start :], shape, strides)
        part[...] = True
    return int(marks.sum())


class _Layout(NamedTuple):
    """The ranges of offset, sizes and strides, in elements."""

    offset: Range
    sizes: Sequence[Range]
    strides: Sequence[Range]


def reach_of(
    value: SSAValue, base: SSAValue, known: Known = nothing_known
) -> Range | None:
    """The range of elements that a memref may access, relative to the start of its
    buffer `base`. None if it is not known, and `Range(0, -1)` for an empty memref."""
    layout = _layout(value, base, known)
    if layout is None:
        return None
    if any(size.most <= 0 for size in layout.sizes):
        return Range(0, -1)
    reach = layout.offset
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
        steps = multiply(Range(0, size.most - 1), stride)
        reach = add(reach, steps)
    return reach


def is_reached(value: SSAValue, base: SSAValue) -> bool:
    """Whether a memref may access both ends of its range. False if its offset and size
    depend on the same counter, as those of tiles do."""
    found: list[SSAValue] = []
    while extent_of(value, base) is None:
        op = value.owner
        assert isinstance(op, Operation)
        source, *indices = op.operands
        for index in indices:
            found += varying(index)
        value = base if isinstance(op, memref.ReinterpretCastOp) else source
    return len(set(found)) == len(found)


def _layout(value: SSAValue, base: SSAValue, known: Known) -> _Layout | None:
    if extent := extent_of(value, base):
        width = extent.width
        return _Layout(
            exactly(extent.start // width),
            [exactly(size) for size in extent.shape],
            [exactly(stride // width) for stride in extent.strides],
        )
    match value.owner:
        case memref.ReinterpretCastOp() as op:
            offset, *_ = _mixed(op.static_offsets, op.offsets, known)
            sizes = _mixed(op.static_sizes, op.sizes, known)
            strides = _mixed(op.static_strides, op.strides, known)
            first = exactly(-(cast(AnyMemRef, base.type).get_offset() or 0))
            return _complete(offset and add(offset, first), sizes, strides)
        case memref.ViewOp() as op:
            source, at = _layout(op.source, base, known), range_of(op.byte_shift, known)
            type = op.result.type
            given = DenseArrayBase.from_list(i64, type.get_shape())
            sizes = _mixed(given, op.sizes, known)
            if source is None or at is None or None in sizes:
                return None
            first, width = add(source.offset, at), element_bytes(type.element_type)
            offset = Range(first.least // width, -(-first.most // width))
            inner = cast(list[Range], sizes)[:0:-1]
            strides = list(accumulate(inner, multiply, initial=exactly(1)))
            return _complete(offset, sizes, strides[::-1])
        case memref.SubviewOp() as op:
            source = _layout(op.source, base, known)
            offsets = _mixed(op.static_offsets, op.offsets, known)
            steps = _mixed(op.static_strides, op.strides, known)
            if source is None or None in offsets or None in steps:
                return None
            offset, strides = source.offset, list[Range]()
            for at, step, stride in zip(offsets, steps, source.strides, strict=True):
                assert at is not None
                assert step is not None
                offset = add(offset, multiply(at, stride))
                strides.append(multiply(step, stride))
            return _complete(offset, _mixed(op.static_sizes, op.sizes, known), strides)
        case op if isinstance(op, SAME_ADDRESS):
            return _layout(op.operands[0], base, known)
        case _:
            return None


def _complete(
    offset: Range | None,
    sizes: Sequence[Range | None],
    strides: Sequence[Range | None],
) -> _Layout | None:
    if offset is None or None in sizes or None in strides:
        return None
    return _Layout(offset, cast(list[Range], sizes), cast(list[Range], strides))


def _mixed(
    static: DenseArrayBase[IntegerType], dynamic: Sequence[SSAValue], known: Known
) -> list[Range | None]:
    """The ranges of numbers; operands replace those that the attribute leaves out."""
    values = iter(dynamic)
    return [
        range_of(next(values), known) if number == DYNAMIC_INDEX else exactly(number)
        for number in static.get_values()
    ]
