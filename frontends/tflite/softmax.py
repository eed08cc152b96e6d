"""Converts softmax and log-softmax, for integers in fixed point as in LiteRT's kernels.

The reference kernels compute exponentials of differences from the largest element of a
row, in 31 bits, and their sum in 19 bits. Softmax then divides by Newton's method, and
log-softmax computes the logarithm of the sum by a quotient of polynomials. The
conversion uses elementwise arithmetic on 64-bit integers, which can be fused.
"""

from collections.abc import Mapping, Sequence
from math import floor

import numpy as np
from xdsl.dialects.builtin import i8, i32, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import element_type, shape_of
from ..formulas import clamp, log_softmax, softmax
from ..operators import Value
from ..unsupported import Unsupported
from ..written import Writer
from .fixed_point import (
    BITS,
    ONE,
    Term,
    factored,
    half,
    product,
    reciprocal,
    rounding_shift,
    scaled,
    shifted,
)
from .interpolation import interpolated
from .node import Conversion, TFLiteNode

_DIFFERENCE_BITS = 26  # fraction bits of a difference
_SUM_BITS = 12  # by how many bits a sum has fewer than an exponential
_QUARTER = 1 << (_DIFFERENCE_BITS - 2)
_EIGHTH = 1895147668
"""e^(-1/8), in 31 bits."""

_THIRD = 715827883
_POWERS = (
    1672461947,
    1302514674,
    790015084,
    290630308,
    39332535,
    720401,
    242,
)
"""e^-x for x = 1/4, 1/2, 1, ... 16, in 31 bits."""

_LOG_BITS = 25  # fraction bits of a logarithm, before it is doubled
_LOG_2, _ROOT, _FOURTH_ROOT = 1488522236, 1518500250, 1805811301
"""log(2), and 1/2 to the power of 1/2 and of 1/4, in 31 bits."""

_ABOVE = 117049297
_BELOW, _BELOW_SQUARE, _BELOW_REST = 1057819769, 127690142, 638450708
"""Coefficients of the polynomials of a logarithm, in 31 bits."""

_LOWEST = -128


def _exponential(x: Term, counts: Term | None) -> Term:
    """e^x in 31 bits, for x <= 0 in 26 bits: a polynomial around -1/8 times powers.

    The result is 0 where `counts` is false.
    """
    rest = (x & (_QUARTER - 1)) - _QUARTER
    a = rest * (1 << (BITS - _DIFFERENCE_BITS)) + (1 << (BITS - 3))
    square = product(a, a)
    cube, fourth = product(square, a), product(square, square)
    third = product(rounding_shift(fourth, 2) + cube, _THIRD)
    result = product(a + rounding_shift(third + square, 1), _EIGHTH) + _EIGHTH
    for bit, power in enumerate(_POWERS):
        is_clear = ((rest - x) & (_QUARTER << bit)).equals(0)
        result = result.where(is_clear, product(result, power))
    result = x.of(ONE).where(x.equals(0), result)
    return result.where(counts) if counts else result


def _logarithm(x: Term) -> Term:
    """log(x) in 26 bits, for x >= 1 in 19 bits.

    It is the sum of the logarithms of a number near 1, in 31 bits, and of a power of
    two whose exponent is a multiple of 1/2 plus 1/4.
    """
    zeros = x.apply(e.CountLeadingZerosOp) - 32
    whole = product(x.apply(e.ShiftLeftOp, zeros - 1), _ROOT) * 2
    part_zeros = product(x, _ROOT).apply(e.CountLeadingZerosOp) - 33
    part = x.apply(e.ShiftLeftOp, part_zeros)
    number = whole.apply(e.MinimumOp, part).apply(e.MinimumOp, ONE)
    quarter = 1 << (_LOG_BITS - 2)
    exponent = ((_SUM_BITS - zeros) * (1 << _LOG_BITS) + quarter).apply(
        e.MaximumOp, (_SUM_BITS - part_zeros) * (1 << _LOG_BITS) - quarter
    )
    middle = shifted(number + (_FOURTH_ROOT + 1), 1)
    away = (number - _FOURTH_ROOT) * 2
    square = product(away, away)
    above = product(away, number) + product(product(away, square), _ABOVE)
    below = product(middle, product(square, _BELOW_SQUARE) + away + _BELOW)
    below = below + product(away, _BELOW_REST)
    near = product(rounding_shift(above, BITS - _LOG_BITS), reciprocal(below))
    return (product(exponent, _LOG_2) + near) * 2


def _differences(
    n: TFLiteNode, x: SSAValue, axis: int, beta: float
) -> tuple[Term, Term | None]:
    """The differences from the largest element of each row, in 26 bits, and which of
    them LiteRT counts; None if all.
    """
    wide = n.convert(x, i32)
    largest = n.reduce("maximum", wide, [axis], keep=True)
    steps = Writer(n).term(n.convert(n.apply(e.SubtractOp, wide, largest), i64))
    factor = beta * float(n.tensor(0).scale) * (1 << _DIFFERENCE_BITS)
    number, shift = (int(part) for part in factored(min(factor, float(ONE))))
    differences = product(steps * (1 << shift), number)
    reach = floor(31 * (1 << _DIFFERENCE_BITS) / (1 << shift))
    return differences, steps >= -reach if reach < 255 else None


