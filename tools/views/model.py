"""What there is to see: plans, their pools, and the buffers in them; frontiers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...planning import Buffer, Problem, peak_of
from ...reporting.wording import plural, readable

if TYPE_CHECKING:
    from ...reporting.explanation import Explanation
    from ...reporting.frontier import FrontierPoint


HELD = 2
"""How many times the arena what the caller has may be, to be drawn on its scale."""


class ShownBuffer(NamedTuple):
    """A buffer and where it is. Places in the program are empty if there is none."""

    buffer: Buffer
    offset: int  # bytes
    type: str = ""  # `16x64xf32`
    role: str = ""  # see `tensorplan.reporting.roles`
    op: str = ""  # what accesses it first
    location: str = ""  # of that: `file:line:col`
    lines: Sequence[int] = ()  # of the text, from 1: its definition, then its accesses
    waits: str = ""  # if it is live at the peak: for what
    in_place: str = ""  # the same: "is in place: ...", or why not

    @property
    def area(self) -> int:
        """Bytes times the steps in which it has them."""
        return self.buffer.size * sum(end - start for start, end in self.buffer.live)


class HeldBuffer(NamedTuple):
    """Memory of the caller: an argument, a parameter, a result."""

    name: str
    size: int  # bytes
    type: str
    role: str


@dataclass(frozen=True)
class PoolView:
    """One address space."""

    name: str
    size: int  # bytes: the arena's, or the end of the highest buffer
    buffers: Sequence[ShownBuffer]
    summary: Sequence[str] = ()
    """Of a program's arena, in words: what makes the peak."""
    held: Sequence[HeldBuffer] = ()
    """Of a program: what the caller has on the device all the time."""

    @cached_property
    def problem(self) -> Problem:
        return Problem([placed.buffer for placed in self.buffers])

    @cached_property
    def curve(self) -> Sequence[tuple[int, int]]:
        """Live bytes: (step, bytes from that step on), at each change, ascending."""
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
        """The steps in which anything is live, half-open; [0, 1) if nothing is."""
        return (self.curve[0][0], self.curve[-1][0]) if self.curve else (0, 1)

    @property
    def figures(self) -> str:
        """Its sizes in words."""
        count = plural(len(self.buffers), "buffer")
        bound = readable(self.problem.lower_bound)
        return f"{readable(self.size)}, lower bound {bound}, {count}"

    @property
    def is_callers(self) -> bool:
        """Whether it is the memory of a result or argument that holds others, too."""
        return self.name.startswith(("result ", "argument "))

    @property
    def unused(self) -> str:
        """What of it is used by nothing, in words: in the step in which the most is
        live, and on average."""
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
        """What a process takes on the device, in words: the arena and what the caller
        has; nothing if that is not known."""
        if not self.held:
            return ""
        sizes: dict[str, int] = {"arena": self.size}
        for held in self.held:
            sizes[held.role] = sizes.get(held.role, 0) + held.size
        parts = " + ".join(f"{readable(n)} {what}" for what, n in sizes.items())
        return f"{parts} = {readable(sum(sizes.values()))}"

    def live_at(self, step: int) -> list[int]:
        """The places in `buffers` of what is live in a step, largest first."""
        live = [
            index
            for index, placed in enumerate(self.buffers)
            if any(start <= step < end for start, end in placed.buffer.live)
        ]
        return sorted(live, key=lambda index: -self.buffers[index].buffer.size)


@dataclass(frozen=True)
class PlanView:
    """One plan: a program's, a file's, or what a strategy made of either."""

    title: str
    pools: Sequence[PoolView]
    text: Sequence[str] = ()  # the lines of the program, if there is one
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict[str, list[str]])
    """The lines of the files that places are in, as far as they are there."""
    explanation: "Explanation | None" = None  # if it was asked for


@dataclass(frozen=True)
class FrontierView:
    """A program's curve of time against bytes, as `plan-opt --frontier` gives it."""

    title: str
    points: Sequence["FrontierPoint"]  # the fastest first, with ever fewer bytes

    @property
    def figures(self) -> str:
        """Its ends in words."""
        first, last = self.points[0], self.points[-1]
        if len(self.points) == 1:
            return f"one plan, {readable(first.bytes)}"
        return (
            f"{len(self.points)} plans, from {readable(first.bytes)} to "
            f"{readable(last.bytes)} in {self.slowdown(last):.1%} more time"
        )

    @cached_property
    def changes(self) -> Sequence[str]:
        """What its plans do, each once."""
        return list(dict.fromkeys(point.change for point in self.points))

    def slowdown(self, point: "FrontierPoint") -> float:
        """How much longer it takes than the first, as a part of that time."""
        return point.time / max(self.points[0].time, 1) - 1


def pool_of(name: str, buffers: Sequence[ShownBuffer]) -> PoolView:
    """A pool that is just as large as its buffers need."""
    peak = peak_of([b.buffer for b in buffers], [b.offset for b in buffers])
    return PoolView(name, peak, buffers)
