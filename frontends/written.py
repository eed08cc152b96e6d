"""Formulas for elementwise functions that are not tgraph operations, in f32 or f64.

    written_out(b, "acosh", x)

Hyperbolic functions and their inverses use `expm1` and `log1p`, and inverse
trigonometric functions use `atan2`. `erf_inv` uses M. Giles' polynomials
("Approximating the erfinv function", 2012) and, for f64, Newton's method. `special.py`
has the gamma and Bessel functions.

Functions of complex numbers follow W. Kahan ("Branch Cuts for Complex Elementary
Functions", 1987), and compute on real and imaginary parts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

from xdsl.dialects.builtin import Float64Type, f32
from xdsl.ir import SSAValue

from ..dialects.tgraph import elementwise, terms
from ..dialects.tgraph.base import TensorOp, element_bytes
from ..dialects.tgraph.complex_formulas import length
from ..dialects.tgraph.elements import is_complex
from ..dialects.tgraph.terms import cos, erf, exp, expm1, log, log1p, sign, sin, sqrt
from . import special
from .builder import TensorBuilder, type_of
from .formulas import compare
from .unsupported import Unsupported

Term: TypeAlias = terms.Term[SSAValue]
Formula: TypeAlias = Callable[..., Term]


@dataclass(frozen=True)
class Writer(terms.TermBuilder[SSAValue]):
    """Writes formulas on tensors of one shape."""

    b: TensorBuilder

    def term(self, value: SSAValue) -> Term:
        return terms.Term(self, value, type_of(value).element_type)

    def constant(self, number: float, like: Term) -> Term:
        return self.term(self.b.splat(number, type_of(like.value)))

    def apply(self, kind: type[TensorOp], *terms: Term) -> Term:
        values = [term.value for term in terms]
        return self.term(self.b.emit(kind, *values, type=type_of(values[-1])))

    def compare(self, direction: str, x: Term, y: Term) -> Term:
        return self.term(compare(self.b, x.value, direction, y.value))

    def select(self, condition: Term, x: Term, y: Term) -> Term:
        return self.apply(elementwise.SelectOp, condition, x, y)


def written_out(b: TensorBuilder, name: str, *operands: SSAValue) -> SSAValue:
    element = type_of(operands[0]).element_type
    if is_complex(element):
        if name not in COMPLEX_FORMULAS:
            raise Unsupported(f"with elements of type {element}")
        parts = COMPLEX_FORMULAS[name](*_parts(b, *operands))
        return b.emit(elementwise.ComplexOp, *(part.value for part in parts))
    if element_bytes(element) < 4:
        wide = [b.convert(x, f32) for x in operands]
        return b.convert(written_out(b, name, *wide), element)
    return FORMULAS[name](*map(Writer(b).term, operands)).value


def magnitude(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """The magnitude of complex numbers. Intermediate values do not overflow."""
    return length(*_parts(b, x)).value


def unit(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Complex numbers divided by their magnitude; 0 for 0."""
    real, imaginary = _parts(b, x)
    size = length(real, imaginary)
    is_zero = size.equals(0)
    parts = [part.where(is_zero, part / size) for part in (real, imaginary)]
    return b.emit(elementwise.ComplexOp, *(part.value for part in parts))


def _parts(b: TensorBuilder, x: SSAValue) -> tuple[Term, Term]:
    kinds = (elementwise.RealOp, elementwise.ImagOp)
    real, imaginary = (Writer(b).term(b.emit(kind, x)) for kind in kinds)
    return real, imaginary


def _atan2(y: Term, x: Term | float) -> Term:
    return y.apply(elementwise.Atan2Op, x)


def _acosh(x: Term) -> Term:
    """The inverse of cosh; NaN for x below 1. For large x, it is log(2 x)."""
    near = log(x + sqrt(x + 1.0) * sqrt(x - 1.0))
    return (log(x) + math.log(2)).where(x >= 1e16, near)


def _asinh(x: Term) -> Term:
    size = abs(x)
    square = size * size
    near = log1p(size + square / (sqrt(square + 1.0) + 1.0))
    return sign(x) * (log(size) + math.log(2)).where(size >= 1e16, near)


def _atanh(x: Term) -> Term:
    return (log1p(x) - log1p(-x)) * 0.5


def _cosh(x: Term) -> Term:
    return exp(x - math.log(2)) + exp(-x - math.log(2))


def _sinh(x: Term) -> Term:
    near = expm1(x)
    near = (near + near / (near + 1.0)) * 0.5
    far = exp(x - math.log(2)) - exp(-x - math.log(2))
    return near.where(abs(x) < 1.0, far)


