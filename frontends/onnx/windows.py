"""ONNX's pooling → tgraph, and the padding that windows share with convolutions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from tensorplan.dialects.tgraph import elementwise as e
from tensorplan.dialects.tgraph.base import ints
from tensorplan.dialects.tgraph.reducing import ReduceWindowOp
from tensorplan.frontends.onnx.node import Conversion, Node, Value, shape_of


@dataclass(frozen=True)
class Window:
    """A window over the spatial dimensions, all lists with an entry for each."""

    size: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    low: Sequence[int]
    high: Sequence[int]


def window_of(n: Node, size: Sequence[int]) -> Window:
    """The window that a node's attributes describe; with `ceil_mode` padded further."""
    rank = len(size)
    strides = n.integers("strides", [1] * rank)
    dilations = n.integers("dilations", [1] * rank)
    pads = list(n.integers("pads", [0] * (2 * rank)))
    automatic = n.text("auto_pad", "NOTSET")
    n.expect("auto_pad", automatic, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    low, high = pads[:rank], pads[rank:]
    for d, image in enumerate(shape_of(n.value(0))[2:]):
        reach = (size[d] - 1) * dilations[d] + 1
        if automatic.startswith("SAME"):
            places = -(-image // strides[d])
            total = max((places - 1) * strides[d] + reach - image, 0)
            low[d], high[d] = total // 2, total - total // 2
            if automatic == "SAME_LOWER":
                low[d], high[d] = high[d], low[d]
        elif automatic == "VALID":
            low[d] = high[d] = 0
        if n.integer("ceil_mode", 0):
            places = -(-(image + low[d] + high[d] - reach) // strides[d]) + 1
            if (places - 1) * strides[d] >= image + low[d]:  # it would begin outside
                places -= 1
            high[d] = (places - 1) * strides[d] + reach - image - low[d]
    return Window(size, strides, dilations, low, high)


def _reduce_window(n: Node, kind: str, window: Window) -> SSAValue:
    return n.emit(
        ReduceWindowOp,
        n.value(0),
        kind=StringAttr(kind),
        window_dimensions=ints([1, 1, *window.size]),
        window_strides=ints([1, 1, *window.strides]),
        padding_low=ints([0, 0, *window.low]),
        padding_high=ints([0, 0, *window.high]),
        base_dilations=ints([1] * (len(window.size) + 2)),
        window_dilations=ints([1, 1, *window.dilations]),
    )


def _max_pool(n: Node) -> Sequence[Value]:
    window = window_of(n, n.integers("kernel_shape", []))
    return [_reduce_window(n, "maximum", window)]


def _average_pool(n: Node) -> Sequence[Value]:
    window = window_of(n, n.integers("kernel_shape", []))
    total = _reduce_window(n, "add", window)
    counts = _counts(n, window, shape_of(total)[2:])
    if np.all(counts == counts.flat[0]):
        return [n.apply(e.DivideOp, total, float(counts.flat[0]))]
    return [n.apply(e.DivideOp, total, n.constant(counts))]


def _counts(n: Node, window: Window, places: Sequence[int]) -> "np.ndarray":
    """How many elements each place averages over, of the places' shape.

    Padding counts if the node says so, what `ceil_mode` adds never does.
    """
    rank = len(places)
    pads = [0] * (2 * rank)
    if n.integer("count_include_pad", 0):
        pads = list(n.integers("pads", pads))
        if n.text("auto_pad", "NOTSET").startswith("SAME"):
            pads = [*window.low, *window.high]
    along: list[np.ndarray] = []
    for d, image in enumerate(shape_of(n.value(0))[2:]):
        starts = np.arange(places[d]) * window.strides[d] - window.low[d]
        read = starts[:, None] + np.arange(window.size[d]) * window.dilations[d]
        inside = (read >= -pads[d]) & (read < image + pads[rank + d])
        along.append(inside.sum(axis=1))
    return reduce(np.multiply.outer, along).astype(np.float32)


def _global_pool(kind: str) -> Conversion:
    def convert(n: Node) -> Sequence[Value]:
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
    "GlobalMaxPool": _global_pool("maximum"),
    "MaxPool": _max_pool,
}
