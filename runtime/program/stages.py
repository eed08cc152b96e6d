"""Divides a program into stages, so that callers provide memory only while it is used.

    step           0    1    2    3    4
    result r                      x    x     provided before the second stage
    input d        x    x                    given back after the first
    stages         0.........|1.........

For a given order of steps, no division needs fewer bytes than the step that uses the
most bytes. Each additional stage costs a few microseconds, so `best_cuts` takes the
fewest stages that come close to that bound.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .program import Program
from .steps import MemoryBlock

MOST = 8
"""The maximum number of stages. Eight take about 20 microseconds longer than one."""
CLOSE = 64
"""A division may exceed the lower bound by one part in `CLOSE`."""


class Stage(NamedTuple):
    """The indices of the inputs and results that a caller provides before a stage, and
    of the inputs that it may free afterwards."""

    inputs: list[int]
    results: list[int]
    finished: list[int]
    """Inputs that no later stage uses."""


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
    program: Program, inputs: Sequence[int], results: Sequence[int], cuts: Sequence[int]
) -> Sequence[Stage]:
    """The stages of a program with a cut before each step in `cuts`. `inputs` and
    `results` are the indices of those that the caller provides."""
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
        else:  # it is copied out at the end
            made[-1].results.append(n)
    return made


def best_cuts(
    count: int, released: Sequence[tuple[Use, int]], made: Sequence[tuple[Use, int]]
) -> Sequence[int]:
    """The steps at which stages begin, without the first stage, in a program of `count`
    steps. `released` has the use and the bytes of each input that is freed after its
    last use; `made` those of each result that is provided before its first use."""
    held = [0] * (count + 1)  # bytes of inputs still in use from each step on
    for use, size in released:
        for n in range(use.last + 1):
            held[n] += size
    begun = [0] * count  # bytes of results in use up to each step
    for use, size in made:
        for n in range(use.first, count):
            begun[n] += size

    def divided(limit: int) -> list[int]:
        """Starts of the fewest stages of at most `limit` bytes each."""
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
