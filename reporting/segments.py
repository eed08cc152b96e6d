"""The bytes that the blocks of a trace would take with other allocators.

    expandable(values, devices)   PyTorch's, with `expandable_segments:True`
    offline(values, devices)      offsets that are planned with the whole trace known

An expandable segment is one range of addresses that grows by pages. Each device has one
for small blocks and one for large ones. A block takes the smallest free range in which
it fits, and the rest of the range stays free. The last range can grow, so it counts as
larger than all others. The rules and numbers are those of PyTorch's
c10/cuda/CUDACachingAllocator.cpp. Does not: distinguish streams, or release pages.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..planning import Buffer, Problem, solve
from .foreign import LiveValue

ROUND = 512
"""Sizes and addresses of blocks are multiples of this number of bytes."""
SMALL = 1 << 20
"""The largest size in bytes of a small block."""
PAGES = {True: 2 << 20, False: 20 << 20}
"""The bytes by which a segment grows, by whether its blocks are small."""

EXACT = 2_000
"""With more blocks, the offline plan uses first fit by size, which takes seconds."""


@dataclass
class Segment:
    page: int
    mapped: int = 0
    free: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(size, address) of free ranges, ascending."""
    begins: dict[int, int] = field(default_factory=dict[int, int])
    ends: dict[int, int] = field(default_factory=dict[int, int])
    """The sizes of free ranges, by start address and by end address."""

    def allocate(self, size: int) -> int:
        if (found := bisect_left(self.free, (size, 0))) == len(self.free):
            missing = size - self.ends.get(self.mapped, 0)
            grown = -(-missing // self.page) * self.page
            self.mapped += grown
            self.release(self.mapped - grown, grown)
            found = bisect_left(self.free, (size, 0))
        elif sum(self.free[found]) == self.mapped and found + 1 < len(self.free):
            found += 1
        whole, at = self.free[found]
        self._remove(at, whole)
        if whole > size:
            self._add(at + size, whole - size)
        return at

    def release(self, at: int, size: int) -> None:
        """Frees the range and joins it with adjacent free ranges."""
        if before := self.ends.get(at):
            self._remove(at - before, before)
            at, size = at - before, size + before
        if after := self.begins.get(at + size):
            self._remove(at + size, after)
            size += after
        self._add(at, size)

    def _add(self, at: int, size: int) -> None:
        insort(self.free, (size, at))
        self.begins[at] = self.ends[at + size] = size

    def _remove(self, at: int, size: int) -> None:
        del self.free[bisect_left(self.free, (size, at))]
        del self.begins[at], self.ends[at + size]


def expandable(values: Sequence[LiveValue], devices: Mapping[str, str]) -> int:
    """The bytes of all segments after the last step."""
    segments: dict[tuple[str, bool], Segment] = {}
    placed: dict[int, int] = {}
    for _, is_begin, number in _changes(values):
        region = values[number].value.region
        size = _rounded(region.size)
        is_small = size <= SMALL
        key = devices[region.memory], is_small
        segment = segments.setdefault(key, Segment(PAGES[is_small]))
        if is_begin:
            placed[number] = segment.allocate(size)
        else:
            segment.release(placed[number], size)
    return sum(segment.mapped for segment in segments.values())


def offline(values: Sequence[LiveValue], devices: Mapping[str, str]) -> int:
    buffers = [
        Buffer(str(n), _rounded(v.region.size), lower, upper, pool=devices[v.region[0]])
        for n, (v, lower, upper) in enumerate(values)
    ]
    if not buffers:
        return 0
    strategy = "auto" if len(buffers) <= EXACT else "greedy-by-size"
    plan = solve(Problem(buffers), strategy)
    ends: dict[str, int] = {}
    for buffer, offset in zip(buffers, plan.offsets, strict=True):
        pool = buffer.pool or ""
        ends[pool] = max(ends.get(pool, 0), offset + buffer.size)
    return sum(ends.values())


def _changes(values: Sequence[LiveValue]) -> Sequence[tuple[int, bool, int]]:
    """(step, whether it is a begin, index) for both ends of each value, sorted; in a
    step, ends precede begins.
    """
    begins = ((value.lower, True, number) for number, value in enumerate(values))
    ends = ((value.upper, False, number) for number, value in enumerate(values))
    return sorted([*begins, *ends])


def _rounded(size: int) -> int:
    return max(1, -(-size // ROUND)) * ROUND
