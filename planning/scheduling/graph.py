"""The task graph: tasks, the values that they write and read, and live bytes.

A value is live from the task that writes it to the last task that reads it. While a
task runs, both its operands and its results are live. The exception is a first result
that takes over the memory of an operand of the same size that no later task reads.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """An operation."""

    reads: Sequence[int] = ()  # values, each once
    writes: Sequence[int] = ()  # values; at most one task writes each value
    after: Sequence[int] = ()  # tasks that must come before, besides writers of `reads`
    overwrites: Sequence[int] = ()  # values of `reads` that `writes[0]` may overwrite


class TaskGraph:
    """Tasks in a valid order, and the bytes of their values.

    A value that no task writes is live from the start, and a value in `kept` to the
    end.

    Raises `ValueError` for a task before one that it depends on.
    """

    def __init__(
        self, tasks: Sequence[Task], sizes: Sequence[int], kept: Collection[int] = ()
    ):
        self.tasks = tasks
        self.sizes = sizes
        self.kept = [value in kept for value in range(len(sizes))]
        self.writer: list[int | None] = [None] * len(sizes)
        self.readers: Sequence[list[int]] = [[] for _ in sizes]
        self.predecessors: list[
            Sequence[int]
        ] = []  # the tasks that must precede each task
        self.successors: Sequence[list[int]] = [[] for _ in tasks]
        for index, task in enumerate(tasks):
            for value in task.writes:
                self.writer[value] = index
        for index, task in enumerate(tasks):
            for value in task.reads:
                self.readers[value].append(index)
            writers = (self.writer[value] for value in task.reads)
            needed = dict.fromkeys(
                (*(w for w in writers if w is not None), *task.after)
            )
            for other in needed:
                if other >= index:
                    raise ValueError(f"task {index} depends on task {other}")
                self.successors[other].append(index)
            self.predecessors.append(list(needed))

    @property
    def contents(self) -> Hashable:
        """A key that is equal for equal graphs."""
        tasks = (
            tuple(map(tuple, (task.reads, task.writes, task.after, task.overwrites)))
            for task in self.tasks
        )
        return tuple(tasks), tuple(self.sizes), tuple(self.kept)

    @property
    def uses(self) -> list[int]:
        """The number of uses of each value; after them it is dead."""
        return [len(r) + k for r, k in zip(self.readers, self.kept, strict=True)]

    @property
    def live_at_start(self) -> int:
        """The bytes of used values that no task writes."""
        given = (value for value, task in enumerate(self.writer) if task is None)
        return sum(self.sizes[v] for v in given if self.readers[v] or self.kept[v])

    def taken_over(self, task: Task, freed: Collection[int]) -> int:
        """The bytes of the read value whose memory `writes[0]` takes over, or 0.

        `freed` are the values in `reads` that no later task reads.
        """
        if not task.writes:
            return 0
        size = self.sizes[task.writes[0]]
        for value in task.overwrites:
            if self.sizes[value] == size and value in freed:
                return size
        return 0


def profile(graph: TaskGraph, order: Sequence[int]) -> list[int]:
    """The live bytes while each task of the order runs.

    A task may run several times. Each run writes its values again, and a reader gets
    those of the last run. A value is not live between its last reader and the next run.
    """
    sizes = graph.sizes
    live = list(graph.kept)  # whether each value is live after the current task
    total = sum([size for size, is_kept in zip(sizes, live, strict=True) if is_kept])
    result: list[int] = []
    for index in reversed(order):
        task = graph.tasks[index]
        during = total
        for value in task.writes:
            if live[value]:
                live[value] = False
                total -= sizes[value]
            else:
                during += sizes[value]
        freed: list[int] = []
        for value in task.reads:
            if not live[value]:
                live[value] = True
                freed.append(value)
        if freed:
            ended = sum([sizes[value] for value in freed])
            total += ended
            during += ended - graph.taken_over(task, freed)
        result.append(during)
    result.reverse()
    return result


def peak_of(graph: TaskGraph, order: Sequence[int]) -> int:
    """The largest number of live bytes over all steps of the order."""
    return max(profile(graph, order), default=0)


def least_live(graph: TaskGraph, index: int) -> int:
    """A lower bound on the live bytes while a task runs, for any order."""
    earlier, later = (
        _reached(edges, index) for edges in (graph.predecessors, graph.successors)
    )
    total, freed = 0, list[int]()
    for value, (size, writer) in enumerate(zip(graph.sizes, graph.writer, strict=True)):
        is_read_later = graph.kept[value] or not later.isdisjoint(graph.readers[value])
        is_used = writer == index or index in graph.readers[value]
        if is_used or (is_read_later and (writer is None or writer in earlier)):
            total += size
        if is_used and not is_read_later:
            freed.append(value)
    return total - graph.taken_over(graph.tasks[index], freed)


def _reached(edges: Sequence[Sequence[int]], index: int) -> set[int]:
    found, waiting = set[int](), [index]
    for task in waiting:  # grows during the loop
        new = [other for other in edges[task] if other not in found]
        found.update(new)
        waiting += new
    return found
