"""What there is to see: plans, their pools, and the buffers in them; frontiers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...planning import Buffer, Problem, peak_of
from ...reporting.wording import readable

if TYPE_CHECKING:
    from ...reporting.explanation import Explanation
    from ...reporting.frontier import FrontierPoint


class ShownBuffer(NamedTuple):
    """A buffer and where it is. Places in the program are empty if there is none."""

    buffer: Buffer
    offset: int  # bytes
    op: str = ""  # what accesses it first
    location: str = ""  # of that: `file:line:col`
    lines: Sequence[int] = ()  # of the text, from 1: its definition, then its accesses
    waits: str = ""  # if it is live at the peak: for what
    in_place: str = ""  # the same: "is in place: ...", or why not


@dataclass(frozen=True)
class PoolView:
    """One address space."""

    name: str
    size: int  # bytes: the arena's, or the end of the highest buffer
    buffers: Sequence[ShownBuffer]
    summary: Sequence[str] = ()
    """Of a program's arena, in words: what makes the peak."""

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
        count = f"{len(self.buffers)} buffer{'s' * (len(self.buffers) != 1)}"
        bound = readable(self.problem.lower_bound)
        return f"{readable(self.size)}, lower bound {bound}, {count}"

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
