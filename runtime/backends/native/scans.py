"""Computes cumulative sums, products and extremes, vectorized across columns.

    for some columns:
        total = 0
        for each row:
            total = total + x; out = total

A scan along rows is sequential. There, lanes belong to different rows, which are
transposed into columns, one block after the other. Few elements, and a single row, are
scanned row after row.
"""

from collections.abc import Sequence

from ....dialects.dtypes import Array, DType, identity
from ....dialects.tgraph.reducing import ReduceWindowOp
from ...calls import Call
from ..jit import llvm
from ..jit.records import ArrayRecord
from ..numpy.reducing import accumulated
from . import operations
from .accumulators import combined
from .code import LlvmFunction, Value
from .elements import load, number_of, register_type, rounded, store
from .nests import UNROLLED, VECTOR, merged
from .transposing import Matrix

BLOCK = 64
"""The columns that rows are transposed into at a time."""

WORTH_TRANSPOSING = 1 << 11
"""The minimum elements for which transposing rows pays: LLVM takes some hundredths of a
second for the code.
"""


def calls_of(op: ReduceWindowOp, x: Array, out: Array) -> list[Call] | None:
    """The calls of a scan; None if `op` is no scan that this file supports."""
    kind, scan = op.kind.data, op.scan(x.shape)
    element = register_type(x.dtype)
    is_exact = element == register_type(accumulated(kind, x.dtype))
    if scan is None or element in (None, "i1") or not is_exact:
        return None
    axis, order = scan
    size = x.itemsize
    strides = list(zip(x.strides, out.strides, strict=True))
    columns = merged(x.shape, range(axis + 1, x.ndim), strides)
    if len(columns) == 1 and list(columns[0][1]) == [size, size]:
        text = _Lowering(kind, [x, out], axis, order).of_columns(columns[0][0])
    elif columns:
        return None
    elif (
        merged(x.shape, range(axis), strides)
        and x.size >= WORTH_TRANSPOSING
        and list(strides[axis]) == [size, size]
    ):
        text = _Lowering(kind, [x, out], axis, order).of_rows()
    else:
        text = _Lowering(kind, [x, out], axis, order).of_columns(1)
    return [(ArrayRecord(llvm.compiler().function(text), [x, out]), ())]


class _Lowering:
    """The words are the addresses of the operand and of the result."""

    def __init__(self, kind: str, arrays: Sequence[Array], axis: int, order: int):
        self._code = LlvmFunction()
        x, _ = arrays
        self._kind, self._dtype, self._order = kind, x.dtype, order
        self._size, self._lanes = x.itemsize, VECTOR // x.itemsize
        self._length = x.shape[axis]
        strides = list(zip(*(a.strides for a in arrays), strict=True))
        self._steps = strides[axis]
        self._batch = merged(x.shape, range(axis), strides)

    def of_columns(self, columns: int) -> str:
        code = self._code
        words, sizes = [code.word(n) for n in range(2)], [self._size] * 2
        with code.nest(self._batch, words) as pointers:
            start = 0
            for lanes in (UNROLLED * self._lanes, self._lanes):
                stop = start + (columns - start) // lanes * lanes
                if stop > start:
                    with code.loop(str(start), str(stop), lanes) as at:
                        moved = code.all_moved(pointers, at, sizes)
                        self._columns(moved, lanes, lanes)
                start = stop
            if start < columns:
                moved = code.all_moved(pointers, str(start), sizes)
                lanes = 1 << (columns - start - 1).bit_length()
                self._columns(moved, lanes, columns - start)
        return code.function()

    def _columns(self, pointers: Sequence[str], lanes: int, active: int) -> None:
        total = self._first(lanes)
        self._along(self._length, total, pointers, self._steps, lanes, active)

    def of_rows(self) -> str:
        code = self._code
        words = [code.word(n) for n in range(2)]
        *around, (rows, steps) = self._batch
        lanes = min(UNROLLED * self._lanes, 1 << (rows - 1).bit_length())
        block = code.buffer(f"[{self._size} x i8]", min(BLOCK, self._length) * lanes)
        with code.nest(around, words) as pointers:
            stop = rows // lanes * lanes
            if stop:
                with code.loop("0", str(stop), lanes) as row:
                    moved = code.all_moved(pointers, row, steps)
                    self._rows(moved, steps, lanes, lanes, block)
            if stop < rows:
                moved = code.all_moved(pointers, str(stop), steps)
                self._rows(moved, steps, lanes, rows - stop, block)
        return code.function()

    def _rows(
        self,
        pointers: Sequence[str],
        steps: Sequence[int],
        lanes: int,
        rows: int,
        block: str,
    ) -> None:
        """Scans `rows` rows, which are `steps` bytes apart, in the first lanes."""
        code, total, length = self._code, self._first(lanes), self._length

        def some(first: str, columns: int) -> None:
            """Scans `columns` columns from `first` on, in the order of the scan."""
            x, out = code.all_moved(pointers, first, [self._size] * 2)
            column = lanes * self._size
            shape = self._size, rows, columns
            read, written = (
                Matrix(code, *shape, row, column, is_large=False) for row in steps
            )
            read.copy(x, block)
            self._along(columns, total, [block] * 2, [column] * 2, lanes, lanes)
            written.transposed.copy(block, out)

        stop = length // BLOCK * BLOCK
        if stop:
            with code.loop("0", str(stop), BLOCK) as done:
                last = str(length - BLOCK)
                first = done if self._order > 0 else code.index("sub", last, done)
                some(first, BLOCK)
        if stop < length:
            some(str(stop) if self._order > 0 else "0", length - stop)

    def _along(
        self,
        length: int,
        total: str,
        pointers: Sequence[str],
        steps: Sequence[int],
        lanes: int,
        active: int,
    ) -> None:
        """Adds vectors to the total, in the order of the scan, and stores each sum."""
        code, dtype = self._code, self._dtype
        with code.loop("0", str(length), 1) as done:
            is_ahead = self._order > 0
            at = done if is_ahead else code.index("sub", str(length - 1), done)
            x, out = code.all_moved(pointers, at, steps)
            new = load(code, x, dtype.itemsize, dtype, lanes, active)
            so_far = code.get(total, new.element, lanes)
            new = _added(self._kind, dtype, so_far, new)
            code.set(total, new)
            store(rounded(new, dtype), out, dtype.itemsize, dtype, lanes, active)

    def _first(self, lanes: int) -> str:
        """A total with the identity, before the first element."""
        element = register_type(self._dtype)
        assert element is not None
        number = number_of(identity(self._kind, self._dtype))
        return self._code.slot(
            self._code.widened(self._code.number(number, element), lanes)
        )


def _added(kind: str, dtype: DType, so_far: Value, new: Value) -> Value:
    if kind in ("maximum", "minimum"):
        return operations.extreme(kind)(dtype, so_far, new)
    return combined(kind, dtype, so_far, new)
