"""Reductions along the rows and the columns of matrices, faster than NumPy's own.

Sums are products with ones, because BLAS takes a third of the time of NumPy's pairwise
sum. Extremes of rows use `reduceat`, because `reduce` takes more time to start a row
than to process a hundred elements.

BLAS adds elements sequentially, in few partial sums, so rounding errors accumulate.
Therefore parts are summed first, then the sums of the parts in the same way. Relative
errors are at most 2e-6 in f32, even if all rounding errors have the same sign.
"""

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from ....dialects.dtypes import Array, DType
from ...calls import Call
from ...pool import Scratch
from ..arrays import try_reshape
from .dot import is_blasable

BLOCK = 64
"""The number of rows that are summed sequentially."""

LONGEST = 1 << 9
"""The maximum elements of a row that BLAS sums up."""


def reduced(
    function: np.ufunc, x: Array, axes: Sequence[int], out: Array, scratch: Scratch
) -> list[Call]:
    """The calls that combine the elements of `x`, which is not empty, along `axes`, in
    the type of `out`."""
    count = len(axes)
    kept = x.ndim - count
    calls: list[Call] = []
    if kept and sorted(axes) == list(range(kept, x.ndim)):
        calls = _of_rows(function, x, kept, out, scratch)
    elif kept and function is np.add and sorted(axes) == list(range(count)):
        calls = _of_columns(x, count, out, scratch)
    return calls or [(function.reduce, (x, axes, out.dtype, out))]


def _of_rows(
    function: np.ufunc, x: Array, kept: int, out: Array, scratch: Scratch
) -> list[Call]:
    """No calls if `function.reduce` is better."""
    rows, size = prod(x.shape[:kept]), prod(x.shape[kept:])
    matrix, to = try_reshape(x, (rows, size)), try_reshape(out, (rows,))
    if matrix is None or to is None:
        return []
    if function is np.add:
        return _sums_of_rows(matrix, to, scratch)
    if function not in (np.maximum, np.minimum) or x.dtype.kind != "f":
        return []
    flat = try_reshape(matrix, (x.size,))
    if flat is None:
        return []
    return [(function.reduceat, (flat, np.arange(0, x.size, size), 0, None, to))]


def _sums_of_rows(x: Array, out: Array, scratch: Scratch) -> list[Call]:
    """No calls if BLAS cannot sum up the rows, or parts of them."""
    rows, size = x.shape
    part = _part(size)
    parts = try_reshape(x, (rows * size // part, part)) if part else None
    if parts is None or not _is_for_blas(parts, out):
        return []
    ones = _ones(x.dtype)[:part]
    if part == size:
        return [(np.matmul, (parts, ones, out))]
    sums = scratch.take((rows, size // part), x.dtype)
    rest = _sums_of_rows(sums, out, scratch)
    rest = rest or [(np.add.reduce, (sums, 1, None, out))]
    return [(np.matmul, (parts, ones, sums.reshape(-1))), *rest]


@cache
def _part(size: int) -> int:
    """The elements of each part of a row; 0 if a row has no such divisor."""
    if size <= LONGEST:
        return size
    return next((n for n in range(LONGEST, BLOCK, -1) if size % n == 0), 0)


def _of_columns(x: Array, count: int, out: Array, scratch: Scratch) -> list[Call]:
    """Sums over the first `count` dimensions; no calls if these can't be merged."""
    rows, kept = prod(x.shape[:count]), x.shape[count:]
    flat = (prod(kept),)
    matrix, to = try_reshape(x, (rows, *flat)), try_reshape(out, flat)
    if matrix is None or to is None:
        matrix, to = try_reshape(x, (rows, *kept)), out
    if matrix is None:
        return []
    calls: list[Call] = []
    while rows >= 2 * BLOCK:
        blocks, rest = divmod(rows, BLOCK)
        whole = try_reshape(matrix[: rows - rest], (blocks, BLOCK, *to.shape))
        assert whole is not None
        sums = scratch.take((blocks + (rest > 0), *to.shape), to.dtype)
        calls.append(_sum(whole, 1, sums[:blocks]))
        if rest:
            calls.append(_sum(matrix[rows - rest :], 0, sums[blocks]))
        matrix, rows = sums, len(sums)
    return [*calls, _sum(matrix, 0, to)]


def _sum(x: Array, axis: int, out: Array) -> Call:
    if x.ndim == axis + 2 and _is_for_blas(x, out):
        return np.matmul, (_ones(x.dtype)[: x.shape[axis]], x, out)
    return np.add.reduce, (x, axis, out.dtype, out)


@cache
def _ones(dtype: DType) -> Array:
    return np.ones(LONGEST, dtype)


def _is_for_blas(x: Array, out: Array) -> bool:
    """Whether BLAS sums up the rows or columns of `x` in the type of `out`."""
    return x.dtype == out.dtype and x.dtype.char in "fd" and is_blasable(x)
