"""Kernels of matrix products: `dot_general`, and the product that convolution uses.

`np.matmul` calls BLAS only if each matrix has unit stride along one of its dimensions.
Otherwise, and for integers, it uses a loop that is a hundred times slower. Matrices
that BLAS cannot read are therefore copied first. Floats smaller than f32 are multiplied
as f32, and integers as floats if these represent all sums exactly. Operands are
converted part by part, so that each part stays in the cache.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from ....dialects.dtypes import Array, DType, accumulator, is_float, magnitude
from ....dialects.tgraph.reducing import DotGeneralOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, try_reshape
from ..matrix_views import matrices
from .base import check_types, kernel

Convert: TypeAlias = Callable[[Array, Array], Sequence[Call]]
"""Makes calls for `out[...] = x`, from one type to another."""

Multiply: TypeAlias = Callable[[Array, Array, Array, Scratch], Sequence[Call]]
"""Makes calls for the product of two matrices of the type of multiplication, into a
matrix of any type.
"""

PART = 1 << 16
"""The elements of an operand that are converted at a time: 256 KiB of f32."""

FEWEST = 64
"""The minimum number of rows or columns of a part, however long they are."""


@kernel(DotGeneralOp)
def dot_general(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    return multiplied(op, inputs, outs[0], scratch, copy, product)


def multiplied(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    out: Array,
    scratch: Scratch,
    convert: Convert,
    multiply: Multiply,
) -> list[Call]:
    """The calls for a product, by functions that convert and multiply matrices."""
    lhs, made_lhs = matrices(op, inputs, 0, scratch)
    rhs, made_rhs = matrices(op, inputs, 1, scratch)
    dtype = multiplied_in(out.dtype, inputs, lhs.shape[-1])
    check_types(op, np.matmul, *[dtype] * 3)
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    target = try_reshape(out, shape)
    result: list[Call] = []
    if target is None:
        target = scratch.take(shape, out.dtype)
        result = copy(out, target.reshape(out.shape))
    if lhs.dtype == rhs.dtype == dtype:
        lhs, copied_lhs = for_blas(lhs, scratch)
        rhs, copied_rhs = for_blas(rhs, scratch)
        calls = [*copied_lhs, *copied_rhs, *multiply(lhs, rhs, target, scratch)]
    else:
        calls = _in_parts(lhs, rhs, target, dtype, scratch, convert, multiply)
    return [*made_lhs, *made_rhs, *calls, *result]


def multiplied_in(out: DType, inputs: Sequence[Array], count: int) -> DType:
    """The type in which `count` products of two elements are summed: for integers, a
    float type if it represents every sum exactly and `out` holds every sum."""
    if is_float(out) or out.kind == "c":
        return accumulator(out)
    if out.kind == "b" or any(x.dtype.kind == "b" for x in inputs):
        return out
    largest = count * prod(magnitude(x.dtype) for x in inputs)
    if largest <= np.iinfo(out).max:
        for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            if largest <= 1 << (np.finfo(dtype).nmant + 1):
                return dtype
    return out


def product(lhs: Array, rhs: Array, out: Array, scratch: Scratch) -> list[Call]:
    """The product of matrices that BLAS can read, into any array."""
    if out.dtype == lhs.dtype and is_blasable(out):
        return [(np.matmul, (lhs, rhs, out))]
    target = scratch.take(out.shape, lhs.dtype)
    return [(np.matmul, (lhs, rhs, target)), *copy(out, target)]


def _in_parts(
    lhs: Array,
    rhs: Array,
    out: Array,
    dtype: DType,
    scratch: Scratch,
    convert: Convert,
    multiply: Multiply,
) -> list[Call]:
    """The product of matrices of which one or both are converted to another type."""
    *batch, rows, count = lhs.shape
    columns = rhs.shape[-1]
    lhs, copied_lhs = for_blas(lhs, scratch) if lhs.dtype == dtype else (lhs, ())
    rhs, copied_rhs = for_blas(rhs, scratch) if rhs.dtype == dtype else (rhs, ())
    calls = [*copied_lhs, *copied_rhs]
    step = max(FEWEST, PART // max(count, 1))
    lefts = [slice(at, min(at + step, rows)) for at in range(0, rows, step)]
    rights = [slice(at, min(at + step, columns)) for at in range(0, columns, step)]
    buffers = [
        scratch.take((min(step, size) * count if x.dtype != dtype else 0,), dtype)
        for x, size in ((lhs, rows), (rhs, columns))
    ]

    def converted(x: Array, side: int) -> Array:
        if x.dtype == dtype:
            return x
        buffer = buffers[side][: x.size].reshape(x.shape)
        calls.extend(convert(buffer, x))
        return buffer

    start = scratch.mark
    for place in np.ndindex(*batch):
        x, y, to = lhs[place], rhs[place], out[place]
        # The outer loop is over the side with fewer parts. If it has a single part,
        # everything is converted only once.
        is_by_row = len(lefts) <= len(rights)
        for outer in lefts if is_by_row else rights:
            fixed = converted(x[outer] if is_by_row else y[:, outer], not is_by_row)
            for inner in rights if is_by_row else lefts:
                other = converted(y[:, inner] if is_by_row else x[inner], is_by_row)
                left, right = (fixed, other) if is_by_row else (other, fixed)
                at = (outer, inner) if is_by_row else (inner, outer)
                calls += multiply(left, right, to[at], scratch)
                scratch.mark = start
    return calls


def for_blas(x: Array, scratch: Scratch) -> tuple[Array, Sequence[Call]]:
    """`x`, or a copy if BLAS cannot read it."""
    if is_blasable(x):
        return x, ()
    buffer = scratch.take(x.shape, x.dtype)
    return buffer, copy(buffer, x)


def is_blasable(x: Array) -> bool:
    """Whether BLAS can use the matrices in the last two dimensions."""
    rows, columns = x.shape[-2:]
    for size, stride, unit in (
        (columns, x.strides[-2], x.strides[-1]),
        (rows, x.strides[-1], x.strides[-2]),
    ):
        if (
            unit == x.itemsize
            and stride % x.itemsize == 0
            and stride >= size * x.itemsize
        ):
            return True
    return False
