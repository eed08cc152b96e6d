"""ONNX's quantized tensors → tgraph: (x - zero point) * scale.

Operations other than products (quantized_products.py) are computed in floats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import IntegerType, f32, f64
from xdsl.ir import Attribute, SSAValue

from ...dialects.dtypes import AnyInteger
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.elements import is_float, is_stored, limits, ui8
from ..builder import axis_of, element_type, shape_of, type_of
from ..formulas import clamp, compare
from ..operators import Value
from ..unsupported import Unsupported
from . import elementwise, reducing, shaping
from .elementwise import converted
from .node import Conversion, OnnxNode


def _along(n: OnnxNode, x: SSAValue, values: SSAValue) -> SSAValue:
    """Broadcasts scales or zero points to the shape of `x`.

    `values` has one number, one for each index of an axis, or one for each block of
    `block_size` indices.
    """
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
    return [rounded(n, scaled, _along(n, x, zero))]


def rounded(n: OnnxNode, x: SSAValue, zero: SSAValue) -> SSAValue:
    """saturate(round(x) + zero point), in the zero point's type. For f8 and f4, the
    conversion does the rounding."""
    element = type_of(zero).element_type
    if is_stored(element) and is_float(element):
        shift = n.convert(zero, type_of(x).element_type)
        return converted(n, n.apply(e.AddOp, x, shift), element)
    target = cast(AnyInteger, element)
    if not isinstance(element, IntegerType) or target.width.data > 16:
        raise Unsupported(f"to elements of type {element}")
    rounded = n.emit(e.RoundNearestEvenOp, x)
    shift = n.convert(zero, type_of(x).element_type)
    return _saturated(n, n.apply(e.AddOp, rounded, shift), target)


def _saturated(n: OnnxNode, x: SSAValue, target: Attribute) -> SSAValue:
    return n.convert(clamp(n, x, *limits(target)), target)


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


def by_own_range(n: OnnxNode, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Quantizes `x` to u8. Returns the numbers, their scale and their zero point.

    The range covers 0 and all elements of `x`. If all are 0, the scale is 1, as in
    onnxruntime.
    """
    axes = range(len(shape_of(x)))
    least = n.apply(e.MinimumOp, n.reduce("minimum", x, axes), 0)
    most = n.apply(e.MaximumOp, n.reduce("maximum", x, axes), 0)
    scale = n.apply(e.DivideOp, n.apply(e.SubtractOp, most, least), 255)
    one = n.splat(1, type_of(scale))
    scale = n.apply(e.SelectOp, compare(n, scale, "EQ", 0), one, scale)
    first = n.apply(e.NegateOp, n.apply(e.DivideOp, least, scale))
    zero = _saturated(n, n.emit(e.RoundNearestEvenOp, first), ui8)
    scaled = n.apply(e.DivideOp, x, scale)
    return rounded(n, scaled, n.broadcast(zero, shape_of(x))), scale, zero


def _dynamic(n: OnnxNode) -> Sequence[Value]:
    return by_own_range(n, n.value(0))


# Operations on real numbers


def _at(n: OnnxNode, first: int) -> SSAValue:
    """Dequantizes three inputs: elements, a scale and a zero point, from `first` on."""
    (real,) = _dequantize(replace(n, inputs=n.inputs[first : first + 3], attributes={}))
    return n.materialize(real)


def zero_point(n: OnnxNode, index: int, like: int = 0) -> SSAValue:
    """Input `index` as a scalar; without it, 0 in the element type of input `like`."""
    if n.has(index):
        return n.reshape(n.value(index), ())
    return n.full(0, type_of(n.value(like)).element_type, ())


def quantized(n: OnnxNode, real: SSAValue, scale: int, like: int = 0) -> SSAValue:
    """Quantizes real numbers by input `scale` and the zero point in the next input."""
    scaled = n.apply(e.DivideOp, real, n.reshape(n.value(scale), ()))
    zero = zero_point(n, scale + 1, like)
    return rounded(n, scaled, n.broadcast(zero, shape_of(real)))