def _acos(x: Term) -> Term:
    return _atan2(sqrt((-x + 1.0) * (x + 1.0)), x)


def _atan(x: Term) -> Term:
    return _atan2(x, 1.0)


def _asin(x: Term) -> Term:
    return _atan2(x, sqrt((-x + 1.0) * (x + 1.0)))


_CENTRE = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAILS = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def _erf_inv(x: Term) -> Term:
    w = -(log1p(-x) + log1p(x))
    centre, tails = w - 2.5, sqrt(w) - 3.0
    near, far = _polynomial(_CENTRE, centre), _polynomial(_TAILS, tails)
    y = near.where(w < 5.0, far) * x
    if isinstance(x.element, Float64Type):
        for _ in range(2):
            step = (erf(y) - x) / (exp(-(y * y)) * (2 / math.sqrt(math.pi)))
            y = (y - step).where(abs(x) < 1.0, y)
    return (x * math.inf).where(abs(x).equals(1.0), y)


def _polynomial(coefficients: Sequence[float], x: Term) -> Term:
    """A polynomial, by Horner's rule. The coefficient of the highest power is first."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


# Complex functions

_Parts: TypeAlias = tuple[Term, Term]


def _sqrt(x: Term, y: Term) -> _Parts:
    b = cast(Writer, x.builder).b
    z = b.emit(elementwise.ComplexOp, x.value, y.value)
    return _parts(b, b.emit(elementwise.SqrtOp, z, type=type_of(z)))


def _complex_acos(x: Term, y: Term) -> _Parts:
    (r, s), (t, u) = _sqrt(1 - x, -y), _sqrt(x + 1.0, y)
    return _atan2(r, t) * 2.0, _asinh(t * s - u * r)


def _complex_acosh(x: Term, y: Term) -> _Parts:
    (r, s), (t, u) = _sqrt(x - 1.0, y), _sqrt(x + 1.0, y)
    return _asinh(r * t + s * u), _atan2(s, t) * 2.0


def _complex_asin(x: Term, y: Term) -> _Parts:
    (r, s), (t, u) = _sqrt(1 - x, -y), _sqrt(x + 1.0, y)
    return _atan2(x, r * t - s * u), _asinh(r * u - s * t)


def _complex_atanh(x: Term, y: Term) -> _Parts:
    square, size = y * y, abs(x)
    size = log1p(size * 4.0 / ((1 - size) * (1 - size) + square)) * 0.25
    return sign(x) * size, _atan2(y * 2.0, (1 - x) * (x + 1.0) - square) * 0.5


def _complex_cosh(x: Term, y: Term) -> _Parts:
    return _cosh(x) * cos(y), _times_zero(_sinh(x), sin(y))


def _complex_sinh(x: Term, y: Term) -> _Parts:
    return _sinh(x) * cos(y), _times_zero(_cosh(x), sin(y))


def _times_zero(x: Term, y: Term) -> Term:
    """The product; zero if `y` is zero, even if `x` is infinite."""
    return y.where(y.equals(0), x * y)


def _rotated(formula: Callable[[Term, Term], _Parts]) -> Callable[[Term, Term], _Parts]:
    """-i f(i z): the hyperbolic function of a circular function f, and vice versa."""

    def rotated(x: Term, y: Term) -> _Parts:
        real, imaginary = formula(-y, x)
        return imaginary, -real

    return rotated


COMPLEX_FORMULAS: Mapping[str, Callable[[Term, Term], _Parts]] = {
    "acos": _complex_acos,
    "acosh": _complex_acosh,
    "asin": _complex_asin,
    "asinh": _rotated(_complex_asin),
    "atan": _rotated(_complex_atanh),
    "atanh": _complex_atanh,
    "cosh": _complex_cosh,
    "sinh": _complex_sinh,
}

FORMULAS: Mapping[str, Formula] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atanh": _atanh,
    "bessel_i0": special.bessel_i0,
    "bessel_i0e": special.bessel_i0e,
    "bessel_i1": special.bessel_i1,
    "bessel_i1e": special.bessel_i1e,
    "bessel_j0": partial(special.bessel_j, 0),
    "bessel_j1": partial(special.bessel_j, 1),
    "cosh": _cosh,
    "digamma": special.digamma,
    "erf_inv": _erf_inv,
    "erfcx": special.erfcx,
    "hypot": length,
    "lgamma": special.log_gamma,
    "ndtri": special.ndtri,
    "polygamma": special.polygamma,
    "sinh": _sinh,
    "zeta": special.zeta,
}
