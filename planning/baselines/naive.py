"""`naive`: every buffer gets bytes of its own. Reuse is measured against this."""

from ..problem import Limits, Placement, Problem, peak_of
from ..registry import strategy
from ..solver.gaps import stack


@strategy("naive")
def naive(problem: Problem, limits: Limits) -> Placement:
    """No reuse: buffers follow one another, above all buffers with a given offset."""
    fixed = [b for b in problem.buffers if b.offset is not None]
    floor = peak_of(fixed, [b.offset or 0 for b in fixed])
    offsets = [b.offset or 0 for b in problem.buffers]
    stack(problem.buffers, range(len(offsets)), offsets, floor)
    return Placement(offsets)
