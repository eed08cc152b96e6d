"""Copies arrays into another order of dimensions, a block in registers at a time.

    for 64 columns and 16 rows of the source at a time:
        vectors = 16 rows of 16 columns
        exchange the blocks beside the diagonal, of 1, 2, 4 and 8 elements
        16 rows of 16 columns of the target = vectors

Both are so read and written in whole cache lines. A loop over elements would leave a
cache line, and in a large array the page, after each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

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
"""Texts: parts of one array are alike."""

WIDE = 4
"""Blocks of columns that a pass over all rows takes."""


class _Layout(NamedTuple):
    """All that the code of a transpose depends on."""

    dtype: DType
    shape: Shape
    read: Shape  # the strides of the source
    written: Shape  # and of the target
    columns: int  # the dimension along which elements lie together in the source
    rows: int  # and in the target


@dataclass(frozen=True)
class Transpose:
    """A copy into another order of dimensions, which are as few as possible. Elements
    are integers of their size."""

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
            text = _text(_Layout(x.dtype, x.shape, x.strides, out.strides, *along))
            record = ArrayRecord(llvm.compiler().function(text), [x, out])
            parts.append([(record, ())])
        return parallel(parts, threads)


def transpose(out: Array, x: Array) -> Transpose | None:
    """`out[...] = x`, for arrays of one shape; None unless they lie in orders so
    different that it pays to exchange blocks."""
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
    """Of a block of elements of this size: what is in a vector, but no more than 16."""
    return 16 if size < 8 else 8


@lru_cache(KEPT)
def _text(layout: _Layout) -> str:
    return _Lowering(layout).text()


class _Lowering:
    """Words are the addresses of the source and of the target."""

    def __init__(self, layout: _Layout):
        self._code = LlvmFunction()
        dtype, shape, read, written, columns, rows = layout
        self._dtype, self._size = dtype, dtype.itemsize
        self._side = side(dtype.itemsize)
        self._columns, self._rows = shape[columns], shape[rows]
        self._row, self._column = read[rows], written[columns]
        self._around: Loops = [
            (n, steps)
            for d, (n, *steps) in enumerate(zip(shape, read, written, strict=True))
            if d not in (columns, rows)
        ]

    def text(self) -> str:
        words = [self._code.word(n) for n in range(2)]
        with self._code.nest(self._around, words) as (source, target):
            self._matrix(source, target)
        return self._code.function()

    def _matrix(self, source: str, target: str) -> None:
        code, start = self._code, 0
        for width in (WIDE * self._side, self._side, 1):
            stop = start + (self._columns - start) // width * width
            if width == 1 and stop > start:
                self._pass(*self._at(source, target, str(start)), [stop - start])
            elif stop > start:
                active = [self._side] * (width // self._side)
                with code.loop(str(start), str(stop), width) as column:
                    self._pass(*self._at(source, target, column), active)
            start = stop

    def _at(self, source: str, target: str, column: str) -> tuple[str, str]:
        code = self._code
        return (
            code.moved(source, column, self._size),
            code.moved(target, column, self._column),
        )

    def _pass(self, source: str, target: str, columns: Sequence[int]) -> None:
        """Over all rows, for blocks of so many columns each."""
        code, side = self._code, self._side
        whole = self._rows // side * side

        def blocks(row: str, rows: int) -> None:
            read = code.moved(source, row, self._row)
            written = code.moved(target, row, self._size)
            for number, active in enumerate(columns):
                place = self._at(read, written, str(number * side))
                self._block(*place, rows, active)

        if whole:  # a part for a thread may be narrower than a block
            with code.loop("0", str(whole), side) as row:
                blocks(row, side)
        if whole < self._rows:
            blocks(str(whole), self._rows - whole)

    def _block(self, source: str, target: str, rows: int, columns: int) -> None:
        code, side = self._code, self._side
        vectors: list[Value] = []
        for row in range(side):
            at = code.moved(source, str(min(row, rows - 1)), self._row)
            vectors.append(load(code, at, self._size, self._dtype, side, columns))
        half = 1
        while half < side:
            for low in range(side):
                if not low & half:
                    x, y = vectors[low], vectors[low + half]
                    vectors[low], vectors[low + half] = self._exchanged(x, y, half)
            half *= 2
        for column in range(columns):
            at = code.moved(target, str(column), self._column)
            store(vectors[column], at, self._size, self._dtype, side, rows)

    def _exchanged(self, x: Value, y: Value, half: int) -> tuple[Value, Value]:
        """Blocks of `half` elements: the second of each two of `x` and the first of
        `y` change places."""
        lanes = range(self._side)
        first = [self._side + k - half if k & half else k for k in lanes]
        second = [self._side + k if k & half else k + half for k in lanes]
        shuffled = self._code.shuffled
        return shuffled(x, first, y), shuffled(x, second, y)
