"""Gradients of elementwise operations: for each operand, the chain rule as a formula.

Where a derivative is discontinuous, its value is that of JAX: `maximum` splits the
gradient between equal operands, `abs` has derivative 0 at 0, and `clamp` passes the
gradient to its value only if this is strictly inside the bounds.
"""

from collections.abc import Callable, Mapping
from math import pi, sqrt
from typing import Any, TypeAlias

from ....dialects.tgraph import elementwise as ew
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.elements import is_complex
from .site import GradientSite, Term, gradient_of
from .spectral import parts
from .writing import refuse

Formula: TypeAlias = Callable[[GradientSite[Any]], Term | None]


def _zero(s: GradientSite[Any]) -> None:
    """The zero gradient of step functions and of operands that are not numbers."""


def _same(s: GradientSite[Any]) -> Term:
    return s.g


def _larger(s: GradientSite[Any], x: Term, y: Term) -> Term:
    """The gradient with respect to `x` of maximum(x, y)."""
    return s.g.where(x > y, (s.g * 0.5).where(x.equals(y)))


def _power_of_base(s: GradientSite[Any]) -> Term:
    x, y = s.x(0), s.x(1)
    constant = y.equals(0.0)  # x ** 0 is 1 for all x, 0 too
    lower = (y - 1.0).where(y.compare("NE", 0.0), 1.0)
    return (s.g * (y * s.emit(ew.PowerOp, x, lower))).where(constant.apply(ew.NotOp))


def _power_of_exponent(s: GradientSite[Any]) -> Term:
    x = s.x(0)
    log = x.where(x.compare("NE", 0.0), 1.0).apply(ew.LogOp)
    return s.g * (log * s.y)


def _remainder_of_divisor(s: GradientSite[Any]) -> Term:
    quotient = s.x(0) / s.x(1)
    whole = quotient.apply(ew.AbsOp).apply(ew.FloorOp)
    return -s.g * (quotient.apply(ew.SignOp) * whole)


def _bell(s: GradientSite[Any]) -> Term:
    """The derivative of erf."""
    return (-(s.x() * s.x())).apply(ew.ExponentialOp) * (2 / sqrt(pi))


FORMULAS: Mapping[type[TensorOp], tuple[Formula, ...]] = {
    ew.AbsOp: (lambda s: s.g * s.x().apply(ew.SignOp),),
    ew.AddOp: (_same, _same),
    ew.Atan2Op: (
        lambda s: s.g * (s.x(1) / (s.x(0) * s.x(0) + s.x(1) * s.x(1))),
        lambda s: -s.g * (s.x(0) / (s.x(0) * s.x(0) + s.x(1) * s.x(1))),
    ),
    ew.CbrtOp: (lambda s: s.g * (1.0 / 3.0) / (s.y * s.y),),
    ew.CeilOp: (_zero,),
    ew.ClampOp: (
        lambda s: s.g.where((s.x(0) > s.x(1)) & (s.x(0) < s.x(2))),
        lambda s: s.g.where((s.x(1) > s.x(0)) & (s.x(1) < s.x(2))),
        lambda s: s.g.where(s.emit(ew.MaximumOp, s.x(0), s.x(1)) > s.x(2)),
    ),
    ew.CosineOp: (lambda s: -(s.g * s.x().apply(ew.SineOp)),),
    ew.DivideOp: (
        lambda s: s.g / s.x(1),
        lambda s: -(s.g * (s.y / s.x(1))),
    ),
    ew.ErfOp: (lambda s: s.g * _bell(s),),
    ew.ErfcOp: (lambda s: -(s.g * _bell(s)),),
    ew.ExponentialMinusOneOp: (lambda s: s.g * (s.y + 1.0),),
    ew.ExponentialOp: (lambda s: s.g * s.y,),
    ew.FloorOp: (_zero,),
    ew.LogOp: (lambda s: s.g / s.x(),),
    ew.LogPlusOneOp: (lambda s: s.g / (s.x() + 1.0),),
    ew.LogisticOp: (lambda s: s.g * (s.y * (1.0 - s.y)),),
    ew.MaximumOp: (
        lambda s: _larger(s, s.x(0), s.x(1)),
        lambda s: _larger(s, s.x(1), s.x(0)),
    ),
    ew.MinimumOp: (
        lambda s: _larger(s, s.x(1), s.x(0)),
        lambda s: _larger(s, s.x(0), s.x(1)),
    ),
    ew.MultiplyOp: (lambda s: s.g * s.x(1), lambda s: s.g * s.x(0)),
    ew.NegateOp: (lambda s: -s.g,),
    ew.PowerOp: (_power_of_base, _power_of_exponent),
    ew.RemainderOp: (_same, _remainder_of_divisor),
    ew.RoundNearestAfzOp: (_zero,),
    ew.RoundNearestEvenOp: (_zero,),
    ew.RsqrtOp: (lambda s: s.g * (s.y / s.x() * -0.5),),
    ew.SelectOp: (
        _zero,
        lambda s: s.g.where(s.x(0)),
        lambda s: s.g.where(s.x(0).apply(ew.NotOp)),
    ),
    ew.SignOp: (_zero,),
    ew.SineOp: (lambda s: s.g * s.x().apply(ew.CosineOp),),
    ew.SqrtOp: (lambda s: s.g * 0.5 / s.y,),
    ew.SubtractOp: (_same, lambda s: -s.g),
    ew.TanOp: (lambda s: s.g * (s.y * s.y + 1.0),),
    ew.TanhOp: (lambda s: s.g * (1.0 - s.y * s.y),),
}


_HOLOMORPHIC = (
    *(ew.AddOp, ew.CosineOp, ew.DivideOp, ew.ExponentialMinusOneOp, ew.ExponentialOp),
    *(ew.LogOp, ew.LogPlusOneOp, ew.LogisticOp, ew.MultiplyOp, ew.NegateOp),
    *(
        ew.RsqrtOp,
        ew.SelectOp,
        ew.SineOp,
        ew.SqrtOp,
        ew.SubtractOp,
        ew.TanOp,
        ew.TanhOp,
    ),
)


@gradient_of(*FORMULAS)
def _elementwise(site: GradientSite[ew.ElementwiseOp], index: int) -> Term | None:
    is_real = not is_complex(site.input_type(index).element_type)
    if not is_real and not isinstance(site.op, _HOLOMORPHIC):
        raise refuse(site.op, "a complex number")
    return FORMULAS[type(site.op)][index](site)


@gradient_of(ew.ConvertOp)
def _convert(site: GradientSite[ew.ConvertOp], index: int) -> Term:
    of_complex = is_complex(site.g.element) and not is_complex(
        site.input_type().element_type
    )
    gradient = parts(site.g)[0] if of_complex else site.g
    return site.emit(ew.ConvertOp, gradient, type=site.input_type())
