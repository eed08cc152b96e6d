"""Computes cumulative sums and products of columns, many adjacent columns at a time.

    for some columns:
        total = 0
        for each row:
            total = total + x; out = total

Along rows nothing can run in parallel, and NumPy is as fast.
"""

from collections.abc import Sequence

from ....dialects.dtypes import Array
from ....dialects.tgraph.reducing import ReduceWindowOp
from ...calls import Call
from ..jit import llvm
from ..jit.records import ArrayRecord
from ..numpy.reducing import accumulated, scan_of
from .accumulators import combined
from .code import LlvmFunction
from .elements import load, register_type, store
from .loops import UNROLLED
from .nests import VECTOR, merged


def calls_of(op: ReduceWindowOp, x: Array, out: Array) -> list[Call] | None:
    """None for what is no such scan."""
    kind, scan = op.kind.data, scan_of(op, x.shape)
    is_exact = x.dtype.kind in "fiu" and accumulated(kind, x.dtype) == x.dtype
    if scan is None or kind not in ("add", "multiply") or not is_exact:
        return None
    axis, order = scan
    ahead = (slice(None),) * axis + (slice(None, None, order), ...)
    arrays = [x[ahead], out[ahead]]
    strides = list(zip(*(a.strides for a in arrays), strict=True))
    columns = merged(x.shape, range(axis + 1, x.ndim), strides)
    size = x.itemsize
    if len(columns) != 1 or list(columns[0][1]) != [size, size]:
        return None
    text = _Lowering(kind, arrays, axis, columns[0][0]).text()
    return [(ArrayRecord(llvm.compiler().function(text), arrays), ())]


class _Lowering:
    """Words are the addresses of the operand and of the result."""

    def __init__(self, kind: str, arrays: Sequence[Array], axis: int, columns: int):
        self._code = LlvmFunction()
        x, _ = arrays
        self._kind, self._dtype = kind, x.dtype
        self._rows, self._columns = x.shape[axis], columns
        strides = list(zip(*(a.strides for a in arrays), strict=True))
        self._steps = strides[axis]
        self._batch = merged(x.shape, range(axis), strides)

    def text(self) -> str:
        words = [self._code.word(n) for n in range(2)]
        with self._code.nest(self._batch, words) as pointers:
            self._all_columns(pointers)
        return self._code.function()

    def _all_columns(self, pointers: Sequence[str]) -> None:
        code, size = self._code, self._dtype.itemsize
        start = 0
        for lanes in (UNROLLED * VECTOR // size, VECTOR // size):
            stop = start + (self._columns - start) // lanes * lanes
            if stop > start:
                with code.loop(str(start), str(stop), lanes) as at:
                    moved = [code.moved(p, at, size) for p in pointers]
                    self._some_columns(moved, lanes, lanes)
            start = stop
        if start < self._columns:
            moved = [code.moved(p, str(start), size) for p in pointers]
            self._some_columns(moved, VECTOR // size, self._columns - start)

    def _some_columns(self, pointers: Sequence[str], lanes: int, active: int) -> None:
        code, dtype = self._code, self._dtype
        element = register_type(dtype)
        assert element is not None
        zero = code.number(0 if self._kind == "add" else 1, element)
        total = code.slot(code.widened(zero, lanes))
        with code.loop("0", str(self._rows), 1) as row:
            x, out = (
                code.moved(p, row, step)
                for p, step in zip(pointers, self._steps, strict=True)
            )
            new = load(code, x, dtype.itemsize, dtype, lanes, active)
            so_far = code.get(total, element, lanes)
            new = combined(self._kind, dtype, so_far, new)
            code.set(total, new)
            store(new, out, dtype.itemsize, dtype, lanes, active)
