"""Converts convolutions and matrix products.

Integer products are summed in 32 bits (zero_points.py) and rescaled (fixed_point.py).
Images are padded with their zero point. In products of integers and floats, the
integers are converted to floats.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ..builder import shape_of, type_of
from ..formulas import matmul
from ..operators import Known, Value
from ..unsupported import Unsupported
from ..windows import SpatialWindow, convolve, convolve_transposed, same_padding
from ..zero_points import (
    HALF,
    centered,
    reshaped,
    summed,
    to_signed,
    without_zero_points,
)
from .fixed_point import expect_8_bits, multiplied, saturated, scaled, scaled_sums
from .node import Conversion, TFLiteNode

Product = Callable[[SSAValue, SSAValue], SSAValue]
"""The product of an image, or of rows, and a kernel."""

Rescaled = Callable[[TFLiteNode, SSAValue, Array], SSAValue]
"""Converts sums to the scale of the result, by the given factors."""


def _factors(n: TFLiteNode) -> Array:
    """The factors from the scale of the product to that of the result, per channel."""
    first, second, result = n.tensor(0).scale, n.tensor(1).scales, n.results[0].scale
    product = np.float64(first) * second.astype(np.float64)
    factors = product / np.float64(result)
    return factors.reshape(()) if factors.size == 1 else factors


def _zero(number: int) -> Known | None:
    """A zero point in 32 bits; None for 0."""
    return Known(np.array(number, np.int32)) if number else None


def _kernel(n: TFLiteNode) -> tuple[Value, int]:
    """The second input as signed integers, and its zero point."""
    tensor, kernel = n.tensor(1), n.given(1)
    zeros = set(tensor.zeros.tolist()) or {0}
    if len(zeros) > 1:
        raise Unsupported(f"with several zero points of tensor {tensor.name!r}")
    if tensor.dtype.name == "uint8":
        return to_signed(n, kernel), zeros.pop() - HALF
    return kernel, zeros.pop()


def _product(
    n: TFLiteNode,
    x: SSAValue,
    zero: int,
    product: Product,
    channels: int,
    *,
    bias: int = 2,
    is_grouped: bool = False,
    rescaled: Rescaled = scaled,
    rescaled_long: Rescaled = scaled_sums,
) -> SSAValue:
    """The product of `x`, the first input, and the second one, plus a bias.

    zero: the zero point of `x`.
    channels: the dimension of the second input that is the last one of the product.
    rescaled, rescaled_long: rescale sums of 8-bit and of 16-bit integers.
    is_grouped: whether groups read different parts of `x`. Correcting for a kernel's
        zero point takes a sum per result then, so the kernel is corrected instead.
    """
    if not n.is_quantized:
        y = _product_of_floats(n, x, product)
        if n.has(bias):
            y = n.apply(e.AddOp, y, n.real(bias))
        return n.activated(y)
    kernel, other = _kernel(n)
    if is_grouped and other:
        own = Known(np.array(n.tensor(1).zero, np.int32))
        kernel, other = centered(n, n.given(1), own), 0
    shape = n.tensor(1).shape
    others = [d for d in range(len(shape)) if d != channels]
    if n.tensor(0).dtype == np.int16:
        sums = _sums_of_16_bits(n, x, kernel, product, bias)
        return saturated(n, rescaled_long(n, sums, _factors(n)))
    wide = n.convert(x, i32)
    sums = without_zero_points(
        n,
        product(wide, n.convert(n.materialize(kernel), i32)),
        (_zero(zero), _zero(other)),
        lambda: reshaped(n, summed(n, kernel, others), [shape[channels]]),
        lambda: product(wide, n.full(1, i32, [1, *shape[1:]])),
        prod(shape[d] for d in others),
    )
    if n.has(bias):
        sums = n.apply(e.AddOp, sums, n.value(bias))
    return saturated(n, rescaled(n, sums, _factors(n)))


def _sums_of_16_bits(
    n: TFLiteNode, x: SSAValue, kernel: Value, product: Product, bias: int
) -> SSAValue:
    """Products of 16-bit and 8-bit integers without zero points, plus the bias, in 64
    bits. LiteRT's reference kernels read any bias as 64-bit integers.
    """
    _expect_16_bits(n)
    sums = product(n.convert(x, i64), n.convert(n.materialize(kernel), i64))
    if n.has(bias):
        if n.tensor(bias).dtype != np.int64:
            raise Unsupported(
                f"with 16-bit numbers and a bias of {n.tensor(bias).kind}"
            )
        return n.apply(e.AddOp, sums, n.value(bias))
    return sums


def _expect_16_bits(n: TFLiteNode) -> None:
    """Rejects zero points with 16-bit integers, and results of other types."""
    tensors = [n.tensor(0), n.tensor(1), n.results[0]]
    if any(tensor.zeros.any() for tensor in tensors) or n.results[0].dtype != np.int16:
        raise Unsupported("with 16-bit numbers and others, or zero points")


def _product_of_floats(n: TFLiteNode, x: SSAValue, product: Product) -> SSAValue:
    """A kernel's scales are applied to the product, so the kernel stays as stored."""
    kernel = n.tensor(1)
    if not kernel.is_quantized or kernel.zeros.any():
        return product(x, n.real(1))
    y = product(x, n.convert(n.value(1), f32))
    scales = kernel.scales if kernel.scales.size > 1 else kernel.scales.reshape(())
    return n.apply(e.MultiplyOp, y, n.constant(scales))


