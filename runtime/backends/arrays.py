"""Views of arrays, and the calls that copy where there is no view."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

import numpy as np

from ...dialects.dtypes import Array, DType, numpy_dtype
from ...dialects.strides import reshaped_strides
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import Shape, TensorOp
from ...dialects.tgraph.bodies import ElementsOp
from ...support.arrays import strided
from ..calls import Call
from ..pool import Scratch


def same_memory(x: Array, y: Array) -> bool:
    """Whether two arrays have the same elements in the same order."""
    return (
        x.__array_interface__["data"][0] == y.__array_interface__["data"][0]
        and x.shape == y.shape
        and x.strides == y.strides
    )


def copy(out: Array, x: Array) -> list[Call]:
    """`out[...] = x`, converting elements if their types differ."""
    if out.dtype == x.dtype and same_memory(out, x):
        return []
    if out.dtype == x.dtype and out.size:
        return [(np.copyto, (out, x))]  # see `with_native_copies`
    return [(out.__setitem__, (..., x))]


def surround(out: Array, inside: Sequence[slice], value: Array) -> list[Call]:
    """Sets the elements of `out` outside of the box `inside` to the rank-0 array
    `value`."""
    calls: list[Call] = []
    for dim, part in enumerate(inside):
        start, stop, _ = part.indices(out.shape[dim])
        around = (slice(None),) * dim
        for side in (slice(0, start), slice(stop, None)):
            edge = out[*around, side]
            if edge.size:
                calls += copy(edge, np.broadcast_to(value, edge.shape))
    return calls


def fill(out: Array, value: Array) -> list[Call]:
    """Sets all elements of `out` to the current value of the rank-0 array `value`."""
    return [(out.fill, (value.item() if value.dtype.kind in "biuf" else value[()],))]


def try_reshape(x: Array, shape: Shape) -> Array | None:
    """A view of `x` with another shape, or None if there is none."""
    if x.size == 0:
        return x.reshape(shape)
    strides = reshaped_strides(x.shape, x.strides, shape)
    if strides is None:
        return None
    return strided(x, shape, strides)


def reshaped(x: Array, shape: Shape, scratch: Scratch) -> tuple[Array, list[Call]]:
    """`x` with another shape: a view, or a copy that the returned calls make."""
    view = try_reshape(x, shape)
    if view is not None:
        return view, []
    buffer = scratch.take(x.shape, x.dtype)
    return buffer.reshape(shape), copy(buffer, x)


def alike(x: Array, dtype: DType, scratch: Scratch) -> Array:
    """Scratch memory with the shape and dimension order of `x`, without gaps."""
    order = sorted(range(x.ndim), key=lambda d: -abs(x.strides[d]))
    buffer = scratch.take(tuple(x.shape[d] for d in order), dtype)
    return buffer.transpose([order.index(d) for d in range(x.ndim)])


def tiles(shape: Shape, limit: int) -> Iterator[tuple[slice, ...]]:
    """Divides an iteration space along its leading dimensions into parts of similar
    size.

    Each part has at most `limit` elements, or one if `limit` is smaller, and is given
    as one slice for each dimension. Only one dimension is divided into ranges: the
    parts have size 1 in the dimensions before it, and the full size in those after it.
    """
    if 0 in shape:
        return
    if not shape:
        yield ()
        return
    axis = 0
    while prod(shape[axis + 1 :]) > limit and axis < len(shape) - 1:
        axis += 1
    inner = prod(shape[axis + 1 :])
    parts = -(-shape[axis] // max(1, limit // inner))
    step = -(-shape[axis] // parts)
    rest = tuple(slice(0, size) for size in shape[axis + 1 :])
    for outer in np.ndindex(*shape[:axis]):
        before = tuple(slice(i, i + 1) for i in cast(tuple[int, ...], outer))
        for start in range(0, shape[axis], step):
            yield (*before, slice(start, min(start + step, shape[axis])), *rest)


def iota(op: shaping.IotaOp, shape: Shape, dtype: DType) -> Array:
    """The result of `op` as a view that repeats one row of numbers."""
    dim = op.dimension.value.data
    row = np.arange(shape[dim]).astype(dtype)
    return broadcast_in_dim(row, (dim,), shape)


def with_positions(op: ElementsOp, inputs: Sequence[Array]) -> list[Array]:
    """The tensors whose elements the region of `op` takes, followed by its other
    inputs. Positions (`iota`), which are not inputs, become views that repeat one row
    of numbers."""

    def made(places: shaping.IotaOp) -> Array:
        dtype = numpy_dtype(places.declared[0].element_type, op)
        return iota(places, inputs[0].shape, dtype)

    return op.completed(inputs, made)


def broadcast_in_dim(x: Array, dims: Sequence[int], shape: Sequence[int]) -> Array:
    """A view that repeats `x` over `shape`; dimension d of `x` becomes `dims[d]`."""
    strides = [0] * len(shape)
    for size, stride, dim in zip(x.shape, x.strides, dims, strict=True):
        strides[dim] = stride if size > 1 else 0
    return strided(x, shape, strides, writeable=False)


def viewed(op: TensorOp, x: Array, shape: Shape) -> Array | None:
    """The result of `op` as a view of its operand `x`; None if there is none."""
    match op:
        case shaping.DeviceCopyOp():
            return x
        case shaping.ReshapeOp():
            return try_reshape(x, shape)
        case shaping.BroadcastInDimOp():
            return broadcast_in_dim(x, op.broadcast_dimensions.get_values(), shape)
        case shaping.TransposeOp():
            return x.transpose(op.permutation.get_values())
        case shaping.SliceOp():
            bounds = op.start_indices, op.limit_indices, op.strides
            return x[*map(slice, *(b.get_values() for b in bounds)), ...]
        case shaping.ReverseOp():
            return np.flip(x, op.dimensions.get_values())
        case _:
            return None
