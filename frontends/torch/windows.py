"""ATen's pooling and interpolation → tgraph."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.sizes.dims import is_dynamic
from ...dialects.tgraph import elementwise as e
from ..builder import shape_of
from ..sampling import GridSampling, grid_sample
from ..unsupported import Unsupported
from ..windows import (
    SpatialWindow,
    average,
    interpolate,
    linear_weights,
    numbers_of_largest,
    reduce_window,
    rounded_up,
    take_places,
)
from .call import AtenCall, Conversion, Results


def _images(c: AtenCall, rank: int) -> SSAValue:
    """The input with a batch, which it may lack."""
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
    images, window = _images(c, rank), _window(c, rank)
    x = c.reshape(reduce_window(c, "maximum", images, window), c.shape)
    if 1 not in c.used:
        return [x, None]
    return [x, c.reshape(numbers_of_largest(c, images, window), c.shape)]


def _average_pool(rank: int, c: AtenCall) -> SSAValue:
    if c.get("divisor_override") is not None:
        raise Unsupported("with divisor_override")
    window = _window(c, rank)
    pads = [*window.low, *window.low] if c["count_include_pad"] else [0] * 2 * rank
    return c.reshape(average(c, _images(c, rank), window, pads), c.shape)


def _adaptive_average_pool(rank: int, c: AtenCall) -> SSAValue:
    """Along each axis the means of parts that start at floor(k * before / after)."""
    x = c["self"]
    for axis in range(len(c.shape) - rank, len(c.shape)):
        parts = _parts(shape_of(x)[axis], c.shape[axis])
        x = interpolate(c, x, axis, parts / parts.sum(1, keepdims=True))
    return x


def _backward(forward: Conversion) -> Conversion:
    return lambda c: c.gradient(forward, "self")[0]


def _parts(before: int, after: int) -> Array:
    """Which elements are in which part."""
    k, place = np.arange(after)[:, None], np.arange(before)
    starts, ends = k * before // after, -(-(k + 1) * before // after)
    return (place >= starts) & (place < ends)


def _adaptive_max_pool(c: AtenCall) -> Results:
    """The largest elements of the same parts."""
    if 1 in c.used:
        raise Unsupported("with the places of the largest elements")
    x = c["self"]
    for axis in range(len(c.shape) - 2, len(c.shape)):
        parts = _parts(shape_of(x)[axis], c.shape[axis])
        shape = list(shape_of(x))
        wide = c.reshape(x, [*shape[:axis], 1, *shape[axis:]])
        rest = [1] * (len(shape) - axis - 1)
        inside = c.constant(parts.reshape(*parts.shape, *rest))
        kept = c.apply(e.SelectOp, inside, wide, float("-inf"))
        x = c.reduce("maximum", kept, [axis + 1])
    return [x, None]


Along = Callable[[AtenCall, SSAValue, int, float], SSAValue]
"""Interpolates to the result's size along an axis, with a step between elements."""


def _upsampled(along: Along) -> Conversion:
    """In two dimensions."""

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
    "adaptive_max_pool2d": _adaptive_max_pool,
    "avg_pool2d": partial(_average_pool, 2),
    "avg_pool2d_backward": _backward(partial(_average_pool, 2)),
    "avg_pool3d": partial(_average_pool, 3),
    "grid_sampler_2d": _grid_sample,
    "grid_sampler_3d": _grid_sample,
    "max_pool2d_backward": _backward(partial(_max_pool, 2)),  # integrations/torch.py
    "max_pool2d_with_indices": partial(_max_pool, 2),
    "max_pool3d_with_indices": partial(_max_pool, 3),
    "upsample_bilinear2d": _upsampled(_linear),
    "upsample_nearest2d": _upsampled(_nearest),
}
