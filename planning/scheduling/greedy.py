"""List scheduling: prefers a ready task that lowers the live bytes.

Going forward, a task qualifies if it frees at least the bytes that it writes. Going
backward, it qualifies if it ends at least as many bytes as it makes live, so a task
that only produces values runs as late as possible. If no task qualifies, the next one
is the first (backward: the last) in the given order, or the one that adds the fewest
bytes. Both directions take time near-linear in the graph.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from .graph import TaskGraph


class _Direction(Protocol):
    """The change in live bytes if a task is taken next."""

    growth: list[int]  # bytes, by task

    def take(self, task: int) -> Sequence[int]:
        """Takes a task; returns the tasks whose growth is now lower."""
        ...


class _Forwards:
    def __init__(self, graph: TaskGraph):
        self.graph = graph
        self.left = graph.uses
        self.last = [sum(readers) for readers in graph.readers]  # once one is left
        self.growth = [
            sum(graph.sizes[v] for v in task.writes if self.left[v])
            - sum(graph.sizes[v] for v in task.reads if self.left[v] == 1)
            for task in graph.tasks
        ]

    def take(self, task: int) -> Sequence[int]:
        lowered: list[int] = []
        for value in self.graph.tasks[task].reads:
            self.left[value] -= 1
            self.last[value] -= task
            if self.left[value] == 1 and not self.graph.kept[value]:
                self.growth[self.last[value]] -= self.graph.sizes[value]
                lowered.append(self.last[value])
        return lowered


class _Backwards:
    def __init__(self, graph: TaskGraph):
        self.graph = graph
        self.live = list(graph.kept)
        uses = graph.uses
        self.growth = [
            sum(graph.sizes[v] for v in task.reads if not self.live[v])
            - sum(graph.sizes[v] for v in task.writes if uses[v])
            for task in graph.tasks
        ]

    def take(self, task: int) -> Sequence[int]:
        lowered: list[int] = []
        for value in self.graph.tasks[task].reads:
            if self.live[value]:
                continue
            self.live[value] = True
            for reader in self.graph.readers[value]:
                self.growth[reader] -= self.graph.sizes[value]
                lowered.append(reader)
        return lowered


def forwards(graph: TaskGraph, order: Sequence[int], by_growth: bool) -> list[int]:
    """A new order, built from its start."""
    return _listed(
        _Forwards(graph), graph.predecessors, graph.successors, _rank(order), by_growth
    )


def backwards(graph: TaskGraph, order: Sequence[int], by_growth: bool) -> list[int]:
    """A new order, built from its end."""
    rank = [-rank for rank in _rank(order)]
    direction = _Backwards(graph)
    return _listed(direction, graph.successors, graph.predecessors, rank, by_growth)[
        ::-1
    ]


def _rank(order: Sequence[int]) -> list[int]:
    rank = [0] * len(order)
    for position, task in enumerate(order):
        rank[task] = position
    return rank


def _listed(
    direction: _Direction,
    predecessors: Sequence[Sequence[int]],
    successors: Sequence[Sequence[int]],
    rank: Sequence[int],
    by_growth: bool,
) -> list[int]:
    growth = direction.growth
    blockers = [len(tasks) for tasks in predecessors]
    done = [False] * len(rank)

    def key(task: int) -> tuple[int, int, int]:
        return (growth[task] if by_growth else min(growth[task], 0), rank[task], task)

    heap = [key(task) for task, count in enumerate(blockers) if not count]
    heapify(heap)
    result: list[int] = []
    while heap:
        found = heappop(heap)
        task = found[2]
        if done[task] or found != key(task):  # already taken, or has a lower key
            continue
        done[task] = True
        result.append(task)
        for lowered in direction.take(task):
            if not blockers[lowered] and not done[lowered]:
                heappush(heap, key(lowered))
        for other in successors[task]:
            blockers[other] -= 1
            if not blockers[other]:
                heappush(heap, key(other))
    return result
