"""Values that are in another memory between two uses, until the peak fits a budget.

    task    0    1    2    3    4    5    6
            writes v                      reads v
    v here  ##########               ########
    copies       out->               <-in

A value that nobody uses for long is copied out after its use and fetched ahead of the
next one; in between its bytes are free. Copies run beside the tasks, one at a time in
each direction: while a task runs, as much can be copied as takes its time. So a copy
out may end as late, and a fetch start as early, as that needs, except where too much is
live without the value's bytes: there the next task waits for the copy (`stall`).

This is the prefetch interval of XLA's memory-space assignment, with the asynchronous
copies' resource of each step; what is moved is found greedily, as there, by bytes over
all steps with too much at the least time. vDNN (Rhu et al. 2016) moves the activations
of layers so, SuperNeurons (Wang et al. 2018) in addition to computing them again, and
Capuchin (Peng et al. 2020) whatever has the longest time between two uses.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import sub

from .. import deadline
from . import TaskGraph, profile

BESIDE = 8
"""Copying costs this part of its time where it runs beside tasks: they share memory's
bandwidth."""

TRIED = 12
"""Of the most promising gaps, how many are looked at in full before one is taken."""

TOGETHER = 32
"""Of so many gaps where too much is live, one more is taken at once."""


@dataclass(frozen=True, slots=True)
class Move:
    """A value that is away for a while. Tasks by their number."""

    value: int
    out: int  # the first task ahead of which its bytes are free
    back: int  # the task ahead of which its fetch starts
    reader: int  # the task that reads it next; the number of tasks, for the end
    stall: int  # estimated time for which tasks wait for its copies


def offload(
    graph: TaskGraph,
    times: Sequence[int],
    copies: Sequence[int],
    movable: Collection[int],
    budget: int,
) -> list[Move]:
    """Moves that bring the tasks, in their order, to at most `budget` live bytes.

    `times` are those of the tasks, `copies` of copying each value in one direction, in
    the same unit. If the budget cannot be met, the moves give the lowest peak that
    there is. Moves of one value are disjoint; only the first needs to copy it out.
    """
    gaps = [gap for value in movable for gap in _gaps(graph, value)]
    kept = sum([size for size, k in zip(graph.sizes, graph.kept, strict=True) if k])
    live = [*profile(graph, range(len(graph.tasks))), kept]  # and what is at the end
    budget = max(budget, _lowest(graph, gaps, live))
    moves = _Moves(graph, times, copies, budget, live)
    while not deadline.passed() and (gaps := moves.useful(gaps)):
        count = 1 + len(gaps) // TOGETHER
        found = [(moves.best(gap), gap) for gap in gaps[: TRIED + count]]
        found = [(-moves.promise(move), gap) for move, gap in found if move]
        for _, gap in sorted(found)[:count]:
            if move := moves.best(gap):  # as the ones before leave it
                moves.add(move)
            gaps.remove(gap)
    return moves.settled()


@dataclass(frozen=True, slots=True, order=True)
class _Gap:
    """A value is used by the tasks `last` and `next`, and by none in between."""

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


def _lowest(graph: TaskGraph, gaps: Sequence[_Gap], live: Sequence[int]) -> int:
    """The peak if every value were away whenever it can be."""
    changes = [0] * (len(live) + 1)
    for gap in gaps:
        changes[gap.last + 1] += graph.sizes[gap.value]
        changes[gap.next] -= graph.sizes[gap.value]
    return max(map(sub, live, accumulate(changes)))


class _Moves:
    """Those that are chosen, what is live with them, and who copies when."""

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
        # Time of each task that is left for copies, in either direction.
        self.outwards = list(times)
        self.inwards = list(times)
        self.used: dict[Move, list[tuple[list[int], int, int]]] = {}
        self.first: dict[int, list[int]] = {}  # where moves of each value start

    def useful(self, gaps: Sequence[_Gap]) -> list[_Gap]:
        """Those in which too much is live, what may free the most per time first."""
        excess = [max(bytes - self.budget, 0) for bytes in self.live]
        steps = [0, *accumulate(map(bool, excess))]
        total = [0, *accumulate(excess)]
        found: list[tuple[float, _Gap]] = []
        for gap in gaps:
            start, end = gap.last + 1, gap.next
            freed = self.graph.sizes[gap.value] * (steps[end] - steps[start])
            if freed:
                freed = min(freed, total[end] - total[start])
                found.append((-freed / (self._beside(gap.value) + 1), gap))
        return [gap for _, gap in sorted(found)]

    def promise(self, move: Move) -> float:
        """The bytes over all steps with too much that are freed, per time."""
        size, budget = self.graph.sizes[move.value], self.budget
        live = self.live[move.out : move.back]
        freed = sum([min(bytes - budget, size) for bytes in live if bytes > budget])
        return freed / (self._beside(move.value) + move.stall + 1)

    def _beside(self, value: int) -> int:
        return self.copies[value] // BESIDE

    def best(self, gap: _Gap) -> Move | None:
        """The move that has its value away where too much is live; None if that is
        nowhere in the gap."""
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
        """Where a copy out ends, at a task up to `limit`, the time that it takes of
        tasks, and what is missing."""
        if any(start <= gap.last for start in self.first.get(gap.value, ())):
            return gap.last + 1, [], 0  # it is there already
        within = range(gap.last + 1, limit)
        parts, missing = _taken(self.outwards, within, self.copies[gap.value])
        return (limit if missing else parts[-1][0] + 1), parts, missing

    def _inwards(self, gap: _Gap, limit: int) -> tuple[int, list[tuple[int, int]], int]:
        """The same of a fetch that starts after the task `limit`."""
        within = range(gap.next - 1, limit, -1)
        parts, missing = _taken(self.inwards, within, self.copies[gap.value])
        return (limit + 1 if missing else parts[-1][0]), parts, missing

    def settled(self) -> list[Move]:
        """The moves, each with the time for its copies that the others leave it, and
        without those that are not needed any more; by task and value."""
        for move in sorted(self.used, key=lambda m: (-self.copies[m.value], m.out)):
            gap = _Gap(self._last_use(move), move.reader, move.value)
            self._remove(move)
            if (better := self.best(gap)) is not None:
                self.add(better)
        return sorted(self.used, key=lambda m: (m.out, m.value))


def _taken(
    times: Sequence[int], tasks: Collection[int], needed: int
) -> tuple[list[tuple[int, int]], int]:
    """What a copy takes of the tasks' times, in their order, and what is missing."""
    parts: list[tuple[int, int]] = []
    for at in tasks:
        if times[at]:
            parts.append((at, min(times[at], needed)))
            needed -= parts[-1][1]
        if not needed:
            break
    return parts, needed
