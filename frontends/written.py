"""Functions of numbers that tgraph lacks, written out in f32 at least.

    written_out(b, "acosh", x)

Hyperbolic ones and their inverses are by `expm1` and `log1p`, inverse trigonometric
ones by `atan2`, `erf_inv` is by M. Giles' polynomials ("Approximating the erfinv
function", 2012) and, for f64, Newton's steps. `special.py` has those of gamma's kind.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import Float64Type, f32
from xdsl.ir import SSAValue

from ..dialects.tgraph import elementwise, terms
from ..dialects.tgraph.base import TensorOp, element_bytes
from ..dialects.tgraph.terms import erf, exp, expm1, log, log1p, sign, sqrt
from . import special
from .builder import TensorBuilder, type_of
from .formulas import compare

Term: TypeAlias = terms.Term[SSAValue]
Formula: TypeAlias = Callable[..., Term]


@dataclass(frozen=True)
class _Writer(terms.TermBuilder[SSAValue]):
    """Writes formulas on tensors of one type."""

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
    if element_bytes(element) < 4:
        wide = [b.convert(x, f32) for x in operands]
        return b.convert(written_out(b, name, *wide), element)
    return FORMULAS[name](*map(_Writer(b).term, operands)).value


def magnitude(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Of complex numbers, without squares that overflow."""
    return _length(*_parts(b, x)).value


def unit(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Complex numbers by their magnitude; of 0, itself."""
    real, imaginary = _parts(b, x)
    length = _length(real, imaginary)
    is_zero = length.equals(0)
    parts = [part.where(is_zero, part / length) for part in (real, imaginary)]
    return b.emit(elementwise.ComplexOp, *(part.value for part in parts))


def _parts(b: TensorBuilder, x: SSAValue) -> tuple[Term, Term]:
    kinds = (elementwise.RealOp, elementwise.ImagOp)
    real, imaginary = (_Writer(b).term(b.emit(kind, x)) for kind in kinds)
    return real, imaginary


def _length(x: Term, y: Term) -> Term:
    """Of equal ones, such as zeros and infinities, the ratio may be none."""
    longer = abs(x).apply(elementwise.MaximumOp, abs(y))
    shorter = abs(x).apply(elementwise.MinimumOp, abs(y))
    ratio = shorter / longer
    length = longer * sqrt(ratio * ratio + 1.0)
    return (longer * math.sqrt(2)).where(shorter.equals(longer), length)


def _atan2(y: Term, x: Term | float) -> Term:
    return y.apply(elementwise.Atan2Op, x)


def _acosh(x: Term) -> Term:
    """For large x, the sum of two of its size would be infinite. Below 1, NaN."""
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
    """The highest power's coefficient comes first."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


FORMULAS: Mapping[str, Formula] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atanh": _atanh,
    "bessel_i1e": special.bessel_i1e,
    "cosh": _cosh,
    "digamma": special.digamma,
    "erf_inv": _erf_inv,
    "lgamma": special.log_gamma,
    "polygamma": special.polygamma,
    "sinh": _sinh,
    "zeta": special.zeta,
}
