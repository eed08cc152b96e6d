"""Divides work into parts that threads compute concurrently: how many, and how large.

No sum is divided: each element of a result is computed in one part.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from ...analysis.cost import CONTRACTED_PER_NS
from ...support.arrays import Shape

Slices: TypeAlias = tuple[slice, ...]
"""Of an array, a slice for each dimension."""

LANES = 16
"""Elements that parts have a multiple of where they are in vectors: one of f32."""

GRAIN = 25_000
"""Nanoseconds that a part takes at least: to offer parts, and to wait for them, takes
some thousand."""

SHORT = 128
"""Products of which shorter sums take as long, about."""


def cut(
    sizes: Sequence[int], units: Sequence[int], time: float, threads: int
) -> tuple[int, Sequence[slice]]:
    """The dimension that is divided, and its parts; one part if more do not pay.

    It is the first of those that allow for the most parts. Parts are multiples of the
    dimension's unit, but for the last one. `time` is what all takes in one thread, in
    nanoseconds.
    """
    most = min(threads, int(time / GRAIN))
    possible = [min(most, n // unit) for n, unit in zip(sizes, units, strict=True)]
    parts = max(possible, default=1)
    if parts < 2:
        return 0, [slice(None)]
    d = possible.index(parts)
    step = -(-sizes[d] // (parts * units[d])) * units[d]
    return d, [slice(at, min(at + step, sizes[d])) for at in range(0, sizes[d], step)]


def divisions(
    shape: Shape, units: Mapping[int, int], summed: int, threads: int
) -> Sequence[Sequence[Slices]]:
    """Blocks of a contraction's result that threads compute at the same time: along one
    dimension or another, those of the most parts first. One block where parts do not
    pay. Each element is the sum of `summed` products. `units` are those of the
    dimensions that may be divided, the best first."""
    time = 2 * prod(shape) * max(summed, SHORT) / CONTRACTED_PER_NS
    whole = [slice(None)] * len(shape)
    found: list[Sequence[Slices]] = []
    for d, unit in units.items():
        _, spans = cut([shape[d]], [unit], time, threads)
        found.append([(*whole[:d], x, *whole[d + 1 :]) for x in spans])
    return sorted(found, key=len, reverse=True)
