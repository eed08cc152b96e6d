"""Orders in which the heuristics and searches try the buffers of a part."""

from collections.abc import Callable, Sequence
from random import Random

from .sections import Part


def for_skyline(part: Part) -> list[list[int]]:
    """Orders for the skyline, the best first."""
    area = [w * size for w, size in zip(part.steps, part.size, strict=True)]
    tall = part.tallest
    keys: list[Callable[[int], tuple[int, ...]]] = [
        lambda i: (-part.size[i], -part.steps[i]),
        lambda i: (-part.steps[i], -part.size[i]),
        lambda i: (-area[i],),
        lambda i: (-tall[i], -area[i], -part.steps[i]),
        lambda i: (-tall[i], -part.steps[i], -area[i]),
    ]
    return [sorted(range(len(area)), key=key) for key in keys]


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


def by_measure(measure: Sequence[int], chance: Random | None = None) -> list[int]:
    """By falling measure, if wanted with a fifth of noise."""
    if chance:
        measure = [value * chance.randrange(800, 1200) for value in measure]
    return sorted(range(len(measure)), key=lambda i: (-measure[i], i))
