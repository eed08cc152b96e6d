"""Rematerialization: recomputes values, instead of keeping them, to fit a budget.

An order may contain a task several times. Each time, the task writes its values again,
and a reader gets the values of the last run (`scheduling.profile`). Between its last
reader and the next run of its task, a value is dead.

The search starts from the given order, and from one that frees values as early as
possible. It is greedy, as in XLA's rematerialization. At the peak, it picks the value
that frees the most bytes, over all steps above the budget, per unit of cost, and
recomputes it before its next reader. If an operand of that computation is dead there,
the search keeps it live for longer if there is room. Otherwise it recomputes the
operand too, so that whole segments are recomputed from the kept values (Chen et al.,
Training Deep Nets with Sublinear Memory Cost, 2016). Finally, it removes the
repetitions that later ones made redundant.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from .. import deadline
from . import TaskGraph, profile
from .greedy import forwards

LONGEST = 256
"""The largest number of tasks that are repeated together."""

TRIED = 12
"""The number of most promising values that are evaluated before one is chosen."""

SHORT = 100
"""In longer orders, several values are chosen at once."""

FIRST_STEP, LAST_STEP = 4, 128
"""`lowest` first lowers the peak by a quarter of the given one. It halves this step
down to 1/128, at effort 1."""

MAX_VISITS = 40_000
"""The limit on the tasks that `lowest` visits for each peak it tries, at effort 1."""

WORK = 12_000_000
"""The limit on the tasks visited, at effort 1: about ten seconds."""

Costs = Sequence[int | None]
"""The cost of running each task again, in any unit; None: it must run only once."""


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """An order with repetitions."""

    order: Sequence[int]
    peak: int  # bytes
    cost: int  # the total cost of the repetitions
    optimal: bool = False  # whether that is proved: see exact_rematerialization.py


def cost_of(costs: Costs, order: Sequence[int]) -> int:
    """The total cost of the repetitions in an order."""
    return sum(costs[order[at]] or 0 for at in _repetitions(order))


def rematerialize(
    graph: TaskGraph,
    order: Sequence[int],
    costs: Costs,
    budget: int,
    most: float = inf,
    effort: float = 1.0,
) -> Rematerialization:
    """An order with at most `budget` bytes live, by repetitions of at most `most` total
    cost, if the search finds one.

    Otherwise the search raises the budget in steps of a quarter of what is missing, and
    finally returns the given order, which may have repetitions already. Deterministic:
    it counts its work, not seconds, unless there is a deadline.
    """
    given = max(profile(graph, order), default=0)
    best = Rematerialization(order, given, cost_of(costs, order))
    starts = [order]
    if len(order) == len(graph.tasks):  # freeing values early leaves less to repeat
        starts.append(forwards(graph, order, by_growth=False))
    budget = max(budget, _needed(graph))  # the least that any order needs
    for part in (0, 1, 2, 3):  # quarters of what is missing
        target = budget + (given - budget) * part // 4
        for start in starts:
            if deadline.passed():
                return best
            work = int(WORK * effort) // (4 if part else 1)
            found = _Search(graph, costs, target, work, most).run(start)
            new = Rematerialization(
                found, max(profile(graph, found), default=0), cost_of(costs, found)
            )
            if new.cost > most:
                continue
            if new.peak <= target and (best.peak > target or new.cost < best.cost):
                best = new
        if best.peak <= target:
            break
    return best


def lowest(
    graph: TaskGraph,
    order: Sequence[int],
    costs: Costs,
    most: float,
    effort: float = 1.0,
) -> Rematerialization:
    """The order with the lowest peak that the search reaches with repetitions of at
    most `most` total cost.

    Each search starts from the result of the last one. The peak is lowered in steps,
    which are halved when one costs too much. Deterministic, as `rematerialize` is.
    """
    given = max(profile(graph, order), default=0)
    best = Rematerialization(order, given, cost_of(costs, order))
    floor = _needed(graph)
    step = given // FIRST_STEP
    while (
        step * LAST_STEP * effort > given
        and best.peak > floor
        and not deadline.passed()
    ):
        target = max(best.peak - step, floor)
        search = _Search(graph, costs, target, int(MAX_VISITS * effort), most)
        found = search.run(best.order)
        new = Rematerialization(
            found, max(profile(graph, found), default=0), cost_of(costs, found)
        )
        if new.peak <= target and new.cost <= most:
            best = new
        else:
            step //= 2
    return best


def _needed(graph: TaskGraph) -> int:
    """The largest number of bytes that any task reads and writes."""
    needed = 0
    for task in graph.tasks:
        touched = sum([graph.sizes[value] for value in (*task.reads, *task.writes)])
        needed = max(needed, touched - graph.taken_over(task, task.reads))
    return needed


class _Lives:
    """The writes and reads of the values of an order, and its live bytes."""

    def __init__(self, graph: TaskGraph, order: Sequence[int], budget: int):
        self.graph = graph
        self.order = order
        self.budget = budget
        self.writes: Sequence[list[int]] = [[] for _ in graph.sizes]
        self.reads: Sequence[list[int]] = [[] for _ in graph.sizes]
        self.first = [len(order)] * len(graph.tasks)
        for at, index in enumerate(order):
            task = graph.tasks[index]
            self.first[index] = min(self.first[index], at)
            for value in task.writes:
                self.writes[value].append(at)
            for value in task.reads:
                self.reads[value].append(at)
        for value, is_kept in enumerate(graph.kept):
            if is_kept:
                self.reads[value].append(len(order))
        self.live = profile(graph, order)
        self.excess = sum([live - budget for live in self.live if live > budget])
        is_over = [live > budget for live in self.live]
        self.over = [0, *accumulate(is_over)]  # steps above the budget before each step

    def written(self, value: int, before: int) -> int:
        """The last write of `value` before a position; -1 if there is none."""
        writes = self.writes[value]
        index = bisect_left(writes, before)
        return writes[index - 1] if index else -1

    def last_use(self, value: int, before: int) -> int:
        """The last use of `value` before a position; -1 if there is none."""
        reads = self.reads[value]
        index = bisect_left(reads, before)
        return max(reads[index - 1] if index else -1, self.written(value, before))

    def next_read(self, value: int, at: int) -> int | None:
        """The next read, from `at` on, of what was written before `at`, or None."""
        reads, writes = self.reads[value], self.writes[value]
        index = bisect_left(reads, at)
        if index == len(reads):
            return None
        later = bisect_left(writes, at)
        if later < len(writes) and writes[later] < reads[index]:
            return None
        return reads[index]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Tasks to repeat before position `at`, so that `value` is dead until then."""

    tasks: Sequence[int]
    value: int
    start: int  # the position from which it is dead
    at: int
    cost: int
    promise: float  # bytes times steps above the budget, per unit of cost