# Convolutions


def window_of(
    n: TFLiteNode,
    size: Sequence[int],
    dilations: Sequence[int] = (1, 1),
    axes: str = "HW",
) -> SpatialWindow:
    """The window over the first input according to the options."""
    strides = [n.option(f"Stride{axis}") for axis in axes]
    if n.option("Padding"):  # VALID
        nothing = [0] * len(axes)
        return SpatialWindow(size, strides, dilations, nothing, nothing)
    return same_padding(size, strides, dilations, shape_of(n.value(0))[1:-1])


def _image(n: TFLiteNode, window: SpatialWindow) -> tuple[SSAValue, int, SpatialWindow]:
    """The first input, its zero point, and a window padded with zeros. If the zero
    point is not 0, the input is padded with it first.
    """
    if not n.is_quantized:
        return n.value(0), 0, window
    x, zero = n.steps(0)
    if not zero or not any((*window.low, *window.high)):
        return x, zero, window
    around = n.full(zero, type_of(x).element_type, ())
    padded = n.pad(x, [0, *window.low, 0], [0, *window.high, 0], around)
    return padded, zero, replace(window, low=[0, 0], high=[0, 0])


def _dilations(n: TFLiteNode, axes: str = "HW") -> Sequence[int]:
    return [n.option(f"Dilation{axis}Factor") for axis in axes]


def _convolution(n: TFLiteNode) -> Sequence[Value]:
    """Kernels have the order output, height, width, input."""
    _, height, width, inputs = n.tensor(1).shape
    x, zero, window = _image(n, window_of(n, [height, width], _dilations(n)))
    groups = shape_of(x)[3] // inputs

    def product(image: SSAValue, kernel: SSAValue) -> SSAValue:
        return convolve(n, image, kernel, window, groups, images="b#f", kernels="o#i")

    return [_product(n, x, zero, product, 0, is_grouped=groups > 1)]


def _convolution_3d(n: TFLiteNode) -> Sequence[Value]:
    """Kernels have the order depth, height, width, input, output."""
    if n.is_quantized:
        raise Unsupported("with quantized elements")
    *size, inputs, _ = n.tensor(1).shape
    window = window_of(n, size, _dilations(n, "DHW"), "DHW")
    groups = shape_of(n.value(0))[4] // inputs

    def product(image: SSAValue, kernel: SSAValue) -> SSAValue:
        return convolve(n, image, kernel, window, groups, images="b#f", kernels="#io")

    return [_product(n, n.value(0), 0, product, 4)]


def _depthwise(n: TFLiteNode) -> Sequence[Value]:
    """Kernels have the order 1, height, width, output; groups have one channel."""
    _, height, width, _ = n.tensor(1).shape
    x, zero, window = _image(n, window_of(n, [height, width], _dilations(n)))
    groups = shape_of(x)[3]

    def product(image: SSAValue, kernel: SSAValue) -> SSAValue:
        return convolve(n, image, kernel, window, groups, images="b#f", kernels="i#o")

    return [_product(n, x, zero, product, 3, is_grouped=True)]


def _transposed_convolution(n: TFLiteNode) -> Sequence[Value]:
    """Kernels have the order output, height, width, input."""
    return _transposed(n, "HW", "o#i")


def _transposed_convolution_3d(n: TFLiteNode) -> Sequence[Value]:
    """Kernels have the order depth, height, width, output, input."""
    if n.is_quantized:
        raise Unsupported("with quantized elements")
    if _dilations(n, "DHW") != [1, 1, 1]:
        raise Unsupported("with dilations")
    return _transposed(n, "DHW", "#oi")


