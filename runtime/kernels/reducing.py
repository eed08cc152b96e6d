"""Kernels of reductions, and of windows that move over a tensor."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.reducing import (
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from tensorplan.runtime.dtypes import Array, DType, accumulator, identity
from tensorplan.runtime.kernels.base import (
    Call,
    check_types,
    copy,
    fill,
    kernel,
    try_reshape,
    ufunc_call,
)
from tensorplan.runtime.pool import Scratch

UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}

BLOCK = 128
"""Rows that are added one to the next; more are added up in blocks."""


def reduction_ufunc(op: TensorOp, kind: str, dtype: DType) -> np.ufunc:
    """The ufunc that combines two elements."""
    if dtype == bool:  # np.add.reduce would count
        kind = {"add": "or", "multiply": "and"}.get(kind, kind)
    function = UFUNCS[kind]
    check_types(op, function, *(np.empty((), dtype) for _ in range(3)))
    return function


def accumulated(kind: str, dtype: DType) -> DType:
    """The type in which elements of `dtype` are combined."""
    return accumulator(dtype) if kind in ("add", "multiply") else dtype


@kernel(ReduceOp)
def reduce(
    op: ReduceOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    (x,), (out,) = inputs, outs
    kind, axes = op.kind.data, tuple(op.dimensions.get_values())
    if x.size == 0:
        return fill(out, identity(kind, out.dtype))
    if all(x.shape[d] == 1 for d in axes):
        return copy(out, x.squeeze(axes))
    function = reduction_ufunc(op, kind, x.dtype)
    dtype = accumulated(kind, x.dtype)
    target = out if dtype == out.dtype else scratch.take(out.shape, dtype)
    calls = _sum_of_rows(x, axes, target, scratch) if function is np.add else []
    if not calls:
        calls = [(function.reduce, (x, axes, dtype, target))]
    return [*calls, *copy(out, target)]


def _sum_of_rows(
    x: Array, axes: Sequence[int], out: Array, scratch: Scratch
) -> list[Call]:
    """Calls for sums over many leading dimensions, or none if it is not that.

    NumPy sums pairwise along a contiguous dimension only; leading dimensions it adds one
    row to the next, and the rounding errors with them. So rows are added up in blocks.
    """
    rows = prod(x.shape[: len(axes)])
    if tuple(sorted(axes)) != tuple(range(len(axes))) or len(axes) == x.ndim:
        return []
    blocks = rows // BLOCK
    matrix = try_reshape(x, (rows, *x.shape[len(axes) :]))
    if matrix is None or blocks < 2:
        return []
    whole = blocks * BLOCK
    kept = x.shape[len(axes) :]
    blocked = try_reshape(matrix[:whole], (blocks, BLOCK, *kept))
    if blocked is None:
        return []
    partial = scratch.take((blocks + (rows > whole), *kept), out.dtype)
    calls: list[Call] = [(np.add.reduce, (blocked, 1, out.dtype, partial[:blocks]))]
    if rows > whole:
        rest = matrix[whole:]
        calls.append((np.add.reduce, (rest, 0, out.dtype, partial[blocks])))
    return [*calls, (np.add.reduce, (partial, 0, out.dtype, out))]


def spans(
    size: int, places: int, stride: int, offset: int, dilation: int = 1
) -> tuple[slice, slice]:
    """Where one element of a window meets a dimension, over all places of the window.

    Place p meets position `p * stride + offset` of the dimension with `dilation - 1`
    holes between its `size` elements. Returns the slice of the places that meet an
    element, and the slice of the elements that they meet.
    """
    first = 0
    while first < min(places, dilation) and (first * stride + offset) % dilation:
        first += 1
    if first == min(places, dilation):
        return slice(0, 0), slice(0, 0)
    # Every `step`-th place from `first` on meets an element or the outside.
    step = next(s for s in range(1, dilation + 1) if s * stride % dilation == 0)
    jump = step * stride // dilation
    at = (first * stride + offset) // dilation
    if at < 0:
        skipped = -(at // jump)
        first, at = first + skipped * step, at + skipped * jump
    count = min((places - first - 1) // step, (size - 1 - at) // jump) + 1
    if count <= 0:
        return slice(0, 0), slice(0, 0)
    return (
        slice(first, first + (count - 1) * step + 1, step),
        slice(at, at + (count - 1) * jump + 1, jump),
    )


def _batches(
    window: Sequence[int], shape: Sequence[int], size: int
) -> Iterator[slice]:
    """Parts of the first dimension that a window does not reach across: for the cache."""
    if not shape or window[0] != 1:
        yield slice(None)
        return
    step = max(1, 65536 * shape[0] // max(size, 1))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


@kernel(ReduceWindowOp)
def reduce_window(
    op: ReduceWindowOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    (x,), (out,) = inputs, outs
    kind = op.kind.data
    function = reduction_ufunc(op, kind, x.dtype)
    dtype = accumulated(kind, x.dtype)
    target = out if dtype == out.dtype else scratch.take(out.shape, dtype)
    window = op.window_dimensions.get_values()
    strides = op.window_strides.get_values()
    low = op.padding_low.get_values()
    base_dilations = op.base_dilations.get_values()
    window_dilations = op.window_dilations.get_values()
    calls = fill(target, identity(kind, dtype))
    for offset in np.ndindex(*window):
        pairs = [
            spans(x.shape[d], out.shape[d], strides[d], k * window_dilations[d] - low[d],
                  base_dilations[d])
            for d, k in enumerate(offset)
        ]
        part = target[*(places for places, _ in pairs), ...]
        met = x[*(elements for _, elements in pairs), ...]
        if part.size:
            calls.append(ufunc_call(function, part, met, part))
    return [*calls, *copy(out, target)]


@kernel(SelectAndScatterOp)
def select_and_scatter(
    op: SelectAndScatterOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    """Two rounds over the window's elements: which is selected; then add there."""
    (x, source), (out,) = inputs, outs
    kind = op.kind.data
    dtype = accumulator(out.dtype)
    target = out if dtype == out.dtype else scratch.take(out.shape, dtype)
    better = np.greater if kind == "maximum" else np.less
    window = op.window_dimensions.get_values()
    strides, low = op.window_strides.get_values(), op.padding_low.get_values()
    check_types(op, UFUNCS[kind], x, x, x)
    calls = fill(target, np.zeros((), dtype))
    parts = list(_batches(window, x.shape, source.size))
    if low and (low[0] or strides[0] != 1):
        parts = [slice(None)]
    shape = (source[parts[0]].shape if source.ndim else ())
    buffers = (
        scratch.take(shape, x.dtype),
        scratch.take(shape, np.dtype(np.int32)),
        scratch.take(shape, np.dtype(bool)),
        scratch.take(shape, dtype),
    )
    for part in parts:
        x_part, source_part, out_part = (
            a[part] if a.ndim else a for a in (x, source, target)
        )
        best, selected, mask, moved = (
            b[: len(source_part)] if b.ndim else b for b in buffers
        )
        calls += fill(selected, np.array(-1, np.int32))
        offsets: list[tuple[int, tuple[slice, ...], tuple[slice, ...]]] = []
        for number, offset in enumerate(np.ndindex(*window)):
            pairs = [
                spans(x_part.shape[d], source_part.shape[d], strides[d], k - low[d])
                for d, k in enumerate(offset)
            ]
            places = tuple(p for p, _ in pairs)
            elements = tuple(e for _, e in pairs)
            if x_part[*elements, ...].size:
                offsets.append((number, places, elements))
        for number, places, elements in offsets:
            met, best_there = x_part[*elements, ...], best[*places, ...]
            chosen, there = mask[*places, ...], selected[*places, ...]
            calls += [
                # The first element that a place meets is always taken.
                (better, (met, best_there, chosen)),
                *_or_unselected(there, chosen, moved[*places, ...]),
                (np.copyto, (best_there, met, "no", chosen)),
                (np.copyto, (there, np.array(number, np.int32), "no", chosen)),
            ]
        for number, places, elements in offsets:
            there, moving = selected[*places, ...], moved[*places, ...]
            into = out_part[*elements, ...]
            chosen = mask[*places, ...]
            calls += [
                (np.equal, (there, np.array(number, np.int32), chosen)),
                *fill(moving, np.zeros((), dtype)),
                (np.copyto, (moving, source_part[*places, ...], "safe", chosen)),
                (np.add, (into, moving, into)),
            ]
    return [*calls, *copy(out, target)]


def _or_unselected(selected: Array, chosen: Array, spare: Array) -> list[Call]:
    raise NotImplementedError