def _summed(n: TFLiteNode, powers: Term, axis: int) -> SSAValue:
    """The sums of rows, in 19 bits; rows stay as a dimension of size 1."""
    parts = n.convert(rounding_shift(powers, _SUM_BITS).value, i32)
    return n.reduce("add", parts, [axis], keep=True)


def _of_integers(n: TFLiteNode, x: SSAValue, axis: int, beta: float) -> SSAValue:
    source, result = n.tensor(0), n.results[0]
    if result.dtype != source.dtype or source.dtype.name not in ("int8", "uint8"):
        raise Unsupported(f"from {source.kind} to {result.kind}")
    term = Writer(n).term
    powers = _exponential(*_differences(n, x, axis, beta))
    total = n.broadcast(_summed(n, powers, axis), shape_of(x))
    # The sum is a number from 1 to 2, times 2^(bits - zeros).
    zeros = term(n.convert(n.emit(e.CountLeadingZerosOp, total), i64))
    above = term(n.convert(total, i64)).apply(e.ShiftLeftOp, zeros) - (ONE + 1)
    bits = _SUM_BITS + BITS - 8 - zeros
    shares = product(powers, reciprocal(above))
    limits = np.iinfo(result.dtype)
    y = shifted(shares + half(bits), bits) + limits.min
    y = clamp(n, y.value, limits.min, limits.max)
    return n.convert(y, element_type(result.dtype))


_LOG_SCALE, _LOG_ZERO = 1 / 16, 127
"""The scale and zero point of logarithms, which are from -16 to 0."""


def _log_of_integers(n: TFLiteNode, x: SSAValue, axis: int) -> SSAValue:
    result = n.results[0]
    if {n.tensor(0).kind, result.kind} != {"INT8"}:
        raise Unsupported(f"from {n.tensor(0).kind} to {result.kind}")
    if (result.scale, result.zero) != (_LOG_SCALE, _LOG_ZERO):
        raise Unsupported(
            f"with scale {result.scale} and zero point {result.zero} of the result, "
            f"expected {_LOG_SCALE} and {_LOG_ZERO}"
        )
    term = Writer(n).term
    differences, counts = _differences(n, x, axis, 1)
    total = _summed(n, _exponential(differences, counts), axis)
    log = _logarithm(term(n.convert(total, i64)))
    log = term(n.broadcast(log.value, shape_of(x)))
    y = rounding_shift(differences - log, _DIFFERENCE_BITS - 4) + _LOG_ZERO
    y = term(clamp(n, y.value, _LOWEST, -_LOWEST - 1))
    y = y.where(counts, _LOWEST) if counts else y
    return n.convert(y.value, i8)


_REACH = 10.0
"""The largest difference from the largest element at which 16-bit integers count."""


def _of_16_bits(n: TFLiteNode, x: SSAValue, axis: int, beta: float) -> SSAValue:
    """Interpolates exponentials and the reciprocal of their sum, in 15 bits."""
    numbers, shape, top = n.convert(x, i32), shape_of(x), (1 << 15) - 1
    largest = n.reduce("maximum", numbers, [axis], keep=True)
    factor = float(n.tensor(0).scale) * beta / (_REACH / ((1 << 16) - 1))
    steps = scaled(n, n.apply(e.SubtractOp, numbers, largest), factor)
    steps = n.apply(e.AddOp, n.convert(steps, i32), top)
    clamped = Writer(n).term(clamp(n, steps, -top - 1, top))
    powers = interpolated(n, clamped, np.exp, -_REACH, 0)
    total = n.reduce("add", powers.value, [axis], keep=True)
    term = Writer(n).term
    zeros = term(n.convert(n.emit(e.CountLeadingZerosOp, total), i64))
    above = term(n.convert(total, i64)).apply(e.ShiftLeftOp, zeros - 1)
    above = shifted(above + (1 << 13), 14) - ((1 << 15) + (1 << 16))
    place = term(n.convert(clamp(n, above.value, -top - 1, top), i32))
    inverse = interpolated(n, place, lambda x: 1 / (1 + x), 0, 1)
    bits, inverse = (
        term(n.broadcast(n.convert(value, i64), shape))
        for value in ((31 - zeros).value, inverse.value)
    )
    shares = term(n.convert(powers.value, i64)) * inverse
    y = clamp(n, shifted(shares + half(bits), bits).value, 0, top)
    return n.convert(y, element_type(n.results[0].dtype))


def _softmax(n: TFLiteNode) -> Sequence[Value]:
    x, beta = n.value(0), n.option("Beta")
    axis = len(shape_of(x)) - 1
    if n.is_quantized and {n.tensor(0).kind, n.results[0].kind} == {"INT16"}:
        return [_of_16_bits(n, x, axis, beta)]
    if n.is_quantized:
        return [_of_integers(n, x, axis, beta)]
    return [softmax(n, x if beta == 1 else n.apply(e.MultiplyOp, x, beta), axis)]


def _log_softmax(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    axis = len(shape_of(x)) - 1
    if n.is_quantized:
        return [_log_of_integers(n, x, axis)]
    return [log_softmax(n, x, axis)]


CONVERSIONS: Mapping[str, Conversion] = {
    "LOG_SOFTMAX": _log_softmax,
    "SOFTMAX": _softmax,
}
