"""Divides work into parts that threads compute concurrently: their number and sizes.

Sums are not divided: each element of a result is computed in one part.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from ...analysis.cost import CONTRACTED_PER_NS
from ...support.arrays import Shape

Slices: TypeAlias = tuple[slice, ...]
"""A part of an array: a slice for each dimension."""

LANES = 16
"""Parts are multiples of this number of elements along vectorized dimensions: one
AVX-512 vector of f32.
"""

GRAIN = 25_000
"""The minimum time of a part in nanoseconds. Offering parts and waiting for them takes
some thousand nanoseconds.
"""

SHORT = 128
"""Shorter sums take about as long as sums of this number of products."""


def cut(
    sizes: Sequence[int], units: Sequence[int], time: float, threads: int
) -> tuple[int, Sequence[slice]]:
    """The dimension that is divided, and its parts; one part if dividing does not pay.

    Takes the first of the dimensions that allow the most parts. All parts but the last
    are multiples of the dimension's unit. `time` is the time of the whole work in one
    thread, in nanoseconds.
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
    """Ways to divide a contraction's result into blocks that threads compute
    concurrently. Each divides one dimension; the ways with the most blocks come first.
    A way has a single block if dividing does not pay. Each element is the sum of
    `summed` products. `units` has the units of the dimensions that may be divided, in
    order of preference."""
    time = 2 * prod(shape) * max(summed, SHORT) / CONTRACTED_PER_NS
    whole = [slice(None)] * len(shape)
    found: list[Sequence[Slices]] = []
    for d, unit in units.items():
        _, spans = cut([shape[d]], [unit], time, threads)
        found.append([(*whole[:d], x, *whole[d + 1 :]) for x in spans])
    return sorted(found, key=len, reverse=True)
