"""ONNX's quantized tensors → tgraph: (x - zero point) * scale.

Products of integers are sums in 32 bits, and exact.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import IntegerType, Signedness, f32, i32
from xdsl.ir import SSAValue

from ...dialects.dtypes import AnyInteger
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.elements import is_float, is_stored
from ..builder import axis_of, element_type, shape_of, type_of
from ..formulas import clamp, matmul, per_channel
from ..unsupported import Unsupported
from ..windows import convolve
from .elementwise import converted
from .node import Conversion, OnnxNode, Value
from .windows import window_of


def _along(n: OnnxNode, x: SSAValue, values: SSAValue) -> SSAValue:
    """A scale or a zero point: one number, or one for each index of an axis, or (by
    `block_size`) for each block of indices."""
    shape = shape_of(x)
    if prod(shape_of(values)) == 1:
        return n.broadcast(n.reshape(values, ()), shape)
    axis = axis_of(n.integer("axis", 1), len(shape))
    block = n.integer("block_size", 0)
    if not block:
        return n.broadcast_in_dim(values, shape, [axis])
    blocks = shape_of(values)
    wide = [*blocks[: axis + 1], block, *blocks[axis + 1 :]]
    kept = [d for d in range(len(wide)) if d != axis + 1]
    repeated = n.broadcast_in_dim(values, wide, kept)
    whole = [*shape[:axis], blocks[axis] * block, *shape[axis + 1 :]]
    return n.part(n.reshape(repeated, whole), axis, 0, shape[axis])


def _quantize(n: OnnxNode) -> Sequence[Value]:
    x, scale = n.value(0), n.value(1)
    if n.has(2):
        zero = n.value(2)
    else:
        dtype = np.dtype(np.uint8)
        if number := n.integer("output_dtype", 0):
            dtype = helper.tensor_dtype_to_np_dtype(number)
        zero = n.constant(np.zeros(shape_of(scale), dtype))
    scaled = n.apply(e.DivideOp, x, _along(n, x, scale))
    return [_rounded(n, scaled, _along(n, x, zero))]


def _rounded(n: OnnxNode, x: SSAValue, zero: SSAValue) -> SSAValue:
    """saturate(round(x) + zero point), in the zero point's type; conversion rounds to
    f8 and f4."""
    element = type_of(zero).element_type
    if is_stored(element) and is_float(element):
        shift = n.convert(zero, type_of(x).element_type)
        return converted(n, n.apply(e.AddOp, x, shift), element)
    target = cast(AnyInteger, element)
    if not isinstance(element, IntegerType) or target.width.data > 16:
        raise Unsupported(f"to elements of type {element}")
    rounded = n.emit(e.RoundNearestEvenOp, x)
    shift = n.convert(zero, type_of(x).element_type)
    shifted = n.apply(e.AddOp, rounded, shift)
    return n.convert(clamp(n, shifted, *_limits(target)), target)


def _limits(type: AnyInteger) -> tuple[int, int]:
    width = type.width.data
    if type.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << width - 1), (1 << width - 1) - 1


def _dequantize(n: OnnxNode) -> Sequence[Value]:
    x, scale = n.value(0), n.value(1)
    element = type_of(scale).element_type
    y = n.convert(x, element)
    if n.has(2):
        zero = n.convert(_along(n, x, n.value(2)), element)
        y = n.apply(e.SubtractOp, y, zero)
    y = n.apply(e.MultiplyOp, y, _along(n, y, scale))
    if number := n.integer("output_dtype", 0):
        y = n.convert(y, element_type(helper.tensor_dtype_to_np_dtype(number)))
    return [y]


# Products


def _column(n: OnnxNode, values: SSAValue) -> SSAValue:
    """One value for each row of a matrix, or one for all."""
    if len(shape_of(values)) != 1:
        return values
    return n.reshape(values, [*shape_of(values), 1])


def _centered(n: OnnxNode, x: SSAValue, zero: SSAValue | None) -> SSAValue:
    x = n.convert(x, i32)
    return x if zero is None else n.apply(e.SubtractOp, x, n.convert(zero, i32))


def _optional(n: OnnxNode, index: int) -> SSAValue | None:
    return n.value(index) if n.has(index) else None


def _rescaled(
    n: OnnxNode, sums: SSAValue, scales: Sequence[SSAValue], y: int
) -> SSAValue:
    """Sums times the scales of both operands, by the scale and the zero point of the
    result, which are inputs from `y` on."""
    first, second, scale = (n.convert(value, f32) for value in (*scales, n.value(y)))
    factor = n.apply(e.DivideOp, n.apply(e.MultiplyOp, first, second), scale)
    scaled = n.apply(e.MultiplyOp, n.convert(sums, f32), factor)
    return _rounded(n, scaled, n.broadcast(n.value(y + 1), shape_of(scaled)))


def _integer_matmul(n: OnnxNode) -> Sequence[Value]:
    left, right = _optional(n, 2), _optional(n, 3)
    a = _centered(n, n.value(0), left and _column(n, left))
    return [matmul(n, a, _centered(n, n.value(1), right))]


def _quantized_matmul(n: OnnxNode) -> Sequence[Value]:
    a = _centered(n, n.value(0), _column(n, n.value(2)))
    sums = matmul(n, a, _centered(n, n.value(3), n.value(5)))
    return [_rescaled(n, sums, [_column(n, n.value(1)), n.value(4)], 6)]


def _integer_convolution(
    n: OnnxNode, kernel: SSAValue, zeros: Sequence[SSAValue | None]
) -> SSAValue:
    """The kernel may have a zero point for each output channel."""
    window = window_of(n, shape_of(kernel)[2:])
    own = zeros[1]
    if own is not None and shape_of(own):
        ones = [1] * (len(shape_of(kernel)) - 1)
        own = n.reshape(own, [*shape_of(own), *ones])
    x = _centered(n, n.value(0), zeros[0])
    kernel = _centered(n, kernel, own)
    return convolve(n, x, kernel, window, n.integer("group", 1))


def _plain_convolution(n: OnnxNode) -> Sequence[Value]:
    zeros = [_optional(n, 2), _optional(n, 3)]
    return [_integer_convolution(n, n.value(1), zeros)]


def _quantized_convolution(n: OnnxNode) -> Sequence[Value]:
    sums = _integer_convolution(n, n.value(3), [n.value(2), n.value(5)])
    if n.has(8):
        bias = per_channel(n, n.value(8), shape_of(sums))
        sums = n.apply(e.AddOp, sums, bias)
    scale = n.value(4)
    if shape_of(scale):
        ones = [1] * (len(shape_of(sums)) - 2)
        scale = n.reshape(scale, [*shape_of(scale), *ones])
    return [_rescaled(n, sums, [n.value(1), scale], 6)]


CONVERSIONS: Mapping[str, Conversion] = {
    "ConvInteger": _plain_convolution,
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _integer_matmul,
    "QLinearConv": _quantized_convolution,
    "QLinearMatMul": _quantized_matmul,
    "QuantizeLinear": _quantize,
}
