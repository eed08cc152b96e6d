"""The check of a plan: small, slow, and simple. It shares no code with any strategy."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise

from .problem import Problem

_SHELF = 1000  # the length of the range of numbers on a shelf


def validate(problem: Problem, offsets: Sequence[int]) -> str | None:
    """The reason why the offsets are invalid, or None if they are sound.

    Offsets are sound if each buffer has an offset of at least 0 that is a multiple of
    its alignment and equals the given offset, if any, and if buffers of a pool that are
    live in the same step share no byte. The capacity is not checked; see `Plan.peak`.
    """
    buffers = problem.buffers
    if len(offsets) != len(buffers):
        return f"there are {len(offsets)} offsets, expected {len(buffers)}"
    for buffer, offset in zip(buffers, offsets, strict=True):
        if offset < 0:
            return f"buffer {buffer.id} has offset {offset}, expected 0 or more"
        if offset % buffer.alignment:
            return (
                f"buffer {buffer.id} has offset {offset}, expected a multiple of "
                f"{buffer.alignment}"
            )
        if buffer.offset is not None and offset != buffer.offset:
            return f"buffer {buffer.id} has offset {offset}, expected {buffer.offset}"
    return _sharing(problem, offsets)


def _sharing(problem: Problem, offsets: Sequence[int]) -> str | None:
    """Names two buffers of a pool that are live in the same step and share a byte; None
    if there are none.

    Visits the steps in order. The live buffers are sorted by address and share nothing,
    so a buffer that becomes live can only share bytes with its two neighbors.
    """
    buffers = problem.buffers
    by_address = sorted(
        (b.pool, offsets[i], i) for i, b in enumerate(buffers) if b.size
    )
    events = sorted(
        event
        for rank, (_, _, index) in enumerate(by_address)
        for start, end in buffers[index].live
        for event in ((start, 1, rank), (end, 0, rank))
    )
    live = _Ranks(len(by_address))
    for step, starts, rank in events:
        if not starts:
            live.remove(rank)
            continue
        near = (by_address[other] for other in live.add(rank))
        for (pool, low, a), (other_pool, high, b) in pairwise(near):
            if pool == other_pool and high < low + buffers[a].size:
                return (
                    f"buffers {buffers[a].id} and {buffers[b].id} are both live in "
                    f"step {step} and share byte {high}"
                )
    return None


class _Ranks:
    """A sorted set of numbers, on shelves of numbers that are close to each other.

    A single list would take quadratic time if a million buffers are live.
    """

    def __init__(self, count: int) -> None:
        self._shelves: list[list[int]] = [[] for _ in range(0, count, _SHELF)]
        self._filled: list[int] = []  # numbers of shelves that hold something

    def add(self, rank: int) -> Sequence[int]:
        """Adds a number. Returns it between its neighbors, if it has any."""
        number = rank // _SHELF
        shelf, shelves, filled = self._shelves[number], self._shelves, self._filled
        if not shelf:
            insort(filled, number)
        insort(shelf, rank)
        place, turn = bisect_left(shelf, rank), bisect_left(filled, number)
        near = shelf[max(place - 1, 0) : place + 2]
        if rank == shelf[0] and turn > 0:
            near.insert(0, shelves[filled[turn - 1]][-1])
        if rank == shelf[-1] and turn + 1 < len(filled):
            near.append(shelves[filled[turn + 1]][0])
        return near

    def remove(self, rank: int) -> None:
        shelf = self._shelves[rank // _SHELF]
        del shelf[bisect_left(shelf, rank)]
        if not shelf:
            self._filled.remove(rank // _SHELF)