class _Search:
    def __init__(
        self,
        graph: TaskGraph,
        costs: Costs,
        budget: int,
        work: int,
        most: float,
    ):
        self.graph = graph
        self.costs = costs
        self.budget = budget
        self.work = work
        self.most = most  # the limit on the cost of repetitions
        self.blocked_by: Sequence[list[int]] = [[] for _ in graph.tasks]
        for index, task in enumerate(graph.tasks):
            for other in task.after:
                self.blocked_by[other].append(index)
        self.values = [
            value
            for value, size in enumerate(graph.sizes)
            if size
            and (writer := graph.writer[value]) is not None
            and costs[writer] is not None
        ]

    def run(self, order: Sequence[int]) -> list[int]:
        return self._pruned(self._lowered(list(order)))

    def _lowered(self, order: list[int]) -> list[int]:
        """Repeats tasks until the order fits the budget, or nothing helps."""
        lives = _Lives(self.graph, order, self.budget)
        while lives.excess and self.work > 0:
            found = self._best(lives)
            if found is None:
                break
            order = found
            if cost_of(self.costs, order) > self.most:
                break
            lives = _Lives(self.graph, order, self.budget)
        return order

    def _best(self, lives: _Lives) -> list[int] | None:
        """The order with the repetition that lowers the excess at the least cost.

        In long orders, with the most promising repetitions together, if these halve the
        excess.
        """
        found = sorted(self._candidates(lives), key=lambda c: (-c.promise, c.at))
        self.work -= 16 * len(found) + 4 * len(lives.order)
        together: Sequence[_Candidate] = ()
        if len(lives.order) > SHORT:
            together = self._enough(lives, found)
        while len(together) > 1:
            order = self._applied(lives.order, together)
            if 2 * self._excess(order) < lives.excess:
                return order
            together = together[: len(together) // 4]
        best: list[int] | None = None
        highest = 0.0
        for number, candidate in enumerate(found):
            if (best is not None and number >= TRIED) or self.work <= 0:
                break
            order = self._applied(lives.order, [candidate])
            gain = lives.excess - self._excess(order)
            if gain / (candidate.cost + 1) > highest:
                best, highest = order, gain / (candidate.cost + 1)
        return best

    def _enough(
        self, lives: _Lives, found: Sequence[_Candidate]
    ) -> Sequence[_Candidate]:
        """The first candidates that together bring all steps within the budget,
        assuming that repetitions take no memory. Candidates are left out if others have
        already lowered all their steps."""
        over = [at for at, live in enumerate(lives.live) if live > self.budget]
        left = [lives.live[at] - self.budget for at in over]
        chosen: dict[int, _Candidate] = {}
        for candidate in found:
            value = candidate.value
            start = bisect_left(over, candidate.start)
            end = bisect_left(over, candidate.at)
            if value not in chosen and any([n > 0 for n in left[start:end]]):
                chosen[value] = candidate
                for step in range(start, end):
                    left[step] -= self.graph.sizes[value]
        return list(chosen.values())

    def _excess(self, order: Sequence[int]) -> int:
        self.work -= len(order)
        if deadline.passed():
            self.work = 0
        live = profile(self.graph, order)
        return sum([each - self.budget for each in live if each > self.budget])

    def _applied(self, order: Sequence[int], chosen: Sequence[_Candidate]) -> list[int]:
        """The order with the repetitions, without runs that they make redundant."""
        result: list[int] = []
        start = 0
        for at in sorted({candidate.at for candidate in chosen}):
            result += order[start:at]
            result += sorted({t for c in chosen if c.at == at for t in c.tasks})
            start = at
        return self._without_dead([*result, *order[start:]])

    def _candidates(self, lives: _Lives) -> Iterator[_Candidate]:
        """Repetitions that free a value at the peak."""
        at = lives.live.index(max(lives.live))
        for value in self.values:
            written = lives.written(value, at)
            if written < 0:
                continue
            reader = lives.next_read(value, at)
            if reader is None or reader == at:
                continue
            last = lives.last_use(value, at)
            steps = lives.over[reader] - lives.over[last + 1]
            writer = lives.order[written]
            is_moved = last == written and all(
                other == value or lives.next_read(other, written + 1) is None
                for other in self.graph.tasks[writer].writes
            )
            known: set[tuple[int, ...]] = set()
            for is_small in (0, 1):
                tasks = self._chain(lives, value, reader, is_small)
                if tasks is None or tuple(tasks) in known:
                    continue
                known.add(tuple(tasks))
                cost = sum([self.costs[task] or 0 for task in tasks])
                if is_moved:
                    cost -= self.costs[writer] or 0
                promise = steps * self.graph.sizes[value] / (cost + 1)
                yield _Candidate(tasks, value, last + 1, reader, cost, promise)

    def _chain(
        self, lives: _Lives, value: int, at: int, is_small: int
    ) -> list[int] | None:
        """The tasks to repeat for a value before a position; None if impossible.

        With `is_small`, operands of at most a quarter of the value's bytes are kept.
        """
        graph = self.graph
        writer = graph.writer[value]
        assert writer is not None
        chosen = {writer}
        stack = [writer]
        while stack:
            task = stack.pop()
            if any(lives.first[other] < at for other in self.blocked_by[task]):
                return None
            for read in graph.tasks[task].reads:
                size, source = graph.sizes[read], graph.writer[read]
                if (
                    not size
                    or source is None
                    or source in chosen
                    or self.costs[source] is None
                    or lives.next_read(read, at) is not None
                    or (is_small and 4 * size <= graph.sizes[value])
                    or self._has_room(lives, size, lives.last_use(read, at) + 1, at)
                ):
                    continue
                chosen.add(source)
                stack.append(source)
            if len(chosen) > LONGEST:
                return None
        return sorted(chosen)

    def _has_room(self, lives: _Lives, size: int, start: int, end: int) -> bool:
        if lives.over[end] > lives.over[start]:
            return False
        return max(lives.live[start:end], default=0) + size <= self.budget

    def _without_dead(self, order: list[int]) -> list[int]:
        """The order without repetitions, or first runs, that nothing reads."""
        count = [0] * len(self.graph.tasks)
        for task in order:
            count[task] += 1
        live = list(self.graph.kept)
        result: list[int] = []
        for index in reversed(order):
            task = self.graph.tasks[index]
            is_read = any([live[value] for value in task.writes])
            if not is_read and count[index] > 1:
                count[index] -= 1
                continue
            for value in task.writes:
                live[value] = False
            for value in task.reads:
                live[value] = True
            result.append(index)
        return result[::-1]

    def _pruned(self, order: list[int]) -> list[int]:
        """The order without repetitions that are not needed, the costliest first."""
        limit = max(self.budget, max(profile(self.graph, order), default=0))
        while not deadline.passed():
            lives = _Lives(self.graph, order, limit)
            needless = sorted(
                (at for at in _repetitions(order) if self._can_stay(lives, at)),
                key=lambda at: -(self.costs[order[at]] or 0),
            )
            shorter = order
            while needless:
                left_out = set(needless)
                shorter = [t for at, t in enumerate(order) if at not in left_out]
                if max(profile(self.graph, shorter)) <= limit:
                    break
                needless = needless[: len(needless) // 2]
            if not needless:
                break
            order = shorter
        return self._without_dead(order)

    def _can_stay(self, lives: _Lives, at: int) -> bool:
        """Whether the values of a repetition could stay live since their last use."""
        for value in self.graph.tasks[lives.order[at]].writes:
            start, size = lives.last_use(value, at) + 1, self.graph.sizes[value]
            is_read = lives.next_read(value, at + 1) is not None
            if is_read and max(lives.live[start:at], default=0) + size > lives.budget:
                return False
        return True


def _repetitions(order: Sequence[int]) -> Iterator[int]:
    """The positions of tasks that have run before."""
    seen: set[int] = set()
    for at, task in enumerate(order):
        if task in seen:
            yield at
        seen.add(task)
