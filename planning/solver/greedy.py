"""The greedy planners of the field: each places one buffer after another in a free gap.

They differ in the order of the buffers and in the choice of the gap (`gaps.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import deadline
from ..problem import Buffer, Limits, Placement, Problem
from ..registry import strategy
from .gaps import LOWEST, SMALLEST, WAITING, Gaps


@strategy("greedy-by-size")
def greedy_by_size(problem: Problem, limits: Limits) -> Placement:
    """Places the largest buffer first, each at the lowest free offset.

    First-fit decreasing, as in "Efficient Memory Management for Deep Neural Net
    Inference" (Pisarchyk and Lee, 2020). Buffers of equal size are ordered by their
    start.
    """
    return in_order(problem, by_size, LOWEST)


@strategy("best-fit")
def best_fit(problem: Problem, limits: Limits) -> Placement:
    """Places buffers in order of start, each into the smallest gap that holds it.

    A best-fit allocator at run time, as in ONNX Runtime, gives the same plan. Of
    buffers that start in the same step, the larger comes first.
    """
    return in_order(problem, by_start, SMALLEST)


def by_size(index: int, buffer: Buffer) -> tuple[int, ...]:
    return (-buffer.size, buffer.start, index)


def by_start(index: int, buffer: Buffer) -> tuple[int, ...]:
    return (buffer.start, -buffer.size, index)


_TRIES = (by_size, LOWEST), (by_start, SMALLEST)


def plans(buffers: Sequence[Buffer]) -> Iterator[list[int]]:
    """The plans of greedy-by-size and of best-fit."""
    gaps = Gaps(buffers, len(_TRIES))
    for key, choice in _TRIES:
        yield gaps.place(ordered(buffers, key), choice)


def plans_below(
    buffers: Sequence[Buffer], peak: Callable[[], int], begun: Sequence[int] = ()
) -> Iterator[list[int]]:
    """The plans of greedy-by-size and best-fit that end below a peak.

    Calls `peak` before each plan, and yields the plan if it ends below that many bytes.
    If `begun` is not empty, it has the offsets of a partial plan (`WAITING` for the
    other buffers); greedy-by-size first completes this plan. No buffer may have a given
    offset. Ends early at a deadline.
    """
    none = [WAITING] * len(buffers)
    tries = [(begun, by_size, LOWEST)] if begun else []
    tries += [(none, key, choice) for key, choice in _TRIES]
    gaps = Gaps(buffers, len(tries))
    for offsets, key, choice in tries:
        order = ordered(buffers, key)
        found = gaps.place_around(offsets, order, choice, peak() - 1, is_patient=False)
        if WAITING not in found:
            yield found
        if deadline.passed():
            return


def in_order(
    problem: Problem, key: Callable[[int, Buffer], Any], choice: int
) -> Placement:
    """Places the buffers by ascending `key(index, buffer)`, each in the chosen gap."""
    buffers = problem.buffers
    return Placement(Gaps(buffers).place(ordered(buffers, key), choice))


def ordered(
    buffers: Sequence[Buffer], key: Callable[[int, Buffer], Any]
) -> Sequence[int]:
    """The indices of the buffers by ascending `key(index, buffer)`."""
    keys = [key(i, b) for i, b in enumerate(buffers)]
    return sorted(range(len(keys)), key=keys.__getitem__)
