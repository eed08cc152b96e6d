"""The vocabulary: buffers in, offsets out (minimalloc's words and units).

ATTENTION, liveness: a lifespan is half-open. A buffer with lifespan [3, 5) is live in
steps 3 and 4; one with lifespan [5, 7) may take its bytes. An operation that reads one
buffer and writes another in the same step needs both, so both are live in that step.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Buffer:
    """A run of bytes that is needed for some steps."""

    id: str
    size: int  # bytes, 0 or more
    start: int  # first step in which it is live
    end: int  # first step in which it is no longer live; greater than `start`
    alignment: int = 1  # of the offset, in bytes, 1 or more

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(
                f"buffer {self.id}: size is {self.size}, expected 0 or more"
            )
        if self.end <= self.start:
            raise ValueError(
                f"buffer {self.id}: lifespan is [{self.start}, {self.end}), expected "
                "an end after the start"
            )
        if self.alignment < 1:
            raise ValueError(
                f"buffer {self.id}: alignment is {self.alignment}, expected 1 or more"
            )

    def overlaps(self, other: "Buffer") -> bool:
        """Whether both are live in some step."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Problem:
    """Buffers that share one address space, which starts at 0."""

    buffers: Sequence[Buffer]

    @property
    def total(self) -> int:
        """Bytes without any sharing, each size rounded up to its alignment."""
        return sum(round_up(b.size, b.alignment) for b in self.buffers)

    @property
    def lower_bound(self) -> int:
        """Bytes that no plan can do without: the largest sum of live bytes.

        Where all offsets are multiples of some unit, every live buffer but the topmost
        takes a multiple of it; the bound counts that.
        """
        unit = gcd(*(b.alignment for b in self.buffers)) or 1
        events = sorted(
            event
            for index, b in enumerate(self.buffers)
            for event in ((b.start, 1, index), (b.end, 0, index))
        )
        bound = live = 0  # live bytes, each buffer rounded up to the unit
        slacks: Counter[int] = Counter()  # what rounding up added, per live buffer
        for _, starts, index in events:
            size = self.buffers[index].size
            padded = round_up(size, unit)
            if not starts:
                live -= padded
                slacks[padded - size] -= 1
                continue
            live += padded
            slacks[padded - size] += 1
            if live > bound:
                topmost = max(slack for slack, count in slacks.items() if count)
                bound = max(bound, live - topmost)
        return bound


@dataclass(frozen=True, slots=True)
class Plan:
    """Where buffers go: `offsets[i]`, in bytes, is that of `problem.buffers[i]`."""

    offsets: Sequence[int]
    peak: int  # bytes
    lower_bound: int  # bytes
    strategy: str
    seconds: float  # of CPU time

    @property
    def optimal(self) -> bool:
        """Whether the peak is proved to be the least possible."""
        return self.peak == self.lower_bound


Strategy = Callable[[Sequence[Buffer]], Sequence[int]]
"""Finds an offset for each buffer. Not trusted: `solve` validates what it returns."""


def round_up(size: int, alignment: int) -> int:
    """The least multiple of `alignment` at or above `size`."""
    return -(-size // alignment) * alignment
