"""Divides the steps of a program into stages, for callers that provide its memory only
while it is used.

    step           0    1    2    3    4
    result r                      x    x     provided before the second stage
    input d        x    x                    given back after the first
    stages         0.........|1.........

In an order of steps, no division takes less than the most bytes that are in use in one
step. A stage more costs some microseconds, so there are as few as come close to that.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .program import Program
from .steps import MemoryBlock

MOST = 8
"""Stages. Eight take about 20 microseconds longer than one."""
CLOSE = 64
"""A division may take one part of that many more bytes than the finest one."""


class Stage(NamedTuple):
    """What a caller provides before a stage, and has back after it, by number."""

    inputs: list[int]
    results: list[int]
    finished: list[int]
    """Inputs that no later stage uses."""


class Use(NamedTuple):
    """From the first to the last step that uses an argument."""

    first: int
    last: int


def uses(program: Program) -> Mapping[MemoryBlock, Use]:
    """Those of the arguments that are used at all."""
    found: dict[MemoryBlock, Use] = {}
    for n, step in enumerate(program.steps):
        for memory in step.arguments:
            first = found[memory].first if memory in found else n
            found[memory] = Use(first, n)
    return found


def stages(
    program: Program, inputs: Sequence[int], results: Sequence[int], cuts: Sequence[int]
) -> Sequence[Stage]:
    """Those that begin at these steps, and one before. `inputs` and `results` are all
    that a caller provides."""
    used = uses(program)
    made = [Stage([], [], []) for _ in range(len(cuts) + 1)]
    for n in inputs:
        use = used.get(program.inputs[n], Use(0, 0))
        made[bisect_right(cuts, use.first)].inputs.append(n)
        made[bisect_right(cuts, use.last)].finished.append(n)
    for n in results:
        memory = program.results[n]
        if isinstance(memory, MemoryBlock):
            use = used.get(memory, Use(0, 0))
            made[bisect_right(cuts, use.first)].results.append(n)
        else:  # is copied at the end
            made[-1].results.append(n)
    return made


def best_cuts(
    count: int, released: Sequence[tuple[Use, int]], made: Sequence[tuple[Use, int]]
) -> Sequence[int]:
    """Where stages begin, but for the first, in a program of so many steps. `released`
    are the inputs that need no memory after their last use, with their bytes, `made`
    the results, which need none before their first use."""
    held = [0] * (count + 1)  # from that step on
    for use, size in released:
        for n in range(use.last + 1):
            held[n] += size
    begun = [0] * count  # up to that step
    for use, size in made:
        for n in range(use.first, count):
            begun[n] += size

    def divided(limit: int) -> list[int]:
        """The fewest stages of at most so many bytes."""
        starts = [0]
        for n in range(count):
            if held[starts[-1]] + begun[n] > limit:
                starts.append(n)
        return starts[1:]

    low = max((held[n] + begun[n] for n in range(count)), default=0)
    high = max((held[0] + begun[-1]), low) if count else low
    low += low // CLOSE
    while low < high and len(divided(low)) >= MOST:
        low += max(1, (high - low) // 2)
    return divided(low) if low < high else []
