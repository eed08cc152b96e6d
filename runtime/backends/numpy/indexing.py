"""Kernels of gather and scatter, and of dynamic slices.

Index vectors are read when the call runs. If each names one row of the operand, a whole
row or a single element, all are one `np.take`; otherwise slices are copied one by one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase

from ....dialects.dtypes import Array
from ....dialects.tgraph.base import Shape
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
)
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, try_reshape
from .base import kernel
from .reducing import reduction_ufunc

INDEX = np.dtype(np.intp)


@dataclass(frozen=True)
class Starts:
    """Where in the operand the slices start that index vectors name.

    `vectors` is the index vectors' dimensions, then their entries, which are along the
    operand's dimensions `dims`. `batching` gives, for operand dimensions that run along
    with the index vectors, the dimension of `vectors`.
    """

    vectors: Array
    dims: Sequence[int]
    batching: Mapping[int, int]

    @property
    def shape(self) -> Sequence[int]:
        return self.vectors.shape[:-1]

    @property
    def entries(self) -> Sequence[Array]:
        """Of all index vectors, for each of `dims`."""
        return [self.vectors[..., position] for position in range(len(self.dims))]


def starts(
    indices: Array,
    vector_dim: int,
    dims: Sequence[int],
    operand_batching: Sequence[int],
    indices_batching: Sequence[int],
) -> Starts:
    if vector_dim == indices.ndim:
        indices = indices[..., None]
    batching = {
        dim: other - (other > vector_dim)
        for dim, other in zip(operand_batching, indices_batching, strict=True)
    }
    return Starts(np.moveaxis(indices, vector_dim, -1), dims, batching)


def row_numbers(
    at: Starts, limits: Mapping[int, int], shape: Shape, scratch: Scratch
) -> tuple[Array, list[Call]]:
    """Calls that compute, for each index vector, the number of its row.

    Rows are counted over the dimensions of `shape` along which slices have size 1.
    `limits` are the largest starts along its dimensions; starts are clamped to them.
    """
    strides = {d: prod(limits[e] + 1 for e in range(d + 1, len(shape))) for d in limits}
    numbers = scratch.take(tuple(at.shape), INDEX)
    entry = scratch.take(tuple(at.shape), INDEX)
    # What is known already: dimensions that run along with the index vectors.
    known = np.zeros((1,) * len(at.shape), INDEX)
    for dim, other in at.batching.items():
        along = [1] * len(at.shape)
        along[other] = -1
        known = known + np.arange(shape[dim]).reshape(along) * strides[dim]
    calls = copy(numbers, np.broadcast_to(known, numbers.shape))
    zero = np.zeros((), INDEX)
    for dim, source in zip(at.dims, at.entries, strict=True):
        limit, stride = (np.array(n[dim], INDEX) for n in (limits, strides))
        calls += [
            *copy(entry, source),
            (np.clip, (entry, zero, limit, entry)),
            (np.multiply, (entry, stride, entry)),
            (np.add, (numbers, entry, numbers)),
        ]
    return numbers, calls


def batch_first(x: Array, window_dims: Sequence[int]) -> Array:
    """A view with the dimensions that run over index vectors before the window's."""
    batch = [d for d in range(x.ndim) if d not in window_dims]
    return x.transpose([*batch, *window_dims])


def _windows(
    x: Array, at: Starts, window_dims: Sequence[int], *dropped: DenseArrayBase[Any]
) -> Array:
    """A view with the dimensions that run over index vectors, then all the operand's:
    the dropped ones have size 1."""
    missing = sorted(d for dims in dropped for d in dims.get_values())
    axes = tuple(len(at.shape) + d for d in missing)
    return np.expand_dims(batch_first(x, window_dims), axes)


def gather_windows(op: GatherOp, indices: Array, out: Array) -> tuple[Starts, Array]:
    """Where windows start, and a view of the result as windows."""
    at = starts(
        indices,
        op.index_vector_dim.value.data,
        op.start_index_map.get_values(),
        op.operand_batching_dims.get_values(),
        op.start_indices_batching_dims.get_values(),
    )
    dropped = op.collapsed_slice_dims, op.operand_batching_dims
    return at, _windows(out, at, op.offset_dims.get_values(), *dropped)


