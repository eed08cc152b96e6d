"""Computes transcendental functions of vectors, without branches.

In f32: polynomials and rational functions fitted here for the least relative error
(Remez' criterion, by Lawson's reweighting), with the usual reductions of the argument
(Cody and Waite, Software Manual for the Elementary Functions). Relative errors are at
most 3e-7 over the whole range, results that are subnormal have the last place right
within 2; infinities, NaN and signed zeros are as in C. In f64: the C library's
functions, element by element.
"""

from collections.abc import Sequence
from math import factorial, log, pi

from .code import Operand, Value

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693359375  # few bits: products with exponents are exact
LN2_LOW = log(2) - LN2_HIGH
ROUND = 12582912.0
"""1.5 * 2^23: adding it to an f32 leaves the rounded integer in the lowest bits."""

EXP = (0.49999993412420607, 0.16666520107135518, 0.04166839422721195,
       0.008368780474669059, 0.0013814466274255422)  # fmt: skip
"""(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2."""

LOG = (0.3333331260399265, -0.2500000959963835, 0.20002118662908383,
       -0.16667995843345984, 0.14219552278765132, -0.12405589062776123,
       0.11888162970531264, -0.11675651215087578, 0.06746638266196851)  # fmt: skip
"""(log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2)."""

TANH_TOP = (0.9999999986917398, 0.13679914318970224, 0.003868326829934508,
            2.8007441753194017e-05, 3.0584986002414766e-08,
            -1.2203442712957326e-11)  # fmt: skip
TANH_BOTTOM = (1.0, 0.4701324637958688, 0.0272458353910279, 0.00039386295503280564,
               1.2873654684744766e-06)  # fmt: skip
"""tanh(x) / x as a quotient of polynomials in x^2, for |x| <= 9.02."""

ERF_TOP = (1.1283791453747687, 0.19078340184829184, 0.05279021086831834,
           0.0037795846225287693, 0.00028480703623447054,
           2.041961600250982e-06)  # fmt: skip
ERF_BOTTOM = (1.0, 0.5024101074783721, 0.11425732805763242, 0.014997390391547669,
              0.001165204765881557, 3.800389610454517e-05)  # fmt: skip
"""erf(x) / x as a quotient of polynomials in x^2, for |x| <= 3.93."""

ERFC = (0.2820658874278265, 0.28282786025645734, 0.2389041904713579,
        0.22425934134989126, -0.09441953061326801, 0.41369947409028984,
        -0.6605822321766117, 0.4216296298291486, -0.12006853060390013,
        0.011683889397596738)  # fmt: skip
"""erfc(x) exp(x^2) / t in t = 1 / (1 + x / 2), for 0 <= x <= 10.2."""

SINE = tuple((-1) ** k / factorial(2 * k + 1) for k in range(7))
COSINE = tuple((-1) ** k / factorial(2 * k) for k in range(7))

HUGE = 2.0**40
"""From here on sine and cosine are left to the C library."""


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule. The lowest coefficient comes first."""
    *rest, last = coefficients
    result = x.code.number(last, x.element)
    for coefficient in reversed(rest):
        result = x.code.fma(x, result, coefficient)
    return result


def _at_least(x: Value, low: float) -> Value:
    """NaN stays."""
    return x.code.select(x.compare("olt", low), low, x)


def _at_most(x: Value, high: float) -> Value:
    return x.code.select(x.compare("ogt", high), high, x)


def _reduced(x: Value) -> tuple[Value, Value]:
    """`n` (an integer) and `r` with x = n ln(2) + r and |r| <= ln(2) / 2."""
    code = x.code
    shifted = code.fma(x, LOG2_E, ROUND)
    n = shifted - ROUND
    r = code.fma(n, -LN2_LOW, code.fma(n, -LN2_HIGH, x))
    return shifted.cast("bitcast", "i32") - 0x4B400000, r


def _power_of_two(n: Value) -> Value:
    """Of an integer from -126 to 127."""
    return ((n + 127) << 23).cast("bitcast", "float")


def exp(x: Value) -> Value:
    if x.element == "double":
        return x.code.each("exp", x)
    return _times_exp(x.code.number(1.0, "float"), x, 0.0)


def _times_exp(factor: Value, x: Value, rest: Operand) -> Value:
    """factor exp(x + rest), where the rest is less than a unit in `x`'s last place."""
    code = x.code
    n, r = _reduced(_at_most(_at_least(x, -104.0), 89.0))
    r = r + rest if rest else r
    part = code.fma(r * r, polynomial(r, EXP), r)
    result = code.fma(part, factor, factor)
    half = n.arithmetic_shift(1)  # in two steps: 2^n alone may be out of range
    return result * _power_of_two(half) * _power_of_two(n - half)


def expm1(x: Value) -> Value:
    """2^n (exp(r) - 1) + (2^n - 1)."""
    code = x.code
    if x.element == "double":
        return code.each("expm1", x)
    n, r = _reduced(_at_most(_at_least(x, -18.0), 89.0))
    part = code.fma(r * r, polynomial(r, EXP), r)
    # Half of everything: 2^128 is no float.
    scale = _power_of_two(n - 1)
    result = code.fma(scale, part, scale - 0.5) * 2.0
    return code.select(n.compare("eq", 0), _keep_sign(part, x), result)


def _keep_sign(result: Value, x: Value) -> Value:
    """`x` itself where it is zero."""
    return x.code.select(x.compare("oeq", 0.0), x, result)


