"""Converts elementwise operations of StableHLO and CHLO."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from ...dialects.tgraph import elementwise, reducing, shaping
from ...dialects.tgraph.base import (
    TensorOp,
    element_bytes,
    ints,
    shape_of,
    with_element,
    with_shape,
)
from ...dialects.tgraph.elements import (
    AnyInteger,
    float_bits,
    is_complex,
    real_element,
)
from ..builder import TensorBuilder
from ..formulas import compare, conjugate, total_order
from ..unsupported import Unsupported
from ..written import FORMULAS, magnitude, unit, written_out
from .conversion import Conversion, Converter, Values, broadcast, same, type_of


def _square(c: Conversion) -> Values:
    (x,) = c.inputs
    return (c.emit(elementwise.MultiplyOp, (x, x)),)


def _compare(c: Conversion) -> Values:
    inputs = c.inputs
    if c.text("compare_type") == "TOTALORDER":
        b = TensorBuilder(c.into, c.op.location)
        inputs = [total_order(b, value) for value in inputs]
    direction = StringAttr(c.text("comparison_direction"))
    return (c.emit(elementwise.CompareOp, inputs, direction=direction),)


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
    """If sizes differ, the last dimension has the parts of a larger element."""
    (x,) = c.inputs
    source, target = type_of(x), c.result_type
    widths = [_width(t.element_type) for t in (source, target)]
    if widths[0] == widths[1]:
        return (c.emit(elementwise.BitcastConvertOp, (x,)),)
    narrow, wide = (IntegerType(width) for width in sorted(widths))
    # For integers of less than a byte, a conversion of the value is a bitcast.
    recast = (
        elementwise.ConvertOp if narrow.bitwidth < 8 else elementwise.BitcastConvertOp
    )
    parts = source if widths[0] < widths[1] else target
    space = with_element(parts, wide)  # a wide integer for each part
    dims = ints(range(parts.get_num_dims() - 1))
    last = IntegerAttr(parts.get_num_dims() - 1, i64)
    number = c.emit(shaping.IotaOp, (), space, dimension=last)
    size = c.number(narrow.bitwidth, space)
    ones = c.number((1 << narrow.bitwidth) - 1, space)
    shift = c.emit(elementwise.MultiplyOp, (number, size), space)
    if widths[0] > widths[1]:
        x = c.emit(elementwise.BitcastConvertOp, (x,), with_element(source, wide))
        x = c.emit(shaping.BroadcastInDimOp, (x,), space, broadcast_dimensions=dims)
        x = c.emit(elementwise.ShiftRightLogicalOp, (x, shift), space)
        x = c.emit(elementwise.AndOp, (x, ones), space)
        x = c.emit(elementwise.ConvertOp, (x,), with_element(parts, narrow))
        return (c.emit(recast, (x,)),)
    x = c.emit(recast, (x,), with_element(parts, narrow))
    x = c.emit(elementwise.ConvertOp, (x,), space)
    x = c.emit(elementwise.AndOp, (x, ones), space)
    x = c.emit(elementwise.ShiftLeftOp, (x, shift), space)
    whole = with_shape(space, shape_of(parts)[:-1])
    dimension = ints([parts.get_num_dims() - 1])
    x = c.emit(
        reducing.ReduceOp, (x,), whole, kind=StringAttr("or"), dimensions=dimension
    )
    return (c.emit(elementwise.BitcastConvertOp, (x,)),)


def _width(element: Attribute) -> int:
    """The bits of an element that can be split into others, or be a part of one."""
    if isinstance(element, IntegerType):
        return element.bitwidth
    if is_complex(element) or cast(AnyFloat, element).bitwidth < 8:
        raise Unsupported(f"with elements of type {element}")
    return 8 * element_bytes(element)


def _reduce_precision(c: Conversion) -> Values:
    """Works on the bits, like XLA: numbers with too small an exponent become zero,
    those with too large an exponent infinity. NaN becomes infinity if there are no
    mantissa bits, as in StableHLO's interpreter.
    """
    (x,) = c.inputs
    element = type_of(x).element_type
    own_exponent, own_mantissa = float_bits(element)
    exponent = c.number_in("exponent_bits", 0)
    mantissa = c.number_in("mantissa_bits", 0)
    b = TensorBuilder(c.into, c.op.location)
    width = 1 + own_exponent + own_mantissa
    type = with_element(type_of(x), IntegerType(width, Signedness.UNSIGNED))
    bits = b.emit(elementwise.BitcastConvertOp, x, type=type)
    sign = b.apply(elementwise.AndOp, bits, 1 << (width - 1))
    infinity = ((1 << own_exponent) - 1) << own_mantissa
    signed_infinity = b.apply(elementwise.OrOp, sign, infinity)
    if (dropped := own_mantissa - mantissa) > 0:  # ties to even
        last = b.apply(elementwise.ShiftRightLogicalOp, bits, dropped)
        last = b.apply(elementwise.AndOp, last, 1)
        bits = b.apply(elementwise.AddOp, bits, last)
        bits = b.apply(elementwise.AddOp, bits, (1 << (dropped - 1)) - 1)
        kept = (1 << width) - (1 << dropped)
        bits = b.apply(elementwise.AndOp, bits, kept)
    if exponent < own_exponent:
        bias, own_bias = ((1 << (e - 1)) - 1 for e in (exponent, own_exponent))
        found = b.apply(elementwise.AndOp, bits, infinity)
        is_over = compare(b, found, "GT", (own_bias + bias) << own_mantissa)
        is_under = compare(b, found, "LE", (own_bias - bias) << own_mantissa)
        bits = b.apply(elementwise.SelectOp, is_under, sign, bits)
        bits = b.apply(elementwise.SelectOp, is_over, signed_infinity, bits)
    result = b.emit(elementwise.BitcastConvertOp, bits, type=type_of(x))
    of_nan = x
    if not mantissa:
        of_nan = b.emit(elementwise.BitcastConvertOp, signed_infinity, type=type_of(x))
    is_nan = compare(b, x, "NE", x)
    return (b.apply(elementwise.SelectOp, is_nan, of_nan, result),)


def _map(c: Conversion) -> Values:
    return c.applied(0, c.inputs)


def _mulhi(c: Conversion) -> Values:
    """The upper half of the product's bits (for 64 bits, Hacker's Delight, 8-2)."""
    x, y = c.inputs
    element = cast(AnyInteger, type_of(x).element_type)
    is_signed = element.signedness.data is not Signedness.UNSIGNED
    shift = (
        elementwise.ShiftRightArithmeticOp
        if is_signed
        else elementwise.ShiftRightLogicalOp
    )
    b = TensorBuilder(c.into, c.op.location)
    if (width := element.width.data) < 64:
        wide = IntegerType(max(8, 2 * width), element.signedness.data)
        both = b.convert(x, wide), b.convert(y, wide)
        upper = b.apply(shift, b.apply(elementwise.MultiplyOp, *both), width)
        return (b.convert(upper, element),)

    def low(value: SSAValue) -> SSAValue:
        return b.apply(elementwise.AndOp, value, (1 << 32) - 1)

    def high(value: SSAValue) -> SSAValue:
        return b.apply(shift, value, 32)

    def product(u: SSAValue, v: SSAValue) -> SSAValue:
        return b.apply(elementwise.MultiplyOp, u, v)

    def sum(u: SSAValue, v: SSAValue) -> SSAValue:
        return b.apply(elementwise.AddOp, u, v)

    lowest = b.apply(elementwise.ShiftRightLogicalOp, product(low(x), low(y)), 32)
    middle = sum(product(high(x), low(y)), lowest)
    other = sum(product(low(x), high(y)), low(middle))
    highest = sum(product(high(x), high(y)), high(middle))
    return (sum(highest, high(other)),)


def _written_out(name: str, c: Conversion) -> Values:
    return (written_out(TensorBuilder(c.into, c.op.location), name, *c.inputs),)


def _next_after(c: Conversion) -> Values:
    """The next number from x towards y, computed on the bits of x."""
    x, y = c.inputs
    type = c.result_type
    width = 8 * element_bytes(type.element_type)
    integers = with_element(type, IntegerType(width))
    flags = with_element(type, i1)

    def compare(x: SSAValue, direction: str, y: SSAValue) -> SSAValue:
        return c.emit(
            elementwise.CompareOp, (x, y), flags, direction=StringAttr(direction)
        )

    def select(condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        return c.emit(elementwise.SelectOp, (condition, x, y), type_of(x))

    zero = c.number(0, type)
    bits = c.emit(elementwise.BitcastConvertOp, (x,), integers)
    is_outward = c.emit(
        elementwise.XorOp, (compare(x, "LT", y), compare(x, "LT", zero)), flags
    )
    step = select(is_outward, c.number(1, integers), c.number(-1, integers))
    moved = c.emit(elementwise.AddOp, (bits, step), integers)
    moved = c.emit(elementwise.BitcastConvertOp, (moved,))
    # From zero, the next number is the smallest one with the sign of y.
    below = c.number(1 - (1 << (width - 1)), integers)
    least = select(compare(y, "LT", zero), below, c.number(1, integers))
    least = c.emit(elementwise.BitcastConvertOp, (least,))
    moved = select(compare(x, "EQ", zero), least, moved)
    moved = select(compare(x, "EQ", y), y, moved)
    moved = select(compare(x, "NE", x), x, moved)
    return (select(compare(y, "NE", y), y, moved),)


def _infinite(sign: int, c: Conversion) -> Values:
    """Whether elements are infinite, with this sign unless it is 0."""
    (x,) = c.inputs
    if not sign:
        x = c.emit(elementwise.AbsOp, (x,), type_of(x))
    infinity = c.number(math.copysign(math.inf, sign or 1), type_of(x))
    direction = StringAttr("EQ")
    return (c.emit(elementwise.CompareOp, (x, infinity), direction=direction),)


def _on_complex(
    op_type: type[TensorOp], write: Callable[[TensorBuilder, SSAValue], SSAValue]
) -> Converter:
    """Emits `op_type`; complex numbers are converted by `write` instead."""

    def convert(c: Conversion) -> Values:
        (x,) = c.inputs
        if not is_complex(type_of(x).element_type):
            return same(op_type, c)
        return (write(TensorBuilder(c.into, c.op.location), x),)

    return convert


def _convert(c: Conversion) -> Values:
    """A conversion from complex to real numbers takes the real part."""
    (x,) = c.inputs
    element = type_of(x).element_type
    if is_complex(element) and not is_complex(c.result_type.element_type):
        type = with_element(type_of(x), real_element(element))
        x = c.emit(elementwise.RealOp, (x,), type)
    return (c.emit(elementwise.ConvertOp, (x,)),)


def _part(op_type: type[TensorOp], c: Conversion) -> Values:
    """The real part of a real number is itself; its imaginary part is zero."""
    (x,) = c.inputs
    if is_complex(type_of(x).element_type):
        return same(op_type, c)
    return c.inputs if op_type is elementwise.RealOp else (c.number(0, type_of(x)),)


def _conjugate(c: Conversion) -> Values:
    return (conjugate(TensorBuilder(c.into, c.op.location), *c.inputs),)


CONVERSIONS: Mapping[str, Converter] = {
    **{
        f"stablehlo.{op_type.name.removeprefix('tgraph.')}": partial(same, op_type)
        for op_type in elementwise.ELEMENTWISE_OPS
    },
    **{f"chlo.{name}": partial(_written_out, name) for name in FORMULAS},
    "chlo.conj": _conjugate,
    "chlo.erf": partial(same, elementwise.ErfOp),
    "chlo.erfc": partial(same, elementwise.ErfcOp),
    "chlo.is_inf": partial(_infinite, 0),
    "chlo.is_neg_inf": partial(_infinite, -1),
    "chlo.is_pos_inf": partial(_infinite, 1),
    "chlo.mulhi": _mulhi,
    "chlo.next_after": _next_after,
    "chlo.square": _square,
    "chlo.tan": partial(same, elementwise.TanOp),
    "stablehlo.abs": _on_complex(elementwise.AbsOp, magnitude),
    "stablehlo.batch_norm_inference": _batch_norm_inference,
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.imag": partial(_part, elementwise.ImagOp),
    "stablehlo.map": _map,
    "stablehlo.real": partial(_part, elementwise.RealOp),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.select": _select,
    "stablehlo.sign": _on_complex(elementwise.SignOp, unit),
}
