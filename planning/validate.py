"""The check of a plan: small, slow, plain, and sharing no code with any strategy."""

from collections.abc import Sequence

from tensorplan.planning.problem import Buffer, Problem


def validate(problem: Problem, offsets: Sequence[int]) -> str | None:
    """The reason why the offsets are wrong, or None if they are sound.

    Sound means: an offset for each buffer, the given one where one is given, 0 or more,
    a multiple of its alignment; and no two buffers of a pool that are live in the same
    step share a byte. Whether the capacity is met is another question: `Plan.peak`.
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
    # In order of address, a buffer can only share bytes with followers that start
    # before it ends.
    order = sorted(range(len(buffers)), key=lambda i: (buffers[i].pool, offsets[i]))
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            a, b = buffers[i], buffers[j]
            if b.pool != a.pool or offsets[j] >= offsets[i] + a.size:
                break
            step = _both_live(a, b)
            if b.size and step is not None:
                return (
                    f"buffers {a.id} and {b.id} are both live in step {step} and share "
                    f"byte {offsets[j]}"
                )
    return None


def _both_live(a: Buffer, b: Buffer) -> int | None:
    """The first step in which both are live, if there is one."""
    step = max(a.start, b.start)
    while step < min(a.end, b.end):
        ends = [end for gap in (*a.gaps, *b.gaps) for end in gap[1:] if _in(step, gap)]
        if not ends:
            return step
        step = max(ends)
    return None


def _in(step: int, steps: tuple[int, int]) -> bool:
    return steps[0] <= step < steps[1]
