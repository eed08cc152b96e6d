"""`greedy-by-size` and `best-fit`: one buffer after the other into a free gap.

Both place each buffer into a gap between the buffers that are placed already and are
live at the same time. They differ in the order of buffers and the choice of gap.
Quadratic in the number of buffers.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Sequence

from tensorplan.planning.problem import Buffer, round_up
from tensorplan.planning.registry import strategy


@strategy("greedy-by-size")
def greedy_by_size(buffers: Sequence[Buffer]) -> Sequence[int]:
    """Largest first, each at the lowest offset that is free.

    First-fit decreasing, as in "Efficient Memory Management for Deep Neural Net
    Inference" (Pisarchyk and Lee, 2020); equal sizes in order of their start.
    """
    order = sorted(
        range(len(buffers)), key=lambda i: (-buffers[i].size, buffers[i].start, i)
    )
    return _place(buffers, order, lambda gaps: next(gaps)[0])


@strategy("best-fit")
def best_fit(buffers: Sequence[Buffer]) -> Sequence[int]:
    """In order of start, each into the smallest free gap that holds it.

    What an allocator with best fit does that knows no future (ONNX Runtime's and IREE's
    way); of buffers that start together, the larger first.
    """
    order = sorted(
        range(len(buffers)), key=lambda i: (buffers[i].start, -buffers[i].size, i)
    )
    return _place(buffers, order, lambda gaps: min(gaps, key=lambda g: (g[1], g[0]))[0])


def _place(
    buffers: Sequence[Buffer],
    order: Sequence[int],
    choose: Callable[[Iterator[tuple[int, float]]], int],
) -> Sequence[int]:
    """`choose` picks an offset from the gaps, given as (offset, room) upwards."""
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int]] = []  # (offset, index), upwards
    for i in order:
        neighbours = (
            (offset, offset + buffers[j].size)
            for offset, j in placed
            if buffers[j].overlaps(buffers[i])
        )
        offsets[i] = choose(_gaps(neighbours, buffers[i]))
        insort(placed, (offsets[i], i))
    return offsets


def _gaps(
    taken: Iterator[tuple[int, int]], buffer: Buffer
) -> Iterator[tuple[int, float]]:
    """Where the buffer fits between the taken ranges, upwards; the last is endless."""
    offset = 0
    for start, end in taken:
        if start - offset >= buffer.size:
            yield offset, start - offset
        offset = max(offset, round_up(end, buffer.alignment))
    yield offset, float("inf")