def _transposed(n: TFLiteNode, space: str, kernels: str) -> Sequence[Value]:
    """The first input is the shape of the result."""
    last, first = 1 + len(space), kernels.index("#")
    size, order = n.known_integers(0)[1:last], [2, 1, 3]
    inputs, tensors = (
        [values[at] if at < len(values) else None for at in order]
        for values in (n.inputs, n.tensors)
    )
    n = replace(n, inputs=inputs, tensors=tensors)
    image = shape_of(n.value(0))[1:last]
    reach = n.tensor(1).shape[first : first + len(space)]
    strides = [n.option(f"Stride{dimension}") for dimension in space]
    full = [(i - 1) * s + k for i, s, k in zip(image, strides, reach, strict=True)]
    more = [whole - given for whole, given in zip(full, size, strict=True)]
    low = [0 if n.option("Padding") else max(m, 0) // 2 for m in more]
    high = [max(m - below, 0) for m, below in zip(more, low, strict=True)]
    extra = [max(-m, 0) for m in more]
    window = SpatialWindow(reach, strides, [1] * len(space), low, high)

    def product(image: SSAValue, kernel: SSAValue) -> SSAValue:
        operands = image, kernel, window, extra
        return convolve_transposed(n, *operands, images="b#f", kernels=kernels)

    x = n.centered(0) if n.is_quantized else n.value(0)
    channel = 0 if first else len(space)
    return [_product(n, x, 0, product, channel, is_grouped=True)]


# Matrices


def _fully_connected(n: TFLiteNode) -> Sequence[Value]:
    """Multiplies rows of the first input by rows of the second."""
    if n.option("WeightsFormat"):
        raise Unsupported("with shuffled weights")
    x, zero = n.steps(0) if n.is_quantized else (n.value(0), 0)
    units, size = n.tensor(1).shape
    shape = shape_of(x)
    kept = [*shape[:-1]] if n.option("KeepNumDims") else [prod(shape) // size]
    rows = n.reshape(x, [prod(shape) // size, size])

    def product(rows: SSAValue, columns: SSAValue) -> SSAValue:
        return n.dot(rows, columns, ([1], [1]))

    y = _product(
        *(n, rows, zero, product, 0), rescaled=multiplied, rescaled_long=multiplied
    )
    return [n.reshape(y, [*kept, units])]


def _matmul(n: TFLiteNode) -> Sequence[Value]:
    if not n.is_quantized:
        x, y = (
            _matrix_transpose(n, n.real(index)) if n.option(name) else n.real(index)
            for index, name in enumerate(("AdjX", "AdjY"))
        )
        return [n.activated(matmul(n, n.materialize(x), n.materialize(y)))]
    (first, own), (second, other) = n.steps(0), _kernel(n)
    x, y = (
        _matrix_transpose(n, value) if n.option(name) else value
        for value, name in ((first, "AdjX"), (second, "AdjY"))
    )
    is_long = n.tensor(0).dtype == np.int16
    wide = [
        n.convert(n.materialize(value), i64 if is_long else i32) for value in (x, y)
    ]
    # in single precision, as in LiteRT
    steps = np.float64(n.tensor(0).scale * n.tensor(1).scale)
    factor = steps / np.float64(n.results[0].scale)
    if is_long:
        _expect_16_bits(n)
        return [saturated(n, scaled_sums(n, matmul(n, *wide), np.asarray(factor)))]
    expect_8_bits(n)
    rank = [len(shape_of(value)) for value in wide]
    sums = without_zero_points(
        n,
        matmul(n, *wide),
        (_zero(own), _zero(other)),
        lambda: summed(n, y, [rank[1] - 2]),
        lambda: summed(n, x, [rank[0] - 1]),
        shape_of(wide[0])[-1],
    )
    return [saturated(n, scaled(n, sums, factor))]


def _matrix_transpose(n: TFLiteNode, value: Value) -> Value:
    """The transpose of matrices."""
    if isinstance(value, Known):
        return Known(value.array.swapaxes(-1, -2))
    *batch, row, column = range(len(shape_of(value)))
    return n.transpose(value, [*batch, column, row])


CONVERSIONS: Mapping[str, Conversion] = {
    "BATCH_MATMUL": _matmul,
    "CONV_2D": _convolution,
    "CONV_3D": _convolution_3d,
    "CONV_3D_TRANSPOSE": _transposed_convolution_3d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _transposed_convolution,
}
