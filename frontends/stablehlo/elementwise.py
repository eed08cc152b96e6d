"""Converts elementwise operations of StableHLO and CHLO."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    StringAttr,
)
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise
from ...dialects.tgraph.base import (
    TensorOp,
    with_element,
)
from ...dialects.tgraph.elements import (
    AnyInteger,
    float_bits,
    is_complex,
    real_element,
)
from ..builder import TensorBuilder
from ..formulas import bitcast, compare, conjugate, next_after, total_order
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


def _bitcast_convert(c: Conversion) -> Values:
    (x,) = c.inputs
    return (bitcast(TensorBuilder(c.into, c.op.location), x, c.result_type),)


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
    return (next_after(TensorBuilder(c.into, c.op.location), *c.inputs),)


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
