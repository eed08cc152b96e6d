"""The layout of a tensor in a buffer: shape, strides and offset, counted in elements.

`Layout` has a method for each view operation of `tgraph`. The strided layouts of memref
types express the same layouts. Strides may be 0 (repeated) and negative (reversed).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute

from ..dialects.sizes.dims import static
from ..dialects.strides import contiguous_strides, reshaped_strides
from ..dialects.tgraph.base import AnyMemRef, Shape, TensorOp, shape_of
from ..dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Element i is at `offset + sum(i[d] * strides[d])` in the buffer, in elements."""

    shape: Shape
    strides: Shape
    offset: int = 0

    @staticmethod
    def contiguous(shape: Shape) -> "Layout":
        return Layout(shape, contiguous_strides(shape))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are row-major, from the start of the buffer."""
        return self.offset == 0 and self.same_order(contiguous_strides(self.shape))

    def same_order(self, strides: Shape) -> bool:
        """Whether the strides are equal in all dimensions of size 2 or more."""
        return all(
            a == b
            for a, b, size in zip(self.strides, strides, self.shape, strict=True)
            if size not in (0, 1)
        )

    @property
    def first(self) -> int:
        """The least position of an element in the buffer."""
        return self._span(None).start

    def is_apart(self, other: "Layout") -> bool:
        """Whether no element is known to lie in both layouts. True if their positions
        are disjoint, or disjoint modulo a stride."""
        if 0 in self.shape or 0 in other.shape:
            return True
        strides = {abs(s): None for s in (*self.strides, *other.strides) if s}
        for period in (None, *strides):
            spans = [layout._span(period) for layout in (self, other)]
            if all(period is None or span.stop <= period for span in spans):
                first, last = sorted(spans, key=lambda span: span.start)
                if first.stop <= last.start:
                    return True
        return False

    def _span(self, period: int | None) -> range:
        """The range of the elements' positions. With a period, the range modulo it,
        from the dimensions whose stride is not a multiple of it."""
        dims = [
            (size - 1) * stride
            for size, stride in zip(self.shape, self.strides, strict=True)
            if period is None or stride % period
        ]
        least = self.offset + sum(moved for moved in dims if moved < 0)
        start = least if period is None else least % period
        return range(start, start + sum(map(abs, dims)) + 1)

    def viewed(self, op: TensorOp) -> "Layout | None":
        """The layout of a view operation's result; None if no strides describe it."""
        match op:
            case ReshapeOp():
                return self.reshaped(shape_of(op.declared[0]))
            case TransposeOp():
                return self.transposed(op.permutation.get_values())
            case BroadcastInDimOp():
                shape = shape_of(op.declared[0])
                return self.broadcast(shape, op.broadcast_dimensions.get_values())
            case SliceOp():
                return self.sliced(
                    op.sizes_in("start_indices"),
                    op.strides.get_values(),
                    shape_of(op.declared[0]),
                )
            case ReverseOp():
                return self.reversed(op.dimensions.get_values())
            case _:
                return None

    def transposed(self, permutation: Sequence[int]) -> "Layout":
        return Layout(
            tuple(self.shape[d] for d in permutation),
            tuple(self.strides[d] for d in permutation),
            self.offset,
        )

    def broadcast(self, shape: Shape, dims: Sequence[int]) -> "Layout":
        strides = [0] * len(shape)
        for size, stride, dim in zip(self.shape, self.strides, dims, strict=True):
            strides[dim] = stride if size == shape[dim] else 0
        return Layout(shape, tuple(strides), self.offset)

    def sliced(
        self, starts: Sequence[int], steps: Sequence[int], shape: Shape
    ) -> "Layout":
        moved = sum(map(mul, starts, self.strides)) if 0 not in shape else 0
        strides = tuple(map(mul, self.strides, steps))
        return Layout(shape, strides, self.offset + moved)

    def reversed(self, dims: Sequence[int]) -> "Layout":
        strides = tuple(
            -stride if d in dims else stride for d, stride in enumerate(self.strides)
        )
        moved = sum((self.shape[d] - 1) * self.strides[d] for d in dims)
        moved = 0 if 0 in self.shape else moved
        return Layout(self.shape, strides, self.offset + moved)

    def reshaped(self, shape: Shape) -> "Layout | None":
        """Row-major reading order under another shape (NumPy's no-copy reshape)."""
        if shape == self.shape:
            return self
        if 0 in shape:
            return Layout(shape, contiguous_strides(shape), self.offset)
        strides = reshaped_strides(self.shape, self.strides, shape)
        return None if strides is None else Layout(shape, strides, self.offset)


@lru_cache(maxsize=4096)
def memref_type(element: Attribute, layout: Layout, space: Attribute) -> AnyMemRef:
    """The memref type of a tensor with this layout."""
    strided = NoneAttr()
    if not layout.is_contiguous or layout.offset:
        offset, *strides = (
            None if size == DYNAMIC_INDEX else size
            for size in static((layout.offset, *layout.strides))
        )
        strided = StridedLayoutAttr(strides, offset)
    return MemRefType(element, static(layout.shape), strided, space)
