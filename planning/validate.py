"""The check of a plan: small, slow, and simple. It shares no code with any strategy."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from .problem import Problem


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
    """Two buffers of a pool that are live in the same step and share a byte.

    Goes through the steps. What is live at a time lies in order of address and shares
    nothing, so a buffer that begins to live can only share with its two neighbours.
    """
    buffers = problem.buffers
    events = sorted(
        event
        for index, buffer in enumerate(buffers)
        if buffer.size
        for start, end in buffer.live
        for event in ((start, 1, index), (end, 0, index))
    )
    pools: dict[str, list[tuple[int, int]]] = {}  # (offset, index) of what is live
    for step, starts, index in events:
        live = pools.setdefault(buffers[index].pool, [])
        place = bisect_left(live, (offsets[index], index))
        if not starts:
            del live[place]
            continue
        live.insert(place, (offsets[index], index))
        for (low, a), (high, b) in pairwise(live[max(place - 1, 0) : place + 2]):
            if high < low + buffers[a].size:
                return (
                    f"buffers {buffers[a].id} and {buffers[b].id} are both live in "
                    f"step {step} and share byte {high}"
                )
    return None
