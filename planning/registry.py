"""The strategies by name, and `solve`, which runs one and checks what it returns.

Installed packages add strategies through the entry point group `tensorplan.strategies`:
the name of the entry is the strategy's, its object the function.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from time import process_time

from tensorplan.planning.problem import Limits, Plan, Problem, Strategy, peak_of
from tensorplan.planning.validate import validate

STRATEGIES: dict[str, Strategy] = {}
"""The registered strategies; `strategy` adds one."""


class UnsoundPlanError(Exception):
    """A strategy returned offsets that break the rules: a bug in the strategy."""


def strategy(name: str) -> Callable[[Strategy], Strategy]:
    """Registers a function as the strategy `name`."""

    def register(function: Strategy) -> Strategy:
        if name in STRATEGIES:
            raise ValueError(f"there is a strategy {name!r} already")
        STRATEGIES[name] = function
        return function

    return register


@cache
def _installed() -> Mapping[str, Callable[[], Strategy]]:
    return {e.name: e.load for e in entry_points(group="tensorplan.strategies")}


def names() -> Sequence[str]:
    """All that `find` finds: ours, then the installed ones."""
    return [*STRATEGIES, *sorted(_installed())]


def find(name: str) -> Strategy:
    """The strategy of this name, ours or an installed one.

    Raises `ValueError` that lists the names there are.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    if name in _installed():
        return _installed()[name]()
    raise ValueError(f"strategy is {name!r}, expected one of {', '.join(names())}")


def solve(
    problem: Problem, strategy: str = "auto", limits: Limits | None = None
) -> Plan:
    """A checked plan for the problem, pool by pool.

    Raises `ValueError` for an unknown strategy, or given offsets that collide, and
    `UnsoundPlanError` if what the strategy returns is not sound.
    """
    place = find(strategy)
    given = [b for b in problem.buffers if b.offset is not None]
    if reason := validate(Problem(given), [b.offset or 0 for b in given]):
        raise ValueError(f"given offsets collide: {reason}")
    limits = limits or Limits()
    offsets: dict[str, list[int]] = {}
    peak, optimal, seconds = 0, True, 0.0
    for pool, part in problem.by_pool.items():
        start = process_time()
        found = place(part, limits)
        seconds += process_time() - start
        if reason := validate(part, found.offsets):
            raise UnsoundPlanError(f"strategy {strategy}: {reason}")
        offsets[pool] = list(reversed(found.offsets))
        part_peak = peak_of(part.buffers, found.offsets)
        optimal &= found.exhausted or part_peak == part.lower_bound
        peak += part_peak
    in_order = [offsets[buffer.pool].pop() for buffer in problem.buffers]
    return Plan(in_order, peak, problem.lower_bound, optimal, strategy, seconds)
