"""Generates sets of buffers that resemble those of programs, from a size and a seed.

    python benchmarks/synthetic.py training 10000 > train_10k.csv

`training`: activations live until their mirrored backward operation, temporaries for
one operation, gradients of weights until the end. `inference`: most live ranges are
short, residual connections span some operations, and a few buffers live long. `dag`:
an arbitrary program, with Pareto-distributed live ranges and log-normal sizes. `tile`:
a rectangle of steps and bytes is cut up at random, so some plan has no gap. Sizes are
multiples of 64 bytes.
"""

import argparse
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from tensorplan.planning import Buffer

KIB = 1024


def training(count: int, seed: int = 0) -> list[Buffer]:
    """A forward and a backward pass over layers of a few widths."""
    random = Random(f"training {count} {seed}")
    layers = max(count // 4, 1)  # each: activation, two temporaries, gradient
    end = 2 * layers + 1
    lives: list[tuple[int, int, int]] = []  # size, start, end
    width = 256 * KIB
    for layer in range(layers):
        if random.random() < 0.05:  # a new stage
            width = 32 * KIB * 2 ** random.randrange(8)
        backward = end - 1 - layer
        activation = width * random.choice((1, 1, 1, 2, 4))
        lives += [
            (activation, layer, backward + 1),
            (width * random.randint(1, 4), layer, layer + 1),
            (activation, backward - 1, backward + 1),
            (random.choice((1, 3, 9)) * width // 4, backward, end),
        ]
    while len(lives) < count:  # scalars, such as the loss
        lives.append((64, layers, layers + 1))
    return _buffers(lives[:count])


def inference(count: int, seed: int = 0) -> list[Buffer]:
    """A chain of operations. The next one or two read most results."""
    random = Random(f"inference {count} {seed}")
    lives: list[tuple[int, int, int]] = []
    pixels = 64 * KIB  # bytes of each channel
    for step in range(count):
        if random.random() < 0.02:  # a new stage
            pixels = random.choice((16, 32, 64)) * KIB
        kind = random.random()
        if kind < 0.02:
            length = random.randint(1, max(count // 4, 1))
        elif kind < 0.2:  # a residual connection
            length = random.randint(4, 12)
        else:
            length = random.randint(2, 3)
        channels = random.randint(1, 32)
        lives.append((pixels * channels, step, step + length))
    return _buffers(lives)


def dag(count: int, seed: int = 0) -> list[Buffer]:
    """Each step defines one to three buffers, most of them small and short-lived."""
    random = Random(f"dag {count} {seed}")
    lives: list[tuple[int, int, int]] = []
    step = 0
    while len(lives) < count:
        for _ in range(random.randint(1, 3)):
            length = min(int(random.paretovariate(0.9)) + 1, max(count // 4, 2))
            size = 64 * max(int(random.lognormvariate(8, 1)), 1)
            lives.append((size, step, step + length))
        step += 1
    return _buffers(lives[:count])


def tile(count: int, seed: int = 0) -> list[Buffer]:
    """The tiles of a rectangle. Larger tiles tend to be cut in two first."""
    random = Random(f"tile {count} {seed}")
    queue: list[tuple[float, tuple[int, int, int, int]]] = []

    def add(start: int, end: int, low: int, high: int) -> None:
        if end - start > 1 or high - low > 1:
            area = (end - start) * (high - low)
            heappush(queue, (-area * random.random(), (start, end, low, high)))
        else:
            lives.append((64 * (high - low), start, end))

    lives: list[tuple[int, int, int]] = []
    add(0, max(200, count // 10), 0, 16384)
    while queue and len(queue) + len(lives) < count:
        _, (start, end, low, high) = heappop(queue)
        is_thin = high - low == 1
        if is_thin or (end - start > 1 and random.random() < 0.5):
            cut = random.randrange(start + 1, end)
            add(start, cut, low, high)
            add(cut, end, low, high)
        else:
            cut = random.randrange(low + 1, high)
            add(start, end, low, cut)
            add(start, end, cut, high)
    lives += [(64 * (high - low), a, b) for _, (a, b, low, high) in queue]
    random.shuffle(lives)
    return _buffers(lives)


def _buffers(lives: list[tuple[int, int, int]]) -> list[Buffer]:
    return [Buffer(str(i), *life) for i, life in enumerate(lives)]


KINDS: dict[str, Callable[[int, int], list[Buffer]]] = {
    "training": training,
    "inference": inference,
    "dag": dag,
    "tile": tile,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int, help="number of buffers")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    print("id,lower,upper,size")
    for b in KINDS[options.kind](options.count, options.seed):
        print(b.id, b.start, b.end, b.size, sep=",")


if __name__ == "__main__":
    main()
