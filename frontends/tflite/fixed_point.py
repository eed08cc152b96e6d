"""Arithmetic on quantized integers, rounded as in LiteRT's reference kernels.

A real factor is a 31-bit number times a power of two. A product with it is rounded
twice: when it is shifted right by 31 bits, ties upward, and when it is divided by the
remaining power of two, ties away from 0. Functions of 8-bit integers are tables.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import with_element
from ...dialects.tgraph.elements import ui8
from ...dialects.tgraph.terms import Term as AnyTerm
from ..builder import element_type, type_of
from ..formulas import clamp, compare
from ..unsupported import Unsupported
from .node import TFLiteNode
from .reading import Tensor

BITS = 31
"""The number of bits of a factor's number."""

ONE = (1 << BITS) - 1


Term: TypeAlias = AnyTerm[SSAValue]


def shifted(x: Term, bits: Term | int) -> Term:
    """`x` shifted right by `bits`, rounded down."""
    return x.apply(e.ShiftRightArithmeticOp, bits)


def product(a: Term, b: Term | int) -> Term:
    """The product of fractions in 31 bits, as 64-bit integers, rounded, ties upward."""
    return shifted(a * b + (1 << (BITS - 1)), BITS)


def rounding_shift(x: Term, bits: int) -> Term:
    """Divides by 2^bits and rounds, ties away from 0."""
    return shifted(x + (1 << (bits - 1)) + shifted(x, 63), bits)


def half(bits: Term) -> Term:
    """Half of 2^bits, rounded down."""
    return shifted(bits.of(1).apply(e.ShiftLeftOp, bits), 1)


def reciprocal(x: Term) -> Term:
    """1 / (1 + x) in 31 bits, for x in 31 bits, by three steps of Newton's method."""
    half = shifted(x + (ONE + 1), 1)
    guess = product(half, -1010580540) + 1515870810
    for _ in range(3):
        rest = (1 << (BITS - 2)) - product(half, guess)
        guess = guess + product(guess, rest) * 4
    return (guess * 2).apply(e.MinimumOp, ONE)


def factored(real: Array | np.floating[Any] | float) -> tuple[Array, Array]:
    """Splits real factors into numbers below 2^31 and exponents.

    The factors are number * 2^(exponent - 31).
    """
    fraction, exponent = np.frexp(np.asarray(real, np.float64))
    number = np.floor(fraction * (1 << BITS) + 0.5).astype(np.int64)
    is_full = number == 1 << BITS
    number = np.where(is_full, 1 << (BITS - 1), number)
    exponent = exponent.astype(np.int64) + is_full
    is_tiny = exponent < -BITS
    return np.where(is_tiny, 0, number), np.where(is_tiny, 0, exponent)


def scaled(
    n: TFLiteNode, x: SSAValue, real: Array | np.floating[Any] | float
) -> SSAValue:
    """32-bit integers times real factors, as 64-bit integers."""
    return scaled_by(n, x, *factored(real))


def scaled_by(n: TFLiteNode, x: SSAValue, number: Array, exponent: Array) -> SSAValue:
    """32-bit integers times factors, given as by `factored`.

    There is one factor, or one for each index of the last dimension.
    """
    x = n.convert(x, i64)
    if np.all(number == 1 << (BITS - 1)) and np.all(exponent == 1):
        return x
    left, right = np.maximum(exponent, 0), np.maximum(-exponent, 0)
    product = n.apply(e.MultiplyOp, x, n.constant(np.asarray(number << left)))
    half = n.apply(e.AddOp, product, 1 << (BITS - 1))
    high = n.apply(e.ShiftRightArithmeticOp, half, BITS)
    if not right.any():
        return high
    up = np.asarray((1 << right) >> 1)
    down = np.asarray(np.maximum(up - 1, 0))
    is_negative = compare(n, high, "LT", 0)
    nudge = n.apply(e.SelectOp, is_negative, n.constant(down), n.constant(up))
    nudged = n.apply(e.AddOp, high, nudge)
    return n.apply(e.ShiftRightArithmeticOp, nudged, n.constant(np.asarray(right)))


def multiplied(n: TFLiteNode, x: SSAValue, real: Array) -> SSAValue:
    """32-bit integers times real factors in double precision, rounded, ties away from
    0, as in LiteRT's fully connected layers.
    """
    product = n.apply(e.MultiplyOp, n.convert(x, f64), n.constant(real))
    return n.convert(n.emit(e.RoundNearestAfzOp, product), i64)


