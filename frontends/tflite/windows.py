"""Pooling of images in the order batch, height, width, channel."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import element_type, shape_of
from ..formulas import clamp, compare
from ..operators import Value
from ..windows import SpatialWindow, counts_of, reduce_window
from .fixed_point import range_of
from .node import Conversion, TFLiteNode
from .products import window_of


def _window(n: TFLiteNode) -> SpatialWindow:
    return window_of(n, [n.option("FilterHeight"), n.option("FilterWidth")])


def _limited(n: TFLiteNode, x: SSAValue) -> SSAValue:
    """Pooled integers in the range of the activation; they keep their scale."""
    low, high = range_of(n, *n.limits)
    return n.convert(clamp(n, x, low, high), element_type(n.results[0].dtype))


def _max_pool(n: TFLiteNode) -> Sequence[Value]:
    result = reduce_window(n, "maximum", n.value(0), _window(n), 1)
    return [_limited(n, result) if n.is_quantized else n.activated(result)]


def _average_pool(n: TFLiteNode) -> Sequence[Value]:
    """Padding does not count. Means of integers are rounded, ties away from 0."""
    x, window = n.value(0), _window(n)
    if n.is_quantized:
        x = n.convert(x, i32)
    total = reduce_window(n, "add", x, window, 1)
    _, height, width, _ = shape_of(total)
    image = shape_of(x)[1:3]
    counts = counts_of(window, image, (height, width), [0] * 4)[:, :, None]
    if np.all(counts == counts.flat[0]):
        counts = counts[0, 0, 0]
    if not n.is_quantized:
        return [n.activated(n.apply(e.DivideOp, total, n.constant(counts)))]
    counts = counts.astype(np.int32)
    half = counts // 2
    is_positive = compare(n, total, "GT", 0)
    nudge = n.apply(e.SelectOp, is_positive, n.constant(half), n.constant(-half))
    nudged = n.apply(e.AddOp, total, nudge)
    return [_limited(n, n.apply(e.DivideOp, nudged, n.constant(counts)))]


CONVERSIONS: Mapping[str, Conversion] = {
    "AVERAGE_POOL_2D": _average_pool,
    "MAX_POOL_2D": _max_pool,
}
