"""Orders in which the heuristics and searches try the buffers of a part."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from random import Random

from ..problem import Buffer
from .sections import Part


def for_skyline(part: Part) -> Iterator[list[int]]:
    """Orders for skyline placement (`skyline.py`), the best first."""
    size, steps = part.size, part.steps
    area = [w * size for w, size in zip(steps, size, strict=True)]

    def by(*columns: Sequence[int]) -> list[int]:
        keys = list(zip(*columns, strict=True))
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)

    yield by(size, steps)
    yield by(steps, size)
    yield by(area)
    yield by_weights(part, load_weights(part))
    tall = part.tallest
    yield by(tall, area)
    yield by(tall, steps, area)


def load_weights(part: Part) -> list[float]:
    """The weight of each section: the 32nd power of its load relative to the maximum.

    Weights are at most 1, and only loads within about 3 % of the maximum have much
    weight. Repeated squaring gives the same bits on every machine; the `pow` of a
    system's library might not.
    """
    most = max(part.load)
    weights = [load / most for load in part.load]
    for _ in range(5):
        weights = [weight * weight for weight in weights]
    return weights


def by_weights(part: Part, weights: Sequence[float]) -> list[int]:
    """The buffers by the sum of the weights of their sections, largest first.

    `weights` has one number per section, at most 1.
    """
    counted = (int(weight * 1_000_000) for weight in weights)
    until = list(accumulate(counted, initial=0))
    spans = zip(part.first, part.end, strict=True)
    keys = [
        (until[end] - until[first], size)
        for (first, end), size in zip(spans, part.size, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def measures(part: Part) -> list[list[int]]:
    """Several measures of how urgent a buffer is. Higher ones are tried earlier."""
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
    """The areas, sizes and lifetimes of the buffers, as measures of their urgency."""
    sizes = [b.size for b in buffers]
    lives = [b.end - b.start for b in buffers]
    areas = [size * steps for size, steps in zip(sizes, lives, strict=True)]
    return [areas, sizes, lives]


def by_measure(measure: Sequence[int], chance: Random | None = None) -> list[int]:
    """The buffers by descending measure; `chance` varies each measure by up to 20 %."""
    if chance:  # the numbers of randrange(800, 1200), in half of the time
        noise = (n for n in iter(partial(chance.getrandbits, 9), -1) if n < 400)
        measure = [value * (800 + n) for value, n in zip(measure, noise, strict=False)]
    return sorted(range(len(measure)), key=measure.__getitem__, reverse=True)