@kernel(GatherOp)
def gather(
    op: GatherOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    operand, indices = inputs
    sizes = op.slice_sizes.get_values()
    at, windows = gather_windows(op, indices, outs[0])
    limits = {d: operand.shape[d] - sizes[d] for d in range(operand.ndim)}
    rows = _rows(operand, sizes)
    if rows is not None and windows.flags.c_contiguous:
        result = windows.reshape(prod(at.shape), rows.shape[1])
        numbers, calls = row_numbers(at, limits, operand.shape, scratch)
        # With mode "clip" nothing is buffered; all numbers are in range.
        return [*calls, (rows.take, (numbers.reshape(-1), 0, result, "clip"))]
    return [(_copy_slices, (operand, at, limits, sizes, windows))]


def _rows(operand: Array, sizes: Sequence[int]) -> Array | None:
    """The operand as a matrix of which each slice is a row, if slices are that.

    They are if they are single elements of leading dimensions and the whole of the
    others. (`np.take` would copy an operand that is not contiguous.)
    """
    leading = next((d for d, size in enumerate(sizes) if size != 1), len(sizes))
    if operand.shape[leading:] != tuple(sizes[leading:]) or operand.size == 0:
        return None
    if not operand.flags.c_contiguous:
        return None
    width = prod(operand.shape[leading:])
    return operand.reshape(operand.size // width, width)


def _start(at: Starts, place: tuple[int, ...], rank: int) -> list[int]:
    start = [0] * rank
    for dim, other in at.batching.items():
        start[dim] = place[other]
    for dim, index in zip(at.dims, at.vectors[place].tolist(), strict=True):
        start[dim] = index
    return start


def _copy_slices(
    operand: Array,
    at: Starts,
    limits: Mapping[int, int],
    sizes: Sequence[int],
    out: Array,
) -> None:
    for place in np.ndindex(*at.shape):
        start = _start(at, place, operand.ndim)
        clamped = [min(max(index, 0), limits[d]) for d, index in enumerate(start)]
        window = tuple(slice(a, a + n) for a, n in zip(clamped, sizes, strict=True))
        out[place] = operand[window]


def _part(starts: Sequence[Array], whole: Array, sizes: Shape) -> tuple[slice, ...]:
    """Where a part of an array lies that is to start there."""
    parts: list[slice] = []
    for start, size, width in zip(starts, whole.shape, sizes, strict=True):
        first = min(max(int(start), 0), size - width)
        parts.append(slice(first, first + width))
    return tuple(parts)


@kernel(DynamicSliceOp)
def dynamic_slice(
    op: DynamicSliceOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    x, *starts = inputs
    return [(_take_part, (x, starts, outs[0]))]


def _take_part(x: Array, starts: Sequence[Array], out: Array) -> None:
    out[...] = x[_part(starts, x, out.shape)]


@kernel(DynamicUpdateSliceOp)
def dynamic_update_slice(
    op: DynamicUpdateSliceOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    x, update, *starts = inputs
    return [*copy(outs[0], x), (_put_part, (outs[0], starts, update))]


def _put_part(out: Array, starts: Sequence[Array], update: Array) -> None:
    out[_part(starts, out, update.shape)] = update


def scatter_windows(
    op: ScatterOp, indices: Array, updates: Array
) -> tuple[Starts, Array]:
    """Where windows start, and a view of the updates as windows."""
    at = starts(
        indices,
        op.index_vector_dim.value.data,
        op.scatter_dims_to_operand_dims.get_values(),
        op.input_batching_dims.get_values(),
        op.scatter_indices_batching_dims.get_values(),
    )
    dropped = op.inserted_window_dims, op.input_batching_dims
    return at, _windows(updates, at, op.update_window_dims.get_values(), *dropped)


@kernel(ScatterOp)
def scatter(
    op: ScatterOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    operand, indices, updates = inputs
    (out,) = outs
    at, windows = scatter_windows(op, indices, updates)
    kind = op.kind.data
    combine = None if kind == "replace" else reduction_ufunc(op, kind, out.dtype)
    calls = copy(out, operand)
    flat = try_reshape(out, (out.size,))
    if flat is not None and prod(windows.shape[len(at.shape) :]) == 1:
        # The only element of each window.
        elements = windows[..., *[0] * out.ndim]
        return [*calls, (_combine_elements, (flat, out.shape, at, elements, combine))]
    return [*calls, (_combine_slices, (out, at, windows, combine))]


def _combine_elements(
    flat: Array, shape: Shape, at: Starts, updates: Array, combine: np.ufunc | None
) -> None:
    """Allocates a few arrays of one number for each index vector."""
    numbers = np.zeros(at.shape, INDEX)
    is_inside = np.ones(at.shape, bool)
    for dim, other in at.batching.items():
        along = [1] * len(at.shape)
        along[other] = -1
        rows = np.arange(at.shape[other]) * prod(shape[dim + 1 :])
        numbers += rows.reshape(along)
    for dim, source in zip(at.dims, at.entries, strict=True):
        entry = source.astype(INDEX)
        is_inside &= (entry >= 0) & (entry < shape[dim])
        numbers += entry * prod(shape[dim + 1 :])
    kept, new = numbers[is_inside], updates[is_inside]
    if combine is None:
        flat[kept] = new
    else:
        combine.at(flat, kept, new)


def _combine_slices(
    out: Array, at: Starts, updates: Array, combine: np.ufunc | None
) -> None:
    sizes = updates.shape[len(at.shape) :]
    limits = [size - n for size, n in zip(out.shape, sizes, strict=True)]
    for place in np.ndindex(*at.shape):
        start = _start(at, place, out.ndim)
        if any(not 0 <= a <= limit for a, limit in zip(start, limits, strict=True)):
            continue
        window = out[*(slice(a, a + n) for a, n in zip(start, sizes, strict=True)), ...]
        if combine is None:
            window[...] = updates[place]
        else:
            combine(window, updates[place], out=window)
