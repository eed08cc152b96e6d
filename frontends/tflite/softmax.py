"""Softmax; of integers by fixed-point numbers, as LiteRT's reference kernel has it.

That kernel takes e^x of differences from the largest element of a row, in 31 bits. It
adds them up in 19 bits, and divides by Newton's method. All of this is arithmetic on
integers of 64 bits, one element at a time, of which nothing is stored.
"""

from collections.abc import Mapping, Sequence
from math import floor

import numpy as np
from xdsl.dialects.builtin import i32, i64
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
    divided,
    factored,
    half,
    product,
    reciprocal,
    scaled,
    shifted,
)
from .interpolation import interpolated
from .node import Conversion, TFLiteNode

_DIFFERENCE_BITS = 26  # of a difference's fraction
_SUM_BITS = 12  # fewer than of an exponential
_QUARTER = 1 << (_DIFFERENCE_BITS - 2)
_EIGHTH = 1895147668
"""e^-1/8, in 31 bits."""

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


def _exponential(x: Term) -> Term:
    """e^x in 31 bits, for x <= 0 in 26: by a polynomial around -1/8, and by powers."""
    rest = (x & (_QUARTER - 1)) - _QUARTER
    a = rest * (1 << (BITS - _DIFFERENCE_BITS)) + (1 << (BITS - 3))
    square = product(a, a)
    cube, fourth = product(square, a), product(square, square)
    third = product(divided(fourth, 2) + cube, _THIRD)
    result = product(a + divided(third + square, 1), _EIGHTH) + _EIGHTH
    for bit, power in enumerate(_POWERS):
        is_clear = ((rest - x) & (_QUARTER << bit)).equals(0)
        result = result.where(is_clear, product(result, power))
    return x.of(ONE).where(x.equals(0), result)


def _of_integers(n: TFLiteNode, x: SSAValue, axis: int, beta: float) -> SSAValue:
    source, result = n.tensor(0), n.results[0]
    if result.dtype != source.dtype or source.dtype.name not in ("int8", "uint8"):
        raise Unsupported(f"of {source.kind} as {result.kind}")
    term, shape = Writer(n).term, shape_of(x)
    wide = n.convert(x, i32)
    largest = n.reduce("maximum", wide, [axis], keep=True)
    steps = term(n.convert(n.apply(e.SubtractOp, wide, largest), i64))
    factor = min(beta * float(source.scale) * (1 << _DIFFERENCE_BITS), float(ONE))
    number, shift = (int(part) for part in factored(factor))
    powers = _exponential(product(steps * (1 << shift), number))
    reach = floor(31 * (1 << _DIFFERENCE_BITS) / (1 << shift))
    if reach < 255:  # steps; LiteRT counts no exponentials beyond
        powers = powers.where(steps >= -reach)
    parts = n.convert(divided(powers, _SUM_BITS).value, i32)
    total = n.broadcast(n.reduce("add", parts, [axis], keep=True), shape)
    # The sum is a number from 1 to 2, times 2 to the power of bits - zeros.
    zeros = term(n.convert(n.emit(e.CountLeadingZerosOp, total), i64))
    above = term(n.convert(total, i64)).apply(e.ShiftLeftOp, zeros) - (ONE + 1)
    bits = _SUM_BITS + BITS - 8 - zeros
    shares = product(powers, reciprocal(above))
    limits = np.iinfo(result.dtype)
    y = shifted(shares + half(bits), bits) + limits.min
    y = clamp(n, y.value, limits.min, limits.max)
    return n.convert(y, element_type(result.dtype))


_REACH = 10.0
"""How far below the largest element 16-bit numbers count."""


def _of_16_bits(n: TFLiteNode, x: SSAValue, axis: int, beta: float) -> SSAValue:
    """Exponentials and the reciprocal of their sum are between entries of tables, in 15
    bits."""
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
    if n.is_quantized:
        raise Unsupported("with quantized elements")
    x = n.value(0)
    return [log_softmax(n, x, len(shape_of(x)) - 1)]


CONVERSIONS: Mapping[str, Conversion] = {
    "LOG_SOFTMAX": _log_softmax,
    "SOFTMAX": _softmax,
}
