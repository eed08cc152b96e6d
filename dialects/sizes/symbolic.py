"""Sizes as expressions over named sizes: `2*n + 1`, `floordiv(b*t + 3, 4)`.

A size is an `int` or a `Symbolic`, which has the operators of an int, so shape rules
work on both. Expressions are polynomials in normal form: equal ones have equal text.
`==` means known to be equal for all values of the names. A comparison such as `<` must
have the same outcome for all values, else it raises `Undecided`. Every name stands for
a size of 1 or more (as in `jax.export`, whose notation this is).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias, cast

from xdsl.utils.exceptions import VerifyException

TYPICAL = 64
"""The value of a name where a decision needs a number and no hint was given. (PyTorch
Inductor uses 64 for sizes without a hint.)"""


class Undecided(VerifyException):
    """The outcome of a comparison depends on the values of names."""


class SizeFunction(NamedTuple):
    """A call of a function that is not a polynomial."""

    function: str  # of FUNCTIONS
    arguments: tuple[Size, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Atom: TypeAlias = str | SizeFunction
Monomial: TypeAlias = tuple[Atom, ...]  # in the order of their texts


@dataclass(frozen=True)
class Symbolic:
    """A sum of products of names and calls with integer factors; not a plain number."""

    terms: tuple[tuple[Monomial, int], ...]

    @cached_property
    def text(self) -> str:
        parts: list[str] = []
        for monomial, factor in self.terms:
            names = "*".join(map(str, monomial))
            size = abs(factor)
            term = names if size == 1 and names else f"{size}*{names}".rstrip("*")
            sign = "-" if factor < 0 else "+" if parts else ""
            parts.append(f"{sign} {term}" if parts else f"{sign}{term}")
        return " ".join(parts)

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for monomial, factor in _terms(other):
            terms[monomial] = terms.get(monomial, 0) + factor
        return _size(terms)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return Symbolic(tuple((m, -factor) for m, factor in self.terms))

    def __sub__(self, other: Size) -> Size:
        return self + (-other)

    def __rsub__(self, other: int) -> Size:
        return (-self) + other

    def __mul__(self, other: Size) -> Size:
        terms: dict[Monomial, int] = {}
        for (m1, f1), (m2, f2) in product(self.terms, _terms(other)):
            monomial = tuple(sorted((*m1, *m2), key=str))
            terms[monomial] = terms.get(monomial, 0) + f1 * f2
        return _size(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return mod(self, other)

    def __rmod__(self, other: int) -> Size:
        return mod(other, self)

    def __lt__(self, other: Size) -> bool:
        return not self._at_least(other)

    def __le__(self, other: Size) -> bool:
        return not self._at_least(other + 1)

    def __ge__(self, other: Size) -> bool:
        return self._at_least(other)

    def __gt__(self, other: Size) -> bool:
        return self._at_least(other + 1)

    def _at_least(self, other: Size) -> bool:
        difference = self - other
        if is_known_at_least(difference, 0):
            return True
        if is_known_at_least(-difference, 1):
            return False
        raise Undecided(f"{self} may be above or below {other}")


Size: TypeAlias = int | Symbolic


def symbol(name: str) -> Symbolic:
    """The size with this name."""
    return Symbolic((((name,), 1),))


def _terms(size: Size) -> Sequence[tuple[Monomial, int]]:
    if isinstance(size, Symbolic):
        return size.terms
    return [((), size)] if size else []


def _size(terms: Mapping[Monomial, int]) -> Size:
    """The sum of the terms: highest degree first, then by text."""
    kept = [(m, factor) for m, factor in terms.items() if factor]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=lambda term: (-len(term[0]), [str(atom) for atom in term[0]]))
    return Symbolic(tuple(kept))


def _call(function: str, *arguments: Size) -> Size:
    return Symbolic((((SizeFunction(function, arguments),), 1),))


def _quotient(size: Size, divisor: Size) -> Size | None:
    """The exact quotient by a product; None if a remainder is possible."""
    divisors = _terms(divisor)
    if len(divisors) != 1:
        return 1 if size == divisor else None
    ((names, number),) = divisors
    result: dict[Monomial, int] = {}
    for monomial, factor in _terms(size):
        rest = list(monomial)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if factor % number:
            return None
        result[tuple(rest)] = factor // number
    return _size(result)


def floordiv(size: Size, divisor: Size) -> Size:
    """The quotient, rounded down."""
    if isinstance(size, int) and isinstance(divisor, int):
        return size // divisor
    if (quotient := _quotient(size, divisor)) is not None:
        return quotient
    if not isinstance(divisor, int):
        return _call("floordiv", size, divisor)
    whole = {m: f // divisor for m, f in _terms(size) if not f % divisor}
    rest = _size({m: f for m, f in _terms(size) if f % divisor})
    if isinstance(rest, int):
        return _size(whole) + rest // divisor
    return _size(whole) + _call("floordiv", rest, divisor)


def mod(size: Size, divisor: Size) -> Size:
    """The remainder of the division that rounds down."""
    if isinstance(size, int) and isinstance(divisor, int):
        return size % divisor
    if _quotient(size, divisor) is not None:
        return 0
    if isinstance(divisor, int):
        size = _size({m: f % divisor for m, f in _terms(size)})
        if isinstance(size, int):
            return size % divisor
    return _call("mod", size, divisor)


def maximum(*sizes: Size) -> Size:
    """The largest size, without sizes that are known not to be the largest."""
    return _extreme("max", sizes, lambda a, b: is_known_at_least(a - b, 0))


def minimum(*sizes: Size) -> Size:
    """The smallest size, without sizes that are known not to be the smallest."""
    return _extreme("min", sizes, lambda a, b: is_known_at_least(b - a, 0))


def _extreme(
    function: str, sizes: Sequence[Size], wins: Callable[[Size, Size], bool]
) -> Size:
    kept = list(dict.fromkeys(sizes))
    for size in list(kept):
        if any(wins(other, size) for other in kept if other is not size):
            kept.remove(size)
    return kept[0] if len(kept) == 1 else _call(function, *sorted(kept, key=str))


FUNCTIONS: Mapping[str, Callable[..., Size]] = {
    "floordiv": floordiv,
    "mod": mod,
    "max": maximum,
    "min": minimum,
}


def names_in(size: Size) -> Iterator[str]:
    """The names in an expression, in the order of its text, with repetitions."""
    for monomial, _ in _terms(size):
        for atom in monomial:
            if isinstance(atom, str):
                yield atom
                continue
            for argument in atom.arguments:
                yield from names_in(argument)


def substitute(size: Size, values: Mapping[str, Size]) -> Size:
    """The size with names replaced by their `values`; other names are kept."""
    if isinstance(size, int):
        return size
    return sum_of(
        reduce(
            lambda a, b: a * b,
            [_substituted(atom, values) for atom in monomial],
            factor,
        )
        for monomial, factor in size.terms
    )


def sum_of(sizes: Iterable[Size]) -> Size:
    return reduce(lambda a, b: a + b, sizes, cast(Size, 0))


def _substituted(atom: Atom, values: Mapping[str, Size]) -> Size:
    if isinstance(atom, str):
        return values[atom] if atom in values else symbol(atom)
    return FUNCTIONS[atom.function](*(substitute(a, values) for a in atom.arguments))


def typical(size: Size, hints: Mapping[str, int] | None = None) -> int:
    """The size if names have the values in `hints`, else `TYPICAL`."""
    if isinstance(size, int):
        return size
    hints = hints or {}
    result = substitute(size, {n: hints.get(n, TYPICAL) for n in names_in(size)})
    assert isinstance(result, int)
    return result


def is_known_at_least(size: Size, least: int) -> bool:
    """Whether the size is known to be `least` or more."""
    lower = lower_bound(size)
    return lower is not None and lower >= least


def exceeds(size: Size, limit: Size) -> bool:
    """Whether the size is known to be above the limit."""
    return is_known_at_least(size - limit, 1)


def lower_bound(size: Size) -> int | None:
    """A lower bound of the size for all values of the names; None if none is found.

    With each name n written as 1 + n', n' >= 0, the constant of a sum without negative
    factors is a lower bound.
    """
    if isinstance(size, int):
        return size
    constant, shifted = 0, dict[Monomial, int]()
    for monomial, factor in size.terms:
        lowest = [_lower_bound_of(atom) for atom in monomial]
        if None in lowest:
            return None
        for chosen in product((False, True), repeat=len(monomial)):
            pairs = zip(monomial, cast(list[int], lowest), chosen, strict=True)
            value, names = factor, list[Atom]()
            for atom, lower, is_name in pairs:
                if is_name:
                    names.append(atom)
                else:
                    value *= lower
            if names:
                key = tuple(names)
                shifted[key] = shifted.get(key, 0) + value
            else:
                constant += value
    return None if any(f < 0 for f in shifted.values()) else constant


def _lower_bound_of(atom: Atom) -> int | None:
    if isinstance(atom, str):
        return 1
    lower = [lower_bound(argument) for argument in atom.arguments]
    match atom.function:
        case "floordiv" if isinstance(divisor := atom.arguments[1], int):
            return None if lower[0] is None else lower[0] // divisor
        case "mod" if lower[1] is not None and lower[1] > 0:
            return 0
        case "max":
            return max((n for n in lower if n is not None), default=None)
        case "min" if None not in lower:
            return min(cast(list[int], lower))
        case "floordiv" if all(n is not None and n > 0 for n in lower):
            return 0
        case _:
            return None


def round_up(size: Size, alignment: int) -> Size:
    """The smallest multiple of the alignment that is `size` or more."""
    return floordiv(size + (alignment - 1), alignment) * alignment


def inverse(size: Size, name: str, value: Size) -> Size | None:
    """The value of `name` for which `size` is `value`, rounded down. None if `size` is
    not linear in `name`, apart from divisions by numbers. Callers must check the size
    for the result."""
    terms = [t for t in _terms(size) if name in names_in(_size({t[0]: 1}))]
    if len(terms) != 1:
        return None
    ((monomial, factor),) = terms
    atoms = [atom for atom in monomial if name in names_in(_size({(atom,): 1}))]
    if len(atoms) != 1:
        return None
    others = list(monomial)
    others.remove(atom := atoms[0])
    rest = value - (size - _size({monomial: factor}))
    quotient = floordiv(rest, _size({tuple(others): factor}))
    if not isinstance(atom, SizeFunction):
        return quotient
    inner, *divisors = atom.arguments
    if atom.function != "floordiv" or not isinstance(divisors[0], int):
        return None
    return inverse(inner, name, quotient * divisors[0])


def definitions(sizes: Sequence[Size]) -> list[tuple[str, int]]:
    """How names follow from given sizes: each name with the index of a size that is
    linear in it, and whose other names come earlier in the list."""
    found: dict[str, int] = {}
    while True:
        for index, size in enumerate(sizes):
            unknown = {name for name in names_in(size) if name not in found}
            if (
                len(unknown) == 1
                and inverse(size, name := unknown.pop(), 0) is not None
            ):
                found[name] = index
                break
        else:
            return list(found.items())


def product_of(sizes: Sequence[Size]) -> Size:
    return cast(Size, prod(cast(Sequence[int], sizes)))
