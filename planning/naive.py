"""`naive`: every buffer gets bytes of its own. What reuse is measured against."""

from tensorplan.planning.problem import Limits, Placement, Problem, peak_of, round_up
from tensorplan.planning.registry import strategy


@strategy("naive")
def naive(problem: Problem, limits: Limits) -> Placement:
    """No reuse: the buffers one after the other, above those with a given offset."""
    fixed = [b for b in problem.buffers if b.offset is not None]
    end = peak_of(fixed, [b.offset or 0 for b in fixed])
    offsets: list[int] = []
    for buffer in problem.buffers:
        if buffer.offset is not None:
            offsets.append(buffer.offset)
            continue
        offsets.append(round_up(end, buffer.alignment))
        end = offsets[-1] + buffer.size
    return Placement(offsets)
