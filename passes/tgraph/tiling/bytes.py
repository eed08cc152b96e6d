"""Counts the live bytes of a region in tiles, as the scheduler counts them.

A value inside the region takes the memory of one tile. A value that is read from
outside is live until the last tile, and a value that is used outside is live from the
first tile on.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from xdsl.ir import SSAValue

from ....analysis.cost import (
    LAUNCH,
    is_packed,
    reads_part,
    time_between_rows,
    time_to_read_again,
)
from ....analysis.memory_graph import MemoryGraph
from ....dialects.tgraph.base import VariableType
from ....planning.scheduling import Task, TaskGraph, profile
from .dimensions import is_repeated, shape_of
from .regions import TileableRegion

SEEN = 3
"""The most tiles that are counted. All between the first and the last are alike."""


class Lifetimes:
    """The live bytes of a block on one device, in its present order."""

    def __init__(self, memory: MemoryGraph, graph: TaskGraph, alignment: int):
        self.memory = memory
        self.graph = graph
        self.alignment = alignment
        self.number = {op: index for index, op in enumerate(memory.ops)}
        count = len(memory.ops)
        self.during = profile(graph, range(count))
        self.last = [
            count if is_kept else max(readers, default=-1 if w is None else w)
            for is_kept, readers, w in zip(
                graph.kept, graph.readers, graph.writer, strict=True
            )
        ]
        changes = [0] * (count + 2)
        for value, size in enumerate(graph.sizes):
            changes[graph.writer[value] or 0] += size
            changes[self.last[value]] -= size
        self.after = list(accumulate(changes))  # live bytes after each task

    def in_tiles(self, region: TileableRegion, tiles: int, end: int) -> int:
        """The most bytes that are live in the window before task `end`, if `region`,
        which is in the window, is computed in tiles."""
        sizes: dict[int, int] = {}
        tasks = list(self._tasks(region, tiles, sizes))
        touched = {value for task in tasks for value in (*task.reads, *task.writes)}
        live = {v for v in touched if v < len(self.last) and self.last[v] >= end}
        sizes |= {v: self.graph.sizes[v] for v in touched if v not in sizes}
        total = self.after[end - 1]
        peak = 0
        for task in reversed(tasks):
            during = total
            for value in task.writes:
                if value in live:
                    live.remove(value)
                    total -= sizes[value]
                else:
                    during += sizes[value]
            freed = [value for value in task.reads if value not in live]
            live.update(freed)
            ended = sum(sizes[value] for value in freed)
            total += ended
            during += ended - _taken_over(task, freed, sizes)
            peak = max(peak, during)
        return peak

    def _tasks(
        self, region: TileableRegion, tiles: int, sizes: dict[int, int]
    ) -> Iterator[Task]:
        """Yields the tasks that run in the window. Adds the bytes of new values to
        `sizes`."""
        tasks, number = self.graph.tasks, self.number
        yield from (tasks[number[op]] for op in region.before if op in number)
        members = [number[op] for op in region.dims if op in number]
        written = {value for index in members for value in tasks[index].writes}
        outputs = {value for op in region.outputs for value in tasks[number[op]].writes}
        for tile in range(min(tiles, SEEN)):
            renamed: dict[int, int] = {}
            for value in sorted(written - outputs):
                new = len(self.graph.sizes) + len(sizes)
                size = -(-self.graph.sizes[value] // tiles)
                sizes[new] = -(-size // self.alignment) * self.alignment
                renamed[value] = new
            for index in members:
                task = tasks[index]
                reads = [renamed.get(value, value) for value in task.reads]
                writes = [renamed.get(value, value) for value in task.writes]
                if tile and not outputs.isdisjoint(writes):
                    reads = list(dict.fromkeys([*reads, *writes]))
                    writes = []
                over = [renamed[v] for v in task.overwrites if v in renamed]
                if not outputs.isdisjoint(task.writes):
                    over = []
                yield Task(reads, writes, (), over)
        yield from (tasks[number[op]] for op in region.after if op in number)


def _taken_over(task: Task, freed: Sequence[int], sizes: dict[int, int]) -> int:
    if not task.writes:
        return 0
    size = sizes[task.writes[0]]
    fits = any(sizes[v] == size and v in freed for v in task.overwrites)
    return size if fits else 0


def extra_time(region: TileableRegion, tiles: int) -> int:
    """The nanoseconds by which a region takes longer in tiles.

    Each tile starts its operations again. It reads the operands that it needs whole
    again, or packs them again for a product, unless they are packed in advance: then
    the kernel reads them while it computes. It reads and writes values outside the
    region in shorter rows.
    """
    again = rows = 0
    for op in region.dims:
        parts = list(zip(op.operands, region.needs[op], strict=True))
        rows += sum(
            _between_rows(value, along, tiles)
            for value, along in parts
            if along is not None and value.owner not in region.dims
        )
        if is_repeated(op):
            continue
        rows += sum(
            _between_rows(value, region.dims[op], tiles)
            for value in op.results
            if region.is_stored(value)
        )
        again += LAUNCH + sum(
            time_to_read_again(op, value)
            for value, along in parts
            if along is None and not reads_part(op, value) and not is_packed(op, value)
        )
    return (tiles - 1) * again + rows


def _between_rows(value: SSAValue, dim: int, tiles: int) -> int:
    """The nanoseconds by which reading or writing `value` in tiles takes longer."""
    if isinstance(value.type, VariableType):
        return 0
    shape = shape_of(value)
    part = (*shape[:dim], shape[dim] // tiles, *shape[dim + 1 :])
    return time_between_rows(value, part)