def _on_real_numbers(conversion: Conversion) -> Conversion:
    def convert(n: OnnxNode) -> Sequence[Value]:
        opset = n.integer("opset", n.opset)
        (real,) = conversion(replace(n, inputs=[_at(n, 0)], opset=opset))
        return [quantized(n, n.materialize(real), 3)]

    return convert


def _concatenate(n: OnnxNode) -> Sequence[Value]:
    """The first two inputs are the scale and the zero point of the result."""
    inputs = [_at(n, first) for first in range(2, len(n.inputs), 3)]
    (real,) = shaping.CONVERSIONS["Concat"](replace(n, inputs=inputs))
    return [quantized(n, n.materialize(real), 0, like=2)]


def _scale(n: OnnxNode, index: int) -> SSAValue:
    return n.convert(n.reshape(n.value(index), ()), f32)


def _zero(n: OnnxNode, index: int) -> SSAValue:
    return n.convert(zero_point(n, index), f32)


def _whole(n: OnnxNode, x: SSAValue) -> Sequence[Value]:
    """Rounds and saturates to the zero point's type. `x` is in steps of the scale."""
    target = type_of(zero_point(n, 7)).element_type
    return [_saturated(n, n.emit(e.RoundNearestEvenOp, x), target)]


def _add(n: OnnxNode) -> Sequence[Value]:
    """Rounds as onnxruntime does: a * p + (b * q + r), where p, q and r are computed
    first. A product and its sum are rounded once."""
    p, q = (n.apply(e.DivideOp, _scale(n, at), _scale(n, 6)) for at in (1, 4))
    taken = n.apply(e.MultiplyOp, p, _zero(n, 2))
    taken = n.apply(e.AddOp, taken, n.apply(e.MultiplyOp, q, _zero(n, 5)))
    r = n.apply(e.SubtractOp, _zero(n, 7), taken)
    return _whole(n, _fused(n, n.value(0), p, _fused(n, n.value(3), q, r)))


def _fused(n: OnnxNode, x: SSAValue, factor: SSAValue, more: SSAValue) -> SSAValue:
    x, factor, more = (n.convert(value, f64) for value in (x, factor, more))
    product = n.apply(e.MultiplyOp, x, factor)  # exact
    return n.convert(n.apply(e.AddOp, product, more), f32)


def _multiply(n: OnnxNode) -> Sequence[Value]:
    """Rounds as onnxruntime does: after it adds the zero point."""
    scale = n.apply(e.MultiplyOp, _scale(n, 1), _scale(n, 4))
    scale = n.apply(e.DivideOp, scale, _scale(n, 6))
    a, b = (
        n.apply(e.SubtractOp, n.convert(n.value(at), f32), _zero(n, at + 2))
        for at in (0, 3)
    )
    product = n.apply(e.MultiplyOp, n.apply(e.MultiplyOp, a, b), scale)
    return _whole(n, n.apply(e.AddOp, product, _zero(n, 7)))


CONVERSIONS: Mapping[str, Conversion] = {
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "QuantizeLinear": _quantize,
    "com.microsoft.DequantizeLinear": _dequantize,
    "com.microsoft.QLinearAdd": _add,
    "com.microsoft.QLinearConcat": _concatenate,
    "com.microsoft.QLinearLeakyRelu": _on_real_numbers(
        elementwise.CONVERSIONS["LeakyRelu"]
    ),
    "com.microsoft.QLinearMul": _multiply,
    "com.microsoft.QLinearSigmoid": _on_real_numbers(
        elementwise.CONVERSIONS["Sigmoid"]
    ),
    "com.microsoft.QLinearSoftmax": _on_real_numbers(reducing.CONVERSIONS["Softmax"]),
    "com.microsoft.QuantizeLinear": _quantize,
}
