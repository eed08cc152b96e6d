"""Element types: ranges, widths, and types for storage only.

Elements of storage types (f8, f6 and f4 of any kind, i4, i2) take a byte each. Programs
move them, convert them, and read them in contractions. All other arithmetic is done
after conversion to f32 or i8.
"""

from collections.abc import Mapping
from functools import cache
from math import inf
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ComplexType,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    f32,
    i1,
)
from xdsl.ir import Attribute

AnyInteger: TypeAlias = IntegerType[int, Signedness]

ui8 = IntegerType(8, Signedness.UNSIGNED)

_STORED_FLOATS: Mapping[type[Attribute], tuple[int, int]] = {
    Float4E2M1FNType: (2, 1),
    Float6E2M3FNType: (2, 3),
    Float6E3M2FNType: (3, 2),
    Float8E3M4Type: (3, 4),
    Float8E4M3B11FNUZType: (4, 3),
    Float8E4M3FNType: (4, 3),
    Float8E4M3FNUZType: (4, 3),
    Float8E4M3Type: (4, 3),
    Float8E5M2FNUZType: (5, 2),
    Float8E5M2Type: (5, 2),
    Float8E8M0FNUType: (8, 0),
}

_FLOATS: Mapping[type[Attribute], tuple[int, int]] = {
    **_STORED_FLOATS,
    Float16Type: (5, 10),
    BFloat16Type: (8, 7),
    Float32Type: (8, 23),
    Float64Type: (11, 52),
}
"""The bits of the exponent and of the fraction."""

_STORED_WIDTHS = (2, 4)
"""The widths of integer storage types."""


def is_integer(element: Attribute) -> bool:
    return isinstance(element, IntegerType | IndexType)


def is_float(element: Attribute) -> bool:
    """Whether `element` is a float type that programs can use."""
    return type(element) in _FLOATS


def float_bits(element: Attribute) -> tuple[int, int]:
    """The bits of a float's exponent and fraction."""
    return _FLOATS[type(element)]


def is_stored(element: Attribute) -> bool:
    """Whether `element` is a storage type; see the module's docstring."""
    if isinstance(element, IntegerType):
        return cast(AnyInteger, element).width.data in _STORED_WIDTHS
    return type(element) in _STORED_FLOATS


def computed_type(element: Attribute) -> Attribute:
    """The type in which arithmetic on elements is done: wider for storage types."""
    if not is_stored(element):
        return element
    if not isinstance(element, IntegerType):
        return f32
    return IntegerType(8, cast(AnyInteger, element).signedness)


def is_complex(element: Attribute) -> bool:
    return isinstance(element, ComplexType)


def real_element(element: Attribute) -> Attribute:
    """The type of a complex number's parts; other types are returned unchanged."""
    return cast(ComplexType, element).element_type if is_complex(element) else element


def width_and_sign(element: Attribute) -> tuple[int, bool]:
    """The bits of an integer type, and whether it has a sign bit; `i1` has none."""
    if isinstance(element, IndexType):
        return 64, True
    integer = cast(AnyInteger, element)
    is_unsigned = element == i1 or integer.signedness.data is Signedness.UNSIGNED
    return integer.width.data, not is_unsigned


def holds(wide: Attribute, narrow: Attribute) -> bool:
    """Whether each number of type `narrow` is also one of type `wide`: f32 holds f16,
    bf16, and integers of up to 24 bits plus a sign."""
    if wide == narrow:
        return is_integer(wide) or is_float(wide)
    if type(wide) in _STORED_FLOATS:  # some lack infinities, zeros or signs
        return False
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
    """The number `e` with `e kind x == x` for the kind of a reduction."""
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
    """The attribute of a constant with this number."""
    if isinstance(element_type, AnyFloat):
        return FloatAttr(float(number), element_type)
    return IntegerAttr(int(number), cast(IntegerType, element_type))
