"""Lowers loop nests to LLVM IR.

A softmax of rows becomes

    for each row:
        for 64, then 16, then the last elements at a time:    # pass 0
            largest = maximum(largest, x)
        for ...:                                              # pass 1
            e = exp(x - largest); buffer = e; sum += e
        for ...:                                              # pass 2
            out = buffer / sum

Code that does not depend on a loop is hoisted out of it. A result is written after
everything that it depends on is read, so it may overwrite an input in place. A scatter
combines a vector of updates with elements at once if it has one index vector, or else
one update after the other: several may belong to the same element.

Sums of floats are kept in f32 or f64 for some thousand elements, in one partial sum for
each lane, and then added up in f64. Errors are below those of NumPy's pairwise sums.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, prod
from typing import TypeAlias

import numpy as np

from ....dialects.dtypes import DType
from ....dialects.tgraph.formulas import NoForm
from ....dialects.tgraph.indexing import ScatterOp
from . import operations
from .accumulators import BLOCK, Accumulator, ComplexSum, combined_element
from .code import LINE, LlvmFunction, Value
from .complexes import Complex
from .elements import (
    clamped,
    converted,
    load_element,
    load_element_at,
    multiples,
    register_type,
    store,
    store_element,
)
from .graphs import ElementNode, NoLoopNest
from .interleaving import Rows, load_rows, store_rows
from .nests import UNROLLED, LoopNest, computed, reductions, targets
from .transposing import Matrix

COLUMNS = 16
"""Vectors that are processed together where columns are reduced, as `UNROLLED`
elsewhere. More of each row is read at a time.
"""

AHEAD = 4
"""In sums of columns, the rows from the current row to the prefetched one."""

FAR_STRIDE = 1 << 11
"""The minimum stride in bytes between rows for which prefetching helps."""

MOST_OPERATIONS = 128
"""The maximum operations in all iterations of a loop that is fully unrolled."""

MOST_LANES = 64
"""The most lanes that a scatter visits without a loop. A loop took 1.5 to 2.5 times as
long for histograms of 5,000 and 20,000 elements."""

OUTSIDE = -(1 << 63)
"""The offset of an update that is not completely inside the array."""

_Reduction: TypeAlias = Accumulator | ComplexSum


def lower(nest: LoopNest) -> str:
    """The text of a module with the function `{name}`. Its words are the addresses of
    the nest's arrays, of its buffers, and of `wholes`, and the first number of each
    count."""
    return _Lowering(nest).text()


@dataclass(frozen=True)
class _Scope:
    """A position in the loops, and the values that are known there."""

    pointers: dict[int, str]
    """The address of the current elements of each array and buffer."""
    values: dict[ElementNode, Value | Complex]
    entered: frozenset[int]
    """The loops around this position."""
    lanes: int
    active: int
    """The number of lanes that hold elements."""


class _Lowering:
    def __init__(self, nest: LoopNest):
        self.nest = nest
        self.code = LlvmFunction()
        self.whole = nest.lanes
        """The lanes of a vector."""
        size = nest.sizes[nest.lane]
        self.narrow = min(self.whole, 1 << (size - 1).bit_length())
        self.within = 1
        """The lanes for each index of the vectorized loop."""
        if nest.short >= 0:
            self.within = nest.sizes[nest.short]
            self.narrow = self.whole // gcd(self.whole, self.within)
        self.is_across = nest.lane >= nest.kept
        """Whether reductions are over the lanes of vectors."""
        root = nest.root
        self.is_in_turn = root.is_scatter and (
            any(nest.lane in entry.dims for entry in root.operands[1:])
            or not nest.strides[root.array][nest.lane]
        )
        """Whether a scatter combines the lanes one after the other."""
        self.stage = 0
        """The pass that is being written."""
        self.first: dict[ElementNode, int] = {}
        """The pass that saved each node."""
        arrays = len(nest.graph.arrays)
        self.out = arrays - 1
        self.outer = dict(enumerate(nest.strides))
        """The strides in bytes of arrays and buffers in loops over kept dimensions."""
        numbers = range(arrays, arrays + len(nest.buffers))
        of_buffers = [self._buffer_strides(dtype) for _, dtype in nest.buffers]
        self.outer |= dict.fromkeys(numbers, [0] * nest.kept)
        self.first_count = arrays + len(nest.buffers) + len(nest.graph.wholes)
        """The word of the first count, which is moved like an address of bytes."""
        counts = dict(enumerate(nest.counts, self.first_count))
        self.outer |= counts
        self.strides = self.outer | dict(zip(numbers, of_buffers, strict=True))
        """The strides in bytes of arrays and buffers in the loops inside of those."""
        self.buffers = dict(zip(nest.saved, numbers, strict=False))
        self.transposed = dict(
            zip(nest.transposed, numbers[len(nest.saved) :], strict=True)
        )
        for array, buffer in self.transposed.items():
            self.strides[array] = self.strides[buffer]
        self.unrolled = self._unrolled()
        passes = range(nest.root.stage + 1)
        if self.is_across:
            self.wide = [self._width([stage]) for stage in passes]
        else:
            self.wide = [self._width(passes)] * len(passes)

    def _width(self, passes: Sequence[int]) -> int:
        """The indices of the vectorized loop that the passes process at a time."""
        nodes = {n for stage in passes for n in computed(self.nest, stage)}
        vectors = UNROLLED
        is_in_memory = not self.is_across and not self.transposed
        if is_in_memory and self.nest.graph.reduced and len(nodes) < 4:
            vectors = COLUMNS
        if self.within > 1:
            vectors = max(UNROLLED * self.whole // (self.narrow * self.within), 1)
        size = self.nest.sizes[self.nest.lane]
        while vectors > 1 and vectors * self.narrow > size:
            vectors //= 2
        return vectors * self.narrow

    @property
    def widths(self) -> Sequence[int]:
        """The numbers of indices that this pass processes at a time: first many, then
        few. Transposing takes LLVM the longest, so with transposed arrays the rest is
        one wide vector, which is less code."""
        wide = self.wide[self.stage]
        return [wide] if self.transposed else list(dict.fromkeys((wide, self.narrow)))

    def _unrolled(self) -> frozenset[int]:
        """The innermost loops, as long as unrolling them is not too much code."""
        nest, loops = self.nest, set[int]()
        operations = len(nest.graph.nodes)  # including loads
        for loop in reversed(range(len(nest.sizes))):
            size = nest.sizes[loop]
            if loop == nest.lane:
                size = -(-size // self.narrow)
            operations *= size
            if operations > MOST_OPERATIONS:
                break
            loops.add(loop)
        return frozenset(loops)

    def _buffer_strides(self, dtype: DType) -> list[int]:
        strides = [0] * len(self.nest.sizes)
        step = dtype.itemsize
        if self.nest.transposed:
            strides[self.nest.lane] = step
            step *= UNROLLED * self.whole
        for loop in reversed(range(self.nest.kept, len(strides))):
            strides[loop] = step
            step *= self.nest.sizes[loop]
        return strides

    def text(self) -> str:
        pointers = {array: self.code.word(array) for array in self.strides}
        self._outer(_Scope(pointers, {}, frozenset(), 1, 1), 0)
        return self.code.function()

    # Loops

    def _outer(self, scope: _Scope, loop: int) -> None:
        """The loops over kept dimensions, with the passes inside."""
        self.stage = 0
        self._hoist(scope)
        if loop == self.nest.kept:
            self._passes(scope)
            return
        if loop == self.nest.short:  # covered by the vectors of `nest.lane`
            self._outer(scope, loop + 1)
            return
        for inner in self._loop(scope, loop):
            if loop != self.nest.lane or not self.transposed:
                self._outer(inner, loop + 1)
            else:
                self._columns(inner)

    def _columns(self, scope: _Scope) -> None:
        """The passes for as many rows as there are lanes. The rows are transposed into
        columns before, and the results are transposed back afterwards."""
        rows, pointers, out = scope.active, scope.pointers, self.out
        inside = pointers | {
            x: pointers[buffer] for x, buffer in self.transposed.items()
        }
        for array in self.transposed:
            if array != out:
                self._matrix(array, rows).copy(pointers[array], inside[array])
        self._outer(replace(scope, pointers=inside), self.nest.kept)
        if out in self.transposed:
            self._matrix(out, rows).transposed.copy(inside[out], pointers[out])

    def _matrix(self, array: int, rows: int) -> Matrix:
        """The transpose of an array to its buffer."""
        size = self.nest.graph.arrays[array].itemsize
        row, column = self.outer[array][self.nest.lane], self.strides[array][-1]
        shape = rows, self.nest.sizes[-1]
        return Matrix(self.code, size, *shape, row, column, is_large=False)

    def _loop(
        self, scope: _Scope, loop: int, sums: Collection[_Reduction] = ()
    ) -> Iterator[_Scope]:
        """The scopes of a loop's body: one for each vector width that it uses.

        `sums` are added to their totals after a fixed number of iterations.
        """
        size = self.nest.sizes[loop]
        if loop != self.nest.lane:
            for index in self._iterations(loop, 0, size, 1, sums):
                yield self._at(scope, loop, index, scope.lanes, scope.active)
            return
        start = 0
        for places in self.widths:
            stop = start + (size - start) // places * places
            lanes = places * self.within
            for index in self._iterations(loop, start, stop, places, sums):
                yield self._at(scope, loop, index, lanes, lanes)
            start = stop
        if start < size:
            places = self.narrow
            while places < size - start:
                places *= 2
            lanes, active = places * self.within, (size - start) * self.within
            yield self._at(scope, loop, str(start), lanes, active)

    def _iterations(
        self,
        loop: int,
        start: int,
        stop: int,
        step: int,
        sums: Collection[_Reduction],
    ) -> Iterator[str]:
        """The index of a loop, or the index of each iteration if they are few."""
        if stop - start <= step or loop in self.unrolled:
            yield from map(str, range(start, stop, step))
        elif not sums or stop - start <= 2 * BLOCK * step:
            with self.code.loop(str(start), str(stop), step) as index:
                yield index
        else:
            with self.code.loop(str(start), str(stop), BLOCK * step) as block:
                end = self.code.smaller(block, BLOCK * step, stop)
                with self.code.loop(block, end, step) as index:
                    yield index
                for made in sums:
                    made.flush()

    def _at(
        self, scope: _Scope, loop: int, index: str, lanes: int, active: int
    ) -> _Scope:
        strides = self.outer if loop < self.nest.kept else self.strides
        pointers = {
            array: self.code.moved(pointer, index, strides[array][loop])
            for array, pointer in scope.pointers.items()
        }
        entered = scope.entered | {loop}
        if loop == self.nest.lane and self.nest.short >= 0:
            entered |= {self.nest.short}
        return _Scope(pointers, scope.values.copy(), entered, lanes, active)

    # Passes

    def _passes(self, scope: _Scope) -> None:
        """In all loops over kept dimensions: computes reductions, then the result."""
        nest = self.nest
        for self.stage in range(nest.root.stage + 1):
            self._hoist(scope)
            nodes = reductions(nest, self.stage)
            made = {node: self._accumulator(node, scope) for node in nodes}
            if made or (self.stage == nest.root.stage and nest.fills_rows):
                self._inner(scope, nest.kept, made)
            for node, accumulator in made.items():
                scope.values[node] = accumulator.result()
        if not nest.fills_rows:
            self._store(nest.root, scope)

    def _accumulator(self, node: ElementNode, scope: _Scope) -> _Reduction:
        iterations = prod(self.nest.sizes[self.nest.kept :])
        if self.is_across:
            iterations //= self.wide[self.stage]
        widths = self.widths if self.is_across else [scope.lanes]
        is_long = iterations > 2 * BLOCK
        across = self.is_across
        make = partial(Accumulator, self.code, node, widths, across, is_long)
        return ComplexSum(make(), make()) if node.dtype.kind == "c" else make()

    def _inner(
        self, scope: _Scope, loop: int, made: Mapping[ElementNode, _Reduction]
    ) -> None:
        """The loops over reduced dimensions, with one pass inside."""
        self._hoist(scope)
        last = len(self.nest.sizes) - 1
        if loop <= last:
            sums = [a for a in made.values() if a.has_totals and loop == last]
            for inner in self._loop(scope, loop, sums):
                self._inner(inner, loop + 1, made)
            if last > self.nest.kept:
                for accumulator in sums:
                    accumulator.flush()
            return
        for node, accumulator in made.items():
            value = self._value(node.operands[0], scope)
            accumulator.take(value, scope.lanes, scope.active)
        if self.stage == self.nest.root.stage and self.nest.fills_rows:
            self._store(self.nest.root, scope)

    # Values

    def _hoist(self, scope: _Scope) -> None:
        """Computes the values that this pass needs and that no further loop changes."""
        visited = set[ElementNode]()
        waiting = targets(self.nest, self.stage)[::-1]
        while waiting:
            node = waiting.pop()
            if node in visited or node in scope.values:
                continue
            visited.add(node)
            if node.dims <= scope.entered:
                self._value(node, scope)
            elif not self._is_kept(node):
                waiting += reversed(node.operands)

    def _is_kept(self, node: ElementNode) -> bool:
        """Whether an earlier pass has saved the node."""
        return self.first.get(node, self.stage) < self.stage

    def _value(self, node: ElementNode, scope: _Scope) -> Value | Complex:
        waiting = [node]  # not recursive, as chains may have any length
        while waiting:
            missing = [x for x in self._read(waiting[-1]) if x not in scope.values]
            if missing:
                waiting += reversed(missing)
                continue
            made = waiting.pop()
            if made not in scope.values:
                scope.values[made] = self._made(made, scope)
        return scope.values[node]

    def _read(self, node: ElementNode) -> Sequence[ElementNode]:
        """The operands from which this pass computes a node."""
        return () if self._is_kept(node) else node.operands

    def _made(self, node: ElementNode, scope: _Scope) -> Value | Complex:
        if node.number is not None:
            element = register_type(node.dtype)
            assert element is not None
            return self.code.number(node.number, element)
        if node.count >= 0:
            return self._counted(node, scope)
        if node.array >= 0:
            return self._load(node, node.array, scope)
        if self._is_kept(node):
            return self._load(node, self.buffers[node], scope)
        assert node.op is not None
        values = [scope.values[x] for x in node.operands]
        try:
            value = operations.evaluate(node.op, node.dtype, values)
        except NoForm:
            raise NoLoopNest from None
        if node in self.buffers:
            self.first[node] = self.stage
            self._write(value, node.dtype, self.buffers[node], scope)
        return value

    def _counted(self, node: ElementNode, scope: _Scope) -> Value:
        word, lanes = self.first_count + node.count, scope.lanes
        start = self.code.name(f"ptrtoint ptr {scope.pointers[word]} to i64")
        steps = multiples(self.code, self._lane_stride(word, scope), lanes)
        number = Value(self.code, start, "i64", 1) + steps
        element = register_type(node.dtype)
        assert element is not None
        return number if element == "i64" else number.cast("trunc", element)

    def _load(self, node: ElementNode, array: int, scope: _Scope) -> Value | Complex:
        stride = self._lane_stride(array, scope)
        pointer = scope.pointers[array]
        if stride == node.dtype.itemsize:
            self._read_ahead(array, stride * scope.lanes, scope)
        lanes, active = scope.lanes, scope.active
        if node.starts:
            offset = self._offset(node, scope)
            if offset.lanes > 1:
                offset = offset + multiples(self.code, stride, lanes)
                return load_element_at(self.code, pointer, offset, node.dtype, active)
            pointer = self.code.moved(pointer, offset.text, 1)
        if rows := self._rows(array, scope):
            return load_rows(self.code, pointer, rows, node.dtype, lanes, active)
        return load_element(self.code, pointer, stride, node.dtype, lanes, active)

    def _offset(self, node: ElementNode, scope: _Scope) -> Value:
        """The offset in bytes of a gathered element from the first one."""
        total = self.code.number(0, "i64")
        for entry, (last, step) in zip(node.operands, node.starts, strict=True):
            at = scope.values[entry]
            assert isinstance(at, Value)
            total = total + clamped(at, entry.dtype, last) * step
        return total

    def _read_ahead(self, array: int, size: int, scope: _Scope) -> None:
        """In sums of columns, prefetches `size` bytes of a later row. Processors do not
        detect the pattern if rows are far apart."""
        is_inside = len(scope.entered) == len(self.nest.sizes)
        if self.is_across or not self.nest.graph.reduced or not is_inside:
            return
        step = self.strides[array][-1]
        for line in range(0, size, LINE) if step >= FAR_STRIDE else ():
            self.code.prefetch(scope.pointers[array], AHEAD * step + line)

    def _store(self, node: ElementNode, scope: _Scope) -> None:
        if node.is_scatter:
            self._scatter(node, scope)
            return
        self._write(self._value(node, scope), node.dtype, self.out, scope)

    def _write(
        self, value: Value | Complex, dtype: DType, array: int, scope: _Scope
    ) -> None:
        stride = self._lane_stride(array, scope)
        pointer = scope.pointers[array]
        if rows := self._rows(array, scope):
            store_rows(value, pointer, rows, dtype, scope.lanes, scope.active)
            return
        store_element(value, pointer, stride, dtype, scope.lanes, scope.active)

    def _scatter(self, node: ElementNode, scope: _Scope) -> None:
        """Combines the updates in the lanes with the elements at their indices."""
        code, (update, *entries) = self.code, node.operands
        lanes, active, size = scope.lanes, scope.active, node.dtype.itemsize
        value = self._value(update, scope)
        is_inside, offset = code.number(1, "i1"), code.number(0, "i64")
        for entry, (last, step) in zip(entries, node.starts, strict=True):
            at = self._value(entry, scope)
            assert isinstance(at, Value)
            start = converted(at, entry.dtype, np.dtype(np.int64))
            assert start is not None
            is_inside = is_inside & start.compare("ule", last)
            offset = offset + start * step
        stride = self._lane_stride(node.array, scope)
        pointer = scope.pointers[node.array]
        if lanes == 1 or not self.is_in_turn:
            with code.when(is_inside):
                target = code.moved(pointer, offset.text, 1)
                self._combine(node, target, value, stride, lanes, active)
            return
        offset = code.select(
            code.widened(is_inside, lanes),
            offset + multiples(code, stride, lanes),
            code.number(OUTSIDE, "i64"),
        )
        values, offsets = code.buffer("i8", lanes * size), code.buffer("i64", lanes)
        store_element(value, values, size, node.dtype, lanes, lanes)
        store(offset, offsets, 8, np.dtype(np.int64), lanes, lanes)
        for lane in code.indices(active, MOST_LANES):
            one = code.get(code.moved(offsets, lane, 8), "i64", 1)
            with code.when(one.compare("ne", OUTSIDE)):
                at = code.moved(values, lane, size)
                element = load_element(code, at, size, node.dtype, 1, 1)
                target = code.moved(pointer, one.text, 1)
                self._combine(node, target, element, size, 1, 1)

    def _combine(
        self,
        node: ElementNode,
        pointer: str,
        value: Value | Complex,
        stride: int,
        lanes: int,
        active: int,
    ) -> None:
        """Combines values with elements from `pointer` on, as a scatter does."""
        assert isinstance(node.op, ScatterOp)
        kind, dtype = node.op.kind.data, node.dtype
        if kind != "replace":
            old = load_element(self.code, pointer, stride, dtype, lanes, active)
            value = combined_element(kind, dtype, old, value)
        store_element(value, pointer, stride, dtype, lanes, active)

    def _rows(self, array: int, scope: _Scope) -> Rows | None:
        """The layout of the rows that vectors consist of here, or None."""
        nest, strides = self.nest, self.strides[array]
        if nest.short not in scope.entered:
            return None
        return Rows(self.within, strides[nest.lane], strides[nest.short])

    def _lane_stride(self, array: int, scope: _Scope) -> int:
        lane = self.nest.lane
        return self.strides[array][lane] if lane in scope.entered else 0
