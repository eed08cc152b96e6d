"""Finds the cheapest rematerialization within a budget, by constraint programming.

OR-tools' CP-SAT solves the model of Checkmate (Jain et al., MLSys 2020). The given
order is a sequence of stages. In each stage, one task runs for the first time, after
repetitions of earlier tasks. The solver chooses the values held between stages, and the
tasks repeated in each. The model's size is cubic in the number of tasks, so it is for
small graphs.

Needs OR-tools (the extra `exact`).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from ...support.extras import missing_extra_message
from .. import deadline
from . import TaskGraph, peak_of
from .parts import subgraph
from .rematerialization import Costs, Rematerialization, cost_of, rematerialize

LARGEST = 60
"""The largest number of tasks in a graph."""

TIME = 60.0
"""The limit in OR-tools' deterministic time, which is about seconds."""


def fewest(
    graph: TaskGraph, order: Sequence[int], costs: Costs, budget: int
) -> Rematerialization:
    """The cheapest order with at most `budget` bytes live, `optimal` if that is proved.

    The proof covers all orders in which tasks run for the first time in the given
    order. If the graph is too large, or the solver finds no order in time that fits or
    is cheaper, the result is that of `rematerialize`.

    Raises `ImportError` without OR-tools.
    """
    greedy = rematerialize(graph, order, costs, budget)
    is_permutation = len(order) == len(graph.tasks)
    if not is_permutation or not 0 < len(order) <= LARGEST or not greedy.cost:
        _solver()  # raises if OR-tools is missing, also for graphs of other sizes
        return greedy
    model = _Model(subgraph(graph, order, (0, len(order))), [costs[i] for i in order])
    below = greedy.cost if greedy.peak <= budget else None
    found, is_proved = model.solved(budget, below)
    if found is None:
        fits = greedy.peak <= budget
        return Rematerialization(
            greedy.order, greedy.peak, greedy.cost, is_proved and fits
        )
    best = [order[index] for index in found]
    return Rematerialization(
        best, peak_of(graph, best), cost_of(costs, best), is_proved
    )


def _solver() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise ImportError(
            missing_extra_message("OR-Tools is required", "exact", error)
        ) from None
    return cp_model


class _Model:
    """The model of a graph whose tasks are numbered in the order of the stages."""

    def __init__(self, graph: TaskGraph, costs: Costs):
        self.graph = graph
        self.costs = costs
        self.cp = _solver()
        self.model = self.cp.CpModel()
        count = len(graph.tasks)
        self.values = [  # others are live throughout, or have no bytes
            v
            for v, size in enumerate(graph.sizes)
            if size and graph.writer[v] is not None
        ]
        given = [v for v, w in enumerate(graph.writer) if w is None]
        self.given = sum(graph.sizes[v] for v in given)
        may_repeat = self._last_stages()
        self.runs: dict[tuple[int, int], Any] = {}  # by stage and task
        for stage in range(count):
            for task in range(stage):
                if stage <= may_repeat[task]:
                    self.runs[stage, task] = self.model.new_bool_var("")
            self.runs[stage, stage] = 1
        self.held: dict[tuple[int, int], Any] = {}  # by beginning stage and value
        for stage, value in product(range(count + 1), self.values):
            if self._writer(value) < stage:
                is_result = stage == count and graph.kept[value]
                self.held[stage, value] = (
                    1 if is_result else self.model.new_bool_var("")
                )

    def solved(self, budget: int, below: int | None) -> tuple[list[int] | None, bool]:
        """An order with a cost below `below`, or None; and whether that is proved."""
        self._order()
        for stage, task in self.runs:
            self._limit(stage, task, budget)
        cost = sum(
            (self.costs[task] or 0) * runs
            for (stage, task), runs in self.runs.items()
            if task < stage
        )
        if below is not None:
            self.model.add(cost < below)
        self.model.minimize(cost)
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1  # more workers are not deterministic
        solver.parameters.max_deterministic_time = TIME
        solver.parameters.max_time_in_seconds = max(deadline.left(), 0.0)
        status = solver.solve(self.model)
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return None, status == self.cp.INFEASIBLE
        order = [
            task
            for key, runs in self.runs.items()
            for task in [key[1]]
            if solver.value(runs)
        ]
        return order, status == self.cp.OPTIMAL

    def _writer(self, value: int) -> int:
        writer = self.graph.writer[value]
        assert writer is not None
        return writer

    def _last_stages(self) -> Sequence[int]:
        """The last stage in which each task may be repeated; -1 if it must not."""
        last = [len(self.costs) if cost is not None else -1 for cost in self.costs]
        for index, task in enumerate(self.graph.tasks):
            for other in task.after:
                last[other] = min(last[other], index)
        return last

    def _sources(self, stage: int, value: int) -> Iterator[Any]:
        """The variables for a value's presence in a stage: it is held, or computed."""
        writer = self._writer(value)
        if (stage, value) in self.held:
            yield self.held[stage, value]
        if (stage, writer) in self.runs:
            yield self.runs[stage, writer]

    def _order(self) -> None:
        """Requires that read values are present, and held values were before."""
        for (stage, task), runs in self.runs.items():
            for value in self._touched(self.graph.tasks[task].reads):
                self.model.add(sum(self._sources(stage, value)) >= runs)
        for (stage, value), held in self.held.items():
            self.model.add(sum(self._sources(stage - 1, value)) >= held)

    def _touched(self, values: Sequence[int]) -> list[int]:
        taking_part = set(self.values)
        return [value for value in values if value in taking_part]

    def _later(self, stage: int, task: int, value: int) -> list[Any]:
        """The variables for uses of a value after a task of a stage."""
        wanted = [
            self.runs[stage, reader]
            for reader in self.graph.readers[value]
            if reader > task and (stage, reader) in self.runs
        ]
        if (stage + 1, value) in self.held:
            wanted.append(self.held[stage + 1, value])
        return wanted

    def _limit(self, stage: int, task: int, budget: int) -> None:
        """Limits the live bytes while a task runs."""
        graph, runs = self.graph, self.runs[stage, task]
        own = graph.tasks[task]
        live = self.given
        for value in self.values:
            writer = self._writer(value)
            if writer == task:
                live += graph.sizes[value]
            elif writer > task:
                live += graph.sizes[value] * self.held.get((stage, value), 0)
            elif value in own.reads:
                live += graph.sizes[value]
            else:
                is_live = self.model.new_bool_var("")
                later = self._later(stage, task, value)
                for source, use in product(self._sources(stage, value), later):
                    self.model.add(is_live >= source + use - 1)
                live += graph.sizes[value] * is_live
        live -= self._taken_over(stage, task)
        limit = self.model.add(live <= budget)
        if task < stage:
            limit.only_enforce_if(runs)

    def _taken_over(self, stage: int, task: int) -> Any:
        """The bytes of a read value whose memory the result takes over."""
        own = self.graph.tasks[task]
        size = self.graph.sizes[own.writes[0]] if own.writes else 0
        taken: list[Any] = []
        for value in own.overwrites if size else ():
            if self.graph.sizes[value] == size and self.graph.writer[value] is not None:
                is_taken = self.model.new_bool_var("")
                for use in self._later(stage, task, value):
                    self.model.add(is_taken + use <= 1)
                taken.append(is_taken)
        if len(taken) > 1:
            self.model.add_at_most_one(taken)
        return size * sum(taken) if taken else 0