def natural_log(x: Value) -> Value:
    code = x.code
    if x.element == "double":
        return code.each("log", x)
    is_small = x.compare("olt", 2.0**-126)
    scaled = code.select(is_small, x * 2.0**23, x)
    shift = code.select(is_small, code.number(23.0, "float"), 0.0)
    return _special_logs(x, _log_of_normal(scaled, shift))


def _log_of_normal(x: Value, shift: Value) -> Value:
    """log(x) - shift ln(2), for x positive and not subnormal."""
    code = x.code
    root = 0x3F3504F3  # bits of sqrt(1/2)
    bits = x.cast("bitcast", "i32") - root
    exponent = bits.arithmetic_shift(23).cast("sitofp", "float") - shift
    f = ((bits & 0x7FFFFF) + root).cast("bitcast", "float") - 1.0
    square = f * f
    tail = code.fma(square * f, polynomial(f, LOG), square * -0.5)
    return code.fma(exponent, LN2_HIGH, f + code.fma(exponent, LN2_LOW, tail))


def _special_logs(x: Value, result: Value) -> Value:
    """The logarithm of `x` where the formula does not hold."""
    code = x.code
    result = code.select(x.compare("oeq", float("inf")), x, result)
    result = code.select(x.compare("oeq", 0.0), float("-inf"), result)
    return code.select(x.compare("oge", 0.0), result, float("nan"))


def log1p(x: Value) -> Value:
    """log(u) + (x - (u - 1)) / u where u is 1 + x, rounded."""
    code = x.code
    if x.element == "double":
        return code.each("log1p", x)
    u = x + 1.0
    lost = (x - (u - 1.0)) / u
    result = _log_of_normal(u, code.number(0.0, "float")) + lost
    return code.select(u.compare("oeq", 1.0), x, _special_logs(u, result))


def tanh(x: Value) -> Value:
    if x.element == "double":
        return x.code.each("tanh", x)
    return _odd_ratio(x, 9.02, TANH_TOP, TANH_BOTTOM)


def erf(x: Value) -> Value:
    if x.element == "double":
        return x.code.each("erf", x)
    return _odd_ratio(x, 3.93, ERF_TOP, ERF_BOTTOM)


def _odd_ratio(
    x: Value, end: float, top: Sequence[float], bottom: Sequence[float]
) -> Value:
    """An odd function from -1 to 1, which it reaches at `end`: x P(x^2) / Q(x^2).

    From there on it is exactly 1: what multiplies 1 - tanh(x), as the gradient of a
    GELU does by x^3, would magnify an error in the last place without end.
    """
    code = x.code
    inside = _at_most(_at_least(x, -end), end)
    square = inside * inside
    result = inside * polynomial(square, top) / polynomial(square, bottom)
    result = _at_most(_at_least(result, -1.0), 1.0)
    result = code.select(x.compare("oge", end), 1.0, result)
    return code.select(x.compare("ole", -end), -1.0, result)


def erfc(x: Value) -> Value:
    """exp(-x^2) t P(t), and what x^2 and t lose by rounding; t P(t) is like t^2."""
    code = x.code
    if x.element == "double":
        return code.each("erfc", x)
    one = code.number(1.0, "float")
    size = _at_most(x.call("fabs"), 10.2)
    square = size * size
    half = size * 0.5
    t = one / (half + 1.0)
    lost = code.fma(-half, t, one - t)
    rest = code.fma(lost, 2.0, code.fma(-size, size, square))
    result = _times_exp(t * polynomial(t, ERFC), -square, rest)
    return code.select(
        x.compare("olt", 0.0), code.number(2.0, "float") - result, result
    )


def sine(x: Value) -> Value:
    return _periodic(x, "sin", 0)


def cosine(x: Value) -> Value:
    return _periodic(x, "cos", 1)


def _periodic(x: Value, name: str, quarter: int) -> Value:
    """Reduced in f64 to a quarter of the period around a multiple of pi / 2."""
    code = x.code
    if x.element == "double":
        return code.each(name, x)
    wide = x.cast("fpext", "double")
    round = 1.5 * 2.0**52
    shifted = code.fma(wide, 2 / pi, round)
    n = shifted - round
    low = 6.123233995736766e-17  # pi / 2 in more than one f64
    r = code.fma(n, -low, code.fma(n, -pi / 2, wide))
    quadrant = shifted.cast("bitcast", "i64") + quarter
    square = r * r
    is_odd = (quadrant & 1).compare("ne", 0)
    result = code.select(
        is_odd, polynomial(square, COSINE), r * polynomial(square, SINE)
    )
    result = code.select((quadrant & 2).compare("ne", 0), -result, result)
    slot = code.slot(result.cast("fptrunc", "float"))
    is_huge = ~x.call("fabs").compare("ole", HUGE)
    with code.when(any_lane(is_huge)):
        code.set(slot, code.each(f"{name}f", x))
    result = code.get(slot, "float", x.lanes)
    return _keep_sign(result, x) if name == "sin" else result


def any_lane(condition: Value) -> Value:
    if condition.lanes <= 1:
        return condition
    element = f"i{condition.lanes}"
    text = f"bitcast <{condition.lanes} x i1> {condition.text} to {element}"
    return condition.code.op(text, element, 1).compare("ne", 0)


def power(x: Value, y: Value) -> Value:
    """By multiplication for the exponents 1, 2 and 3, else by the C library."""
    if y.number in (1, 2, 3):
        return x if y.number == 1 else x * x if y.number == 2 else x * x * x
    return x.code.each("pow" if x.element == "double" else "powf", x, y)


def remainder(x: Value, y: Value) -> Value:
    return x.code.each("fmod" if x.element == "double" else "fmodf", x, y)
