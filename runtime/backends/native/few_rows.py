"""Multiplies a few rows by a transposed matrix, without a packed copy of it.

    out[b, i, j] = sum over k of x[b, i, k] * y[b, j, k]

is computed as

    for 4 columns j at a time:
        for 4 rows i at a time:
            16 vectors of sums, one for each i and j, over all vectors of k
            add up the lanes of these vectors, all of them together

Libraries pack the matrix first, which is as much work as some of the rows, and takes
scratch memory. Here, each pair of vectors is multiplied where it lies. The matrix is
read once, and the rows stay in a cache.
"""

from collections.abc import Sequence
from functools import lru_cache

from ....support.arrays import Array, DType, Shape
from ...calls import Call
from ...pool import Scratch
from ..contraction import Contraction
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..matrix_views import matrix_views
from ..parts import Slices, divisions
from .code import LlvmFunction, Value
from .dot_products import registers
from .elements import load, store
from .nests import merged

COLUMNS = 4
"""The columns of a tile, and its rows if there are 32 registers."""

MOST_ROWS, MOST_ROWS_OF_NARROW = 24, 32
"""The maximum rows for which this is as fast as oneDNN, also for a result of at most
`NARROW` columns. On a Xeon with AVX-512, it takes 0.4 to 0.5 of oneDNN's time for 4
rows, 0.55 to 0.9 for 16, 0.7 to 1.03 for 24. For 32 rows, it takes 0.76 to 0.87 for few
columns, and 0.9 to 1.36 for many.
"""

NARROW = 64
"""oneDNN pads the packed matrix to as many columns."""

KEPT = 64
"""The number of cached texts."""

PACKED_ROWS = 8
"""From this number of rows on, oneDNN packs a matrix that no run changes only once."""


