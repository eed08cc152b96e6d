"""The check of a plan: small, slow, plain, and sharing no code with any strategy."""

from collections.abc import Sequence

from tensorplan.planning.problem import Problem


def validate(problem: Problem, offsets: Sequence[int], peak: int) -> str | None:
    """The reason why the plan is wrong, or None if it is sound.

    Sound means: an offset for each buffer, at a multiple of its alignment, within
    [0, peak), and no two buffers that are live in the same step share a byte.
    """
    buffers = problem.buffers
    if len(offsets) != len(buffers):
        return f"there are {len(offsets)} offsets, expected {len(buffers)}"
    for buffer, offset in zip(buffers, offsets, strict=True):
        if offset < 0 or offset + buffer.size > peak:
            return (
                f"buffer {buffer.id} lies in [{offset}, {offset + buffer.size}), "
                f"expected within [0, {peak})"
            )
        if offset % buffer.alignment:
            return (
                f"buffer {buffer.id} has offset {offset}, expected a multiple of "
                f"{buffer.alignment}"
            )
    # In order of address, a buffer can only share bytes with followers that start
    # before it ends.
    order = sorted(range(len(buffers)), key=lambda i: offsets[i])
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if offsets[j] >= offsets[i] + buffers[i].size:
                break
            a, b = buffers[i], buffers[j]
            if b.size and a.start < b.end and b.start < a.end:
                return (
                    f"buffers {a.id} and {b.id} are both live in step "
                    f"{max(a.start, b.start)} and share byte {offsets[j]}"
                )
    return None
