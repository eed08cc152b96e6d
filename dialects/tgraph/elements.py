"""What numbers the elements of a type are."""

from collections.abc import Mapping
from functools import cache
from math import inf
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    i1,
)
from xdsl.ir import Attribute

AnyInteger: TypeAlias = IntegerType[int, Signedness]

_FLOATS: Mapping[type[Attribute], tuple[int, int]] = {
    Float16Type: (5, 10),
    BFloat16Type: (8, 7),
    Float32Type: (8, 23),
    Float64Type: (11, 52),
}
"""Bits of the exponent and of the fraction."""


def is_integer(element: Attribute) -> bool:
    return isinstance(element, IntegerType | IndexType)


def is_float(element: Attribute) -> bool:
    """Whether this is a float type that programs compute with."""
    return type(element) in _FLOATS


def width_and_sign(element: Attribute) -> tuple[int, bool]:
    """The bits of an integer, and whether one of them is a sign; an `i1` is 0 or 1."""
    if isinstance(element, IndexType):
        return 64, True
    integer = cast(AnyInteger, element)
    is_unsigned = element == i1 or integer.signedness.data is Signedness.UNSIGNED
    return integer.width.data, not is_unsigned


def holds(wide: Attribute, narrow: Attribute) -> bool:
    """Whether each number of one element type is one of the other, too: f32 holds f16,
    bf16, and integers of up to 24 bits and a sign."""
    if wide == narrow:
        return is_integer(wide) or is_float(wide)
    if is_integer(narrow):
        width, signed = width_and_sign(narrow)
        digits = width - signed
        if is_integer(wide):
            room, has_sign = width_and_sign(wide)
            return has_sign >= signed and room - has_sign >= digits
        return is_float(wide) and _FLOATS[type(wide)][1] + 1 >= digits
    if not is_float(narrow) or not is_float(wide):
        return False
    pairs = zip(_FLOATS[type(wide)], _FLOATS[type(narrow)], strict=True)
    return all(bits >= needed for bits, needed in pairs)


def limits(element: Attribute) -> tuple[int, int]:
    """The smallest and the largest integer of the type."""
    bits, is_signed = width_and_sign(element)
    if not is_signed:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def identity(kind: str, element: Attribute) -> float | int:
    """The number `e` with `e kind x == x` for a reduction's kind."""
    if kind in ("add", "or"):
        return 0
    if kind == "multiply":
        return 1
    if is_integer(element):
        low, high = limits(element)
        all_ones = high if low == 0 else -1
        return {"and": all_ones, "maximum": low, "minimum": high}[kind]
    return -inf if kind == "maximum" else inf


@cache
def number_of(number: float, element_type: Attribute) -> IntegerAttr | FloatAttr:
    """A number as the attribute that a constant of the type holds."""
    if isinstance(element_type, AnyFloat):
        return FloatAttr(float(number), element_type)
    return IntegerAttr(int(number), cast(IntegerType, element_type))
