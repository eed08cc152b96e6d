"""Orders in which the heuristics and searches try the buffers of a part."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from random import Random

from ..problem import Buffer
from .sections import Part


def for_skyline(part: Part) -> Iterator[list[int]]:
    """Orders for the skyline, the best first."""
    size, steps = part.size, part.steps
    area = [w * size for w, size in zip(steps, size, strict=True)]

    def by(*columns: Sequence[int]) -> list[int]:
        keys = list(zip(*columns, strict=True))
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)

    yield by(size, steps)
    yield by(steps, size)
    yield by(area)
    yield by(_near_peak(part), size)
    tall = part.tallest
    yield by(tall, area, steps)
    yield by(tall, steps, area)


def _near_peak(part: Part) -> list[int]:
    """How long each buffer is live where the load is high, about within 3 % of it.

    A section counts by the 32nd power of its load, squared step by step: a power of the
    system's library might differ in its last bit.
    """
    most = max(part.load)
    shares = [load / most for load in part.load]
    for _ in range(5):
        shares = [share * share for share in shares]
    counted = (int(share * 1_000_000) for share in shares)
    until = list(accumulate(counted, initial=0))
    return [until[end] - until[a] for a, end in zip(part.first, part.end, strict=True)]


def measures(part: Part) -> list[list[int]]:
    """How urgent a buffer is, in several ways: the more, the earlier it is tried."""
    large = max(part.size) + 1
    wide = part.sections + 1
    length = [end - first for first, end in zip(part.first, part.end, strict=True)]
    columns = list(zip(length, part.size, part.tallest, strict=True))
    return [
        [w * large + size for w, size, _ in columns],
        [w * size for w, size, _ in columns],
        [size * wide + w for w, size, _ in columns],
        [t * wide + w for w, _, t in columns],
        [t * size for _, size, t in columns],
    ]


def measures_of_any(buffers: Sequence[Buffer]) -> list[list[int]]:
    """How urgent a buffer of any kind is: by area, size and lifetime."""
    sizes = [b.size for b in buffers]
    lives = [b.end - b.start for b in buffers]
    areas = [size * steps for size, steps in zip(sizes, lives, strict=True)]
    return [areas, sizes, lives]


def by_measure(measure: Sequence[int], chance: Random | None = None) -> list[int]:
    """By falling measure, if wanted with a fifth of noise."""
    if chance:  # as randrange(800, 1200) has it, in half of the time
        noise = (n for n in iter(partial(chance.getrandbits, 9), -1) if n < 400)
        measure = [value * (800 + n) for value, n in zip(measure, noise, strict=False)]
    return sorted(range(len(measure)), key=lambda i: (-measure[i], i))
