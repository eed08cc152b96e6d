"""Copies arrays into another order of dimensions, one block in registers at a time.

    for 64 columns and 16 rows of the source at a time:
        vectors = 16 rows of 16 columns
        four times: merge the first half of them with the second, element by element
        16 rows of 16 columns of the target = vectors

Source and target are thus accessed in whole cache lines. A loop over elements would
move to another cache line, and in a large array to another page, for each element.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....analysis.cost import BYTES_PER_NS
from ....support.arrays import Array, DType, Shape, strided
from ...calls import Call
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..parts import cut
from .code import LlvmFunction, Value
from .elements import load, store
from .nests import Loops, merged

KEPT = 64
"""The number of cached texts, as parts of one array have the same text."""

WIDE = 4
"""The blocks of columns that one pass over all rows processes."""


class _Layout(NamedTuple):
    """Everything that the code of a transpose depends on."""

    size: int  # bytes of an element
    shape: Shape
    read: Shape  # the strides of the source
    written: Shape  # and of the target
    columns: int  # the contiguous dimension of the source
    rows: int  # and of the target


@dataclass(frozen=True)
class Transpose:
    """A copy into another order of dimensions, after merging dimensions. Elements are
    treated as integers of their size."""

    source: Array
    target: Array
    columns: int
    rows: int

    def calls(self, threads: int) -> list[Call]:
        shape, block = self.source.shape, side(self.source.itemsize)
        along = self.columns, self.rows
        units = [block if d in along else 1 for d in range(len(shape))]
        time = 2 * self.source.nbytes / BYTES_PER_NS
        divided, spans = cut(shape, units, time, threads)
        parts: list[list[Call]] = []
        for span in spans:
            place = (*[slice(None)] * divided, span)
            x, out = self.source[place], self.target[place]
            text = _lowered(
                _Layout(x.itemsize, x.shape, x.strides, out.strides, *along)
            )
            record = ArrayRecord(llvm.compiler().function(text), [x, out])
            parts.append([(record, ())])
        return parallel(parts, threads)


def transpose(out: Array, x: Array) -> Transpose | None:
    """`out[...] = x` for arrays of one shape. None unless their orders of dimensions
    differ so that transposing blocks pays."""
    size = x.itemsize
    if x.strides == out.strides or x.dtype != out.dtype or size not in (1, 2, 4, 8):
        return None
    order = sorted(range(x.ndim), key=lambda d: -abs(out.strides[d]))
    loops = merged(x.shape, order, list(zip(x.strides, out.strides, strict=True)))
    if any(0 in steps for _, steps in loops):
        return None  # repeats elements
    columns, rows = (
        next((d for d, (_, steps) in enumerate(loops) if steps[number] == size), None)
        for number in (0, 1)
    )
    if columns is None or rows is None or loops[rows][1][0] == size:
        return None
    if min(loops[columns][0], loops[rows][0]) < side(size):
        return None
    shape = [n for n, _ in loops]
    source, target = (
        strided(array, shape, [steps[number] for _, steps in loops]).view(f"u{size}")
        for number, array in enumerate((x, out))
    )
    return Transpose(source, target, columns, rows)


def side(size: int) -> int:
    """The rows and columns of a block of elements of `size` bytes: as many as fit a
    vector, but at most 16."""
    return 16 if size < 8 else 8


@lru_cache(KEPT)
def _lowered(layout: _Layout) -> str:
    """The function's text. Its words are the addresses of source and target."""
    code = LlvmFunction()
    size, shape, read, written, columns, rows = layout
    around: Loops = [
        (n, steps)
        for d, (n, *steps) in enumerate(zip(shape, read, written, strict=True))
        if d not in (columns, rows)
    ]
    matrix = Matrix(
        code, size, shape[rows], shape[columns], read[rows], written[columns]
    )
    with code.nest(around, [code.word(0), code.word(1)]) as (source, target):
        matrix.copy(source, target)
    return code.function()


@dataclass(frozen=True)
class Matrix:
    """Code that copies a matrix with contiguous rows into one with contiguous columns.

    size: bytes of an element: 1, 2, 4 or 8.
    row: the bytes from a row of the source to the next.
    column: the bytes from a column of the target to the next.
    is_large: whether whole cache lines are worth more code.
    """

    code: LlvmFunction
    size: int
    rows: int
    columns: int
    row: int
    column: int
    is_large: bool = True

    @property
    def transposed(self) -> "Matrix":
        """The copy from the target to the source."""
        back = self.columns, self.rows, self.column, self.row
        return Matrix(self.code, self.size, *back, self.is_large)

    @property
    def _side(self) -> int:
        return side(self.size)

    @property
    def _dtype(self) -> DType:
        return np.dtype(f"u{self.size}")

    def copy(self, source: str, target: str) -> None:
        width = WIDE * self._side
        start = self.columns // width * width if self.is_large else 0
        if start:
            with self.code.loop("0", str(start), width) as column:
                self._pass(*self._at(source, target, column), WIDE, self._side)
        if start < self.columns:
            for column, active in self._blocks(start, self.columns):
                self._pass(*self._at(source, target, column), 1, active)

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[str, int]]:
        """The start and the size of each block. The last block overlaps the previous
        one so that it is complete, unless there is less than one block."""
        if stop < self._side:
            yield "0", stop
            return
        last, side = stop - self._side, self._side
        with self.code.loop(str(min(start, last)), str(stop), side) as at:
            yield self.code.smaller(at, 0, last) if stop % side else at, side

    def _at(self, source: str, target: str, column: str) -> tuple[str, str]:
        code = self.code
        return (
            code.moved(source, column, self.size),
            code.moved(target, column, self.column),
        )

    def _pass(self, source: str, target: str, blocks: int, columns: int) -> None:
        """Copies `blocks` blocks of `columns` columns each, over all rows."""
        code = self.code
        for row, rows in self._blocks(0, self.rows):
            read = code.moved(source, row, self.row)
            written = code.moved(target, row, self.size)
            for number in range(blocks):
                place = self._at(read, written, str(number * self._side))
                self._block(*place, rows, columns)

    def _block(self, source: str, target: str, rows: int, columns: int) -> None:
        code, side = self.code, self._side
        vectors: list[Value] = []
        for row in range(side):
            at = code.moved(source, str(min(row, rows - 1)), self.row)
            vectors.append(load(code, at, self.size, self._dtype, side, columns))
        half = side // 2
        merged = [i // 2 + side * (i % 2) for i in range(2 * side)]
        parts = merged[:side], merged[side:]
        for _ in range(half.bit_length()):
            pairs = list(zip(vectors[:half], vectors[half:], strict=True))
            vectors = [code.shuffled(x, part, y) for x, y in pairs for part in parts]
        for column in range(columns):
            at = code.moved(target, str(column), self.column)
            store(vectors[column], at, self.size, self._dtype, side, rows)
