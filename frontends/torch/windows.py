"""Converts ATen's pooling, interpolation and grid sampling to tgraph."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.sizes.dims import is_dynamic
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.shaping import ConcatenateOp
from ..builder import shape_of
from ..formulas import index_of
from ..indices import take_along
from ..sampling import GridSampling, grid_sample
from ..unsupported import Unsupported
from ..windows import (
    SpatialWindow,
    argmax_in_windows,
    average,
    cubic,
    interpolate,
    kernel_weights,
    linear,
    linear_weights,
    reduce_window,
    rounded_up,
    take_places,
)
from .call import AtenCall, Conversion, Results


def _images(c: AtenCall, rank: int) -> SSAValue:
    """The input, with a batch of 1 if it has no batch dimension."""
    x = c["self"]
    return x if len(shape_of(x)) == rank + 2 else c.reshape(x, [1, *shape_of(x)])


def _window(c: AtenCall, rank: int) -> SpatialWindow:
    def each(name: str, default: Sequence[int]) -> Sequence[int]:
        values = c.get(name) or default
        values = [values] if isinstance(values, int) else values
        return list(values) * rank if len(values) == 1 else values

    size = each("kernel_size", ())
    pads = each("padding", [0])
    window = SpatialWindow(
        size, each("stride", size), each("dilation", [1]), pads, pads
    )
    if c["ceil_mode"]:
        return rounded_up(window, shape_of(c["self"])[-rank:])
    return window


def _max_pool(rank: int, c: AtenCall) -> Results:
    return _largest(c, _images(c, rank), _window(c, rank))


def _max_pool_backward(c: AtenCall) -> SSAValue:
    return c.gradient(partial(_max_pool, len(c["kernel_size"])), "self")[0]


def _average_pool(rank: int, c: AtenCall) -> SSAValue:
    window, divisor = _window(c, rank), c.get("divisor_override")
    if divisor is not None:
        total = reduce_window(c, "add", _images(c, rank), window)
        return c.reshape(c.apply(e.DivideOp, total, divisor), c.shape)
    pads = [*window.low, *window.low] if c["count_include_pad"] else [0] * 2 * rank
    return c.reshape(average(c, _images(c, rank), window, pads), c.shape)


def _adaptive_average_pool(rank: int, c: AtenCall) -> SSAValue:
    """Along each axis, the means of `after` parts of the `before` elements. Part `k`
    starts at floor(k * before / after)."""
    x = c["self"]
    for axis in range(len(c.shape) - rank, len(c.shape)):
        parts = _parts(shape_of(x)[axis], c.shape[axis])
        x = interpolate(c, x, axis, parts / parts.sum(1, keepdims=True))
    return x


def _backward(forward: Conversion, *wrt: str) -> Conversion:
    """The conversion of the gradient of `forward` with respect to the arguments `wrt`,
    or with respect to the input if there are none."""

    def convert(c: AtenCall) -> Results:
        found = c.gradient(forward, *(wrt or ("self",)))
        return found if wrt else found[0]

    return convert


def _parts(before: int, after: int) -> Array:
    """A boolean matrix of parts x elements: whether each part contains each element."""
    k, place = np.arange(after)[:, None], np.arange(before)
    starts, ends = k * before // after, -(-(k + 1) * before // after)
    return (place >= starts) & (place < ends)


def _adaptive_max_pool(rank: int, c: AtenCall) -> Results:
    """The largest element of each part, as in `_adaptive_average_pool`, and its index
    in the image."""
    x = c["self"]
    first = len(c.shape) - rank
    sizes, after = shape_of(x)[first:], c.shape[first:]
    if all(size % count == 0 for size, count in zip(sizes, after, strict=True)):
        size = [n // count for n, count in zip(sizes, after, strict=True)]
        none = [0] * rank
        window = SpatialWindow(size, size, [1] * rank, none, none)
        return _largest(c, _images(c, rank), window)
    numbers = None
    if 1 in c.used:
        flat = c.constant(np.arange(prod(sizes)).reshape([1] * first + [*sizes]))
        numbers = c.broadcast(flat, shape_of(x))
    for axis in reversed(range(first, first + rank)):
        parts = _parts(shape_of(x)[axis], c.shape[axis])
        shape = list(shape_of(x))
        wide = [*shape[:axis], 1, *shape[axis:]]
        rest = [1] * (len(shape) - axis - 1)
        inside = c.constant(parts.reshape(*parts.shape, *rest))
        kept = c.apply(e.SelectOp, inside, c.reshape(x, wide), float("-inf"))
        x = c.reduce("maximum", kept, [axis + 1])
        if numbers is not None:
            best = index_of(c, "maximum", kept, axis + 1)
            numbers = take_along(c, numbers, best, axis)
    return [x, numbers]


def _largest(c: AtenCall, images: SSAValue, window: SpatialWindow) -> Results:
    """The largest element of each window, and its index if that result has uses."""
    x = c.reshape(reduce_window(c, "maximum", images, window), c.shape)
    if 1 not in c.used:
        return [x, None]
    return [x, c.reshape(argmax_in_windows(c, images, window), c.shape)]


Along = Callable[[AtenCall, SSAValue, int, float], SSAValue]
"""Interpolates along an axis to the size of the result. The last parameter is the
distance between new elements, in elements of the input."""


def _upsampled(along: Along) -> Conversion:
    """The conversion of an interpolation in two dimensions."""

    def convert(c: AtenCall) -> SSAValue:
        x, factors = c["input"], c["scale_factors"]
        for index in range(2):
            axis = len(c.shape) - 2 + index
            before, after = shape_of(x)[axis], c.shape[axis]
            step = 1 / factors[index] if factors else before / after
            if before != after or step != 1:
                x = along(c, x, axis, step)
        return x

    return convert


def _nearest(c: AtenCall, x: SSAValue, axis: int, step: float) -> SSAValue:
    places = np.floor(np.arange(c.shape[axis]) * step).astype(int)
    return take_places(c, x, axis, np.minimum(places, shape_of(x)[axis] - 1))


def _linear(c: AtenCall, x: SSAValue, axis: int, step: float) -> SSAValue:
    before, after = shape_of(x)[axis], c.shape[axis]
    places = (np.arange(after) + 0.5) * step - 0.5
    if c["align_corners"]:
        places = np.arange(after) * ((before - 1) / max(after - 1, 1))
    return interpolate(c, x, axis, linear_weights(before, places))


def _smoothed(kernel: Callable[[Array], Array], reach: int, c: AtenCall) -> SSAValue:
    """Resizes images by a kernel. When shrinking, the kernel is widened to the distance
    between new elements (`antialias`)."""
    x = c["self"]
    for axis, weights in _smooth_weights(c, kernel, reach, shape_of(x), c.shape):
        x = interpolate(c, x, axis, weights)
    return x


def _smoothed_backward(
    kernel: Callable[[Array], Array], reach: int, c: AtenCall
) -> SSAValue:
    """Resizing is linear, so its gradient is the product with transposed weights."""
    x = c["grad_output"]
    for axis, weights in _smooth_weights(c, kernel, reach, c.shape, shape_of(x)):
        x = interpolate(c, x, axis, weights.T)
    return x


def _smooth_weights(
    c: AtenCall,
    kernel: Callable[[Array], Array],
    reach: int,
    small: Sequence[Any],
    large: Sequence[Any],
) -> Iterator[tuple[int, Array]]:
    """Yields each spatial axis with the weights that resize images from the shape
    `small` to the shape `large`."""
    if any(map(is_dynamic, (*small, *large))):
        raise Unsupported("with symbolic sizes")
    for axis, name in zip((2, 3), ("scales_h", "scales_w"), strict=True):
        before, after = int(small[axis]), int(large[axis])
        factor = c.get(name)
        step = 1 / factor if factor else before / after
        first = 0.5 * step - 0.5
        if c["align_corners"]:
            step, first = (before - 1) / max(after - 1, 1), 0.0
        places = np.arange(after) * step + first
        stretch = max(step, 1.0)
        yield (
            axis,
            kernel_weights(before, places, kernel, reach, stretch=stretch, inside=True),
        )


def _replicated_backward(rank: int, c: AtenCall) -> SSAValue:
    """The gradient of a padding that repeats the edges: gradients in the padding are
    added to the edges."""
    x, sizes = c["grad_output"], shape_of(c["self"])
    pads: Sequence[Any] = c["padding"]
    if any(map(is_dynamic, (*sizes, *pads))):
        raise Unsupported("with symbolic sizes")
    for d in range(rank):
        axis = len(sizes) - 1 - d
        x = _edges_added(c, x, axis, sizes[axis], *pads[2 * d : 2 * d + 2])
    return x


def _edges_added(
    c: AtenCall, x: SSAValue, axis: int, size: int, low: int, high: int
) -> SSAValue:
    if low < 0 or high < 0:
        before, after = ([0] * len(shape_of(x)) for _ in range(2))
        before[axis], after[axis] = max(-low, 0), max(-high, 0)
        x = c.pad(x, before, after)
    low, end = max(low, 0), int(shape_of(x)[axis])
    bounds = [0, low + 1, low + size - 1, end] if size > 1 else [0, end]
    parts = [c.part(x, axis, *pair) for pair in pairwise(bounds) if pair[0] < pair[1]]
    ends = {0, len(parts) - 1}
    added = [
        c.reduce("add", part, [axis], keep=True) if n in ends else part
        for n, part in enumerate(parts)
    ]
    return c.emit(ConcatenateOp, *added, dimension=IntegerAttr(axis, i64))


def _grid_sample(c: AtenCall) -> SSAValue:
    x, grid = c["input"], c["grid"]
    if any(map(is_dynamic, (*shape_of(x), *shape_of(grid)))):
        raise Unsupported("with symbolic sizes")
    mode, padding = int(c["interpolation_mode"]), int(c["padding_mode"])
    how = GridSampling(_INTERPOLATIONS[mode], _PADDINGS[padding], c["align_corners"])
    return grid_sample(c, x, grid, how)


_INTERPOLATIONS = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


CONVERSIONS: Mapping[str, Conversion] = {
    "_adaptive_avg_pool2d": partial(_adaptive_average_pool, 2),
    "_adaptive_avg_pool3d": partial(_adaptive_average_pool, 3),
    "_adaptive_avg_pool2d_backward": _backward(partial(_adaptive_average_pool, 2)),
    "_adaptive_avg_pool3d_backward": _backward(partial(_adaptive_average_pool, 3)),
    "_upsample_bicubic2d_aa": partial(_smoothed, cubic(-0.5), 2),
    "_upsample_bicubic2d_aa_backward": partial(_smoothed_backward, cubic(-0.5), 2),
    "_upsample_bilinear2d_aa": partial(_smoothed, linear, 1),
    "_upsample_bilinear2d_aa_backward": partial(_smoothed_backward, linear, 1),
    "adaptive_max_pool2d": partial(_adaptive_max_pool, 2),
    "adaptive_max_pool3d": partial(_adaptive_max_pool, 3),
    "avg_pool2d": partial(_average_pool, 2),
    "avg_pool2d_backward": _backward(partial(_average_pool, 2)),
    "avg_pool3d": partial(_average_pool, 3),
    "avg_pool3d_backward": _backward(partial(_average_pool, 3)),
    "grid_sampler_2d": _grid_sample,
    "grid_sampler_2d_backward": _backward(_grid_sample, "input", "grid"),
    "grid_sampler_3d": _grid_sample,
    "grid_sampler_3d_backward": _backward(_grid_sample, "input", "grid"),
    "max_pool_backward": _max_pool_backward,  # integrations/torch_decompositions.py
    "max_pool2d_with_indices": partial(_max_pool, 2),
    "max_pool3d_with_indices": partial(_max_pool, 3),
    **{
        f"replication_pad{rank}d_backward": partial(_replicated_backward, rank)
        for rank in (1, 2, 3)
    },
    "upsample_bilinear2d": _upsampled(_linear),
    "upsample_nearest2d": _upsampled(_nearest),
}
