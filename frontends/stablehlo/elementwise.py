"""Elementwise operations, those of CHLO too."""

import math
from collections.abc import Mapping
from functools import partial
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from ...dialects.tgraph import elementwise, reducing, shaping
from ...dialects.tgraph.base import (
    element_bytes,
    ints,
    shape_of,
    with_element,
    with_shape,
)
from ..builder import TensorBuilder
from ..unsupported import Unsupported
from ..written import FORMULAS, written_out
from .conversion import Conversion, Converter, Values, broadcast, same, type_of


def _square(c: Conversion) -> Values:
    (x,) = c.inputs
    return (c.emit(elementwise.MultiplyOp, (x, x)),)


def _compare(c: Conversion) -> Values:
    inputs = c.inputs
    if c.text("compare_type") == "TOTALORDER":
        inputs = [total_order(c, value) for value in inputs]
    direction = StringAttr(c.text("comparison_direction"))
    return (c.emit(elementwise.CompareOp, inputs, direction=direction),)


def total_order(c: Conversion, value: SSAValue) -> SSAValue:
    """Integers that are ordered as floats are by IEEE's total order.

    Of negative numbers all bits but the sign's are flipped.
    """
    type = type_of(value)
    if isinstance(type.element_type, IntegerType):
        return value
    width = 8 * element_bytes(type.element_type)
    to = with_element(type, IntegerType(width))
    bits = c.emit(elementwise.BitcastConvertOp, (value,), to)
    last = c.number(width - 1, to)
    sign = c.emit(elementwise.ShiftRightArithmeticOp, (bits, last), to)
    rest = c.number((1 << (width - 1)) - 1, to)
    mask = c.emit(elementwise.AndOp, (sign, rest), to)
    return c.emit(elementwise.XorOp, (bits, mask), to)


def _select(c: Conversion) -> Values:
    predicate, *values = c.inputs
    predicate = broadcast(c, predicate, c.result_type)
    return (c.emit(elementwise.SelectOp, (predicate, *values)),)


def _clamp(c: Conversion) -> Values:
    inputs = [broadcast(c, value, c.result_type) for value in c.inputs]
    return (c.emit(elementwise.ClampOp, inputs),)


