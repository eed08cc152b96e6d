"""Multiplies a vector by a matrix with long rows.

    out[b, j] = sum over k of x[b, k] * y[b, k, j]

is computed as

    for 8 rows of the matrix at a time:
        for 2 vectors of columns at a time:
            out = out + x[0] * y[0] + ... + x[7] * y[7]

Rows are thus read from start to end, a pattern that processors prefetch. A loop nest
that keeps sums in registers would leave a row after a few hundred columns.
"""

from collections.abc import Sequence

from ....support.arrays import Array
from ...calls import Call
from ...pool import Scratch
from ..contraction import Contraction
from ..jit import llvm
from ..jit.records import ArrayRecord
from ..matrix_views import matrix_views
from .code import LlvmFunction, Value
from .elements import load, store
from .loops import COLUMNS
from .nests import VECTOR, merged

ROWS = 8
VECTORS = 2


def calls_of(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call] | None:
    """The calls of such a product; None for other contractions."""
    views = matrix_views(op, inputs, out)
    if views is None:
        return None
    lhs, rhs, target, _ = views.broadcast()
    if rhs.shape[-1] == 1:
        lhs, rhs, target = (x.swapaxes(-1, -2) for x in (rhs, lhs, target))
    size = rhs.itemsize
    is_long = rhs.shape[-1] * size > COLUMNS * VECTOR
    is_by_rows = rhs.strides[-1] == target.strides[-1] == size
    if lhs.shape[-2] != 1 or not lhs.size or not is_long or not is_by_rows:
        return None
    arrays = [lhs[..., 0, :], rhs, target[..., 0, :]]
    text = _Lowering(arrays).text()
    return [(ArrayRecord(llvm.compiler().function(text), arrays), ())]


class _Lowering:
    """The words are the addresses of the vectors, the matrices and the results."""

    def __init__(self, arrays: Sequence[Array]):
        self._code = LlvmFunction()
        vector, matrix, _ = arrays
        self._dtype = vector.dtype
        self._rows, self._columns = matrix.shape[-2:]
        self._steps = vector.strides[-1], matrix.strides[-2]
        shape = vector.shape[:-1]
        strides = zip(*(x.strides for x in arrays), strict=False)
        self._batch = merged(shape, range(len(shape)), list(strides))

    def text(self) -> str:
        words = [self._code.word(n) for n in range(3)]
        with self._code.nest(self._batch, words) as pointers:
            self._strips(*pointers)
        return self._code.function()

    def _strips(self, vector: str, matrix: str, out: str) -> None:
        code, (by, down) = self._code, self._steps
        rest = self._rows % ROWS
        last = str(self._rows - rest)

        def further(start: str, rows: int) -> None:
            at = code.moved(vector, start, by), code.moved(matrix, start, down)
            self._strip(*at, out, rows)

        self._strip(vector, matrix, out, min(ROWS, self._rows), is_first=True)
        if self._rows >= 2 * ROWS:
            with code.loop(str(ROWS), last, ROWS) as start:
                further(start, ROWS)
        if self._rows > ROWS and rest:
            further(last, rest)

    def _strip(
        self, vector: str, matrix: str, out: str, rows: int, is_first: bool = False
    ) -> None:
        code, step = self._code, self._dtype.itemsize
        by, down = self._steps
        factors = [
            load(code, code.moved(vector, str(row), by), 0, self._dtype, 1, 1)
            for row in range(rows)
        ]
        starts = [code.moved(matrix, str(row), down) for row in range(rows)]

        def columns(at: str, lanes: int, active: int) -> None:
            target = code.moved(out, at, step)
            total: Value | None = None
            if not is_first:
                total = load(code, target, step, self._dtype, lanes, active)
            for factor, start in zip(factors, starts, strict=True):
                place = code.moved(start, at, step)
                row = load(code, place, step, self._dtype, lanes, active)
                wide = code.widened(factor, lanes)
                total = row * wide if total is None else code.fma(row, wide, total)
            assert total is not None
            store(total, target, step, self._dtype, lanes, active)

        start = 0
        for lanes in (VECTORS * VECTOR // step, VECTOR // step):
            stop = start + (self._columns - start) // lanes * lanes
            if stop > start:
                with code.loop(str(start), str(stop), lanes) as at:
                    columns(at, lanes, lanes)
            start = stop
        if start < self._columns:
            columns(str(start), VECTOR // step, self._columns - start)
