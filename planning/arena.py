"""An arena: which buffers lie in the memory of outputs, and where the others go.

Asked by plan-memory, and by who has to know what plan-memory will make of a program
(analysis/storage/arenas.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from .output_reuse import HandOvers, Reuse, reuse
from .problem import Buffer, Limits, Plan, Problem
from .registry import solve

EFFORT = 0.02
"""Of a strategy's usual work: seconds at most, and the same plan on every machine."""


class Peaked(Protocol):
    @property
    def peak(self) -> int: ...  # bytes


P = TypeVar("P", bound=Peaked)


def arranged(
    buffers: Sequence[Buffer],
    outputs: Sequence[Buffer],
    place: Callable[[Sequence[int]], P],
    hand_overs: HandOvers | None = None,
) -> tuple[Mapping[int, Reuse], P]:
    """What lies in outputs, and the plan of the arena, for all the others.

    Each may lie in outputs of its own `pool`, which may hand over their bytes as
    `planning.output_reuse` says; `place` plans some of the buffers, by
    their indices. Nothing is reused where the arena is no larger without that.
    """
    every = range(len(buffers))
    reuses = reuse(buffers, outputs, hand_overs)
    rest = [i for i in every if i not in reuses]
    plan = place(rest)
    if reuses and plan.peak > placeable([buffers[i] for i in rest]).lower_bound:
        alone = place(every)
        if alone.peak <= plan.peak:
            return {}, alone
    return reuses, plan


def placeable(buffers: Sequence[Buffer]) -> Problem:
    """The problem of buffers that share one arena, whatever their pools."""
    return Problem([replace(buffer, pool="") for buffer in buffers])


def solve_arena(
    problem: Problem, strategy: str = "auto", capacity: int | None = None
) -> Plan:
    """What `solve` finds with little effort; with all of it, where that does not fit a
    capacity, in bytes, that what is live does."""
    plan = solve(problem, strategy, Limits(effort=EFFORT))
    if capacity is not None and plan.lower_bound <= capacity < plan.peak:
        return solve(replace(problem, capacity=capacity), strategy)
    return plan
