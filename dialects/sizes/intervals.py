"""Bounds of a symbolic size whose names have upper bounds."""

from collections.abc import Mapping
from typing import TypeAlias

from .symbolic import Atom, Size, lower_bound

Interval: TypeAlias = tuple[float, float]
"""Both ends included; infinite where there is no bound."""


def interval(size: Size, bounds: Mapping[str, int]) -> Interval:
    """The interval of the size if each name is at most its bound."""
    if isinstance(size, int):
        return size, size
    low = high = 0.0
    for monomial, factor in size.terms:
        between = (float(factor), float(factor))
        for atom in monomial:
            between = _products(between, _interval_of(atom, bounds))
        low, high = low + between[0], high + between[1]
    lower = lower_bound(size)
    return (low if lower is None else max(low, float(lower))), high


def _products(a: Interval, b: Interval) -> Interval:
    products = [x * y if x and y else 0.0 for x in a for y in b]
    return min(products), max(products)


def _interval_of(atom: Atom, bounds: Mapping[str, int]) -> Interval:
    if isinstance(atom, str):
        return 1.0, float(bounds.get(atom, float("inf")))
    between = [interval(argument, bounds) for argument in atom.arguments]
    (low, high), (least, most) = between[0], between[-1]
    match atom.function:
        case "floordiv" if low >= 0 and least >= 1:
            return low // most, high // least
        case "mod" if least >= 1:
            return 0.0, min(high, most - 1) if low >= 0 else most - 1
        case "max":
            return max(i[0] for i in between), max(i[1] for i in between)
        case "min":
            return min(i[0] for i in between), min(i[1] for i in between)
        case _:
            return -float("inf"), float("inf")
