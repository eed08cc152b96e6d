"""Kernels of reductions, and of windows that move over a tensor."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from math import gcd, prod
from typing import TypeAlias

import numpy as np

from ....dialects.dtypes import Array, DType, accumulator, identity
from ....dialects.tgraph.base import Shape, TensorOp
from ....dialects.tgraph.reducing import ReduceOp, ReduceWindowOp, SelectAndScatterOp
from ....dialects.tgraph.windows import Window
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, fill, tiles
from .base import check_types, kernel, ufunc_call
from .forms import keep_where
from .reductions import reduced

UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}

PART = 1 << 16
"""The positions of a window that are processed at a time, where they can be divided."""


def reduction_ufunc(op: TensorOp, kind: str, dtype: DType) -> np.ufunc:
    """The ufunc that combines two elements."""
    if dtype.kind == "b":  # np.add.reduce would count
        kind = {"add": "or", "multiply": "and"}.get(kind, kind)
    function = UFUNCS[kind]
    check_types(op, function, *[dtype] * 3)
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
    calls = reduced(function, x, axes, target, scratch)
    return [*calls, *copy(out, target)]


def spans(
    size: int, places: int, stride: int, offset: int, dilation: int = 1
) -> tuple[slice, slice]:
    """The elements that one element of a window meets along a dimension, over all
    positions of the window.

    At position p, the element meets index `p * stride + offset` of the dimension, in
    which `dilation - 1` holes are between its `size` elements. Returns the slice of the
    positions that meet an element, and the slice of the elements that they meet.
    """
    step = dilation // gcd(stride, dilation)
    for first in range(step):
        if (first * stride + offset) % dilation == 0:
            break
    else:
        return slice(0, 0), slice(0, 0)  # meets only holes
    jump = step * stride // dilation
    at = (first * stride + offset) // dilation
    skipped = max(0, -(at // jump))
    first, at = first + skipped * step, at + skipped * jump
    count = min(-(-(places - first) // step), -(-(size - at) // jump))
    if count <= 0:
        return slice(0, 0), slice(0, 0)
    return (
        slice(first, first + (count - 1) * step + 1, step),
        slice(at, at + (count - 1) * jump + 1, jump),
    )


Offset: TypeAlias = tuple[tuple[slice, ...], tuple[slice, ...]]


def offsets(shape: Shape, places: Shape, window: Window) -> Iterator[Offset]:
    """For each element of the window that meets any element: the positions of the
    window where it does, and the elements that it meets there."""
    for element in product(*(range(dim.size) for dim in window)):
        pairs = [
            spans(
                *(size, count, dim.stride),
                *(k * dim.window_dilation - dim.low, dim.base_dilation),
            )
            for size, count, k, dim in zip(shape, places, element, window, strict=True)
        ]
        if all(met.start < met.stop for _, met in pairs):
            yield tuple(p for p, _ in pairs), tuple(met for _, met in pairs)


def _parts(
    op: ReduceWindowOp | SelectAndScatterOp, shape: Shape
) -> Sequence[tuple[slice, ...]]:
    """Parts of the first dimension, if the window does not extend across its elements.

    All work on one part stays in the cache.
    """
    if len(shape) < 2:
        return [()]
    size, stride, low, high, *_ = op.window(len(shape))[0]
    if size != 1 or stride != 1 or low or high:
        return [()]
    return list(tiles(shape[:1], max(1, PART // prod(shape[1:]))))


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
    if scan := op.scan(x.shape):
        axis, order = scan
        ahead = (slice(None),) * axis + (slice(None, None, order), ...)
        calls = [(function.accumulate, (x[ahead], axis, dtype, target[ahead]))]
        return [*calls, *copy(out, target)]
    calls: list[Call] = []
    dilated = op.base_dilations.get_values()[:1] != (1,)
    for part in [()] if dilated else _parts(op, out.shape):
        places, elements = target[*part, ...], x[*part, ...]
        calls += fill(places, identity(kind, dtype))
        for where, met in offsets(elements.shape, places.shape, op.window(x.ndim)):
            to = places[*where, ...]
            calls.append(ufunc_call(function, to, elements[*met, ...], to))
    return [*calls, *copy(out, target)]


@kernel(SelectAndScatterOp)
def select_and_scatter(
    op: SelectAndScatterOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    """Two passes over the window's elements: number the selected one, then add there.

    Numbers ascend, so the last element that replaced a previous one has the largest. If
    no element is better than the identity, the first one that is met is selected.
    """
    (x, source), (out,) = inputs, outs
    if source.size == 0:
        return fill(out, np.zeros((), out.dtype))
    kind = op.kind.data
    dtype = accumulator(out.dtype)
    target = out if dtype == out.dtype else scratch.take(out.shape, dtype)
    reduction_ufunc(op, kind, x.dtype)  # raises for other types
    stays = np.greater_equal if kind == "maximum" else np.less_equal
    window = op.window(x.ndim)
    small = np.dtype(np.int8 if prod(dim.size for dim in window) < 128 else np.int32)
    parts = _parts(op, source.shape)
    shape = source[*parts[0], ...].shape
    best, number, mask = (
        scratch.take(shape, d) for d in (x.dtype, small, np.dtype(bool))
    )
    numbered, moved = scratch.take(shape, small), scratch.take(shape, x.dtype)
    buffers: dict[DType, Array] = {}

    def temporary(dtype: DType) -> Array:
        if dtype not in buffers:
            buffers[dtype] = scratch.take(shape, dtype)
        return buffers[dtype]

    calls = fill(target, np.zeros((), dtype))
    for part in parts:
        elements, gradient, sums = x[*part, ...], source[*part, ...], target[*part, ...]
        met_at = list(enumerate(offsets(elements.shape, gradient.shape, window)))
        inside = tuple(map(slice, gradient.shape))
        calls += fill(best[*inside, ...], identity(kind, x.dtype))
        calls += fill(number[*inside, ...], np.array(-1, small))
        for n, (where, _) in reversed(met_at):
            calls += fill(number[*where, ...], np.array(n, small))
        for n, (where, met) in met_at:
            candidate, so_far = elements[*met, ...], best[*where, ...]
            is_better, new = mask[*where, ...], numbered[*where, ...]
            at = number[*where, ...]
            calls += [
                (stays, (so_far, candidate, is_better)),
                (np.logical_not, (is_better, is_better)),
                (np.multiply, (is_better.view(np.int8), np.array(n, small), new)),
                ufunc_call(np.maximum, at, new, at),
                (partial(np.copyto, where=is_better), (so_far, candidate)),
            ]
        for n, (where, met) in met_at:
            is_selected, moving = mask[*where, ...], moved[*where, ...]
            to = sums[*met, ...]
            calls += [
                (np.equal, (number[*where, ...], np.array(n, small), is_selected)),
                *keep_where(
                    is_selected,
                    gradient[*where, ...],
                    moving,
                    lambda d, where=where: temporary(d)[*where, ...],
                ),
                (np.add, (to, moving, to)),
            ]
    return [*calls, *copy(out, target)]
