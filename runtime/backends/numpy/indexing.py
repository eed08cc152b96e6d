"""Kernels of gather and scatter, and of dynamic slices.

Index vectors are read when the call runs. If each selects one row of the operand, a
whole row or a single element, the gather is one `np.take`; otherwise slices are copied
one by one.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

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
from .functions import (
    INDEX,
    Starts,
    combine_elements,
    combine_slices,
    copy_slices,
    put_part,
    take_part,
)
from .reducing import reduction_ufunc


def starts_of(op: GatherOp | ScatterOp, indices: Array) -> Starts:
    numbers = op.dimension_numbers
    if numbers.vector == indices.ndim:
        indices = indices[..., None]
    vectors = np.moveaxis(indices, numbers.vector, -1)
    return Starts(vectors, numbers.indexed, numbers.batching)


def row_numbers(
    at: Starts, limits: Mapping[int, int], shape: Shape, scratch: Scratch
) -> tuple[Array, list[Call]]:
    """Calls that compute the index of the row for each index vector.

    Rows are counted over the dimensions of `shape` along which slices have size 1.
    `limits` has the largest start along each dimension; starts are clamped to it.
    """
    strides = {d: prod(limits[e] + 1 for e in range(d + 1, len(shape))) for d in limits}
    numbers = scratch.take(tuple(at.shape), INDEX)
    entry = scratch.take(tuple(at.shape), INDEX)
    # The part that is known already: dimensions batched with the index vectors.
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


def starts_and_windows(
    op: GatherOp | ScatterOp, indices: Array, slices: Array
) -> tuple[Starts, Array]:
    """The starts of windows, and a view of the slices as windows: with the dimensions
    of the index vectors, then all dimensions of the operand, of which those that slices
    omit have size 1."""
    at, numbers = starts_of(op, indices), op.dimension_numbers
    batch_first = slices.transpose([*numbers.batch(slices.ndim), *numbers.window])
    axes = tuple(len(at.shape) + d for d in sorted(numbers.omitted))
    return at, np.expand_dims(batch_first, axes)


@kernel(GatherOp)
def gather(
    op: GatherOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    operand, indices = inputs
    sizes = op.slice_sizes.get_values()
    at, windows = starts_and_windows(op, indices, outs[0])
    limits = {d: operand.shape[d] - sizes[d] for d in range(operand.ndim)}
    rows = _rows(operand, sizes)
    if rows is not None and windows.flags.c_contiguous:
        result = windows.reshape(prod(at.shape), rows.shape[1])
        numbers, calls = row_numbers(at, limits, operand.shape, scratch)
        # With mode "clip" nothing is buffered; all numbers are in range.
        return [*calls, (rows.take, (numbers.reshape(-1), 0, result, "clip"))]
    return [(copy_slices, (operand, at, limits, sizes, windows))]


def _rows(operand: Array, sizes: Sequence[int]) -> Array | None:
    """The operand as a matrix in which each slice is a row, or None if it is not.

    It is if slices have size 1 in leading dimensions and the full size in the others.
    `np.take` would copy an operand that is not contiguous, so this returns None for it.
    """
    leading = next((d for d, size in enumerate(sizes) if size != 1), len(sizes))
    if operand.shape[leading:] != tuple(sizes[leading:]) or operand.size == 0:
        return None
    if not operand.flags.c_contiguous:
        return None
    width = prod(operand.shape[leading:])
    return operand.reshape(operand.size // width, width)


@kernel(DynamicSliceOp)
def dynamic_slice(
    op: DynamicSliceOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    x, *starts = inputs
    return [(take_part, (x, starts, outs[0]))]


@kernel(DynamicUpdateSliceOp)
def dynamic_update_slice(
    op: DynamicUpdateSliceOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    x, update, *starts = inputs
    return [*copy(outs[0], x), (put_part, (outs[0], starts, update))]


@kernel(ScatterOp)
def scatter(
    op: ScatterOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    operand, indices, updates = inputs
    (out,) = outs
    at, windows = starts_and_windows(op, indices, updates)
    kind = op.kind.data
    combine = None if kind == "replace" else reduction_ufunc(op, kind, out.dtype)
    calls = copy(out, operand)
    flat = try_reshape(out, (out.size,))
    if flat is not None and prod(windows.shape[len(at.shape) :]) == 1:
        # The only element of each window.
        elements = windows[..., *[0] * out.ndim]
        return [*calls, (combine_elements, (flat, out.shape, at, elements, combine))]
    return [*calls, (combine_slices, (out, at, windows, combine))]
