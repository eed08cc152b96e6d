"""Kernels of operations that make or move elements without computing on them."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.memref import CopyOp

from ....dialects.dtypes import Array, constant
from ....dialects.tgraph import shaping
from ....dialects.tgraph.base import TensorOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, fill, iota, reshaped, viewed
from .base import kernel


@kernel(shaping.ConstantOp, shaping.FullLikeOp)
def fill_constant(
    op: shaping.ConstantOp | shaping.FullLikeOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    value = constant(op.value, outs[0].dtype)
    return copy(outs[0], value) if value.ndim else fill(outs[0], value)


@kernel(shaping.IotaOp)
def write_iota(
    op: shaping.IotaOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    return copy(outs[0], iota(op, outs[0].shape, outs[0].dtype))


@kernel(CopyOp)
def copy_all(
    op: CopyOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    return copy(outs[0], inputs[0])


@kernel(
    shaping.BroadcastInDimOp,
    shaping.DeviceCopyOp,
    shaping.ReshapeOp,
    shaping.ReverseOp,
    shaping.SliceOp,
    shaping.TransposeOp,
)
def copy_view(
    op: TensorOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    (x,), (out,) = inputs, outs
    calls: list[Call] = []
    view = viewed(op, x, out.shape)
    if view is None:
        view, calls = reshaped(x, out.shape, scratch)
    return [*calls, *copy(out, view)]


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
