"""Sums of products of quantized tensors, exact in 32-bit integers.

Zero points are factored out of the sums, so that operands stay 8-bit numbers:

    Σ (x - zx) (w - zw)  =  Σ x w  -  zx Σ w  -  zw (Σ x - count * zx)

Sums of constants are constants. Padding with zeros equals padding with the zero point
only if the latter is 0, so signed numbers with zero point -128 become unsigned.
"""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import SSAValue

from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph.base import with_element
from ..dialects.tgraph.elements import ui8
from .builder import shape_of, type_of
from .operators import Known, OperatorBuilder, Value

HALF = 128
"""The difference between an unsigned 8-bit number and its signed form."""

LEAST = -HALF
"""The least signed 8-bit number."""


def to_signed(b: OperatorBuilder, x: Value) -> Value:
    """Converts unsigned 8-bit numbers to signed ones by subtracting 128."""
    if isinstance(x, Known) and x.argument is None:
        return Known((x.array.astype(np.int32) - HALF).astype(np.int8))
    wide = b.convert(b.materialize(x), i32)
    return b.convert(b.apply(e.SubtractOp, wide, HALF), i8)


def to_unsigned(b: OperatorBuilder, x: SSAValue) -> SSAValue:
    """Converts signed 8-bit numbers to unsigned ones by adding 128."""
    unsigned = with_element(type_of(x), ui8)
    x = b.apply(e.XorOp, x, LEAST)
    return b.emit(e.BitcastConvertOp, x, type=unsigned)


def centered(b: OperatorBuilder, x: Value, zero: Value) -> Value:
    """8-bit numbers minus their zero point, in 32 bits; for constants, in 16 bits."""
    if isinstance(x, Known) and isinstance(zero, Known):
        return Known((x.array.astype(np.int32) - zero.array).astype(np.int16))
    return b.apply(e.SubtractOp, b.convert(b.materialize(x), i32), b.materialize(zero))


def reshaped(b: OperatorBuilder, value: Value, shape: Sequence[int]) -> Value:
    if isinstance(value, Known):
        return Known(value.array.reshape(shape))
    return b.reshape(value, shape)


def sizes_of(value: Value) -> Sequence[int]:
    return value.array.shape if isinstance(value, Known) else shape_of(value)


def summed(b: OperatorBuilder, value: Value, axes: Sequence[int]) -> Value:
    """The sums of 8-bit numbers along `axes`, which stay as dimensions of size 1."""
    if isinstance(value, Known):
        return Known(value.array.sum(tuple(axes), np.int32, keepdims=True))
    return b.reduce("add", b.convert(value, i32), axes, keep=True)


def minus_zero_point(
    b: OperatorBuilder, sums: Value, zero: Value, others: Value
) -> SSAValue:
    """The sums minus the contribution of a zero point: `zero` times `others`."""
    if isinstance(zero, Known) and isinstance(others, Known):
        taken = b.constant(zero.array * others.array)
    else:
        taken = b.apply(e.MultiplyOp, b.materialize(zero), b.materialize(others))
    return b.apply(e.SubtractOp, b.materialize(sums), taken)


def without_zero_points(
    b: OperatorBuilder,
    sums: SSAValue,
    zeros: tuple[Value | None, Value | None],
    of_second: Callable[[], Value],
    of_first: Callable[[], Value],
    count: int,
) -> SSAValue:
    """The sums of products minus the contributions of both zero points; None means 0.

    of_second, of_first: return the sums of one operand alone, of `count` elements each.
    """
    own, other = zeros
    if own is not None:
        sums = minus_zero_point(b, sums, own, of_second())
    if other is not None:
        alone = of_first()
        if own is not None:
            alone = minus_zero_point(b, alone, own, Known(np.array(count, np.int32)))
        sums = minus_zero_point(b, sums, other, alone)
    return sums