def _batch_norm_inference(c: Conversion) -> Values:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset"""
    x, scale, offset, mean, variance = c.inputs
    channel, epsilon = type_of(variance), c.attribute("epsilon")
    assert isinstance(epsilon, FloatAttr)
    element = cast(AnyFloat, channel.element_type)
    number = FloatAttr(epsilon.value.data, element)
    small = c.emit(shaping.ConstantOp, (), channel, value=number)
    sum = c.emit(elementwise.AddOp, (variance, small), channel)
    deviation = c.emit(elementwise.SqrtOp, (sum,), channel)
    index = c.attribute("feature_index")
    assert isinstance(index, IntegerAttr)
    dims = ints((index.value.data,))
    for op_type, value in (
        (elementwise.SubtractOp, mean),
        (elementwise.DivideOp, deviation),
        (elementwise.MultiplyOp, scale),
        (elementwise.AddOp, offset),
    ):
        wide = c.emit(shaping.BroadcastInDimOp, (value,), broadcast_dimensions=dims)
        x = c.emit(op_type, (x, wide))
    return (x,)


def _bitcast_convert(c: Conversion) -> Values:
    """Between sizes: parts of a larger element lie along the last dimension."""
    (x,) = c.inputs
    source, target = type_of(x), c.result_type
    widths = [8 * element_bytes(t.element_type) for t in (source, target)]
    if widths[0] == widths[1]:
        return (c.emit(elementwise.BitcastConvertOp, (x,)),)
    narrow, wide = (IntegerType(width) for width in sorted(widths))
    parts = source if widths[0] < widths[1] else target
    space = with_element(parts, wide)  # one wide integer for each part
    dims = ints(range(parts.get_num_dims() - 1))
    last = IntegerAttr(parts.get_num_dims() - 1, i64)
    number = c.emit(shaping.IotaOp, (), space, dimension=last)
    size = c.number(narrow.bitwidth, space)
    shift = c.emit(elementwise.MultiplyOp, (number, size), space)
    if widths[0] > widths[1]:
        x = c.emit(elementwise.BitcastConvertOp, (x,), with_element(source, wide))
        x = c.emit(shaping.BroadcastInDimOp, (x,), space, broadcast_dimensions=dims)
        x = c.emit(elementwise.ShiftRightLogicalOp, (x, shift), space)
        x = c.emit(elementwise.ConvertOp, (x,), with_element(parts, narrow))
        return (c.emit(elementwise.BitcastConvertOp, (x,)),)
    x = c.emit(elementwise.BitcastConvertOp, (x,), with_element(parts, narrow))
    x = c.emit(elementwise.ConvertOp, (x,), space)
    ones = c.number((1 << narrow.bitwidth) - 1, space)
    x = c.emit(elementwise.AndOp, (x, ones), space)
    x = c.emit(elementwise.ShiftLeftOp, (x, shift), space)
    whole = with_shape(space, shape_of(parts)[:-1])
    dimension = ints([parts.get_num_dims() - 1])
    x = c.emit(
        reducing.ReduceOp, (x,), whole, kind=StringAttr("or"), dimensions=dimension
    )
    return (c.emit(elementwise.BitcastConvertOp, (x,)),)


_FLOATS: Mapping[tuple[int, int], Attribute] = {
    (5, 10): Float16Type(),
    (8, 7): BFloat16Type(),
    (8, 23): f32,
    (11, 52): Float64Type(),
}
"""By the bits of exponent and mantissa."""


def _reduce_precision(c: Conversion) -> Values:
    """To a type with as many bits, and back."""
    exponent, mantissa = (
        attr.value.data if isinstance(attr := c.attribute(name), IntegerAttr) else 0
        for name in ("exponent_bits", "mantissa_bits")
    )
    element = _FLOATS.get((exponent, mantissa))
    if element is None:
        raise Unsupported(f"to {exponent} exponent and {mantissa} mantissa bits")
    type = with_element(c.result_type, element)
    if element_bytes(element) >= element_bytes(c.result_type.element_type):
        return c.inputs
    narrow = c.emit(elementwise.ConvertOp, c.inputs, type)
    return (c.emit(elementwise.ConvertOp, (narrow,)),)


def _written_out(name: str, c: Conversion) -> Values:
    (x,) = c.inputs
    return (written_out(TensorBuilder(c.into, c.op.location), name, x),)


def _infinite(sign: int, c: Conversion) -> Values:
    """Whether elements are infinite, of the sign if that is not 0."""
    (x,) = c.inputs
    if not sign:
        x = c.emit(elementwise.AbsOp, (x,), type_of(x))
    infinity = c.number(math.copysign(math.inf, sign or 1), type_of(x))
    direction = StringAttr("EQ")
    return (c.emit(elementwise.CompareOp, (x, infinity), direction=direction),)


CONVERSIONS: Mapping[str, Converter] = {
    **{
        f"stablehlo.{op_type.name.removeprefix('tgraph.')}": partial(same, op_type)
        for op_type in elementwise.ELEMENTWISE_OPS
    },
    **{f"chlo.{name}": partial(_written_out, name) for name in FORMULAS},
    "chlo.erf": partial(same, elementwise.ErfOp),
    "chlo.erfc": partial(same, elementwise.ErfcOp),
    "chlo.is_inf": partial(_infinite, 0),
    "chlo.is_neg_inf": partial(_infinite, -1),
    "chlo.is_pos_inf": partial(_infinite, 1),
    "chlo.square": _square,
    "chlo.tan": partial(same, elementwise.TanOp),
    "stablehlo.batch_norm_inference": _batch_norm_inference,
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.select": _select,
}
