"""A local search for buffers of any kind: first fit in varied orders.

Goes on from an order whose peak is no higher, and moves only buffers that end at the
peak or are live with one that does, as in the hill climb of Arm's Vela and of TVM's
USMP. Finds no proof, and nothing that first fit in some order does not find.
"""

import random
from bisect import insort
from collections.abc import Callable, Sequence, Set

from ..problem import Buffer, peak_of, round_up
from .budget import SearchBudget

_TRIES = 1000
_PAIRS = 30_000_000  # of buffers that all tries look at together, about


def climb(
    buffers: Sequence[Buffer],
    best: Sequence[int],
    goal: int,
    budget: SearchBudget,
    seed: int,
    take: Callable[[Sequence[int]], None],
) -> None:
    """Lowers the peak of `best` to the goal; `take` gets all that are no higher."""
    count = len(buffers)
    tries = min(_TRIES, _PAIRS // (count * count + 100 * count))
    if not tries:
        return
    chance = random.Random(seed)
    order = sorted(range(count), key=lambda i: (best[i], i))
    lowest = peak_of(buffers, best)
    movable = list(range(count))
    conflicts = _conflicts(buffers)
    for _ in range(tries):
        if lowest <= goal or budget.left <= 0:
            return
        trial = list(order)
        moved = chance.choice(movable)
        trial.remove(moved)
        trial.insert(chance.randrange(count), moved)
        offsets = _first_fit(buffers, trial, conflicts, lowest)
        if offsets is not None:
            order, lowest = trial, peak_of(buffers, offsets)
            movable = _at_peak(buffers, offsets, conflicts, lowest)
            take(offsets)


def _conflicts(buffers: Sequence[Buffer]) -> list[set[int]]:
    """For each buffer those that are live at the same time."""
    result: list[set[int]] = [set() for _ in buffers]
    active: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i].start):
        active = [j for j in active if buffers[j].end > buffers[i].start]
        for j in active:
            if buffers[j].overlaps(buffers[i]):
                result[i].add(j)
                result[j].add(i)
        active.append(i)
    return result


def _first_fit(
    buffers: Sequence[Buffer],
    order: Sequence[int],
    conflicts: Sequence[Set[int]],
    highest: int,
) -> list[int] | None:
    """Offsets, the lowest that are free; None as soon as one ends above `highest`."""
    offsets = [b.offset or 0 for b in buffers]
    placed = sorted(  # the bytes of each, in address order
        (offsets[i], offsets[i] + b.size, i)
        for i, b in enumerate(buffers)
        if b.offset is not None
    )
    for i in order:
        buffer = buffers[i]
        if buffer.offset is not None:
            continue
        offset = 0
        for start, end, j in placed:
            if j in conflicts[i]:
                if start - offset >= buffer.size:
                    break
                if end > offset:
                    offset = round_up(end, buffer.alignment)
        if offset + buffer.size > highest:
            return None
        offsets[i] = offset
        insort(placed, (offset, offset + buffer.size, i))
    return offsets


def _at_peak(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    conflicts: Sequence[Set[int]],
    peak: int,
) -> list[int]:
    """The buffers that end at the peak, and those that overlap one of them."""
    tops = {i for i, b in enumerate(buffers) if offsets[i] + b.size == peak}
    return sorted(tops.union(*(conflicts[i] for i in tops)))
