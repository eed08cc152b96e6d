"""Elementwise operations as formulas over simpler operations, on scalars.

Each formula is written once, and used by NumPy's kernels, LLVM IR, arith and math. Each
of these is a subclass of `Scalars`, which lists the operations that it supports
directly (`FORMS`), by kind of element. Formulas give all others.

    @formula(ew.LogisticOp, FLOAT)
    def _logistic(x: AnyTerm) -> AnyTerm:
        return 1 / (1 + exp(-x))
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from . import elementwise as ew
from .base import TensorOp
from .elements import is_complex, is_integer, width_and_sign
from .terms import AnyTerm, Term, TermBuilder, erf, exp, floor, log, popcnt, sqrt

V = TypeVar("V")

BOOLEAN, COMPLEX, FLOAT, SIGNED, UNSIGNED = "bcfiu"
"""The kinds of elements. A string of several letters stands for all of them."""

INTEGER = SIGNED + UNSIGNED
NUMBER = COMPLEX + FLOAT + INTEGER
BITS = BOOLEAN + INTEGER
ANY = BOOLEAN + NUMBER


def kind_of(x: Term[Any]) -> str:
    """The kind of a term's elements."""
    if is_complex(x.element):
        return COMPLEX
    if not is_integer(x.element):
        return FLOAT
    if x.element == i1:
        return BOOLEAN
    return SIGNED if is_signed(x) else UNSIGNED


def is_signed(x: Term[Any]) -> bool:
    """Whether the elements are integers with a sign bit."""
    return is_integer(x.element) and width_and_sign(x.element)[1]


def bits_of(x: Term[Any]) -> int:
    """The number of bits of an integer."""
    return width_and_sign(x.element)[0]


class NoForm(Exception):
    """A writer has neither a form nor a formula for an operation on these elements."""


Forms: TypeAlias = Mapping[type[ew.ElementwiseOp], Mapping[str, Any]]
"""A writer's form for each operation, by the kinds of elements."""


class Scalars(TermBuilder[V]):
    """Writes operations on one element, or on many elements in the same way."""

    FORMS: ClassVar[Forms]

    DIVISION_TRAPS: ClassVar[bool] = True
    """Whether `quotient` and `remainder` trap on operands for which they are
    undefined."""

    @abstractmethod
    def write(self, form: Any, *terms: Term[V]) -> Term[V]:
        """Writes one of `FORMS`. The result has the type of the last term."""

    @abstractmethod
    def convert(self, x: Term[V], element: Attribute) -> Term[V]:
        """`tgraph.convert`."""

    @abstractmethod
    def recast(self, x: Term[V], element: Attribute) -> Term[V]:
        """`tgraph.bitcast_convert`."""

    def parts(
        self, kind: type[ew.ElementwiseOp], element: Attribute, *terms: Term[V]
    ) -> Term[V]:
        """`tgraph.complex`, `tgraph.real` or `tgraph.imag` with this element type."""
        raise NoForm(kind.name)

    @abstractmethod
    def quotient(self, x: Term[V], y: Term[V]) -> Term[V]:
        """The quotient of integers, rounded toward zero. Undefined for a division by 0,
        and of the lowest number by -1."""

    @abstractmethod
    def remainder(self, x: Term[V], y: Term[V]) -> Term[V]:
        """The remainder of the division in `quotient`."""

    @abstractmethod
    def shift(
        self, kind: type[ew.ElementwiseOp], x: Term[V], amount: Term[V]
    ) -> Term[V]:
        """A shift by less than the number of bits."""

    def power(self, x: Term[V], y: Term[V]) -> Term[V]:
        """A power of integers with an exponent of 0 or more."""
        return _by_squaring(x, y)

    def apply(self, kind: type[ew.ElementwiseOp], *terms: Term[V]) -> Term[V]:
        """Writes an operation on terms of one type; raises `NoForm` if it can't."""
        letter = kind_of(terms[-1])
        for letters, form in self.FORMS.get(kind, {}).items():
            if letter in letters:
                return self.write(form, *terms)
        for letters, formula in FORMULAS.get(kind, {}).items():
            if letter in letters:
                return formula(*terms)
        raise NoForm(kind.name)

    def result(self, op: TensorOp, *terms: Term[V]) -> Term[V]:
        """Writes an elementwise operation, given one element of each input.

        Raises `NoForm`.
        """
        match op:
            case ew.CompareOp():
                return self.compare(op.direction.data, *terms)
            case ew.SelectOp():
                return self.select(*terms)
            case ew.ConvertOp():
                return self.convert(terms[0], op.declared[0].element_type)
            case ew.ComplexOp() | ew.PartOp():
                return self.parts(type(op), op.declared[0].element_type, *terms)
            case ew.BitcastConvertOp():
                return self.recast(terms[0], op.declared[0].element_type)
            case ew.ElementwiseOp():
                return self.apply(type(op), *terms)
            case _:
                raise NoForm(op.name)


