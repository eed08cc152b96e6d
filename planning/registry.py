"""The strategies by name, and `solve`, which runs a strategy and checks its plan.

Installed packages add strategies through the entry point group `tensorplan.strategies`:
the name of the entry point is the name of the strategy, and its object is the function.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf
from time import monotonic, process_time
from typing import cast

from ..support.choices import ChoiceError
from . import deadline
from .problem import Limits, Plan, Problem, Strategy, peak_of
from .validate import validate

STRATEGIES: dict[str, Strategy] = {}
"""The registered strategies; `strategy` adds one."""


class UnsoundPlanError(Exception):
    """A strategy returned offsets that break the rules: a bug in the strategy."""


def strategy(name: str) -> Callable[[Strategy], Strategy]:
    """Registers a function as the strategy `name`."""

    def register(function: Strategy) -> Strategy:
        if name in STRATEGIES:
            raise ValueError(f"strategy {name!r} already exists")
        STRATEGIES[name] = function
        return function

    return register


@cache
def _installed() -> Mapping[str, Callable[[], Strategy]]:
    from importlib.metadata import entry_points  # slow to load, and seldom needed

    return {e.name: e.load for e in entry_points(group="tensorplan.strategies")}


def names() -> Sequence[str]:
    """The names of all strategies: tensorplan's own, then the installed ones."""
    return [*STRATEGIES, *sorted(_installed())]


def find(name: str) -> Strategy:
    """The strategy of this name, tensorplan's own or an installed one.

    Raises `ChoiceError`, which lists the existing names.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    if name in _installed():
        return _installed()[name]()
    raise ChoiceError("strategy", name, names())


def solve(
    problem: Problem, strategy: str = "auto", limits: Limits | None = None
) -> Plan:
    """Solves a problem, pool by pool, and checks the plan.

    The time limit includes the check. When time is up, the remaining buffers are placed
    at once, without optimization.

    Raises `ValueError` for an unknown strategy or conflicting given offsets,
    `TypeError` if `problem` is no `Problem`, and `UnsoundPlanError` if the strategy
    returns an unsound plan.
    """
    place = find(strategy)
    if not isinstance(cast(object, problem), Problem):
        raise TypeError(f"problem has type {type(problem).__name__}, expected Problem")
    given = [b for b in problem.buffers if b.offset is not None]
    if reason := validate(Problem(given), [b.offset or 0 for b in given]):
        raise ValueError(f"given offsets collide: {reason}")
    limits = limits or Limits()
    begin = monotonic()
    pools = {pool: (part, part.lower_bound) for pool, part in problem.by_pool.items()}
    check = 4 * (monotonic() - begin)  # the check takes about that long
    limit = inf if limits.time_limit is None else begin + limits.time_limit
    end = min(limit, monotonic() + deadline.left()) - check
    offsets: dict[str, list[int]] = {}
    peak, optimal, was_ended, seconds = 0, True, False, 0.0
    for pool, (part, lower_bound) in pools.items():
        start = process_time()
        with deadline.until(end):
            found = place(part, limits)
            was_ended |= deadline.passed()
        seconds += process_time() - start
        if reason := validate(part, found.offsets):
            raise UnsoundPlanError(f"strategy {strategy}: {reason}")
        offsets[pool] = list(reversed(found.offsets))
        part_peak = peak_of(part.buffers, found.offsets)
        optimal &= found.exhausted or part_peak == lower_bound
        peak += part_peak
    in_order = [offsets[buffer.pool].pop() for buffer in problem.buffers]
    lower_bound = sum(bound for _, bound in pools.values())
    return Plan(in_order, peak, lower_bound, optimal, strategy, seconds, was_ended)
