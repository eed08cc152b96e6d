"""Computes transcendental functions of vectors, without branches.

Polynomials and rational functions are fitted here for the least relative error (Remez'
criterion), with the usual reductions of the argument (Cody and Waite, Software Manual
for the Elementary Functions). In f32, relative errors are at most 3e-7 over the whole
range, and subnormal results are within 2 units in the last place. In f64, results are
within 3 units in the last place. Infinities, NaN and signed zeros are as in C.
Functions without polynomials here (erf and erfc in f64) call the C library for each
element.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi, tan

from .code import Operand, Value

LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class _Format:
    """The bit layout of a float type, and the constants of its functions."""

    integer: str
    """The integer type of the same size."""
    fraction: int
    """The bits of the fraction, below those of the exponent."""
    bias: int
    """The bias of the exponent."""
    root: int
    """The bits of sqrt(1/2)."""
    ln2: tuple[float, float]
    """ln(2) as a sum."""
    exp: Sequence[float]
    """(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, as a polynomial."""
    lowest: float
    """Up to this argument, exp is 0."""
    highest: float
    """From this argument on, exp is infinite."""
    last: float
    """Up to this argument, expm1 is -1."""

    @property
    def round(self) -> float:
        """Adding it to a float leaves the rounded integer in the lowest bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def integer_of_round(self) -> int:
        """The bits of `round`."""
        return self.bits_of(self.fraction) + (1 << (self.fraction - 1))

    @property
    def least(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    def bits_of(self, exponent: int) -> int:
        """The bits of 2^exponent; of infinity for the exponent after the largest."""
        return (exponent + self.bias) << self.fraction


FORMATS = {
    "float": _Format(
        integer="i32",
        fraction=23,
        bias=127,
        root=0x3F3504F3,
        ln2=(0.693359375, log(2) - 0.693359375),
        exp=(0.49999993412420607, 0.16666520107135518, 0.04166839422721195,
             0.008368780474669059, 0.0013814466274255422),
        lowest=-104.0,
        highest=89.0,
        last=-18.0,
    ),
    "double": _Format(
        integer="i64",
        fraction=52,
        bias=1023,
        root=0x3FE6A09E667F3BCD,
        ln2=(log(2), 2.3190468138462996e-17),
        exp=(0.5000000000000001, 0.16666666666666674, 0.04166666666662412,
             0.008333333333322217, 0.0013888888917215057, 0.00019841269886557576,
             2.480152129418443e-05, 2.7557242377671555e-06, 2.7620089181319404e-07,
             2.511003372003628e-08),
        lowest=-746.0,
        highest=710.0,
        last=-38.0,
    ),
}  # fmt: skip

LOG = (0.3333331260399265, -0.2500000959963835, 0.20002118662908383,
       -0.16667995843345984, 0.14219552278765132, -0.12405589062776123,
       0.11888162970531264, -0.11675651215087578, 0.06746638266196851)  # fmt: skip
"""(log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2), in f32."""

LOG_RATIO = (0.666666666666667, 0.39999999999898195, 0.28571428626511897,
             0.2222221105450893, 0.18182894550963372, 0.15331552770237564,
             0.1461841791267271)  # fmt: skip
"""(log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, for s = f / (2 + f), in f64."""

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

SINE = (-0.16666666666666666, 0.008333333333330948, -0.00019841269836757403,
        2.7557316101788237e-06, -2.5051131660353042e-08,
        1.5918114526223876e-10)  # fmt: skip
"""(sin(r) - r) / r^3 in r^2, for |r| <= pi / 4, in f64."""

COSINE = (0.041666666666666664, -0.0013888888888887398, 2.4801587298764784e-05,
          -2.755731727117469e-07, 2.0876146138622263e-09,
          -1.138262226162858e-11)  # fmt: skip
"""(cos(r) - 1 + r^2 / 2) / r^4 in r^2, for |r| <= pi / 4, in f64."""

ATAN = {
    "float": (-0.3333333175381697, 0.1999953879477192, -0.14263897112598675,
              0.1074309966767457, -0.06449835224591496),
    "double": (-0.3333333333333333, 0.1999999999999548, -0.14285714284657894,
               0.11111111014561013, -0.09090904549884611, 0.07692182535116648,
               -0.06664502215671447, 0.058580687568615106, -0.05085030492810941,
               0.03921955253259129, -0.019162068915902577),
}  # fmt: skip
"""(atan(t) - t) / t^3 in t^2, for |t| <= tan(pi / 8)."""

QUARTER = pi / 2, 6.123233995736766e-17, -1.4973849048591698e-33
"""pi / 2 as a sum of three f64."""

HUGE = {"float": 2.0**40, "double": 2.0**30}
"""From this argument on, the C library computes sine, cosine, and tangent."""


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluates a polynomial by Horner's rule. The lowest coefficient comes first."""
    *rest, last = coefficients
    result = x.code.number(last, x.element)
    for coefficient in reversed(rest):
        result = x.code.fma(x, result, coefficient)
    return result


def _at_least(x: Value, low: float) -> Value:
    """`x`, but at least `low`; NaN stays NaN."""
    return x.code.select(x.compare("olt", low), low, x)


def _at_most(x: Value, high: float) -> Value:
    return x.code.select(x.compare("ogt", high), high, x)


def _reduced(x: Value) -> tuple[Value, Value]:
    """`n` (an integer) and `r` with x = n ln(2) + r and |r| <= ln(2) / 2."""
    code, form = x.code, FORMATS[x.element]
    shifted = code.fma(x, LOG2_E, form.round)
    n = shifted - form.round
    r = x
    for part in form.ln2:
        r = code.fma(n, -part, r)
    return shifted.cast("bitcast", form.integer) - form.integer_of_round, r


def _power_of_two(n: Value, element: str) -> Value:
    """2^n, where the integer `n` is the exponent of a normal number."""
    form = FORMATS[element]
    return ((n + form.bias) << form.fraction).cast("bitcast", element)


def exp(x: Value) -> Value:
    return _times_exp(x.code.number(1.0, x.element), x, 0.0)


def _times_exp(factor: Value, x: Value, rest: Operand) -> Value:
    """factor exp(x + rest), with `rest` below one unit in the last place of `x`.
    The factor is positive."""
    code, form = x.code, FORMATS[x.element]
    n, r = _reduced(_at_most(_at_least(x, form.lowest), form.highest))
    r = r + rest if rest else r
    part = code.fma(r * r, polynomial(r, form.exp), r)
    result = code.fma(part, factor, factor)
    bits = result.cast("bitcast", form.integer) + (n << form.fraction)
    return code.select(x.is_nan, x, _in_range(bits, x.element))


def _in_range(bits: Value, element: str) -> Value:
    """The positive float with the exponent and fraction in `bits`, where the exponent
    may be out of range: infinity if it is too large, else a subnormal number or zero.

    Integer arithmetic makes the subnormal numbers. A multiplication with a subnormal
    result takes a hundred cycles or more on many processors, and exp(x) is subnormal or
    zero wherever attention is masked.
    """
    code, form = bits.code, FORMATS[element]
    infinite, least = form.bits_of(form.bias + 1), form.bits_of(1 - form.bias)
    bits = code.select(bits.compare("sgt", infinite), infinite, bits)
    is_tiny = bits.compare("slt", least)
    # A sum with 2^fraction is rounded to an integer number of least subnormals.
    multiple = code.select(is_tiny, bits, least) + form.bits_of(form.fraction - 1)
    rounded = multiple.cast("bitcast", element) + 2.0**form.fraction
    subnormal = rounded.cast("bitcast", form.integer) - form.bits_of(form.fraction)
    return code.select(is_tiny, subnormal, bits).cast("bitcast", element)


def expm1(x: Value) -> Value:
    """2^n (exp(r) - 1) + (2^n - 1)."""
    code, form = x.code, FORMATS[x.element]
    n, r = _reduced(_at_most(_at_least(x, form.last), form.highest))
    part = code.fma(r * r, polynomial(r, form.exp), r)
    # Computes half of the result, as 2^128 is not an f32.
    scale = _power_of_two(n - 1, x.element)
    result = code.fma(scale, part, scale - 0.5) * 2.0
    return code.select(n.compare("eq", 0), _keep_sign(part, x), result)


def _keep_sign(result: Value, x: Value) -> Value:
    """`x` itself where it is zero, otherwise `result`."""
    return x.code.select(x.compare("oeq", 0.0), x, result)


def natural_log(x: Value) -> Value:
    code, form = x.code, FORMATS[x.element]
    is_small = x.compare("olt", form.least)
    scaled = code.select(is_small, x * 2.0**form.fraction, x)
    shift = code.select(is_small, code.number(form.fraction, x.element), 0.0)
    return _special_logs(x, _log_of_normal(scaled, shift))


def _log_of_normal(x: Value, shift: Value) -> Value:
    """log(x) - shift ln(2), for x positive and not subnormal."""
    code, form = x.code, FORMATS[x.element]
    bits = x.cast("bitcast", form.integer) - form.root
    exponent = bits.arithmetic_shift(form.fraction).cast("sitofp", x.element) - shift
    fraction = (bits & ((1 << form.fraction) - 1)) + form.root
    f = fraction.cast("bitcast", x.element) - 1.0
    high, low = form.ln2
    return code.fma(exponent, high, f + code.fma(exponent, low, _log_tail(f)))


def _log_tail(f: Value) -> Value:
    """log(1 + f) - f, for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    code = f.code
    square = f * f
    if f.element == "float":
        return code.fma(square * f, polynomial(f, LOG), square * -0.5)
    s = f / (f + 2.0)
    z = s * s
    half = square * 0.5
    return code.fma(s, code.fma(z, polynomial(z, LOG_RATIO), half), -half)


def _special_logs(x: Value, result: Value) -> Value:
    """The logarithm of `x`: `result`, or a special value."""
    code = x.code
    result = code.select(x.compare("oeq", float("inf")), x, result)
    result = code.select(x.compare("oeq", 0.0), float("-inf"), result)
    return code.select(x.compare("oge", 0.0), result, float("nan"))


def log1p(x: Value) -> Value:
    """log(u) + (x - (u - 1)) / u, where u is 1 + x, rounded."""
    code = x.code
    u = x + 1.0
    lost = (x - (u - 1.0)) / u
    result = _log_of_normal(u, code.number(0.0, x.element)) + lost
    return code.select(u.compare("oeq", 1.0), x, _special_logs(u, result))


def tanh(x: Value) -> Value:
    if x.element == "float":
        return _odd_ratio(x, 9.02, TANH_TOP, TANH_BOTTOM)
    t = expm1(_at_most(x.call("fabs") * 2.0, 44.0))
    return (t / (t + 2.0)).call("copysign", x)


def erf(x: Value) -> Value:
    if x.element == "double":
        return x.code.each("erf", x)
    return _odd_ratio(x, 3.93, ERF_TOP, ERF_BOTTOM)


def _odd_ratio(
    x: Value, end: float, top: Sequence[float], bottom: Sequence[float]
) -> Value:
    """An odd function from -1 to 1, which it reaches at `end`: x P(x^2) / Q(x^2).

    Beyond `end` it is exactly 1. Where 1 - tanh(x) is multiplied by large factors, such
    as x^3 in the gradient of a GELU, an error in the last place would be magnified
    without limit.
    """
    code = x.code
    inside = _at_most(_at_least(x, -end), end)
    square = inside * inside
    result = inside * polynomial(square, top) / polynomial(square, bottom)
    result = _at_most(_at_least(result, -1.0), 1.0)
    result = code.select(x.compare("oge", end), 1.0, result)
    return code.select(x.compare("ole", -end), -1.0, result)


def erfc(x: Value) -> Value:
    """exp(-x^2) t P(t), corrected for rounding in x^2 and t; t P(t) is like t^2."""
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
    return _keep_sign(_periodic(x, "sin", _at_quadrant), x)


def cosine(x: Value) -> Value:
    return _periodic(x, "cos", lambda n, sin, cos: _at_quadrant(n + 1, sin, cos))


def tangent(x: Value) -> Value:
    return _keep_sign(_periodic(x, "tan", _slope_at_quadrant), x)


def _at_quadrant(n: Value, sin: Value, cos: Value) -> Value:
    """sin(r + n pi / 2), from the sine and the cosine of r."""
    result = n.code.select(_is_odd(n), cos, sin)
    return n.code.select((n & 2).compare("ne", 0), -result, result)


def _slope_at_quadrant(n: Value, sin: Value, cos: Value) -> Value:
    """tan(r + n pi / 2)."""
    select, is_odd = n.code.select, _is_odd(n)
    return select(is_odd, -cos, sin) / select(is_odd, sin, cos)


def _is_odd(n: Value) -> Value:
    return (n & 1).compare("ne", 0)


def _periodic(
    x: Value, name: str, of_parts: Callable[[Value, Value, Value], Value]
) -> Value:
    """A function of x = r + n pi / 2 with |r| <= pi / 4, from n, sin(r) and cos(r), in
    f64. The C library computes it for large arguments."""
    code, form = x.code, FORMATS["double"]
    is_narrow = x.element == "float"
    wide = x.cast("fpext", "double") if is_narrow else x
    shifted = code.fma(wide, 2 / pi, form.round)
    n, r = shifted - form.round, wide
    for part in QUARTER[: 2 if is_narrow else 3]:
        r = code.fma(n, -part, r)
    square = r * r
    one = code.number(1.0, "double")
    cosines = code.fma(square * square, polynomial(square, COSINE), one - square * 0.5)
    sines = code.fma(square * r, polynomial(square, SINE), r)
    result = of_parts(shifted.cast("bitcast", "i64"), sines, cosines)
    result = result.cast("fptrunc", "float") if is_narrow else result
    slot = code.slot(result)
    is_huge = ~x.call("fabs").compare("ole", HUGE[x.element])
    with code.when(any_lane(is_huge)):
        code.set(slot, code.each(f"{name}f" if is_narrow else name, x))
    return code.get(slot, x.element, x.lanes)


def arctangent(y: Value, x: Value) -> Value:
    """The angle of (x, y): the arctangent of a ratio of at most 1, from 0 to pi / 4,
    turned into the octant of (x, y)."""
    code = x.code
    width, height = x.call("fabs"), y.call("fabs")
    is_steep = height.compare("ogt", width)
    most = code.select(is_steep, height, width)
    ratio = code.select(is_steep, width, height) / most
    ratio = code.select(width.compare("oeq", height), 1.0, ratio)  # both infinite
    ratio = code.select(most.compare("oeq", 0.0), 0.0, ratio)
    is_far = ratio.compare("ogt", tan(pi / 8))
    t = code.select(is_far, (ratio - 1.0) / (ratio + 1.0), ratio)
    square = t * t
    angle = code.fma(square * t, polynomial(square, ATAN[x.element]), t)
    angle = code.select(is_far, angle + pi / 4, angle)
    angle = code.select(is_steep, -angle + pi / 2, angle)
    is_left = x.cast("bitcast", FORMATS[x.element].integer).compare("slt", 0)
    angle = code.select(is_left, -angle + pi, angle)
    angle = angle.call("copysign", y)
    return code.select(x.compare("uno", y), x + y, angle)


def any_lane(condition: Value) -> Value:
    if condition.lanes <= 1:
        return condition
    element = f"i{condition.lanes}"
    text = f"bitcast <{condition.lanes} x i1> {condition.text} to {element}"
    return condition.code.op(text, element, 1).compare("ne", 0)


def power(x: Value, y: Value) -> Value:
    """By multiplication for the exponents 1, 2 and 3, otherwise by the C library."""
    if y.number in (1, 2, 3):
        return x if y.number == 1 else x * x if y.number == 2 else x * x * x
    return x.code.each("pow" if x.element == "double" else "powf", x, y)


def remainder(x: Value, y: Value) -> Value:
    return x.code.each("fmod" if x.element == "double" else "fmodf", x, y)
