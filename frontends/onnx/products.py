"""ONNX's matrix products and convolutions → tgraph."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from tensorplan.dialects.tgraph import elementwise as e
from tensorplan.dialects.tgraph import shaping
from tensorplan.dialects.tgraph.base import ints
from tensorplan.dialects.tgraph.reducing import ConvolutionOp
from tensorplan.frontends.onnx.node import (
    Conversion,
    Node,
    Unsupported,
    Value,
    shape_of,
)
from tensorplan.frontends.onnx.reducing import per_channel
from tensorplan.frontends.onnx.windows import Window, window_of


def matmul(n: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    """NumPy's matrix product: leading dimensions are broadcast."""
    shape_a, shape_b = shape_of(a), shape_of(b)
    if len(shape_b) <= 2:
        return n.dot(a, b, ([len(shape_a) - 1], [max(len(shape_b) - 2, 0)]))
    if len(shape_a) == 1:
        row = matmul(n, n.reshape(a, [1, *shape_a]), b)
        return n.reshape(row, [*shape_b[:-2], shape_b[-1]])
    batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
    a = n.broadcast(a, [*batch, *shape_a[-2:]])
    b = n.broadcast(b, [*batch, *shape_b[-2:]])
    rank = len(batch)
    return n.dot(a, b, ([rank + 1], [rank]), (range(rank), range(rank)))


def _matmul(n: Node) -> Sequence[Value]:
    return [matmul(n, n.value(0), n.value(1))]


def _gemm(n: Node) -> Sequence[Value]:
    a, b = n.value(0), n.value(1)
    sides = [1 - n.integer("transA", 0)], [n.integer("transB", 0)]
    result = n.dot(a, b, sides)
    if (alpha := n.number("alpha", 1.0)) != 1:
        result = n.apply(e.MultiplyOp, result, alpha)
    beta = n.number("beta", 1.0)
    if not n.has(2) or not beta:
        return [result]
    c = n.value(2) if beta == 1 else n.apply(e.MultiplyOp, n.value(2), beta)
    return [n.apply(e.AddOp, result, c)]


def _convolution(n: Node) -> Sequence[Value]:
    x, kernel = n.value(0), n.value(1)
    window = window_of(n, shape_of(kernel)[2:])
    ones = [1] * len(window.size)
    return _biased(n, _convolve(n, x, kernel, "oi", window, window.strides, ones))


def _convolve(
    n: Node,
    x: SSAValue,
    kernel: SSAValue,
    kernel_labels: str,
    window: Window,
    strides: Sequence[int],
    image_dilation: Sequence[int],
) -> SSAValue:
    spatial = "".join(map(str, range(len(window.size))))
    labels = f"bf{spatial}_{kernel_labels}{spatial}->bf{spatial}"
    return n.emit(
        ConvolutionOp,
        x,
        kernel,
        dim_labels=StringAttr(labels),
        window_strides=ints(strides),
        padding_low=ints(window.low),
        padding_high=ints(window.high),
        lhs_dilation=ints(image_dilation),
        rhs_dilation=ints(window.dilations),
        feature_group_count=IntegerAttr(n.integer("group", 1), i64),
    )


def _biased(n: Node, y: SSAValue) -> Sequence[Value]:
    if not n.has(2):
        return [y]
    return [n.apply(e.AddOp, y, per_channel(n, n.value(2), shape_of(y)))]


def _transposed_convolution(n: Node) -> Sequence[Value]:
    """A convolution of the image with zeros between its elements, the kernel turned."""
    x, kernel = n.value(0), n.value(1)
    inputs, outputs, *size = shape_of(kernel)
    rank = len(size)
    groups = n.integer("group", 1)
    strides = n.integers("strides", [1] * rank)
    dilations = n.integers("dilations", [1] * rank)
    extra = n.integers("output_padding", [0] * rank)
    reach = [(k - 1) * d for k, d in zip(size, dilations, strict=True)]
    full = [
        (image - 1) * stride + far + 1 + more
        for image, stride, far, more in zip(
            shape_of(x)[2:], strides, reach, extra, strict=True
        )
    ]
    automatic = n.text("auto_pad", "NOTSET")
    n.expect("auto_pad", automatic, *_AUTOMATIC)
    target = n.integers("output_shape", [])[-rank:]
    if not target and automatic.startswith("SAME"):
        target = [i * s for i, s in zip(shape_of(x)[2:], strides, strict=True)]
    if target:
        cut = [max(f - t, 0) for f, t in zip(full, target, strict=True)]
        half = [c // 2 for c in cut]
        rest = [c - h for c, h in zip(cut, half, strict=True)]
        low, high = (half, rest) if automatic == "SAME_UPPER" else (rest, half)
        if any(t > f for f, t in zip(full, target, strict=True)):
            raise Unsupported(f"with output_shape {target}, larger than {full}")
    else:
        pads = n.integers("pads", [0] * (2 * rank))
        low, high = list(pads[:rank]), list(pads[rank:])
    window = Window(
        size,
        strides,
        dilations,
        [far - cut for far, cut in zip(reach, low, strict=True)],
        [f - cut + more for f, cut, more in zip(reach, high, extra, strict=True)],
    )
    turned = n.emit(shaping.ReverseOp, kernel, dimensions=ints(range(2, rank + 2)))
    if groups > 1:  # input features of a group, then all output features
        turned = n.reshape(turned, [groups, inputs // groups, outputs, *size])
        turned = n.transpose(turned, [1, 0, *range(2, rank + 3)])
        turned = n.reshape(turned, [inputs // groups, groups * outputs, *size])
    return _biased(n, _convolve(n, x, turned, "io", window, [1] * rank, strides))


_AUTOMATIC = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

CONVERSIONS: Mapping[str, Conversion] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
