"""Partial orders, which the searches extend one task at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .graph import TaskGraph


@dataclass(frozen=True, slots=True)
class Partial:
    """A prefix of an order."""

    peak: int  # bytes
    live: int  # bytes after the last task
    done: int  # the tasks, as bits
    ready: tuple[int, ...]
    task: int = -1  # the last task
    rest: "Partial | None" = None  # the prefix before the last task

    @property
    def order(self) -> list[int]:
        tasks: list[int] = []
        partial = self
        while partial.rest is not None:
            tasks.append(partial.task)
            partial = partial.rest
        return tasks[::-1]


class OrderBuilder:
    """Extends partial orders by one task."""

    def __init__(self, graph: TaskGraph):
        self.graph = graph
        never = 1 << len(graph.tasks)  # a reader that never runs
        self.readers = [
            sum(1 << task for task in tasks) | never * kept
            for tasks, kept in zip(graph.readers, graph.kept, strict=True)
        ]
        self.before = [sum(1 << task for task in tasks) for tasks in graph.predecessors]

    @cached_property
    def start(self) -> Partial:
        ready = [task for task, before in enumerate(self.before) if not before]
        live = self.graph.live_at_start
        return Partial(live, live, 0, tuple(ready))

    def grown(self, partial: Partial) -> Iterator[Partial]:
        """The orders with one more task.

        If a task does not raise the peak so far and leaves no more bytes live than
        before, the only order is that with this task: delaying it never helps.
        """
        sizes, readers = self.graph.sizes, self.readers
        grown: list[tuple[int, int, int]] = []
        for index in partial.ready:
            task = self.graph.tasks[index]
            pending = ~(partial.done | 1 << index)
            freed = [value for value in task.reads if not readers[value] & pending]
            written = sum([sizes[value] for value in task.writes])
            unread = sum([sizes[value] for value in task.writes if not readers[value]])
            during = partial.live + written - self.graph.taken_over(task, freed)
            live = partial.live + written - unread - sum([sizes[v] for v in freed])
            if during <= partial.peak and live <= partial.live:
                grown = [(partial.peak, live, index)]
                break
            grown.append((max(during, partial.peak), live, index))
        for peak, live, index in grown:
            done = partial.done | 1 << index
            ready = [task for task in partial.ready if task != index]
            for task in self.graph.successors[index]:
                if not self.before[task] & ~done:
                    ready.append(task)
            yield Partial(peak, live, done, tuple(ready), index, partial)
