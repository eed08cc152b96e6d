"""Kernels of matrix products: `dot_general`, and the product that convolution uses.

`np.matmul` hands a product to BLAS only if each matrix has unit stride along one of its
dimensions; if not, it falls back to a loop that is a hundred times slower. So matrices
that BLAS cannot take are copied first. Elements smaller than f32 are multiplied as f32.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.runtime.dtypes import Array, DType, accumulator
from tensorplan.runtime.kernels.base import (
    Call,
    check_types,
    copy,
    kernel,
    reshaped,
    try_reshape,
)
from tensorplan.runtime.pool import Scratch


@kernel(DotGeneralOp)
def dot_general(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    (out,) = outs
    dtype = accumulator(out.dtype)
    check_types(op, np.matmul, *(np.empty((1, 1), dtype) for _ in range(3)))
    lhs, made_lhs = matrices(op, 0, inputs[0], scratch)
    rhs, made_rhs = matrices(op, 1, inputs[1], scratch)
    lhs, converted_lhs = for_blas(lhs, dtype, scratch)
    rhs, converted_rhs = for_blas(rhs, dtype, scratch)
    made = [*made_lhs, *made_rhs, *converted_lhs, *converted_rhs]
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    target = try_reshape(out, shape) if out.dtype == dtype else None
    if target is not None and is_blasable(target):
        return [*made, (np.matmul, (lhs, rhs, target))]
    target = scratch.take(shape, dtype)
    result = copy(out, target.reshape(out.shape))
    return [*made, (np.matmul, (lhs, rhs, target)), *result]


def matrices(
    op: DotGeneralOp, side: int, x: Array, scratch: Scratch
) -> tuple[Array, list[Call]]:
    """The left or right operand as matrices, one for each place of the batch
    dimensions: a view, or else a copy that the calls make."""
    batch, contracting = op.batching[side], op.contracting[side]
    free = [d for d in range(x.ndim) if d not in batch and d not in contracting]
    parts = (free, contracting) if side == 0 else (contracting, free)
    ordered = x.transpose([*batch, *(d for part in parts for d in part)])
    sizes = (prod(x.shape[d] for d in part) for part in parts)
    return reshaped(ordered, (*(x.shape[d] for d in batch), *sizes), scratch)


def for_blas(x: Array, dtype: DType, scratch: Scratch) -> tuple[Array, Sequence[Call]]:
    """`x`, or a copy if BLAS cannot take it or its elements are not of `dtype`."""
    if x.dtype == dtype and is_blasable(x):
        return x, ()
    buffer = scratch.take(x.shape, dtype)
    return buffer, copy(buffer, x)


def is_blasable(x: Array) -> bool:
    """Whether BLAS takes the matrices that the last two dimensions are."""
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
