"""Buffers that are hard to place: rectangles of time and bytes, cut into pieces."""

import random

from tensorplan.planning import Buffer


def rectangle(seed: int, count: int, width: int, height: int) -> list[Buffer]:
    """Cuts a rectangle of time and bytes into buffers. The optimum is `height`."""
    chance = random.Random(seed)
    tiles = [(0, width, 0, height)]
    while len(tiles) < count:
        index = max(
            range(len(tiles)),
            key=lambda i: (
                (tiles[i][1] - tiles[i][0])
                * (tiles[i][3] - tiles[i][2])
                * chance.random()
            ),
        )
        x0, x1, y0, y1 = tiles[index]
        if chance.random() < 0.5 and x1 - x0 > 1:
            cut = chance.randrange(x0 + 1, x1)
            tiles[index : index + 1] = [(x0, cut, y0, y1), (cut, x1, y0, y1)]
        elif y1 - y0 > 1:
            cut = chance.randrange(y0 + 1, y1)
            tiles[index : index + 1] = [(x0, x1, y0, cut), (x0, x1, cut, y1)]
    chance.shuffle(tiles)
    return [Buffer(str(i), y1 - y0, x0, x1) for i, (x0, x1, y0, y1) in enumerate(tiles)]


def worn_rectangle() -> list[Buffer]:
    """A rectangle of 200 buffers, each shrunk a little: no search proves an optimum."""
    chance = random.Random(0)
    return [
        Buffer(b.id, max(1, b.size * chance.randrange(90, 100) // 100), b.start, b.end)
        for b in rectangle(1, 200, 150, 100_000)
    ]
