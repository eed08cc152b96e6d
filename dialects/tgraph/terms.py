"""Formulas: arithmetic on values, independent of what computes it.

    def softplus(x: AnyTerm) -> AnyTerm:
        return log1p(exp(x))

A `Term` is a value in a formula. Its operators call a `TermBuilder`, which writes
elementwise operations of tgraph, or their equivalents: instructions, calls of NumPy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from xdsl.ir import Attribute

from . import elementwise as ew

V = TypeVar("V")


class TermBuilder(ABC, Generic[V]):
    """Writes the operations that compute terms."""

    @abstractmethod
    def constant(self, number: float, like: "Term[V]") -> "Term[V]":
        """A number as a term with the type of `like`."""

    @abstractmethod
    def apply(self, kind: type[ew.ElementwiseOp], *terms: "Term[V]") -> "Term[V]":
        """The operation on terms of one type, which is also the result's type."""

    @abstractmethod
    def compare(self, direction: str, x: "Term[V]", y: "Term[V]") -> "Term[V]":
        """`tgraph.compare`."""

    @abstractmethod
    def select(self, condition: "Term[V]", x: "Term[V]", y: "Term[V]") -> "Term[V]":
        """`tgraph.select`."""


@dataclass(frozen=True, eq=False)
class Term(Generic[V]):
    """A value in a formula. Numbers combined with it become constants of its type."""

    builder: TermBuilder[V]
    value: V
    element: Attribute
    """The type of its elements in tgraph."""

    def of(self, number: "Term[V] | float") -> "Term[V]":
        """A number as a constant of this term's type; a term unchanged."""
        if isinstance(number, Term):
            return number
        return self.builder.constant(number, self)

    def apply(
        self, kind: type[ew.ElementwiseOp], *others: "Term[V] | float"
    ) -> "Term[V]":
        return self.builder.apply(kind, self, *map(self.of, others))

    def compare(self, direction: str, other: "Term[V] | float") -> "Term[V]":
        return self.builder.compare(direction, self, self.of(other))

    def where(
        self, condition: "Term[V]", otherwise: "Term[V] | float" = 0
    ) -> "Term[V]":
        """This term where the condition holds, else `otherwise`."""
        return self.builder.select(condition, self, self.of(otherwise))

    def __add__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.AddOp, other)

    def __radd__(self, other: float) -> "Term[V]":
        return self.of(other) + self

    def __sub__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.SubtractOp, other)

    def __rsub__(self, other: float) -> "Term[V]":
        return self.of(other) - self

    def __mul__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.MultiplyOp, other)

    def __truediv__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.DivideOp, other)

    def __rtruediv__(self, other: float) -> "Term[V]":
        return self.of(other) / self

    def __neg__(self) -> "Term[V]":
        return self.apply(ew.NegateOp)

    def __abs__(self) -> "Term[V]":
        return self.apply(ew.AbsOp)

    def __and__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.AndOp, other)

    def __or__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.OrOp, other)

    def __xor__(self, other: "Term[V] | float") -> "Term[V]":
        return self.apply(ew.XorOp, other)

    def __invert__(self) -> "Term[V]":
        return self.apply(ew.NotOp)

    def __lt__(self, other: "Term[V] | float") -> "Term[V]":
        return self.compare("LT", other)

    def __gt__(self, other: "Term[V] | float") -> "Term[V]":
        return self.compare("GT", other)

    def __ge__(self, other: "Term[V] | float") -> "Term[V]":
        return self.compare("GE", other)

    def equals(self, other: "Term[V] | float") -> "Term[V]":
        return self.compare("EQ", other)


AnyTerm: TypeAlias = Term[Any]


def function(kind: type[ew.UnaryOp]) -> Callable[[AnyTerm], AnyTerm]:
    """An elementwise operation as a function of a term."""
    return lambda x: x.apply(kind)


cos = function(ew.CosineOp)
exp = function(ew.ExponentialOp)
expm1 = function(ew.ExponentialMinusOneOp)
erf = function(ew.ErfOp)
floor = function(ew.FloorOp)
log = function(ew.LogOp)
log1p = function(ew.LogPlusOneOp)
popcnt = function(ew.PopcntOp)
sign = function(ew.SignOp)
sin = function(ew.SineOp)
sqrt = function(ew.SqrtOp)
tan = function(ew.TanOp)
