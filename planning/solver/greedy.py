"""One buffer after the other into a free gap: the greedy planners of the field.

All place each buffer into a gap between the buffers that are placed already and are
live at the same time. They differ in the order of buffers and the choice of gap.
Buffers with a given offset are placed first. Quadratic in the number of buffers: at a
deadline the rest is put above everything else.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from .. import deadline
from ..problem import Buffer, Limits, Placement, Problem, round_up
from ..registry import strategy

SURE = 1000
"""So many buffers are placed with care in any case: some hundredths of a second."""

Gap: TypeAlias = tuple[int, float]
"""An offset where the buffer fits, and the bytes that are free from there on."""


def first_gap(gaps: Iterator[Gap]) -> int:
    return next(gaps)[0]


def smallest_gap(gaps: Iterator[Gap]) -> int:
    """The lowest of the smallest gaps."""
    return min(gaps, key=lambda gap: (gap[1], gap[0]))[0]


@strategy("greedy-by-size")
def greedy_by_size(problem: Problem, limits: Limits) -> Placement:
    """Places the largest buffer first, each at the lowest free offset.

    First-fit decreasing, as in "Efficient Memory Management for Deep Neural Net
    Inference" (Pisarchyk and Lee, 2020). Buffers of equal size are ordered by their
    start.
    """
    return in_order(problem, lambda i, b: (-b.size, b.start, i), first_gap)


@strategy("best-fit")
def best_fit(problem: Problem, limits: Limits) -> Placement:
    """Places buffers in order of start, each into the smallest gap that holds it.

    This is the result of a best-fit allocator at run time, as in ONNX Runtime and IREE.
    Of buffers that start together, the larger comes first.
    """
    return in_order(problem, lambda i, b: (b.start, -b.size, i), smallest_gap)


def in_order(
    problem: Problem,
    key: Callable[[int, Buffer], Any],
    choose: Callable[[Iterator[Gap]], int],
) -> Placement:
    """Places the buffers by ascending `key(index, buffer)` into the gaps of choice."""
    buffers = problem.buffers
    order = sorted(range(len(buffers)), key=lambda i: key(i, buffers[i]))
    return Placement(place(buffers, order, choose))


def place(
    buffers: Sequence[Buffer],
    order: Sequence[int],
    choose: Callable[[Iterator[Gap]], int] = first_gap,
) -> list[int]:
    """The offsets that come of placing the buffers in this order.

    `choose` picks an offset from the gaps in which the buffer fits, which come upwards.
    """
    offsets = [b.offset or 0 for b in buffers]
    # (offset, end of bytes, first step, end of life, index): in address order.
    placed = sorted(
        (offsets[i], offsets[i] + b.size, b.start, b.end, i)
        for i in order
        if (b := buffers[i]).offset is not None
    )
    for turn, i in enumerate(order):
        buffer = buffers[i]
        if buffer.offset is not None:
            continue
        if turn >= SURE and deadline.passed():
            stack(buffers, order[turn:], offsets, max(end for _, end, *_ in placed))
            break
        start, end = buffer.start, buffer.end
        neighbours = (
            (low, high)
            for low, high, first, last, j in placed
            if first < end and start < last and buffers[j].overlaps(buffer)
        )
        offsets[i] = choose(_gaps(neighbours, buffer))
        insort(placed, (offsets[i], offsets[i] + buffer.size, start, end, i))
    return offsets


def stack(
    buffers: Sequence[Buffer], order: Sequence[int], offsets: list[int], floor: int
) -> None:
    """Puts those without a given offset above one another, from the floor on."""
    for i in order:
        buffer = buffers[i]
        if buffer.offset is None:
            offsets[i] = round_up(floor, buffer.alignment)
            floor = offsets[i] + buffer.size


def _gaps(taken: Iterator[tuple[int, int]], buffer: Buffer) -> Iterator[Gap]:
    """Where the buffer fits between the taken ranges, upwards; the last is endless."""
    offset = 0
    for start, end in taken:
        if start - offset >= buffer.size:
            yield offset, start - offset
        offset = max(offset, round_up(end, buffer.alignment))
    yield offset, float("inf")
