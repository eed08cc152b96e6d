"""Plans arenas: which buffers lie in the memory of outputs, and where the others go.

plan-memory uses this module, and so does the code that predicts its plans
(analysis/storage/arenas.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, Protocol, TypeVar

from .on_demand import by_stages, worthwhile
from .output_reuse import HandOvers, Reuse, reuse
from .problem import Buffer, Limits, Plan, Problem
from .registry import solve

EFFORT = 0.02
"""The fraction of a strategy's usual work that an arena gets: seconds at most, and the
same plan on every machine."""


class Peaked(Protocol):
    @property
    def peak(self) -> int: ...  # bytes


P = TypeVar("P", bound=Peaked)


class Part(NamedTuple, Generic[P]):
    """An arena: the indices of its buffers, and their plan."""

    members: Sequence[int]
    plan: P


def arranged(
    buffers: Sequence[Buffer],
    outputs: Sequence[Buffer],
    place: Callable[[Sequence[int]], P],
    hand_overs: HandOvers | None = None,
    *,
    on_demand: Sequence[int] = (),
) -> tuple[Mapping[int, Reuse], Sequence[Part[P]]]:
    """Returns the places of buffers in outputs, and the plan of the arena for the
    others, or the plans of several arenas.

    A buffer may lie in outputs of its own `pool`. Outputs may hand over their bytes
    (`planning.output_reuse`). `place` plans the buffers with the given indices. No
    output is reused if the arena is no larger without reuse.

    on_demand: the steps, ascending, at which stages may begin, if the caller provides
        outputs and arenas only while they are used. Buffers then lie in outputs only if
        that lowers the sum of all memory, and there is an arena for each range of
        stages (`planning.on_demand`).
    """
    every = range(len(buffers))
    reuses = reuse(buffers, outputs, hand_overs)
    if on_demand:
        found = [reuses, worthwhile(buffers, outputs, reuses), dict[int, Reuse]()]
        grouped = [by_stages(buffers, outputs, each, on_demand) for each in found]
        best = min(range(len(found)), key=lambda n: grouped[n].cost)
        groups = grouped[best].groups
        return found[best], [Part(group, place(group)) for group in groups]
    rest = [i for i in every if i not in reuses]
    plan = place(rest)
    if reuses and plan.peak > placeable([buffers[i] for i in rest]).lower_bound:
        alone = place(every)
        if alone.peak <= plan.peak:
            return {}, [Part(every, alone)]
    return reuses, [Part(rest, plan)]


def placeable(buffers: Sequence[Buffer]) -> Problem:
    """The problem of buffers that share one arena, whatever their pools."""
    return Problem([replace(buffer, pool="") for buffer in buffers])


def solve_arena(
    problem: Problem, strategy: str = "auto", capacity: int | None = None
) -> Plan:
    """Solves a problem with little effort. If the plan exceeds `capacity` (bytes), but
    the lower bound does not, solves it with full effort."""
    plan = solve(problem, strategy, Limits(effort=EFFORT))
    if capacity is not None and plan.lower_bound <= capacity < plan.peak:
        return solve(replace(problem, capacity=capacity), strategy)
    return plan
