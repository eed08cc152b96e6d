"""Allocates and views the memory that the conversion uses: arrays and workspace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i8,
    i64,
)
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Attribute, SSAValue

from ....analysis.layout import Layout, memref_type
from ....dialects.tgraph.base import AnyMemRef, Shape
from ...tgraph.bufferization.constants import Constants
from .code import MlirCode, index


@dataclass(frozen=True)
class Stored:
    """A tensor in the buffer of a memref. Offset and strides are in elements."""

    base: SSAValue
    layout: Layout

    @staticmethod
    def whole(value: SSAValue) -> "Stored":
        """All of a memref (of static shape and strides)."""
        type = cast(AnyMemRef, value.type)
        shape = type.get_shape()
        strides = cast(Sequence[int], type.get_strides())
        offset = type.get_offset() or 0  # None: see `OperationMemory.moved`
        return Stored(value, Layout(shape, tuple(strides), offset))

    @staticmethod
    def of(value: SSAValue) -> "Stored":
        """All of a memref. If it repeats elements, the result is based on the memref
        that it views: MLIR 19 rejects strides of 0, and indexing maps express them."""
        stored = Stored.whole(value)
        owner = value.owner
        if 0 in stored.layout.strides and isinstance(owner, memref.ReinterpretCastOp):
            return Stored(owner.source, stored.layout)
        return stored

    @property
    def repeats(self) -> bool:
        """Whether several indices refer to the same element."""
        pairs = zip(self.shape, self.layout.strides, strict=True)
        return any(stride == 0 and size > 1 for size, stride in pairs)

    @property
    def shape(self) -> Shape:
        return self.layout.shape

    @property
    def element(self) -> Attribute:
        return cast(AnyMemRef, self.base.type).element_type

    def viewed(self, layout: Layout) -> "Stored":
        return replace(self, layout=layout)

    def sliced(
        self, starts: Sequence[int], steps: Sequence[int], shape: Sequence[int]
    ) -> "Stored":
        return self.viewed(self.layout.sliced(starts, steps, tuple(shape)))

    def part(self, parts: Mapping[int, tuple[int, int, int]]) -> "Stored":
        """The part with a start, step, and size along some dimensions, and all of the
        others."""
        whole = [(0, 1, size) for size in self.shape]
        chosen = [parts.get(dim, all) for dim, all in enumerate(whole)]
        starts, steps, shape = zip(*chosen, strict=True) if chosen else ((), (), ())
        return self.sliced(starts, steps, shape)

    def once(self) -> "Stored":
        """The array without its dimensions of stride 0."""
        pairs = zip(self.shape, self.layout.strides, strict=True)
        kept = [(size, stride) for size, stride in pairs if stride]
        shape, strides = zip(*kept, strict=True) if kept else ((), ())
        return self.viewed(Layout(shape, strides, self.layout.offset))

    def split(self, dim: int, outer: int) -> "Stored":
        """The array with a dimension split into two, the first of size `outer`."""
        shape, strides = [*self.shape], [*self.layout.strides]
        inner = shape[dim] // outer
        shape[dim : dim + 1] = [outer, inner]
        strides[dim : dim + 1] = [strides[dim] * inner, strides[dim]]
        return self.viewed(Layout(tuple(shape), tuple(strides), self.layout.offset))


@dataclass
class OperationMemory:
    """The views and the workspace that the code for one operation uses."""

    code: MlirCode
    space: Attribute
    """The memory space of the operation's results, where workspace is allocated."""
    globals: Constants
    _views: dict[tuple[SSAValue, Layout], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Layout], SSAValue]
    )
    _allocated: list[SSAValue] = field(default_factory=list[SSAValue])
    _moved: dict[SSAValue, tuple[SSAValue, SSAValue]] = field(
        default_factory=dict[SSAValue, tuple[SSAValue, SSAValue]]
    )
    """For each view at a computed offset, the memref that it views, and the offset."""

    def memref_of(self, stored: Stored) -> SSAValue:
        """The memref of an array. A view is created when it is first needed."""
        if stored == Stored.whole(stored.base):
            return stored.base
        key = stored.base, stored.layout
        if key not in self._views:
            type = cast(AnyMemRef, stored.base.type)
            layout = stored.layout
            if layout.is_contiguous:  # with the strides that the type implies
                layout = Layout.contiguous(layout.shape)
            elif not stored.repeats:  # strides of 0 don't matter
                strides = tuple(stride or 1 for stride in layout.strides)
                layout = replace(layout, strides=strides)
            if stored.base in self._moved:
                base, offset = self._offset(stored)
                self._views[key] = self._at(base, offset, layout)
                return self._views[key]
            result = memref_type(stored.element, layout, type.memory_space)
            view = memref.ReinterpretCastOp(
                *(stored.base, (), (), ()),
                *((layout.offset,), layout.shape, layout.strides, result),
            )
            self._views[key] = self.code.add(view)
        return self._views[key]

    def moving(self, stored: Stored, dim: int, index: SSAValue) -> Stored:
        """The part at an index along a dimension, without this dimension. The array
        must not repeat elements."""
        layout = stored.layout
        shape = (*layout.shape[:dim], *layout.shape[dim + 1 :])
        strides = (*layout.strides[:dim], *layout.strides[dim + 1 :])
        step = self.code.constant(layout.strides[dim], index.type)
        offset = self.code.add(arith.MuliOp(index, step))
        part = Layout(shape, strides, layout.offset)
        return self.moved(stored.viewed(part), offset)

    def moved(self, stored: Stored, by: SSAValue) -> Stored:
        """The array moved by `by` elements. It must not repeat elements."""
        base, start = self._offset(stored)
        offset = self.code.add(arith.AddiOp(by, start))
        strides = tuple(stride or 1 for stride in stored.layout.strides)  # of size 1
        view = self._at(base, offset, replace(stored.layout, strides=strides))
        self._moved[view] = base, offset
        return Stored.whole(view)

    def _offset(self, stored: Stored) -> tuple[SSAValue, SSAValue]:
        """The memref that an array's offset is relative to, and the offset."""
        if stored.base in self._moved and not stored.layout.offset:
            return self._moved[stored.base]
        own = self.code.constant(stored.layout.offset, index)
        if stored.base not in self._moved:
            return stored.base, own
        base, offset = self._moved[stored.base]
        return base, self.code.add(arith.AddiOp(offset, own))

    def _at(self, base: SSAValue, offset: SSAValue, layout: Layout) -> SSAValue:
        """A view with the shape and strides of `layout`, at a computed offset."""
        old = cast(AnyMemRef, base.type)
        strides = StridedLayoutAttr(layout.strides, NoneAttr())
        type = MemRefType(old.element_type, layout.shape, strides, old.memory_space)
        view = memref.ReinterpretCastOp(
            *(base, (offset,), (), ()),
            *((DYNAMIC_INDEX,), layout.shape, layout.strides, type),
        )
        return self.code.add(view)

    def inside(self, code: MlirCode) -> "OperationMemory":
        """The views and the workspace for the body of a loop."""
        return OperationMemory(code, self.space, self.globals, _moved=self._moved)

    def allocate(self, element: Attribute, shape: Shape) -> Stored:
        """Allocates workspace, which `free` deallocates."""
        type = MemRefType(element, shape, memory_space=self.space)
        value = self.code.add(memref.AllocOp((), (), type, IntegerAttr(64, i64)))
        self._allocated.append(value)
        return Stored.whole(value)

    def free(self) -> None:
        for value in reversed(self._allocated):
            self.code.do(memref.DeallocOp.get(value))
        self._allocated.clear()

    def extents(self, sizes: Sequence[int]) -> list[SSAValue]:
        """One-dimensional memrefs of these sizes, which nothing reads."""
        room = self.allocate(i8, (max(sizes),))
        return [self.memref_of(room.part({0: (0, 1, size)})) for size in sizes]

    def constant(self, value: DenseIntOrFPElementsAttr) -> Stored:
        type = MemRefType(
            value.get_element_type(), value.get_shape(), memory_space=self.space
        )
        name = self.globals.name_of(value, type)
        return Stored.whole(self.code.add(memref.GetGlobalOp(name, type)))

    def fill(self, target: Stored, number: float | int) -> None:
        value = self.code.constant(number, target.element)
        self.code.do(FillOp([value], [self.memref_of(target)], res=()))