def scaled_sums(n: TFLiteNode, x: SSAValue, real: Array) -> SSAValue:
    """64-bit sums times factors, given by 15-bit numbers and exponents, rounded once,
    ties upward, as in LiteRT's products of 16-bit integers.
    """
    number, exponent = factored(real)
    number = np.minimum((number + (1 << 15)) >> 16, (1 << 15) - 1)
    bits = 15 - exponent
    product = n.apply(e.MultiplyOp, x, n.constant(number))
    half = n.constant(np.asarray(np.int64(1) << (bits - 1)))
    rounded = n.apply(e.AddOp, product, half)
    return n.apply(e.ShiftRightArithmeticOp, rounded, n.constant(np.asarray(bits)))


def range_of(n: TFLiteNode, low: float | None, high: float | None) -> tuple[int, int]:
    """The integers of the result that represent real numbers from `low` to `high`."""
    result = n.results[0]
    info = _limits(result)

    def quantized(real: float) -> int:
        steps = float(np.float32(real) / result.scale)
        return result.zero + int(np.copysign(np.floor(abs(steps) + 0.5), steps))

    return (
        info.min if low is None else max(info.min, quantized(low)),
        info.max if high is None else min(info.max, quantized(high)),
    )


def _limits(tensor: Tensor) -> "np.iinfo[np.int8]":
    if tensor.dtype.name not in ("int8", "uint8", "int16"):
        raise Unsupported(f"with quantized elements of type {tensor.kind}")
    return np.iinfo(tensor.dtype)


def expect_8_bits(n: TFLiteNode) -> None:
    """Rejects 16-bit integers, for which LiteRT uses other arithmetic."""
    for tensor in (n.tensor(0), n.results[0]):
        if tensor.is_quantized and tensor.dtype.itemsize != 1:
            raise Unsupported(f"with quantized elements of type {tensor.kind}")


def saturated(n: TFLiteNode, x: SSAValue) -> SSAValue:
    """The result of integers in its scale: adds its zero point, and clamps to the range
    of the fused activation.
    """
    return limited(n, x, *range_of(n, *n.limits))


def limited(n: TFLiteNode, x: SSAValue, low: int, high: int) -> SSAValue:
    """The result of integers in its scale: adds its zero point, and clamps."""
    result = n.results[0]
    x = n.apply(e.AddOp, x, result.zero) if result.zero else x
    return n.convert(clamp(n, x, low, high), element_type(result.dtype))


def table(n: TFLiteNode, function: Callable[[Array], Array]) -> SSAValue:
    """Looks up the result for each 8-bit integer of the first input.

    `function` maps an array of all inputs to an array of 64-bit results.
    """
    expect_8_bits(n)
    source, result = n.tensor(0), n.results[0]
    numbers, limits = _limits(source), _limits(result)
    found = function(np.arange(numbers.min, numbers.max + 1))
    clipped = np.clip(found, limits.min, limits.max).astype(result.dtype)
    x = n.value(0)
    if source.dtype.name == "int8":  # indices are unsigned: 0 to 127, -128 to -1
        clipped = np.roll(clipped, 128)
        unsigned = with_element(type_of(x), ui8)
        x = n.emit(e.BitcastConvertOp, x, type=unsigned)
    return n.take(n.constant(clipped), x, 0)


def on_reals(
    n: TFLiteNode, function: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """Converts a function of floats to one of quantized integers.

    Where the function is NaN, the result is the least integer.
    """
    source, result = n.tensor(0), n.results[0]

    def of_integers(numbers: Array) -> Array:
        real = source.scale * (numbers - source.zero).astype(np.float32)
        with np.errstate(all="ignore"):
            steps = function(real).astype(np.float32) * (np.float32(1) / result.scale)
        most = float(1 << BITS)
        steps = np.nan_to_num(steps, nan=-most, posinf=most, neginf=-most)
        return round_away(np.clip(steps, -most, most)) + result.zero

    return of_integers


def round_away(x: Array) -> Array:
    """The nearest integers, ties away from 0."""
    return nearest(x).astype(np.int64)


def nearest(x: Array) -> Array:
    """The nearest integers as floats in double precision, ties away from 0."""
    return np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)
