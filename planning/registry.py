"""The strategies by name, and `solve`, which runs one and checks what it returns."""

from collections.abc import Callable
from time import process_time

from tensorplan.planning.problem import Plan, Problem, Strategy
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


def solve(problem: Problem, strategy: str = "greedy-by-size") -> Plan:
    """A checked plan for the problem.

    Raises `ValueError` for an unknown strategy and `UnsoundPlanError` if what the
    strategy returns is not sound.
    """
    if strategy not in STRATEGIES:
        raise ValueError(
            f"strategy is {strategy!r}, expected one of {', '.join(STRATEGIES)}"
        )
    start = process_time()
    offsets = STRATEGIES[strategy](problem.buffers)
    seconds = process_time() - start
    pairs = zip(offsets, problem.buffers, strict=False)
    peak = max((offset + b.size for offset, b in pairs), default=0)
    if reason := validate(problem, offsets, peak):
        raise UnsoundPlanError(f"strategy {strategy}: {reason}")
    return Plan(offsets, peak, problem.lower_bound, strategy, seconds)
