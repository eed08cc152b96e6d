"""Divides a program into stages, so that callers provide memory only while it is used.

    step           0    1    2    3    4
    result r                      x    x     provided before the second stage
    input d        x    x                    given back after the first
    arena a             x    x    x          provided for both
    stages         0.........|1.........

`planning.on_demand` chooses the stages.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .program import Program
from .steps import Arena, MemoryBlock


class Stage(NamedTuple):
    """The indices of the inputs, results and arenas that a caller provides before a
    stage, and of the inputs and arenas that it may free afterwards."""

    inputs: list[int]
    results: list[int]
    arenas: list[int]
    finished: list[int]
    """Inputs that no later stage uses."""
    finished_arenas: list[int]


class Use(NamedTuple):
    """The first and the last step that use an argument."""

    first: int
    last: int


def uses(program: Program) -> Mapping[MemoryBlock, Use]:
    """The range of steps that use each argument; unused arguments are missing."""
    found: dict[MemoryBlock, Use] = {}
    for n, step in enumerate(program.steps):
        for memory in step.arguments:
            first = found[memory].first if memory in found else n
            found[memory] = Use(first, n)
    return found


def stages(
    program: Program,
    inputs: Sequence[int],
    results: Sequence[int],
    arenas: Sequence[Arena],
    cuts: Sequence[int],
) -> Sequence[Stage]:
    """The stages of a program with a cut before each step in `cuts`. `inputs` and
    `results` are the indices of those that the caller provides, like `arenas`."""
    used = uses(program)
    made = [Stage([], [], [], [], []) for _ in range(len(cuts) + 1)]
    for n in inputs:
        use = used.get(program.inputs[n], Use(0, 0))
        made[bisect_right(cuts, use.first)].inputs.append(n)
        made[bisect_right(cuts, use.last)].finished.append(n)
    for n in results:
        memory = program.results[n]
        if isinstance(memory, MemoryBlock):
            use = used.get(memory, Use(0, 0))
            made[bisect_right(cuts, use.first)].results.append(n)
        else:  # it is copied out at the end
            made[-1].results.append(n)
    for n, arena in enumerate(arenas):
        start, end = arena.steps
        first = bisect_right(cuts, start)
        made[first].arenas.append(n)
        made[max(first, bisect_left(cuts, end))].finished_arenas.append(n)
    return made