def is_supported(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> bool:
    """Whether `calls_of` returns calls."""
    return _matrices(op, inputs, out, scratch) is not None


def calls_of(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call] | None:
    """The calls of such a product; None for other contractions."""
    arrays = _matrices(op, inputs, out, scratch)
    if arrays is None:
        return None
    lhs, _, target = arrays
    batch = target.ndim - 2
    units = {**dict.fromkeys(range(batch), 1), batch + 1: COLUMNS}
    divided = divisions(target.shape, units, lhs.shape[-1], scratch.threads)[0]
    return parallel([_part(arrays, block) for block in divided], scratch.threads)


def _matrices(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> Sequence[Array] | None:
    """The rows, the matrix with contiguous rows, and the result; None for other
    contractions."""
    views = matrix_views(op, inputs, out)
    if views is None:
        return None
    lhs, rhs, target, _ = views.broadcast()
    arrays = [lhs, rhs.swapaxes(-1, -2), target]
    rows, columns = target.shape[-2:]
    most = MOST_ROWS_OF_NARROW if columns <= NARROW else MOST_ROWS
    if not lhs.size or not _tile_rows() <= rows <= most or columns < COLUMNS:
        return None
    if any(x.strides[-1] != x.itemsize for x in arrays):
        return None
    if rows >= PACKED_ROWS and scratch.constant(inputs[1]):
        return None
    return arrays


def _part(arrays: Sequence[Array], block: Slices) -> list[Call]:
    lhs, rhs, out = arrays
    *batch, _, columns = block
    parts = [lhs[*batch, ...], rhs[*batch, columns, :], out[block]]
    text = _text(lhs.dtype, *((x.shape, x.strides) for x in parts))
    return [(ArrayRecord(llvm.compiler().function(text), parts), ())]


@lru_cache(KEPT)
def _text(dtype: DType, *layouts: tuple[Shape, Shape]) -> str:
    """The function's text, for arrays of these shapes and strides."""
    return _Lowering(dtype, layouts).text()


def _tile_rows() -> int:
    return registers()[1] // 8


class _Lowering:
    """The words are the addresses of the rows, the matrices and the results."""

    def __init__(self, dtype: DType, layouts: Sequence[tuple[Shape, Shape]]):
        self._code = LlvmFunction()
        self._dtype = dtype
        self._lanes = registers()[0] // dtype.itemsize
        (*batch, self._rows, self._sums), _ = layouts[0]
        self._columns = layouts[2][0][-1]
        self._steps = [strides[-2] for _, strides in layouts]
        strides = zip(*(strides for _, strides in layouts), strict=True)
        self._batch = merged((*batch,), range(len(batch)), list(strides))

    def text(self) -> str:
        code, size, height = self._code, self._dtype.itemsize, _tile_rows()
        words = [code.word(n) for n in range(3)]
        with code.nest(self._batch, words) as (rows, matrix, out):
            with code.loop("0", str(self._columns), COLUMNS) as index:
                # The last tile overlaps the previous one, so that it is complete.
                column = code.smaller(index, 0, self._columns - COLUMNS)
                right = code.moved(matrix, column, self._steps[1])
                above = code.moved(out, column, size)
                with code.loop("0", str(self._rows), height) as index:
                    row = code.smaller(index, 0, self._rows - height)
                    left = code.moved(rows, row, self._steps[0])
                    self._tile(left, right, code.moved(above, row, self._steps[2]))
        return code.function()

    def _tile(self, left: str, right: str, target: str) -> None:
        code, lanes, size = self._code, self._lanes, self._dtype.itemsize
        whole = self._sums // lanes * lanes
        first = min(lanes, self._sums)
        totals = self._products(left, right, first, None)
        if whole > lanes:
            slots = [code.slot(total) for total in totals]
            element = totals[0].element
            with code.loop(str(lanes), str(whole), lanes) as index:
                x, y = (code.moved(start, index, size) for start in (left, right))
                sums = [code.get(slot, element, lanes) for slot in slots]
                products = self._products(x, y, lanes, sums)
                for slot, total in zip(slots, products, strict=True):
                    code.set(slot, total)
            totals = [code.get(slot, element, lanes) for slot in slots]
        if rest := max(self._sums - max(whole, lanes), 0):
            x, y = (code.moved(start, str(whole), size) for start in (left, right))
            totals = self._products(x, y, rest, totals)
        self._store(_summed(code, totals), target)

    def _products(
        self, left: str, right: str, active: int, totals: Sequence[Value] | None
    ) -> list[Value]:
        """Adds the products of a vector of each row and each column to `totals`."""
        code, size = self._code, self._dtype.itemsize

        def vectors(start: str, step: int, count: int) -> list[Value]:
            places = [code.moved(start, str(n), step) for n in range(count)]
            dtype, lanes = self._dtype, self._lanes
            return [load(code, at, size, dtype, lanes, active) for at in places]

        x = vectors(left, self._steps[0], _tile_rows())
        y = vectors(right, self._steps[1], COLUMNS)
        pairs = [(a, b) for a in x for b in y]
        if totals is None:
            return [a * b for a, b in pairs]
        return [code.fma(a, b, t) for (a, b), t in zip(pairs, totals, strict=True)]

    def _store(self, sums: Sequence[Value], target: str) -> None:
        """Stores the sums of a tile, row by row."""
        code, size = self._code, self._dtype.itemsize
        width = min(COLUMNS, self._lanes)
        for start in range(0, _tile_rows() * COLUMNS, width):
            row, column = divmod(start, COLUMNS)
            place = code.moved(target, str(row), self._steps[2])
            place = code.moved(place, str(column), size)
            number, lane = divmod(start, self._lanes)
            part = code.part(sums[number], lane, width)
            store(part, place, size, self._dtype, width, width)


def _summed(code: LlvmFunction, vectors: Sequence[Value]) -> Sequence[Value]:
    """The sums of the lanes of each vector, as lanes of vectors, in order."""
    lanes = vectors[0].lanes
    parts = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [
            code.shuffled(x, parts[0], y) + code.shuffled(x, parts[1], y)
            for x, y in pairs
        ]
    return vectors
