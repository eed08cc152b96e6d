"""Kernels of operations that make or move elements without computing on them."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.memref import CopyOp

from tensorplan.dialects.dtypes import Array, DType, constant
from tensorplan.dialects.tgraph import shaping
from tensorplan.dialects.tgraph.base import Shape
from tensorplan.runtime.backends.numpy.base import Call, copy, fill, kernel, reshaped
from tensorplan.runtime.pool import Scratch


@kernel(shaping.ConstantOp, shaping.FullLikeOp)
def fill_constant(
    op: shaping.ConstantOp | shaping.FullLikeOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    value = constant(op.value, outs[0].dtype)
    return copy(outs[0], value) if value.ndim else fill(outs[0], value)


def iota(op: shaping.IotaOp, shape: Shape, dtype: DType) -> Array:
    """The operation's result as a view that repeats one row of numbers."""
    dim = op.dimension.value.data
    row = np.arange(shape[dim]).astype(dtype)
    return broadcast_in_dim(row, (dim,), shape)


@kernel(shaping.IotaOp)
def write_iota(
    op: shaping.IotaOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    return copy(outs[0], iota(op, outs[0].shape, outs[0].dtype))


@kernel(CopyOp, shaping.DeviceCopyOp)
def copy_all(
    op: CopyOp | shaping.DeviceCopyOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    return copy(outs[0], inputs[0])


@kernel(shaping.ReshapeOp)
def reshape(
    op: shaping.ReshapeOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    x, calls = reshaped(inputs[0], outs[0].shape, scratch)
    return [*calls, *copy(outs[0], x)]


def broadcast_in_dim(x: Array, dims: Sequence[int], shape: Sequence[int]) -> Array:
    """A view that repeats `x`, whose dimension d becomes `dims[d]`, over `shape`."""
    strides = [0] * len(shape)
    for size, stride, dim in zip(x.shape, x.strides, dims, strict=True):
        strides[dim] = stride if size > 1 else 0
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


@kernel(shaping.BroadcastInDimOp)
def broadcast(
    op: shaping.BroadcastInDimOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    dims = op.broadcast_dimensions.get_values()
    return copy(outs[0], broadcast_in_dim(inputs[0], dims, outs[0].shape))


@kernel(shaping.TransposeOp)
def transpose(
    op: shaping.TransposeOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    return copy(outs[0], inputs[0].transpose(op.permutation.get_values()))


@kernel(shaping.SliceOp)
def take_slice(
    op: shaping.SliceOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    bounds = op.start_indices, op.limit_indices, op.strides
    slices = tuple(map(slice, *(b.get_values() for b in bounds)))
    return copy(outs[0], inputs[0][*slices, ...])


@kernel(shaping.ReverseOp)
def reverse(
    op: shaping.ReverseOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    return copy(outs[0], np.flip(inputs[0], op.dimensions.get_values()))


@kernel(shaping.ConcatenateOp)
def concatenate(
    op: shaping.ConcatenateOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    dim = op.dimension.value.data
    calls: list[Call] = []
    start = 0
    for x in inputs:
        stop = start + x.shape[dim]
        part = outs[0][(*[slice(None)] * dim, slice(start, stop))]
        calls += copy(part, x)
        start = stop
    return calls


@kernel(shaping.PadOp)
def pad(
    op: shaping.PadOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    x, value = inputs
    (out,) = outs
    to: list[slice] = []
    source: list[slice] = []
    for low, size, width, inner in zip(
        op.low.get_values(), out.shape, x.shape, op.interior.get_values(), strict=True
    ):
        step = inner + 1
        first = -(min(low, 0) // step)  # the first element that is not cut off
        last = min(width, (size - 1 - low) // step + 1)
        source.append(slice(first, max(first, last)))
        start = low + first * step
        to.append(slice(start, start + max(0, last - first) * step, step))
    return [
        *copy(out, np.broadcast_to(value, out.shape)),
        *copy(out[*to, ...], x[*source, ...]),
    ]