def predicate(direction: str, x: Term[Any]) -> str:
    """The predicate of LLVM and MLIR for a direction of `tgraph.compare` on `x`."""
    name = direction.lower()
    if kind_of(x) == FLOAT:
        return "une" if name == "ne" else f"o{name}"
    if name in ("eq", "ne"):
        return name
    return ("s" if is_signed(x) else "u") + name


# The formulas

Formula: TypeAlias = Callable[..., AnyTerm]

FORMULAS: dict[type[ew.ElementwiseOp], dict[str, Formula]] = {}


def formula(
    kind: type[ew.ElementwiseOp], elements: str
) -> Callable[[Formula], Formula]:
    """Registers the formula of an operation on elements of these kinds."""

    def register(function: Formula) -> Formula:
        FORMULAS.setdefault(kind, {})[elements] = function
        return function

    return register


@formula(ew.AbsOp, INTEGER)
def _abs(x: AnyTerm) -> AnyTerm:
    return (-x).where(x < 0, x) if is_signed(x) else x


@formula(ew.AddOp, BOOLEAN)
def _either(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    return x | y


@formula(ew.MultiplyOp, BOOLEAN)
def _both(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    return x & y


@formula(ew.CbrtOp, FLOAT)
def _cbrt(x: AnyTerm) -> AnyTerm:
    """exp(log(x) / 3) and a step of Newton's method."""
    size = abs(x)
    root = exp(log(size) * (1 / 3))
    root = root - (root - size / (root * root)) * (1 / 3)
    result = (-root).where(x < 0, root)
    return x.where(x.equals(0) | size.equals(inf), result)


@formula(ew.ClampOp, ANY)
def _clamp(low: AnyTerm, x: AnyTerm, high: AnyTerm) -> AnyTerm:
    return x.apply(ew.MaximumOp, low).apply(ew.MinimumOp, high)


@formula(ew.CountLeadingZerosOp, INTEGER)
def _count_leading_zeros(x: AnyTerm) -> AnyTerm:
    """Sets all bits below the highest set bit, then counts the others."""
    shift = 1
    while shift < bits_of(x):
        x = x | x.apply(ew.ShiftRightLogicalOp, shift)
        shift *= 2
    return popcnt(~x)


@formula(ew.ErfcOp, FLOAT)
def _erfc(x: AnyTerm) -> AnyTerm:
    return 1 - erf(x)


@formula(ew.IsFiniteOp, FLOAT)
def _is_finite(x: AnyTerm) -> AnyTerm:
    return abs(x) < inf


@formula(ew.IsFiniteOp, BITS)
def _always(x: AnyTerm) -> AnyTerm:
    return x.equals(x)


@formula(ew.LogisticOp, COMPLEX + FLOAT)
def _logistic(x: AnyTerm) -> AnyTerm:
    return 1 / (1 + exp(-x))


@formula(ew.NegateOp, INTEGER)
def _negate(x: AnyTerm) -> AnyTerm:
    return 0 - x


@formula(ew.NotOp, BITS)
def _not(x: AnyTerm) -> AnyTerm:
    return x ^ -1


@formula(ew.RoundNearestAfzOp, FLOAT)
def _round_half_up(x: AnyTerm) -> AnyTerm:
    """Rounds the magnitude, then restores the sign, also of zeros."""
    size = abs(x)
    whole = floor(size)
    whole = (whole + 1).where(size - whole >= 0.5, whole)
    return x.where(x.equals(0), (-whole).where(x < 0, whole))


@formula(ew.RsqrtOp, COMPLEX + FLOAT)
def _rsqrt(x: AnyTerm) -> AnyTerm:
    return 1 / sqrt(x)


@formula(ew.SignOp, FLOAT)
def _sign(x: AnyTerm) -> AnyTerm:
    """NaN remains NaN."""
    at_most_zero = x.of(-1).where(x < 0, x.of(0).where(x.equals(0), x))
    return x.of(1).where(x > 0, at_most_zero)


@formula(ew.SignOp, INTEGER)
def _clamped_to_one(x: AnyTerm) -> AnyTerm:
    least = x.apply(ew.MinimumOp, 1)
    return least.apply(ew.MaximumOp, -1) if is_signed(x) else least


# Integer operations, with XLA's results where other systems leave them undefined


def _machine(x: AnyTerm) -> Scalars[Any]:
    return cast(Scalars[Any], x.builder)


@formula(ew.DivideOp, INTEGER)
def _divide(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    """-1 for a division by zero; other results that are out of range wrap around."""
    by_zero = y.equals(0)
    return x.of(-1).where(by_zero, _machine(x).quotient(x, _divisor(x, y, by_zero)))


@formula(ew.RemainderOp, INTEGER)
def _remainder(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    """The dividend for a division by zero."""
    by_zero = y.equals(0)
    return x.where(by_zero, _machine(x).remainder(x, _divisor(x, y, by_zero)))


def _divisor(x: AnyTerm, y: AnyTerm, by_zero: AnyTerm) -> AnyTerm:
    """The divisor, or 1 where the processor would trap."""
    if not _machine(x).DIVISION_TRAPS:
        return y
    if not is_signed(x):
        return y.of(1).where(by_zero, y)
    overflows = y.equals(-1) & x.equals(-(1 << (bits_of(x) - 1)))
    return y.of(1).where(by_zero | overflows, y)


@formula(ew.PowerOp, INTEGER)
def _power(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    """Negative powers are 0 except for 1 and -1, whose powers depend only on the lowest
    bit of the exponent."""
    if not is_signed(x):
        return _machine(x).power(x, y)
    vanishes = (y < 0) & ~(x.equals(1) | x.equals(-1))
    return x.of(0).where(
        vanishes, _machine(x).power(x, y & ((1 << (bits_of(y) - 1)) - 1))
    )


def _by_squaring(x: AnyTerm, y: AnyTerm) -> AnyTerm:
    result = x.where((y & 1).compare("NE", 0), 1)
    for bit in range(1, bits_of(x) - is_signed(x)):
        x = x * x
        result = (result * x).where((y & (1 << bit)).compare("NE", 0), result)
    return result


def _shift(kind: type[ew.ElementwiseOp]) -> Formula:
    """A shift by the number of bits or more shifts out all bits."""

    def shift(x: AnyTerm, amount: AnyTerm) -> AnyTerm:
        fits = (amount & -bits_of(x)).equals(0)  # the amount is less than the bits
        if kind is ew.ShiftRightArithmeticOp:  # shifts in copies of the sign
            return _machine(x).shift(kind, x, amount.where(fits, bits_of(x) - 1))
        return _machine(x).shift(kind, x, amount).where(fits, 0)

    return shift


for _kind in (ew.ShiftLeftOp, ew.ShiftRightArithmeticOp, ew.ShiftRightLogicalOp):
    formula(_kind, INTEGER)(_shift(_kind))
