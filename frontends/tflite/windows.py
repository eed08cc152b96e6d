"""Converts pooling of images in the order batch, height, width, channel."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ..builder import element_type, shape_of
from ..formulas import clamp, compare
from ..operators import Value
from ..windows import SpatialWindow, counts_of, reduce_window
from .elementwise import expect_numbers
from .fixed_point import range_of
from .node import Conversion, TFLiteNode
from .products import window_of


def _window(n: TFLiteNode) -> SpatialWindow:
    return window_of(n, [n.option("FilterHeight"), n.option("FilterWidth")])


def _limited(n: TFLiteNode, x: SSAValue) -> SSAValue:
    """Clamps pooled integers, whose scale is unchanged, to the fused activation."""
    low, high = range_of(n, *n.limits)
    return n.convert(clamp(n, x, low, high), element_type(n.results[0].dtype))


def _max_pool(n: TFLiteNode) -> Sequence[Value]:
    result = reduce_window(n, "maximum", n.value(0), _window(n), 1)
    return [_limited(n, result) if n.is_quantized else n.activated(result)]


def _divisors(n: TFLiteNode, window: SpatialWindow, places: Sequence[int]) -> Array:
    """The number of elements in each window without padding: one number if all are
    equal, or one for each window.
    """
    counts = counts_of(window, shape_of(n.value(0))[1:3], places, [0] * 4)[:, :, None]
    return counts[0, 0, 0] if np.all(counts == counts.flat[0]) else counts


def _mean(n: TFLiteNode, x: SSAValue) -> SSAValue:
    window = _window(n)
    total = reduce_window(n, "add", x, window, 1)
    divisors = _divisors(n, window, shape_of(total)[1:3])
    return n.apply(e.DivideOp, total, n.constant(divisors))


def _average_pool(n: TFLiteNode) -> Sequence[Value]:
    """Means of integers are rounded, ties away from 0."""
    if not n.is_quantized:
        return [n.activated(_mean(n, n.value(0)))]
    window = _window(n)
    total = reduce_window(n, "add", n.convert(n.value(0), i32), window, 1)
    counts = _divisors(n, window, shape_of(total)[1:3]).astype(np.int32)
    half = counts // 2
    is_positive = compare(n, total, "GT", 0)
    nudge = n.apply(e.SelectOp, is_positive, n.constant(half), n.constant(-half))
    nudged = n.apply(e.AddOp, total, nudge)
    return [_limited(n, n.apply(e.DivideOp, nudged, n.constant(counts)))]


def _root_mean_square(n: TFLiteNode) -> Sequence[Value]:
    expect_numbers(n)
    x = n.value(0)
    return [n.activated(n.emit(e.SqrtOp, _mean(n, n.apply(e.MultiplyOp, x, x))))]


CONVERSIONS: Mapping[str, Conversion] = {
    "AVERAGE_POOL_2D": _average_pool,
    "L2_POOL_2D": _root_mean_square,
    "MAX_POOL_2D": _max_pool,
}
