"""Windows that are not views: over holes or only padding, or with a selected element.

    for each place of the window:
        for each element that it meets there:
            total = total + x
        out = total

    for each place of the window, the last one first:
        for each element that it meets there:
            if it is better than all before: best, selected = it, its address
        at selected: out = out + gradient

Vectors hold positions that are contiguous along a dimension that no window moves along.
Without such a dimension, positions are computed one by one. Sums equal NumPy's bit for
bit. NumPy adds the gradients of all windows that select their first element, then of
those that select the second, and so on (numpy/reducing.py). An element thus receives
the gradient of the last of its windows first.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from ....analysis.cost import OTHERS_PER_NS
from ....dialects.dtypes import Array, accumulator, identity
from ....dialects.tgraph.reducing import ReduceWindowOp, SelectAndScatterOp
from ....dialects.tgraph.windows import WindowDimension, dilated
from ....support.arrays import span
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..numpy.reducing import reduction_ufunc
from ..parts import LANES, cut
from .accumulators import combined
from .code import LlvmFunction, Value
from .elements import load, number_of, register_type, rounded, store
from .graphs import NoLoopNest
from .loops import UNROLLED
from .nests import VECTOR, Loops, merged
from .operations import extreme

FEW = 9
"""The maximum elements of an unrolled window; every position must meet them all."""


class _Dimension(NamedTuple):
    """How a window moves along a dimension, in units of the operand with its holes."""

    window: WindowDimension
    size: int
    """The elements of the operand."""
    places: int

    @property
    def moves(self) -> bool:
        """Whether any position meets anything but the element with the same index."""
        size, stride, low, _, holes, _ = self.window
        return (size, stride, low, holes) != (1, 1, 0, 1) or self.size != self.places

    @property
    def end(self) -> int:
        """The end of the operand, after its last element."""
        return dilated(self.size, self.window.base_dilation)

    @property
    def is_cut(self) -> bool:
        """Whether any position meets padding."""
        low = self.window.low
        last = (self.places - 1) * self.window.stride + self.window.reach - 1
        return low > 0 or last - low >= self.end


def reduced(op: ReduceWindowOp, x: Array, out: Array, threads: int) -> list[Call]:
    """Raises `NoLoopNest` for element types without a native type."""
    reduction_ufunc(op, op.kind.data, x.dtype)  # raises for other types
    dims = _dimensions(op, x, out)
    return _calls(_Reducing, op.kind.data, dims, [x, out], threads)


def select_and_scatter(
    op: SelectAndScatterOp, x: Array, source: Array, out: Array, scratch: Scratch
) -> list[Call]:
    """Raises `NoLoopNest` for element types without a native type."""
    reduction_ufunc(op, op.kind.data, x.dtype)  # raises for other types
    dims = _dimensions(op, x, source)
    dtype = accumulator(out.dtype)
    is_sum = any(dim.window.size > dim.window.stride for dim in dims)
    target = scratch.take(out.shape, dtype) if is_sum and dtype != out.dtype else out
    zeros = np.broadcast_to(np.zeros((), target.dtype), target.shape)
    arrays = [x, source, target]
    calls = _calls(_Selecting, op.kind.data, dims, arrays, scratch.threads)
    return [*copy(target, zeros), *calls, *copy(out, target)]


def _dimensions(
    op: ReduceWindowOp | SelectAndScatterOp, x: Array, places: Array
) -> Sequence[_Dimension]:
    return list(map(_Dimension, op.window(x.ndim), x.shape, places.shape))


def _calls(
    lowering: type["_Lowering"],
    kind: str,
    dims: Sequence[_Dimension],
    arrays: Sequence[Array],
    threads: int,
) -> list[Call]:
    """The calls of parts that threads compute concurrently, along a dimension that no
    window moves along."""
    if any(register_type(x.dtype) is None for x in arrays):
        raise NoLoopNest
    _, places, *_ = arrays
    if not places.size:
        return []
    still = [d for d, dim in enumerate(dims) if not dim.moves]
    units = [LANES if d == places.ndim - 1 else 1 for d in still]
    time = places.size * prod(dim.window.size for dim in dims) / OTHERS_PER_NS
    first, parted = cut([places.shape[d] for d in still], units, time, threads)
    whole = (slice(None),) * (still[first] if still else 0)
    parts = (
        [[x[*whole, part, ...] for x in arrays] for part in parted]
        if still
        else [arrays]
    )
    calls: list[list[Call]] = []
    for part in parts:
        function = llvm.compiler().function(lowering(kind, dims, part).text())
        calls.append([(ArrayRecord(function, part), ())])
    return parallel(calls, threads)


class _Span(NamedTuple):
    """The elements of the window that meet the operand at a position, along a
    dimension; all are `i64`."""

    start: str
    """The start of the window."""
    first: str
    stop: str


class _Lowering(ABC):
    """The words are the addresses of the arrays: the operand, then one with an element
    for each position, then others with the shape of the operand."""

    PLACES: ClassVar = 1

    def __init__(self, kind: str, dims: Sequence[_Dimension], arrays: Sequence[Array]):
        self.kind = kind
        self.code = LlvmFunction()
        self.arrays = arrays
        element = register_type(arrays[0].dtype)
        assert element is not None
        nothing = number_of(identity(kind, arrays[0].dtype))
        self.identity = self.code.number(nothing, element)
        self.moving = [(d, dim) for d, dim in enumerate(dims) if dim.moves]
        still = [d for d, dim in enumerate(dims) if not dim.moves]
        columns = list(zip(*(a.strides for a in arrays), strict=True))
        self._around: Loops = merged(arrays[0].shape, still, columns)
        self._lanes = 1
        sizes = [a.itemsize for a in arrays]
        if self._around and list(self._around[-1][1]) == sizes:
            self._lanes, _ = self._around.pop()

    def text(self) -> str:
        words = [self.code.word(n) for n in range(len(self.arrays))]
        with self.code.nest(self._around, words) as pointers:
            self._places([], pointers)
        return self.code.function()

    @abstractmethod
    def place(
        self, pointers: Sequence[str], spans: Sequence[_Span], lanes: int, active: int
    ) -> None:
        """Processes the positions in the first `active` of `lanes` lanes. `pointers`
        are the addresses of the operand, of the position, and of the other arrays."""

    def _places(self, spans: Sequence[_Span], pointers: Sequence[str]) -> None:
        if len(spans) == len(self.moving):
            self._some_lanes(spans, pointers)
            return
        code = self.code
        d, dim = self.moving[len(spans)]
        with code.loop("0", str(dim.places), 1) as index:
            place = code.index("sub", str(dim.places - 1), index)
            inner = list(pointers)
            step = self.arrays[self.PLACES].strides[d]
            inner[self.PLACES] = code.moved(pointers[self.PLACES], place, step)
            self._places([*spans, self._span(dim, place)], inner)

    def _span(self, dim: _Dimension, place: str) -> _Span:
        code, window = self.code, dim.window
        start = code.index("sub", code.index("mul", place, window.stride), window.low)
        if not dim.is_cut:
            return _Span(start, "0", str(window.size))
        at = Value(code, start, "i64", 1)
        before, after = ((-at).call("smax", 0), (-at + dim.end).call("smax", 0))
        first, stop = (
            code.binary(
                "udiv", steps + (window.window_dilation - 1), window.window_dilation
            )
            for steps in (before, after)
        )
        return _Span(start, first.text, stop.call("smin", window.size).text)

    def _some_lanes(self, spans: Sequence[_Span], pointers: Sequence[str]) -> None:
        code, size = self.code, self._lanes
        widest = max(4, *(a.itemsize for a in self.arrays))
        narrow = min(VECTOR // widest, 1 << (size - 1).bit_length())
        sizes = [a.itemsize for a in self.arrays]

        def moved(index: str) -> list[str]:
            return code.all_moved(pointers, index, sizes)

        start = 0
        for lanes in (UNROLLED * narrow, narrow):
            stop = start + (size - start) // lanes * lanes
            if stop > start:
                with code.loop(str(start), str(stop), lanes) as index:
                    self.place(moved(index), spans, lanes, lanes)
            start = stop
        if start < size:
            self.place(moved(str(start)), spans, narrow, size - start)

    def is_met(self, spans: Sequence[_Span]) -> Value:
        """Whether the window meets any element or hole."""
        result = self.code.number(1, "i1")
        for met, (_, dim) in zip(spans, self.moving, strict=True):
            if dim.is_cut:
                first = Value(self.code, met.first, "i64", 1)
                result &= first.compare("slt", Value(self.code, met.stop, "i64", 1))
        return result

    def elements(
        self, spans: Sequence[_Span], pointers: Sequence[str], number: int = 0
    ) -> Iterator[Sequence[str]]:
        """Yields in code that runs for each element that the window meets, of which
        there must be at least one: the pointers to that element in the operand and the
        other arrays."""
        if number == len(self.moving):
            yield pointers
            return
        d, dim = self.moving[number]
        for element in self._met(dim, spans[number]):
            inner = self._moved(pointers, element, d)
            yield from self.elements(spans, inner, number + 1)

    def _moved(self, pointers: Sequence[str], element: str, d: int) -> Sequence[str]:
        return [
            pointer
            if number == self.PLACES
            else self.code.moved(pointer, element, self.arrays[number].strides[d])
            for number, pointer in enumerate(pointers)
        ]

    def _met(self, dim: _Dimension, met: _Span) -> Iterator[str]:
        """The indices of the elements that are met along a dimension."""
        code = self.code
        apart, holes = dim.window.window_dilation, dim.window.base_dilation
        for step in self._steps(dim, met):
            at = code.index("add", met.start, code.index("mul", step, apart))
            if holes == 1:
                yield at
                continue
            rest = Value(code, code.index("urem", at, holes), "i64", 1)
            with code.when(rest.compare("eq", 0)):
                yield code.index("udiv", at, holes)

    def _steps(self, dim: _Dimension, met: _Span) -> Iterator[str]:
        elements = prod(moving.window.size for _, moving in self.moving)
        if not dim.is_cut and elements <= FEW:
            yield from map(str, range(dim.window.size))
            return
        with self.code.loop(met.first, met.stop, 1) as step:
            yield step


class _Reducing(_Lowering):
    def place(
        self, pointers: Sequence[str], spans: Sequence[_Span], lanes: int, active: int
    ) -> None:
        code, dtype, kind = self.code, self.arrays[0].dtype, self.kind
        is_extreme = kind in ("maximum", "minimum")
        combine = extreme(kind) if is_extreme else partial(combined, kind)
        total = code.slot(code.widened(self.identity, lanes))
        with code.when(self.is_met(spans)):
            for x, _ in self.elements(spans, pointers):
                new = load(code, x, dtype.itemsize, dtype, lanes, active)
                so_far = code.get(total, new.element, lanes)
                code.set(total, combine(dtype, so_far, new))
        result = rounded(code.get(total, self.identity.element, lanes), dtype)
        store(result, pointers[1], dtype.itemsize, dtype, lanes, active)


class _Selecting(_Lowering):
    def place(
        self, pointers: Sequence[str], spans: Sequence[_Span], lanes: int, active: int
    ) -> None:
        code, dtype = self.code, self.arrays[0].dtype
        sign = "s" if dtype.kind == "i" else "u"  # for floats: unordered or greater
        more = sign + ("gt" if self.kind == "maximum" else "lt")
        with code.when(self.is_met(spans)):
            best = code.slot(code.widened(self.identity, lanes))
            first = pointers
            for met, (d, _) in zip(spans, self.moving, strict=True):
                element = code.index("add", met.start, met.first)
                first = self._moved(first, element, d)
            selected = code.slot(code.widened(self._address(first[2], lanes), lanes))
            for x, _, out in self.elements(spans, pointers):
                new = load(code, x, dtype.itemsize, dtype, lanes, active)
                so_far = code.get(best, new.element, lanes)
                better = new.compare(more, so_far)
                here = self._address(out, lanes)
                before = code.get(selected, here.element, lanes)
                code.set(selected, code.select(better, here, before, random=True))
                code.set(best, code.select(better, new, so_far))
            sums = self.arrays[2].dtype
            gradient = load(code, pointers[1], dtype.itemsize, dtype, lanes, active)
            for out, is_here in self._selected(pointers, spans, selected, lanes):
                before = load(code, out, sums.itemsize, sums, lanes, active)
                after = rounded(combined("add", sums, before, gradient), sums)
                after = code.select(is_here, after, before)
                store(after, out, sums.itemsize, sums, lanes, active)

    def _selected(
        self,
        pointers: Sequence[str],
        spans: Sequence[_Span],
        selected: str,
        lanes: int,
    ) -> Iterator[tuple[str, Value]]:
        """Pointers to selected elements, and the positions that selected them."""
        code = self.code
        if lanes == 1:
            address = code.get(selected, "i64", 1)
            pointer = code.name(f"inttoptr i64 {address.text} to ptr")
            yield pointer, code.number(1, "i1")
            return
        for _, _, out in self.elements(spans, pointers):
            here = self._address(out, lanes)
            yield out, code.get(selected, here.element, lanes).compare("eq", here)

    def _address(self, pointer: str, lanes: int) -> Value:
        """The address of an element for the first of many positions. The addresses for
        the other positions have the same offset for each element of the window. The
        lower 32 bits suffice for comparing vectors."""
        address = self.code.op(f"ptrtoint ptr {pointer} to i64", "i64", 1)
        start, stop = span(self.arrays[2])
        is_near = stop - start < 1 << 32
        return address.cast("trunc", "i32") if lanes > 1 and is_near else address
