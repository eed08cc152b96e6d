"""Functions of complex numbers as formulas over their real and imaginary parts.

The formulas follow W. Kahan ("Branch Cuts for Complex Elementary Functions", 1987).
Their errors are a few units in the last place of the larger part: at most 4e-7 of the
magnitude in f32. Intermediate values do not overflow. Infinities and signed zeros are
as in C, except that tanh(x) for an infinite imaginary part keeps a real part of 1.
"""

from collections.abc import Mapping
from math import inf, nan
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute

from . import elementwise as ew
from .elements import real_element
from .formulas import Formula, Scalars
from .terms import AnyTerm, cos, exp, expm1, log, log1p, sin, sqrt, tan

Parts: TypeAlias = tuple[AnyTerm, AnyTerm]


def _writer(x: AnyTerm) -> Scalars[Any]:
    return cast(Scalars[Any], x.builder)


def _parts(z: AnyTerm) -> Parts:
    element = real_element(z.element)
    real, imag = (_writer(z).parts(kind, element, z) for kind in (ew.RealOp, ew.ImagOp))
    return real, imag


def _complex(element: Attribute, real: AnyTerm, imag: AnyTerm) -> AnyTerm:
    return _writer(real).parts(ew.ComplexOp, element, real, imag)


def _is_negative(x: AnyTerm) -> AnyTerm:
    """Whether the sign bit is set."""
    bits = _writer(x).recast(x, i32 if x.element == f32 else i64)
    return bits < 0


def _with_sign(x: AnyTerm, sign: AnyTerm) -> AnyTerm:
    """The magnitude of `x` with the sign of `sign`."""
    return (-abs(x)).where(_is_negative(sign), abs(x))


def _sides(x: AnyTerm, y: AnyTerm) -> Parts:
    """The longer and the shorter one of the sides of a right triangle."""
    sizes = abs(x), abs(y)
    longer, shorter = (
        sizes[0].apply(kind, sizes[1]) for kind in (ew.MaximumOp, ew.MinimumOp)
    )
    return longer, shorter


def _ratio(longer: AnyTerm, shorter: AnyTerm) -> AnyTerm:
    """`shorter / longer`; 1 for equal sides, such as zeros and infinities."""
    return longer.of(1).where(shorter.equals(longer), shorter / longer)


def length(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    """The hypotenuse sqrt(x^2 + y^2). Intermediate values do not overflow."""
    longer, shorter = _sides(x, y)
    ratio = _ratio(longer, shorter)
    return longer * sqrt(ratio * ratio + 1)


def _log_of_length(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    """log(sqrt(x^2 + y^2)). Near 1, it uses the difference of the square from 1."""
    longer, shorter = _sides(x, y)
    ratio = _ratio(longer, shorter)
    far = log(longer) + log1p(ratio * ratio) * 0.5
    far = longer.of(inf).where(abs(x).equals(inf) | abs(y).equals(inf), far)
    excess = (longer - 1) * (longer + 1) + shorter * shorter
    return (log1p(excess) * 0.5).where(abs(excess) < 0.5, far)


def _log(z: AnyTerm) -> AnyTerm:
    x, y = _parts(z)
    return _complex(z.element, _log_of_length(x, y), y.apply(ew.Atan2Op, x))


def _log1p(z: AnyTerm) -> AnyTerm:
    x, y = _parts(z)
    excess = x * (x + 2) + y * y  # |1 + z|^2 - 1
    near = log1p(excess) * 0.5
    real = near.where(abs(excess) < 0.5, _log_of_length(x + 1, y))
    return _complex(z.element, real, y.apply(ew.Atan2Op, x + 1))


def _expm1(z: AnyTerm) -> AnyTerm:
    """(exp(x) - 1) cos(y) + (cos(y) - 1) for small x."""
    x, y = _parts(z)
    real, imag = _parts(exp(z))
    half = sin(y * 0.5)
    near = expm1(x) * cos(y) - half * half * 2
    return _complex(z.element, near.where(x < 1, real - 1), imag)


def _sqrt(z: AnyTerm) -> AnyTerm:
    """t + y / (2 t) i for x >= 0, with t = sqrt((x + |z|) / 2).

    Scaled by a power of 4 where |z| overflows or is subnormal.
    """
    x, y = _parts(z)
    longer, _ = _sides(x, y)
    tiny, root = (2.0**-100, 2.0**24) if x.element == f32 else (2.0**-960, 2.0**54)
    huge = 1 / tiny
    scale = x.of(root).where(longer < tiny, x.of(0.25).where(longer > huge, 1))
    side, height = x * scale * scale, y * scale * scale
    most = sqrt((abs(side) + length(side, height)) * 0.5)
    least = height / (most + most)
    is_right = x >= 0
    real = most.where(is_right, abs(least)) / scale
    imag = least.where(is_right, _with_sign(most, y)) / scale
    is_zero, is_infinite = longer.equals(0), abs(y).equals(inf)
    real = longer.of(0).where(is_zero, abs(y).where(is_infinite, real))
    return _complex(z.element, real, y.where(is_zero | is_infinite, imag))


def _tanh_of_parts(x: AnyTerm, y: AnyTerm) -> Parts:
    """With t = tan(y) and s = sinh(x): ((1 + t^2) sqrt(1 + s^2) s + t i) / (1 +
    (1 + t^2) s^2). From 20 on, the square of s does not count."""
    is_far = abs(x) >= 20
    power = expm1(abs(x).where(abs(x) < 20, 20))
    sinh = _with_sign((power + power / (power + 1)) * 0.5, x)
    slope = tan(y)
    by_slope = slope * slope + 1
    square = sinh * sinh
    divisor = by_slope * square + 1
    real = by_slope * sqrt(square + 1) * sinh / divisor
    real = x.where(x.equals(0), _with_sign(x.of(1), x).where(is_far, real))
    far = sin(y) * cos(y) * 4 * exp(abs(x) * -2)
    imag = far.where(is_far, slope / divisor)
    is_end = abs(x).equals(inf) & abs(y).equals(inf)
    return real, _with_sign(x.of(0), y).where(is_end, imag)


def _tanh(z: AnyTerm) -> AnyTerm:
    return _complex(z.element, *_tanh_of_parts(*_parts(z)))


def _tan(z: AnyTerm) -> AnyTerm:
    """tan(z) = -i tanh(i z)."""
    x, y = _parts(z)
    real, imag = _tanh_of_parts(-y, x)
    return _complex(z.element, imag, -real)


def _power(z: AnyTerm, exponent: AnyTerm) -> AnyTerm:
    """exp(w log(z)); for z = 0, 0 if the real part of w is positive, and 1 if w = 0."""
    real, _ = _parts(exponent)
    of_zero = z.where(real > 0, exponent.of(1).where(exponent.equals(0), nan))
    return of_zero.where(z.equals(0), exp(exponent * log(z)))


FORMULAS: Mapping[type[ew.ElementwiseOp], Formula] = {
    ew.ExponentialMinusOneOp: _expm1,
    ew.LogOp: _log,
    ew.LogPlusOneOp: _log1p,
    ew.PowerOp: _power,
    ew.SqrtOp: _sqrt,
    ew.TanhOp: _tanh,
    ew.TanOp: _tan,
}
