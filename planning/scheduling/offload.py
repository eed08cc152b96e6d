"""Moves values to another memory between two uses until the peak fits a budget.

    task    0    1    2    3    4    5    6
            writes v                      reads v
    v here  ##########               ########
    copies       out->               <-in

A value that no task uses for a long time is copied out after one use and prefetched
ahead of the next; in between, its bytes are free. Copies run concurrently with the
tasks, one at a time in each direction, so the duration of a task limits how much can be
copied while it runs. A copy out ends as late, and a prefetch starts as early, as this
requires. If too many bytes would be live nevertheless, the next task waits for the copy
(`stall`).

This is the prefetch interval of XLA's memory-space assignment, with its resource for
asynchronous copies in each step. `residency.py` chooses the gaps in which values are
away, at the least cost in time. vDNN (Rhu et al. 2016) moves the activations of layers
in this way. SuperNeurons (Wang et al. 2018) also recomputes them. Capuchin (Peng et al.
2020) moves the values with the longest time between two uses.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from . import TaskGraph, profile
from .makespan import BESIDE
from .residency import Gap, Residency, ResidencyProblem, cheapest


@dataclass(frozen=True, slots=True)
class Move:
    """A value that is in the other memory between two uses. Tasks are numbers."""

    value: int
    out: int  # the first task during which its bytes are free
    back: int  # the task at whose start its prefetch starts
    reader: int  # the task that reads it next; the number of tasks for the end
    stall: int  # the estimated time that tasks wait for its copies


def offload(
    graph: TaskGraph,
    times: Sequence[int],
    copies: Sequence[int],
    movable: Collection[int],
    budget: int,
    choose: Callable[[ResidencyProblem], Residency] = cheapest,
) -> list[Move]:
    """Moves with which the tasks, in the given order, have at most `budget` bytes live.

    `times` has the time of each task, `copies` the time to copy each value in one
    direction, in the same unit; `choose` finds the gaps in which values are away. If
    the budget cannot be met, the moves give the lowest possible peak. Moves of one
    value are disjoint; only the first one has to copy the value out.
    """
    gaps = [gap for value in movable for gap in _gaps(graph, value)]
    kept = sum([size for size, k in zip(graph.sizes, graph.kept, strict=True) if k])
    live = [*profile(graph, range(len(graph.tasks))), kept]  # the last: at the end
    problem = ResidencyProblem(
        live,
        budget,
        graph.sizes,
        [1 + copy // BESIDE for copy in copies],
        [
            Gap(g.value, g.last + 1, g.next, 1 + copies[g.value] // BESIDE, g.value)
            for g in gaps
        ],
    )
    budget = max(budget, problem.lowest)
    stalls = _stalls(gaps, times, copies, [bytes > budget for bytes in live])
    costly = [
        replace(gap, cost=gap.cost + stall)
        for gap, stall in zip(problem.gaps, stalls, strict=True)
    ]
    found = choose(replace(problem, capacity=budget, gaps=costly))
    moves = _Moves(graph, times, copies, budget, live)
    for index in found.gaps:
        gap = gaps[index]
        moves.add(Move(gap.value, gap.last + 1, gap.next, gap.next, 0))
    return moves.settled()


def _stalls(
    gaps: Sequence["_Gap"],
    times: Sequence[int],
    copies: Sequence[int],
    is_over: Sequence[bool],
) -> Iterator[int]:
    """The time that tasks wait for the copies of each gap, if its value is away in all
    steps above the budget."""
    total = [0, *accumulate(times)]  # before each task
    before = [0, *accumulate(is_over)]  # the number of such steps before each step
    over = [step for step, over in enumerate(is_over) if over]
    for gap in gaps:
        start, end, copy = gap.last + 1, gap.next, copies[gap.value]
        if before[start] == before[end]:
            yield 0
            continue
        out = total[over[before[start]]] - total[start]
        back = total[end] - total[over[before[end] - 1] + 1]
        yield max(copy - out, 0) + max(copy - back, 0)


@dataclass(frozen=True, slots=True, order=True)
class _Gap:
    """A value that the tasks `last` and `next` use, and none in between."""

    last: int
    next: int
    value: int


def _gaps(graph: TaskGraph, value: int) -> Iterator[_Gap]:
    writer = graph.writer[value]
    if writer is None or not graph.sizes[value]:
        return
    uses = [writer, *graph.readers[value]]
    if graph.kept[value]:
        uses.append(len(graph.tasks))
    for last, next in pairwise(uses):
        if next > last + 1:
            yield _Gap(last, next, value)


class _Moves:
    """The chosen moves, the live bytes with them, and the time left for copies."""

    def __init__(
        self,
        graph: TaskGraph,
        times: Sequence[int],
        copies: Sequence[int],
        budget: int,
        live: Sequence[int],
    ):
        self.graph = graph
        self.copies = copies
        self.budget = budget
        self.live = list(live)
        # The time of each task that is left for copies in each direction.
        self.outwards = list(times)
        self.inwards = list(times)
        self.used: dict[Move, list[tuple[list[int], int, int]]] = {}
        self.first: dict[int, list[int]] = {}  # the starts of each value's moves

    def best(self, gap: _Gap) -> Move | None:
        """The move that covers all steps of a gap above the budget, or None."""
        live, budget = self.live, self.budget
        steps = range(gap.last + 1, gap.next)
        first = next((at for at in steps if live[at] > budget), None)
        if first is None:
            return None
        last = next(at for at in reversed(steps) if live[at] > budget)
        out, _, late = self._outwards(gap, first)
        back, _, early = self._inwards(gap, last)
        return Move(gap.value, out, back, gap.next, late + early)

    def add(self, move: Move) -> None:
        last = self._last_use(move)
        gap = _Gap(last, move.reader, move.value)
        taken: list[tuple[list[int], int, int]] = []
        for times, parts in (
            (self.outwards, self._outwards(gap, move.out)[1]),
            (self.inwards, self._inwards(gap, move.back - 1)[1]),
        ):
            for at, time in parts:
                times[at] -= time
                taken.append((times, at, time))
        self.used[move] = taken
        self.first.setdefault(move.value, []).append(move.out)
        self._change(move, -self.graph.sizes[move.value])

    def _remove(self, move: Move) -> None:
        for times, at, time in self.used.pop(move):
            times[at] += time
        self.first[move.value].remove(move.out)
        self._change(move, self.graph.sizes[move.value])

    def _change(self, move: Move, bytes: int) -> None:
        live = self.live[move.out : move.back]
        self.live[move.out : move.back] = [each + bytes for each in live]

    def _last_use(self, move: Move) -> int:
        readers = self.graph.readers[move.value]
        index = bisect_left(readers, move.reader)
        writer = self.graph.writer[move.value]
        assert writer is not None
        return readers[index - 1] if index else writer

    def _outwards(
        self, gap: _Gap, limit: int
    ) -> tuple[int, list[tuple[int, int]], int]:
        """The task before which a copy out ends, at most `limit`, the times that it
        takes of tasks, and the time that is missing."""
        if any(start <= gap.last for start in self.first.get(gap.value, ())):
            return gap.last + 1, [], 0  # an earlier move has copied it out
        within = range(gap.last + 1, limit)
        parts, missing = _taken(self.outwards, within, self.copies[gap.value])
        return (limit if missing else parts[-1][0] + 1), parts, missing

    def _inwards(self, gap: _Gap, limit: int) -> tuple[int, list[tuple[int, int]], int]:
        """The task at which a prefetch starts, after `limit`, the times that it takes
        of tasks, and the time that is missing."""
        within = range(gap.next - 1, limit, -1)
        parts, missing = _taken(self.inwards, within, self.copies[gap.value])
        return (limit + 1 if missing else parts[-1][0]), parts, missing

    def settled(self) -> list[Move]:
        """The moves, sorted by task and value. Each is replaced by the best one in the
        time that others leave for copies, and removed if it is no longer needed."""
        for move in sorted(self.used, key=lambda m: (-self.copies[m.value], m.out)):
            gap = _Gap(self._last_use(move), move.reader, move.value)
            self._remove(move)
            if (better := self.best(gap)) is not None:
                self.add(better)
        return sorted(self.used, key=lambda m: (m.out, m.value))


def _taken(
    times: Sequence[int], tasks: Collection[int], needed: int
) -> tuple[list[tuple[int, int]], int]:
    """The parts of the tasks' times that a copy takes, and the time missing."""
    parts: list[tuple[int, int]] = []
    for at in tasks:
        if times[at]:
            parts.append((at, min(times[at], needed)))
            needed -= parts[-1][1]
        if not needed:
            break
    return parts, needed
