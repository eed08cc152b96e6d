"""ONNX's pooling operations → tgraph, and the windows of pooling and convolutions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...dialects.tgraph import elementwise as e
from ..builder import shape_of
from ..formulas import lp_norm
from ..operators import Value
from ..windows import (
    SpatialWindow,
    argmax_in_windows,
    average,
    reduce_window,
    rounded_up,
    same_padding,
)
from .node import Conversion, OnnxNode


def window_of(n: OnnxNode, size: Sequence[int]) -> SpatialWindow:
    """The window that a node's attributes describe; `ceil_mode` adds padding."""
    rank = len(size)
    strides = n.integers("strides", [1] * rank)
    dilations = n.integers("dilations", [1] * rank)
    pads = list(n.integers("pads", [0] * (2 * rank)))
    automatic = n.text("auto_pad", "NOTSET")
    n.expect("auto_pad", automatic, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    image = shape_of(n.value(0))[2:]
    if automatic.startswith("SAME"):
        window = same_padding(size, strides, dilations, image)
        if automatic == "SAME_LOWER":
            window = replace(window, low=window.high, high=window.low)
    else:
        if automatic == "VALID":
            pads = [0] * (2 * rank)
        window = SpatialWindow(size, strides, dilations, pads[:rank], pads[rank:])
    if n.integer("ceil_mode", 0):
        return rounded_up(window, image)
    return window


def _max_pool(n: OnnxNode) -> Sequence[Value]:
    window = window_of(n, n.integers("kernel_shape", []))
    result = reduce_window(n, "maximum", n.value(0), window)
    if n.outputs == 1:
        return [result]
    column_major = bool(n.integer("storage_order", 0))
    numbers = argmax_in_windows(n, n.value(0), window, column_major=column_major)
    batch, channels, *sizes = shape_of(n.value(0))
    images = np.arange(batch * channels) * prod(sizes)
    first = images.reshape(batch, channels, *[1] * len(sizes))
    return [result, n.apply(e.AddOp, numbers, n.constant(first))]


def counted_pads(n: OnnxNode, window: SpatialWindow) -> Sequence[int]:
    """The padding that counts as elements. Padding for `ceil_mode` does not."""
    pads: Sequence[int] = [0] * (2 * len(window.size))
    if not n.integer("count_include_pad", 0):
        return pads
    if n.text("auto_pad", "NOTSET").startswith("SAME"):
        return [*window.low, *window.high]
    return n.integers("pads", pads)


def _average_pool(n: OnnxNode) -> Sequence[Value]:
    window = window_of(n, n.integers("kernel_shape", []))
    return [average(n, n.value(0), window, counted_pads(n, window))]


def _lp_pool(n: OnnxNode) -> Sequence[Value]:
    window = window_of(n, n.integers("kernel_shape", []))
    p = n.integer("p", 2)
    return [
        lp_norm(
            n, n.value(0), p, lambda powers: reduce_window(n, "add", powers, window)
        )
    ]


def _global_lp_pool(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    axes = range(2, len(shape_of(x)))
    p = n.integer("p", 2)
    return [lp_norm(n, x, p, lambda powers: n.reduce("add", powers, axes, keep=True))]


def _global_pool(kind: str) -> Conversion:
    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        axes = range(2, len(shape_of(x)))
        result = n.reduce(kind, x, axes, keep=True)
        if kind == "add":
            count = prod(shape_of(x)[2:])
            result = n.apply(e.DivideOp, result, count)
        return [result]

    return convert


CONVERSIONS: Mapping[str, Conversion] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_pool("add"),
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": _global_pool("maximum"),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
}
