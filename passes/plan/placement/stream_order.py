"""Decides for plan-memory which buffers on different streams may share bytes.

Two buffers may share bytes only if all accesses of one are certain to be over before
any access of the other: by the order of a stream, or because operations wait for others
(analysis/dependencies.py). Planners know live ranges in one order of steps only. The
module therefore makes two plans, and takes the one with the lower peak:

 * all buffers together, each also live in the steps that may run beside its accesses
   (planning/scheduling/streams.py). This is good if streams meet often, or only one is
   busy.
 * a region for each stream, for the buffers that it accesses first, planned in its own
   order of steps. This is good if streams run side by side for long. NNVM's colors and
   PyTorch Inductor's streams also separate buffers in this way.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ....analysis.control_flow import ControlFlow
from ....analysis.dependencies import Queue, dependencies, queue_of, runs
from ....planning import Buffer, Plan, Problem, round_up
from ....planning.scheduling.streams import StreamStep as Step
from ....planning.scheduling.streams import across_streams


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets, one for each buffer, and the end of the highest one, in bytes."""

    offsets: Sequence[int]
    peak: int


class StreamOrder:
    """The order of a block's operations that run on streams."""

    def __init__(self, flow: ControlFlow, block: Iterable[Operation]):
        ops = list(block)
        self.begins = [flow.step[op] for op in ops]  # the first step of each operation
        self.number: dict[int, int] = {}  # of running operations, by place
        self.steps: list[Step] = []
        queues: dict[Queue, int] = {}
        for place, (op, waits) in enumerate(zip(ops, dependencies(ops), strict=True)):
            if runs(op):
                stream = queues.setdefault(queue_of(op), len(queues))
                before = [self.number[w] for w in waits if w in self.number]
                self.number[place] = len(self.steps)
                self.steps.append(Step(stream, before))
        self.streams: list[list[int]] = [[] for _ in queues]  # the steps of each
        self.over: list[list[int]] = []
        """For each step, how many steps of each stream are over before it."""
        for number, step in enumerate(self.steps):
            own = self.streams[step.stream]
            over = [0] * len(queues)
            for before in (*step.depends_on, *own[-1:]):
                over = list(map(max, over, self.over[before]))
                stream = self.steps[before].stream
                over[stream] = max(over[stream], self._place(before) + 1)
            own.append(number)
            self.over.append(over)

    def _place(self, step: int) -> int:
        """The number of a step in its stream."""
        return self.over[step][self.steps[step].stream]

    def places(self, steps: Iterable[int]) -> list[int]:
        """The places in the block of the operations that run in these steps."""
        places = {bisect_right(self.begins, step) - 1 for step in steps}
        return sorted(place for place in places if place in self.number)

    def lifespans(
        self, buffers: Sequence[Buffer], accesses: Sequence[Sequence[int]]
    ) -> list[Buffer]:
        """The buffers, live in all steps in which any stream may need them."""
        steps = self._steps(accesses)
        in_program_order = [
            replace(b, start=min(s), end=max(s) + 1)
            for b, s in zip(buffers, steps, strict=True)
        ]
        return across_streams(in_program_order, steps, self.steps)

    def to_the_end(
        self, buffers: Sequence[Buffer], accesses: Sequence[Sequence[int]]
    ) -> list[Buffer]:
        """The buffers, live from their first access to the end."""
        end = len(self.steps) + 1
        return [
            replace(b, start=min(s), end=end, gaps=())
            for b, s in zip(buffers, self._steps(accesses), strict=True)
        ]

    def _steps(self, accesses: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[self.number[at] for at in places] or [0] for places in accesses]

    def place(
        self,
        buffers: Sequence[Buffer],
        accesses: Sequence[Sequence[int]],
        solve: Callable[[Problem], Plan],
    ) -> Offsets:
        """Plans buffers, given the places of the operations that access each."""
        steps = self._steps(accesses)
        wide = Problem(self.lifespans(buffers, accesses))
        apart = self._apart(buffers, steps, solve)
        if apart.peak < wide.lower_bound:
            return apart
        together = solve(wide)
        if together.peak <= apart.peak:
            return Offsets(together.offsets, together.peak)
        return apart

    def _apart(
        self,
        buffers: Sequence[Buffer],
        steps: Sequence[Sequence[int]],
        solve: Callable[[Problem], Plan],
    ) -> Offsets:
        """Plans a region for each stream."""
        regions: dict[int, dict[int, Buffer]] = {}
        for index, (buffer, accessed) in enumerate(zip(buffers, steps, strict=True)):
            home = self.steps[min(accessed)].stream
            start, end = self._lifespan(accessed, home)
            region = regions.setdefault(home, {})
            region[index] = replace(buffer, start=start, end=end)
        offsets = [0] * len(buffers)
        peak = 0
        for region in regions.values():
            plan = solve(Problem(list(region.values())))
            base = round_up(peak, max(b.alignment for b in region.values()))
            for index, offset in zip(region, plan.offsets, strict=True):
                offsets[index] = base + offset
            peak = base + plan.peak
        return Offsets(offsets, peak)

    def _lifespan(self, accessed: Sequence[int], home: int) -> tuple[int, int]:
        """The live range of a buffer, in steps of the stream `home`, counted from 1.

        It lasts from the last step that is over before all accesses (or is the first of
        them) to the first step before which they are all over. If the live ranges of
        two buffers do not overlap, all accesses of one are over before the other's.
        """
        stream = self.streams[home]
        starts: list[int] = []
        ends: list[int] = []
        for step in accessed:
            other = self.steps[step].stream
            if other == home:
                starts.append(self._place(step))
                ends.append(self._place(step) + 1)
                continue
            over = self._place(step) + 1
            starts.append(self.over[step][home] - 1)
            ends.append(bisect_left(stream, over, key=lambda s: self.over[s][other]))
        return min(starts) + 1, max(ends) + 1
