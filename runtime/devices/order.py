"""Finds which steps of different queues wait for each other.

    0  queue A  writes bytes 0 to 64
    1  queue B  reads bytes 0 to 64       waits for 0
    2  queue B  reads bytes 0 to 32       waits for none, as 1 has waited for 0
    3  queue A  writes bytes 0 to 64      waits for 2, so for 1 as well

Dependences come from the bytes that steps access, not from the IR. If one of two steps
writes a byte that the other accesses, they run in program order. Values therefore do
not depend on timing, however the buffers were placed: by a plan for streams, by a plan
in program order, or by an allocator. For a plan that `plan-check` has proved for
streams, this adds no waits beyond those of values and buffers.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..program.steps import MemoryBlock, Step, View

Queue = tuple[str, int]
"""A device, and the number of a stream on it."""


def queue_of(step: Step) -> Queue:
    return step.device, step.stream


def waits(steps: Sequence[Step]) -> list[list[int]]:
    """For each step, the earlier steps of other queues that it waits for, latest first.

    Waits that follow from other waits and from the order of queues are omitted, by
    vector clocks (Mattern 1989).
    """
    numbers: dict[Queue, int] = {}
    queues = [numbers.setdefault(queue_of(step), len(numbers)) for step in steps]
    latest = [-1] * len(numbers)  # the latest step of each queue
    over: list[list[int]] = []  # clocks: the last finished step of each queue
    found: list[list[int]] = []
    for number, (queue, before) in enumerate(
        zip(queues, _conflicts(steps, queues), strict=True)
    ):
        own = latest[queue]
        clock = over[own].copy() if own >= 0 else [-1] * len(numbers)
        needed: list[int] = []
        for other in sorted(before, reverse=True):
            if other > clock[queues[other]]:
                needed.append(other)
                clock = list(map(max, clock, over[other]))
        clock[queue] = latest[queue] = number
        over.append(clock)
        found.append(needed)
    return found


def _conflicts(steps: Sequence[Step], queues: Sequence[int]) -> Iterator[set[int]]:
    """For each step, the nearest earlier steps that it must not overtake."""
    memories: dict[MemoryBlock, _Touched] = {}
    for number, (step, queue) in enumerate(zip(steps, queues, strict=True)):
        found: set[int] = set()
        for views, writes in ((step.reads, False), (step.writes, True)):
            for view in views:
                memory = view.buffer.memory
                if memory.is_constant:
                    continue
                touched = memories.setdefault(memory, _Touched())
                found.update(touched.touch(*_span(view), number, queue, writes))
        found.discard(number)
        yield found


def _span(view: View) -> tuple[int, int]:
    """The half-open range of bytes of its memory that a view covers."""
    start = view.buffer.start + view.offset
    if 0 in view.shape:
        return start, start
    reach = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    last = start + sum(r for r in reach if r > 0) + view.dtype.itemsize
    return start + sum(r for r in reach if r < 0), last


@dataclass
class _Part:
    """The last accesses to a range of bytes that have the same history."""

    writer: int | None = None  # the last step that wrote them
    readers: dict[int, int] = field(default_factory=dict[int, int])
    """The last step of each queue that has read the bytes since `writer`."""

    def steps(self) -> Iterable[int]:
        written = () if self.writer is None else (self.writer,)
        return (*written, *self.readers.values())


class _Touched:
    """The last accesses to each byte of a memory, in ranges. All bytes after the last
    access belong to the last range, which nothing has accessed."""

    def __init__(self) -> None:
        self._starts = [0]
        self._parts = [_Part()]

    def touch(
        self, start: int, stop: int, step: int, queue: int, writes: bool
    ) -> set[int]:
        """Records an access; returns the earlier steps that it depends on."""
        if start == stop:
            return set()
        first, last = self._cut(start), self._cut(stop)
        parts = self._parts[first:last]
        if not writes:
            for part in parts:
                part.readers[queue] = step
            return {part.writer for part in parts if part.writer is not None}
        self._starts[first + 1 : last] = []
        self._parts[first:last] = [_Part(step)]
        return {other for part in parts for other in part.steps()}

    def _cut(self, at: int) -> int:
        """The index of the part that starts at byte `at`; splits one if necessary."""
        index = bisect_left(self._starts, at)
        if index == len(self._starts) or self._starts[index] != at:
            part = self._parts[index - 1]
            self._starts.insert(index, at)
            self._parts.insert(index, _Part(part.writer, dict(part.readers)))
        return index
