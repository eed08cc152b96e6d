"""Constants, and operations that move elements."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...dtypes import Array, constant
from .. import shaping
from ..base import TensorOp
from .results import Evaluate, result_dtype, result_shape


def _constant(op: shaping.ConstantOp) -> Array:
    value = constant(op.value, result_dtype(op))
    return np.full(result_shape(op), value) if value.ndim == 0 else value


def _full_like(op: shaping.FullLikeOp, x: Array) -> Array:
    return np.full(x.shape, constant(op.value, x.dtype))


def _iota(op: shaping.IotaOp) -> Array:
    indices = np.indices(result_shape(op))[op.dimension.value.data]
    return indices.astype(result_dtype(op))


def _reshape(op: shaping.ReshapeOp, x: Array) -> Array:
    return x.reshape(result_shape(op))


def _broadcast_in_dim(op: shaping.BroadcastInDimOp, x: Array) -> Array:
    dims = op.broadcast_dimensions.get_values()
    order = sorted(range(len(dims)), key=lambda d: dims[d])
    shape = [1] * len(result_shape(op))
    for dim, size in zip(dims, x.shape, strict=True):
        shape[dim] = size
    return np.broadcast_to(x.transpose(order).reshape(shape), result_shape(op)).copy()


def _transpose(op: shaping.TransposeOp, x: Array) -> Array:
    return x.transpose(op.permutation.get_values()).copy()


def _slice(op: shaping.SliceOp, x: Array) -> Array:
    starts = op.start_indices.get_values()
    limits = op.limit_indices.get_values()
    strides = op.strides.get_values()
    return x[tuple(map(slice, starts, limits, strides))].copy()


def _reverse(op: shaping.ReverseOp, x: Array) -> Array:
    return np.flip(x, op.dimensions.get_values()).copy()


def _concatenate(op: shaping.ConcatenateOp, *inputs: Array) -> Array:
    return np.concatenate(inputs, op.dimension.value.data)


def _pad(op: shaping.PadOp, x: Array, value: Array) -> Array:
    low, high = op.low.get_values(), op.high.get_values()
    return pad(
        dilate(x, [i + 1 for i in op.interior.get_values()], value), low, high, value
    )


def _device_copy(op: shaping.DeviceCopyOp, x: Array) -> Array:
    return x.copy()


def dilate(x: Array, factors: Sequence[int], value: Array) -> Array:
    """`x` with `factor - 1` values between neighbors along each dimension."""
    shape = [(n - 1) * f + 1 if n else 0 for n, f in zip(x.shape, factors, strict=True)]
    result = np.full(shape, value, x.dtype)
    result[tuple(slice(None, None, f) for f in factors)] = x
    return result


def pad(x: Array, low: Sequence[int], high: Sequence[int], value: Array) -> Array:
    """`x` with padding around it; negative padding removes elements."""
    grown = [(max(lo, 0), max(hi, 0)) for lo, hi in zip(low, high, strict=True)]
    x = np.pad(x, grown, constant_values=value) if x.ndim else x
    cut = (
        slice(max(-lo, 0), size - max(-hi, 0))
        for lo, hi, size in zip(low, high, x.shape, strict=True)
    )
    return x[tuple(cut)]


EVALUATIONS: Mapping[type[TensorOp], Evaluate] = {
    shaping.ConstantOp: _constant,
    shaping.FullLikeOp: _full_like,
    shaping.IotaOp: _iota,
    shaping.ReshapeOp: _reshape,
    shaping.BroadcastInDimOp: _broadcast_in_dim,
    shaping.TransposeOp: _transpose,
    shaping.SliceOp: _slice,
    shaping.ReverseOp: _reverse,
    shaping.ConcatenateOp: _concatenate,
    shaping.PadOp: _pad,
    shaping.DeviceCopyOp: _device_copy,
}
