"""Reductions, products, convolutions and windows."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...dtypes import Array, accumulator, identity, is_float
from .. import reducing
from ..base import TensorOp
from .results import Evaluate, result_dtype
from .shaping import dilate, pad

_REDUCE: Mapping[str, Callable[..., Array]] = {
    "add": np.sum,
    "multiply": np.prod,
    "maximum": np.max,
    "minimum": np.min,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
}


def _reduced(kind: str, x: Array, axes: Sequence[int]) -> Array:
    """Reduces; sums and products of floats are accumulated in f64."""
    if x.dtype.kind == "b":
        kind = {"add": "or", "multiply": "and"}.get(kind, kind)
    if kind not in ("add", "multiply"):
        return _REDUCE[kind](x, axis=tuple(axes), initial=identity(kind, x.dtype))
    dtype = np.float64 if is_float(x.dtype) else x.dtype
    return np.asarray(_REDUCE[kind](x, axis=tuple(axes), dtype=dtype)).astype(x.dtype)


def _reduce(op: reducing.ReduceOp, x: Array) -> Array:
    return _reduced(op.kind.data, x, op.dimensions.get_values())


def _dot_general(op: reducing.DotGeneralOp, x: Array, y: Array) -> Array:
    (x_batch, y_batch), (x_sum, y_sum) = op.batching, op.contracting
    x_axes = list(range(x.ndim))
    y_axes = list(range(x.ndim, x.ndim + y.ndim))
    for d, e in zip((*x_batch, *x_sum), (*y_batch, *y_sum), strict=True):
        y_axes[e] = x_axes[d]
    batch = [x_axes[d] for d in x_batch]
    x_free = [a for a in x_axes if a not in y_axes]
    y_free = [a for a in y_axes if a not in x_axes]
    dtype = accumulator(result_dtype(op))
    operands = (x.astype(dtype), x_axes, y.astype(dtype), y_axes)
    result = np.einsum(*operands, [*batch, *x_free, *y_free], optimize=True)
    return np.asarray(result, dtype).astype(result_dtype(op))


def _convolution(op: reducing.ConvolutionOp, image: Array, kernel: Array) -> Array:
    dtype = accumulator(result_dtype(op))
    image_labels, kernel_labels, result_labels = op.labels
    spatial = [str(d) for d in range(len(image_labels) - 2)]
    x = _by_labels(image, image_labels, ["b", "f", *spatial]).astype(dtype)
    w = _by_labels(kernel, kernel_labels, ["o", "i", *spatial]).astype(dtype)
    zero = np.zeros((), dtype)
    x = dilate(x, [1, 1, *op.lhs_dilation.get_values()], zero)
    low, high = op.padding_low.get_values(), op.padding_high.get_values()
    x = pad(x, [0, 0, *low], [0, 0, *high], zero)
    strides, dilations = op.window_strides.get_values(), op.rhs_dilation.get_values()
    places = _windows(x, [1, 1, *w.shape[2:]], [1, 1, *strides], [1, 1, *dilations])
    rank = len(spatial)
    places = places.reshape(*x.shape[:2], *places.shape[2 : 2 + rank], *w.shape[2:])
    # Now places has the axes: batch, feature, spatial places, spatial offsets.
    features = op.feature_group_count.value.data
    batches = op.batch_group_count.value.data
    groups = max(features, batches)
    axis = 1 if features > 1 else 0
    over = [1, *range(2 + rank, 2 + 2 * rank)]
    parts = [
        np.tensordot(p, k, (over, [1, *range(2, 2 + rank)]))
        for p, k in zip(
            np.split(places, groups, axis), np.split(w, groups, 0), strict=True
        )
    ]
    result = np.concatenate(parts, -1)  # axes: batch, spatial, feature
    order = ["b", *spatial, "f"]
    result = result.transpose([order.index(n) for n in result_labels])
    return result.astype(result_dtype(op))


def _by_labels(x: Array, labels: str, order: Sequence[str]) -> Array:
    return x.transpose([labels.index(label) for label in order])


def _windows(
    x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """The elements of each window: axes are the positions, then the offsets in it."""
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    if any(r > size for r, size in zip(reach, x.shape, strict=True)):
        places = [
            max(0, (size - r) // s + 1)
            for r, size, s in zip(reach, x.shape, strides, strict=True)
        ]
        return np.zeros((*places, *window), x.dtype)
    seen = np.lib.stride_tricks.sliding_window_view(x, reach)
    steps = (slice(None, None, step) for step in (*strides, *dilations))
    return seen[tuple(steps)]


def _reduce_window(op: reducing.ReduceWindowOp, x: Array) -> Array:
    kind = op.kind.data
    nothing = identity(kind, x.dtype)
    dilated = dilate(x, op.base_dilations.get_values(), nothing)
    padded = pad(
        dilated, op.padding_low.get_values(), op.padding_high.get_values(), nothing
    )
    places = _windows(
        padded,
        op.window_dimensions.get_values(),
        op.window_strides.get_values(),
        op.window_dilations.get_values(),
    )
    return _reduced(kind, places, range(x.ndim, 2 * x.ndim))


def _select_and_scatter(
    op: reducing.SelectAndScatterOp, x: Array, source: Array
) -> Array:
    if source.size == 0:
        return np.zeros_like(x)
    low, high = op.padding_low.get_values(), op.padding_high.get_values()
    window = op.window_dimensions.get_values()
    strides, ones = op.window_strides.get_values(), (1,) * x.ndim

    def places(array: Array, padding: int) -> Array:
        padded = pad(array, low, high, np.array(padding).astype(array.dtype))
        return _windows(padded, window, strides, ones).reshape(source.size, -1)

    values = places(x, 0)
    positions = places(np.reshape(np.arange(x.size), x.shape), -1)
    kind = op.kind.data
    stays = np.greater_equal if kind == "maximum" else np.less_equal
    selected, best = positions[:, 0], values[:, 0]
    for at, value in zip(positions.T, values.T, strict=True):
        taken = (at >= 0) & ((selected < 0) | ~stays(best, value))
        selected, best = np.where(taken, at, selected), np.where(taken, value, best)
    result: Array = np.zeros(x.size, accumulator(x.dtype))
    np.add.at(result, selected[selected >= 0], source.ravel()[selected >= 0])
    return result.reshape(x.shape).astype(x.dtype)


EVALUATIONS: Mapping[type[TensorOp], Evaluate] = {
    reducing.ReduceOp: _reduce,
    reducing.DotGeneralOp: _dot_general,
    reducing.ConvolutionOp: _convolution,
    reducing.ReduceWindowOp: _reduce_window,
    reducing.SelectAndScatterOp: _select_and_scatter,
}
