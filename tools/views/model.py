"""What the views of plan-view show: plans, their pools and buffers, and frontiers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...planning import Buffer, Problem, peak_of
from ...reporting.wording import plural, readable

if TYPE_CHECKING:
    from ...reporting.explanation import Explanation
    from ...reporting.frontier import FrontierPoint


MAX_HELD_RATIO = 2
"""Memory of the caller is drawn to scale if it is at most this many times the arena."""


class ShownBuffer(NamedTuple):
    """A buffer with its offset. Fields about a program are empty without one."""

    buffer: Buffer
    offset: int  # bytes
    type: str = ""  # `16x64xf32`
    role: str = ""  # see `tensorplan.reporting.roles`
    op: str = ""  # the operation that accesses it first
    location: str = ""  # of `op`: `file:line:col`
    lines: Sequence[int] = ()  # its definition and accesses in the text, from line 1
    waits: str = ""  # if it is live at the peak: what it is live for
    in_place: str = ""  # if it is live at the peak: whether it is in place, or why not

    @property
    def area(self) -> int:
        """The size in bytes times the number of steps in which the buffer is live."""
        return self.buffer.size * sum(end - start for start, end in self.buffer.live)


class HeldBuffer(NamedTuple):
    """Memory of the caller: an argument, a parameter, or a result."""

    name: str
    size: int  # bytes
    type: str
    role: str


@dataclass(frozen=True)
class PoolView:
    """One address space."""

    name: str
    size: int  # bytes of the arena, or the end of the highest buffer
    buffers: Sequence[ShownBuffer]
    summary: Sequence[str] = ()
    """What makes the peak of a program's arena, in words."""
    held: Sequence[HeldBuffer] = ()
    """The memory of a program's caller on the device, which is live in all steps."""

    @cached_property
    def problem(self) -> Problem:
        return Problem([placed.buffer for placed in self.buffers])

    @cached_property
    def curve(self) -> Sequence[tuple[int, int]]:
        """Live bytes as (step, bytes from this step on), ascending, at each change."""
        changes: dict[int, int] = {}
        for buffer in self.problem.buffers:
            for start, end in buffer.live:
                changes[start] = changes.get(start, 0) + buffer.size
                changes[end] = changes.get(end, 0) - buffer.size
        live = 0
        curve: list[tuple[int, int]] = []
        for step in sorted(changes):
            live += changes[step]
            curve.append((step, live))
        return curve

    @cached_property
    def peak_step(self) -> int:
        """The first step with the most live bytes; 0 if there are no buffers."""
        return max(self.curve, key=lambda point: point[1], default=(0, 0))[0]

    @property
    def steps(self) -> tuple[int, int]:
        """The half-open range of steps with live buffers; (0, 1) without buffers."""
        return (self.curve[0][0], self.curve[-1][0]) if self.curve else (0, 1)

    @property
    def figures(self) -> str:
        """The size, the lower bound, and the number of buffers, in words."""
        count = plural(len(self.buffers), "buffer")
        bound = readable(self.problem.lower_bound)
        return f"{readable(self.size)}, lower bound {bound}, {count}"

    @property
    def is_callers(self) -> bool:
        """Whether the pool is the memory of a result or argument that holds buffers."""
        return self.name.startswith(("result ", "argument "))

    @property
    def unused(self) -> str:
        """The unused part of the pool in words: at the peak, and on average. Empty if
        the pool is empty.
        """
        first, end = self.steps
        area = self.size * (end - first)
        if not area:
            return ""
        lost = self.size - max(live for _, live in self.curve)
        average = 1 - sum(placed.area for placed in self.buffers) / area
        return (
            f"fragmentation {lost / self.size:.1%} ({readable(lost)} unused at the "
            f"peak), {average:.0%} unused on average"
        )

    @property
    def process(self) -> str:
        """The bytes of the process on the device in words: the arena and the caller's
        memory. Empty if the latter is unknown.
        """
        if not self.held:
            return ""
        sizes: dict[str, int] = {"arena": self.size}
        for held in self.held:
            sizes[held.role] = sizes.get(held.role, 0) + held.size
        parts = " + ".join(f"{readable(n)} {what}" for what, n in sizes.items())
        return f"{parts} = {readable(sum(sizes.values()))}"

    def live_at(self, step: int) -> list[int]:
        """The indices in `buffers` of the buffers live in `step`, largest first."""
        live = [
            index
            for index, placed in enumerate(self.buffers)
            if any(start <= step < end for start, end in placed.buffer.live)
        ]
        return sorted(live, key=lambda index: -self.buffers[index].buffer.size)


@dataclass(frozen=True)
class PlanView:
    """The plan of a program or of a file, or a strategy's plan of its buffers."""

    title: str
    pools: Sequence[PoolView]
    text: Sequence[str] = ()  # the lines of the program, if there is one
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict[str, list[str]])
    """The lines of the source files that locations refer to, by file, if readable."""
    explanation: "Explanation | None" = None  # if requested


@dataclass(frozen=True)
class FrontierView:
    """A program's curve of time against bytes, as `plan-opt --frontier` computes it."""

    title: str
    points: Sequence["FrontierPoint"]  # by descending bytes, the fastest first

    @property
    def figures(self) -> str:
        """The first and the last point in words."""
        first, last = self.points[0], self.points[-1]
        if len(self.points) == 1:
            return f"one plan, {readable(first.bytes)}"
        return (
            f"{len(self.points)} plans, from {readable(first.bytes)} to "
            f"{readable(last.bytes)} in {self.slowdown(last):.1%} more time"
        )

    @cached_property
    def changes(self) -> Sequence[str]:
        """The distinct changes that the plans make to the program."""
        return list(dict.fromkeys(point.change for point in self.points))

    def slowdown(self, point: "FrontierPoint") -> float:
        """The additional time of `point`, as a fraction of the first point's time."""
        return point.time / max(self.points[0].time, 1) - 1


def pool_of(name: str, buffers: Sequence[ShownBuffer]) -> PoolView:
    """A pool that ends with its highest buffer."""
    peak = peak_of([b.buffer for b in buffers], [b.offset for b in buffers])
    return PoolView(name, peak, buffers)
