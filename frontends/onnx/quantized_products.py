"""ONNX's products of quantized tensors → tgraph: exact sums of integers in 32 bits.

zero_points.py describes the method. An image is padded with its zero point, unless that
is 0 or the least number. Constant second operands become signed, because kernels are
faster for signed numbers: 128 is subtracted from them and from their zero points. For a
convolution of several groups, the zero point is subtracted from the kernel instead, in
32 bits, because there would be as many sums of windows as results. The mean of a window
is a product with ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.elements import ui8
from ..builder import shape_of, type_of
from ..formulas import matmul, per_channel
from ..operators import Known, Value
from ..unsupported import Unsupported
from ..windows import SpatialWindow, convolve, divided_by_counts
from ..zero_points import (
    LEAST,
    centered,
    minus_zero_point,
    reshaped,
    sizes_of,
    summed,
    to_signed,
    to_unsigned,
    without_zero_points,
)
from .node import Conversion, OnnxNode
from .quantized import by_own_range, quantized, rounded, zero_point
from .windows import counted_pads, window_of


def signed(n: OnnxNode, index: int, zero: int) -> OnnxNode:
    """The node with input `index`, if it is constant, and its zero point, input `zero`,
    as signed numbers."""
    given = n.inputs[index]
    if not isinstance(given, Known) or given.array.dtype == np.int8:
        return n
    inputs = [*n.inputs, *[None] * (zero + 1 - len(n.inputs))]
    for at in (index, zero):
        inputs[at] = to_signed(n, inputs[at] or Known(np.zeros((), np.uint8)))
    return replace(n, inputs=inputs)


def _zero(n: OnnxNode, index: int) -> Value | None:
    return _wide(n, n.inputs[index] if n.has(index) else None)


def _wide(n: OnnxNode, value: Value | None) -> Value | None:
    """A zero point in 32 bits; None if it is a constant 0 or absent."""
    if isinstance(value, Known):
        return Known(value.array.astype(np.int32)) if value.array.any() else None
    return value and n.convert(value, i32)


# Matrices


def _column(n: OnnxNode, values: Value) -> Value:
    """Reshapes one value for each row to a column; one value for all rows stays."""
    shape = sizes_of(values)
    return reshaped(n, values, [*shape, 1]) if len(shape) == 1 else values


def _sums_of_matrices(
    n: OnnxNode, operands: tuple[int, int], zeros: tuple[int, int]
) -> SSAValue:
    """The product of two inputs without their zero points. The first may have a zero
    point for each row, the second one for each column."""
    n = signed(n, operands[1], zeros[1])
    a, b = map(n.value, operands)
    own, other = (_zero(n, zero) for zero in zeros)
    sums = matmul(n, n.convert(a, i32), n.convert(b, i32))
    rank, last = len(shape_of(b)), len(shape_of(a)) - 1
    return without_zero_points(
        n,
        sums,
        (own and _column(n, own), other),
        lambda: summed(n, n.given(operands[1]), [max(rank - 2, 0)]),
        lambda: summed(n, n.given(operands[0]), [last]),
        shape_of(a)[last],
    )


def dynamic_product(
    n: OnnxNode, weight: SSAValue, scale: SSAValue, zero: Value
) -> Callable[[OnnxNode, SSAValue], SSAValue]:
    """Returns a function that multiplies floats by a matrix of 8-bit numbers.

    It quantizes the floats to 8 bits, with one range for all of them. The matrix may
    have a scale and a zero point for each column.
    """
    alone = summed(n, weight, [0])
    other = _wide(n, zero)
    count = shape_of(weight)[0]

    def product(n: OnnxNode, x: SSAValue) -> SSAValue:
        numbers, own_scale, own = by_own_range(n, x)
        sums = matmul(n, n.convert(numbers, i32), n.convert(weight, i32))
        sums = without_zero_points(
            *(n, sums, (n.convert(own, i32), other), lambda: alone),
            *(lambda: summed(n, numbers, [len(shape_of(x)) - 1]), count),
        )
        factor = n.apply(e.MultiplyOp, own_scale, scale)
        return n.apply(e.MultiplyOp, n.convert(sums, f32), factor)

    return product


def _dynamic_matmul(n: OnnxNode) -> Sequence[Value]:
    n = signed(n, 1, 3)
    zero = n.inputs[3] if n.has(3) else None
    product = dynamic_product(
        n, n.value(1), n.value(2), zero or Known(np.zeros((), np.int8))
    )
    return [_with_bias(n, product(n, n.value(0)), 4)]


def _matmul_to_floats(n: OnnxNode) -> Sequence[Value]:
    sums = _sums_of_matrices(n, (0, 1), (4, 5))
    scales = n.apply(e.MultiplyOp, n.materialize(_column(n, n.value(2))), n.value(3))
    return [_with_bias(n, n.apply(e.MultiplyOp, n.convert(sums, f32), scales), 6)]


def _with_bias(n: OnnxNode, x: SSAValue, index: int) -> SSAValue:
    return n.apply(e.AddOp, x, n.value(index)) if n.has(index) else x


def _integer_matmul(n: OnnxNode) -> Sequence[Value]:
    return [_sums_of_matrices(n, (0, 1), (2, 3))]


def _quantized_matmul(n: OnnxNode) -> Sequence[Value]:
    sums = _sums_of_matrices(n, (0, 3), (2, 5))
    return [_rescaled(n, sums, n.materialize(_column(n, n.value(1))), n.value(4), 6)]


def _quantized_gemm(n: OnnxNode) -> Sequence[Value]:
    """The result has floats if there is no scale for it."""
    first, second = (_transposed(n, 0, "transA"), _transposed(n, 3, "transB"))
    inputs = [first, *n.inputs[1:3], second, *n.inputs[4:]]
    sums = _sums_of_matrices(replace(n, inputs=inputs), (0, 3), (2, 5))
    if n.has(6):
        sums = n.apply(e.AddOp, sums, n.value(6))
    scale = n.apply(e.MultiplyOp, n.value(1), n.number("alpha", 1.0))
    if n.has(7):
        return [_rescaled(n, sums, scale, n.value(4), 7)]
    factor = n.apply(e.MultiplyOp, scale, n.value(4))
    return [n.apply(e.MultiplyOp, n.convert(sums, f32), factor)]


def _transposed(n: OnnxNode, index: int, name: str) -> Value:
    value = n.inputs[index]
    assert value is not None
    if not n.integer(name, 0):
        return value
    if isinstance(value, Known):
        return Known(value.array.T)
    return n.transpose(value, [1, 0])


def _rescaled(
    n: OnnxNode, sums: SSAValue, first: SSAValue, second: SSAValue, y: int
) -> SSAValue:
    """Multiplies sums by the scales of both operands, and quantizes the result.

    Input `y` is the scale of the result, and input `y + 1` its zero point.
    """
    first, second, scale = (n.convert(x, f32) for x in (first, second, n.value(y)))
    factor = n.apply(e.DivideOp, n.apply(e.MultiplyOp, first, second), scale)
    return _times(n, sums, factor, y + 1)


def _times(n: OnnxNode, sums: SSAValue, factor: SSAValue, zero: int) -> SSAValue:
    scaled = n.apply(e.MultiplyOp, n.convert(sums, f32), factor)
    return rounded(n, scaled, n.broadcast(zero_point(n, zero), shape_of(scaled)))


def _unpacked(n: OnnxNode, x: SSAValue, bits: int, count: int) -> SSAValue:
    """Unpacks the numbers of `bits` bits in each byte along the last dimension, and
    takes the first `count`."""
    *outer, size = shape_of(x)
    per = 8 // bits
    shifts = n.convert(n.constant(np.arange(per, dtype=np.uint8) * bits), ui8)
    bytes_ = n.broadcast_in_dim(x, [*outer, size, per], range(len(outer) + 1))
    moved = n.apply(e.ShiftRightLogicalOp, bytes_, shifts)
    numbers = n.apply(e.AndOp, moved, (1 << bits) - 1)
    return n.part(n.reshape(numbers, [*outer, size * per]), len(outer), 0, count)


def _matmul_of_blocks(n: OnnxNode) -> Sequence[Value]:
    """Multiplies by columns of 2, 4 or 8 bits, which have a scale and a zero point for
    each block. They become floats first, whatever `accuracy_level` allows."""
    if n.has(4):
        raise Unsupported(f"with input {n.names[4]!r}")
    bits, size = n.integer("bits", 4), n.integer("block_size", 0)
    n.expect("bits", bits, 2, 4, 8)
    depth, columns = n.integer("K", 0), n.integer("N", 0)
    blocks = -(-depth // size)
    stored = (columns, blocks, -(-size * bits // 8))
    n.expect(f"shape of input {n.names[1]!r}", shape_of(n.value(1)), stored)
    rows, element = n.value(0), type_of(n.value(0)).element_type
    if n.has(3) and type_of(n.value(3)).element_type == ui8:
        packed = n.reshape(n.value(3), [columns, -(-blocks * bits // 8)])
        zeros = n.convert(_unpacked(n, packed, bits, blocks), element)
    elif n.has(3):
        zeros = n.reshape(n.value(3), [columns, blocks])
    else:
        zeros = n.full(1 << (bits - 1), element, [columns, blocks])
    scales = n.reshape(n.value(2), [columns, blocks])
    scales, zeros = (n.reshape(x, [columns, blocks, 1]) for x in (scales, zeros))
    steps = n.convert(_unpacked(n, n.value(1), bits, size), element)
    steps = n.apply(e.SubtractOp, steps, zeros)
    weight = n.reshape(n.apply(e.MultiplyOp, steps, scales), [columns, blocks * size])
    weight = n.part(weight, 1, 0, depth)
    product = n.dot(rows, weight, ([len(shape_of(rows)) - 1], [1]))
    return [_with_bias(n, product, 5)]


# Convolutions


def _sums_of_windows(
    n: OnnxNode, operands: tuple[int, int], zeros: tuple[int, int]
) -> SSAValue:
    """The convolution of two inputs without their zero points. The kernel may have a
    zero point for each output channel."""
    groups = n.integer("group", 1)
    if groups == 1:
        n = signed(n, operands[1], zeros[1])
    kernel = n.given(operands[1])
    channels, *read = sizes_of(kernel)
    own, other = (_zero(n, zero) for zero in zeros)
    window = window_of(n, read[1:])
    image, own, window = _padded(n, n.value(operands[0]), own, zeros[0], window)
    ones = [1] * len(window.size)
    if other is not None:
        other = reshaped(n, other, [prod(sizes_of(other)), *ones])
        if groups > 1:  # there would be a sum of windows for each group
            each = reshaped(n, other, [*sizes_of(other), 1])
            kernel, other = centered(n, kernel, each), None

    def convolved(kernel: SSAValue) -> SSAValue:
        kernel = n.convert(kernel, i32)
        return convolve(n, n.convert(image, i32), kernel, window, groups)

    sums = convolved(n.materialize(kernel))
    axes = range(1, len(read) + 1)
    return without_zero_points(
        n,
        sums,
        (own and reshaped(n, own, []), other),
        lambda: reshaped(n, summed(n, kernel, axes), [channels, *ones]),
        lambda: convolved(n.full(1, i8, [1, *read])),
        prod(read),
    )


def _padded(
    n: OnnxNode, image: SSAValue, own: Value | None, zero: int, window: SpatialWindow
) -> tuple[SSAValue, Value | None, SpatialWindow]:
    """Returns an image, its zero point, and the window for them.

    The image is padded with its zero point, and the window has no padding; or the zero
    point is 0 (None), and the window is padded with zeros.
    """
    if own is None or not any((*window.low, *window.high)):
        return image, own, window
    if isinstance(own, Known) and (own.array == LEAST).all():
        return to_unsigned(n, image), None, window
    low, high = ([0, 0, *pads] for pads in (window.low, window.high))
    nothing = [0] * len(window.size)
    padded = n.pad(image, low, high, n.reshape(n.value(zero), []))
    return padded, own, replace(window, low=nothing, high=nothing)


def _integer_convolution(n: OnnxNode) -> Sequence[Value]:
    return [_sums_of_windows(n, (0, 1), (2, 3))]


def _quantized_convolution(n: OnnxNode) -> Sequence[Value]:
    sums = _sums_of_windows(n, (0, 3), (2, 5))
    if n.has(8):
        sums = n.apply(e.AddOp, sums, per_channel(n, n.value(8), shape_of(sums)))
    scale = n.value(4)
    if len(shape_of(scale)) == 1:
        ones = [1] * (len(shape_of(sums)) - 2)
        scale = n.reshape(scale, [*shape_of(scale), *ones])
    return [_rescaled(n, sums, n.value(1), scale, 6)]


# Pooling


def _quantized_average(n: OnnxNode) -> Sequence[Value]:
    n.expect("channels_last", n.integer("channels_last", 0), 0)
    size = n.integers("kernel_shape", [])
    channels, *image = shape_of(n.value(0))[1:]
    ones = Known(np.ones([channels, 1, *size], np.int8))
    attributes = {**n.attributes, "group": channels}
    product = replace(n, inputs=[*n.inputs[:3], ones], attributes=attributes)
    total = n.convert(_sums_of_windows(product, (0, 3), (2, 4)), f32)
    window = window_of(n, size)
    mean = divided_by_counts(n, total, image, window, counted_pads(n, window))
    return [quantized(n, n.apply(e.MultiplyOp, mean, n.reshape(n.value(1), [])), 3)]


def _quantized_global_average(n: OnnxNode) -> Sequence[Value]:
    n.expect("channels_last", n.integer("channels_last", 0), 0)
    space = shape_of(n.value(0))[2:]
    total = summed(n, n.given(0), range(2, 2 + len(space)))
    if (own := _zero(n, 2)) is not None:
        total = minus_zero_point(
            n, total, reshaped(n, own, []), Known(np.array(prod(space), np.int32))
        )
    total = n.materialize(total)
    scale = n.apply(e.MultiplyOp, n.value(3), float(prod(space)))
    return [_times(n, total, n.apply(e.DivideOp, n.value(1), scale), 4)]


CONVERSIONS: Mapping[str, Conversion] = {
    "ConvInteger": _integer_convolution,
    "MatMulInteger": _integer_matmul,
    "QLinearConv": _quantized_convolution,
    "QLinearMatMul": _quantized_matmul,
    "com.microsoft.DynamicQuantizeMatMul": _dynamic_matmul,
    "com.microsoft.MatMulIntegerToFloat": _matmul_to_floats,
    "com.microsoft.MatMulNBits": _matmul_of_blocks,
    "com.microsoft.QGemm": _quantized_gemm,
    "com.microsoft.QLinearAveragePool": _quantized_average,
    "com.microsoft.QLinearGlobalAveragePool": _quantized_global_average,
}
