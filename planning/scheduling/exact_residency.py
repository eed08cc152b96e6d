"""Finds the cheapest gaps of `residency.py`, proved by constraint programming.

The model has a Boolean for each gap, and a constraint for each step above the capacity.
OR-tools' CP-SAT minimizes the cost. Needs OR-tools (the extra `exact`).
"""

from typing import Any

from ...support.extras import missing_extra_message
from .. import deadline
from .residency import Choice, Residency, ResidencyProblem, cheapest

LARGEST = 2000
"""The largest number of gaps in a problem."""

TIME = 20.0
"""The limit in OR-tools' deterministic time, which is about seconds."""


def proved(problem: ResidencyProblem) -> Residency:
    """The cheapest gaps, `optimal` if that is proved.

    If the problem is too large, or the solver finds nothing better in time, the result
    is that of `cheapest`, with the better of both bounds.

    Raises `ImportError` without OR-tools.
    """
    cp = _solver()
    found = cheapest(problem)
    if found.optimal or not found.fits or len(problem.gaps) > LARGEST:
        return found
    model = cp.CpModel()
    away = [model.new_bool_var("") for _ in problem.gaps]
    _cover(model, problem, away)
    first = {gap.contents: model.new_bool_var("") for gap in problem.gaps}
    for gap, is_away in zip(problem.gaps, away, strict=True):
        model.add_implication(is_away, first[gap.contents])
        for other in gap.needs:
            model.add_implication(is_away, away[other])
    for index, is_away in enumerate(away):
        model.add_hint(is_away, index in found.gaps)
    saved: list[Any] = []
    for index, gap in enumerate(problem.gaps):
        if gap.saving:
            saved.append(gap.saving * _both(model, away[index], away[index + 1]))
    model.minimize(
        sum(gap.cost * a for gap, a in zip(problem.gaps, away, strict=True))
        - sum(saved)
        + sum(problem.first[what] * is_away for what, is_away in first.items())
    )
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1  # more workers are not deterministic
    solver.parameters.max_deterministic_time = TIME
    solver.parameters.max_time_in_seconds = max(deadline.left(), 0.0)
    status = solver.solve(model)
    bound = max(found.bound, -int(-solver.best_objective_bound // 1))
    if status not in (cp.OPTIMAL, cp.FEASIBLE) or solver.objective_value >= found.cost:
        return Residency(found.gaps, found.cost, min(bound, found.cost))
    gaps = [index for index, is_away in enumerate(away) if solver.value(is_away)]
    cost = Choice(problem, gaps).cost
    return Residency(gaps, cost, min(bound, cost))


def _solver() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise ImportError(
            missing_extra_message("OR-Tools is required", "exact", error)
        ) from None
    return cp_model


def _both(model: Any, one: Any, another: Any) -> Any:
    """A variable that may be true only if both others are."""
    both = model.new_bool_var("")
    model.add_implication(both, one)
    model.add_implication(both, another)
    return both


def _cover(model: Any, problem: ResidencyProblem, away: list[Any]) -> None:
    """Requires that gaps free enough bytes in each step above the capacity."""
    last = len(problem.live)
    freeing: list[list[Any]] = [[] for _ in problem.live]
    choice = Choice(problem)
    for index, gap in enumerate(problem.gaps):
        size = choice.size(index)
        before, after = choice.neighbors(index)
        steps, steps_after = gap.direct
        start = max(gap.start - steps * (before is None), 0)
        for step in range(start, gap.end):
            staged = gap.staged[0] if step < gap.start else 0
            freeing[step].append((size - staged) * away[index])
        both = away[index]
        if steps_after and after is not None:
            both = _both(model, both, away[after])
        for step in range(gap.end, min(gap.end + steps_after, last)):
            freeing[step].append((size - gap.staged[1]) * both)
    for bytes, terms in zip(problem.live, freeing, strict=True):
        if bytes > problem.capacity:
            model.add(sum(terms) >= bytes - problem.capacity)
