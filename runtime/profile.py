"""Records when operations run, for Chrome's trace viewer and Perfetto.

    profile = executable.profile()
    executable(*arrays)
    Path("trace.json").write_text(profile.to_json())

In the trace, a process is a device, and a thread is a stream of the device; copies from
other devices have a thread of their own. Each run of an operation is an event (`ph: X`)
with its source location; copies have the category `copy`. A counter for each pool shows
the bytes of the live buffers, each from the first operation that accesses it to the
last. A loop or branch is one event.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, TypeAlias

from xdsl.dialects.memref import CopyOp

from ..dialects.diagnostics import name_of, place_of
from ..dialects.tgraph.shaping import DeviceCopyOp
from .calls import Call
from .program.compiled import CompiledProgram, OperationStep
from .program.steps import COPIES, MemoryRange, Step

Event: TypeAlias = dict[str, Any]
Mark: TypeAlias = tuple[int, int, bool]
"""The time in nanoseconds, the number of a step, and whether the step ends then."""


class Profile:
    """The recorded runs of a program. Several threads may run its steps."""

    def __init__(self, program: CompiledProgram):
        self._steps = [s for s in program.steps if isinstance(s, OperationStep)]
        self._numbers: dict[Step, int] = {s: n for n, s in enumerate(self._steps)}
        memory = program.memory
        self._pools = {*memory.arena_memories.values(), *memory.regions}
        self._devices = dict.fromkeys(
            [step.device for step in self._steps] + [p.device for p in memory.pools]
        )
        self._marks: list[Mark] = []
        self.fallbacks = program.fallbacks
        """The operations that run in NumPy (`Executable.fallbacks`), counted before
        profiling wraps the calls."""

    def timed(self, step: Step, calls: list[Call]) -> list[Call]:
        """The calls of `step`, between two calls that record the start and the end."""
        if step not in self._numbers:  # added by the sanitizer
            return calls
        number, append = self._numbers[step], self._marks.append
        return [
            (_mark, (append, number, False)),
            *calls,
            (_mark, (append, number, True)),
        ]

    def to_json(self) -> str:
        """The trace of all runs so far, in Chrome's format."""
        return json.dumps({"traceEvents": self._events(), "displayTimeUnit": "ns"})

    def _events(self) -> list[Event]:
        devices = {device: number for number, device in enumerate(self._devices)}
        streams = dict.fromkeys((step.device, step.stream) for step in self._steps)
        events: list[Event] = [
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": device}}
            for device, pid in devices.items()
        ]
        events += [
            {
                "ph": "M",
                "name": "thread_name",
                "pid": devices[device],
                "tid": stream,
                "args": {"name": "copies" if stream == COPIES else f"stream {stream}"},
            }
            for device, stream in streams
        ]
        marks = sorted(self._marks, key=lambda mark: mark[0])
        if not marks:
            return events
        origin = marks[0][0]
        started: dict[int, int] = {}
        for time, number, is_end in marks:
            if not is_end:
                started[number] = time
            elif number in started:
                start = started.pop(number)
                step = self._steps[number]
                events.append(
                    {
                        **_operation(step, number),
                        "pid": devices[step.device],
                        "tid": step.stream,
                        "ts": (start - origin) / 1e3,  # microseconds
                        "dur": (time - start) / 1e3,
                    }
                )
        return events + self._counters(marks, devices)

    def _lifespans(self) -> dict[MemoryRange, tuple[int, int]]:
        """The first and the last step that access each buffer in a pool."""
        spans: dict[MemoryRange, tuple[int, int]] = {}
        for number, step in enumerate(self._steps):
            for view in (*step.reads, *step.writes):
                if view.buffer.memory in self._pools:
                    first, _ = spans.get(view.buffer, (number, number))
                    spans[view.buffer] = first, number
        return spans

    def _counters(
        self, marks: Sequence[Mark], devices: Mapping[str, int]
    ) -> list[Event]:
        """Counter events: the live bytes of each pool, at each change."""
        changes: dict[tuple[int, bool], dict[str, int]] = {}
        for buffer, (first, last) in self._lifespans().items():
            device = buffer.memory.device
            for mark, size in (
                ((first, False), buffer.size),
                ((last, True), -buffer.size),
            ):
                at_mark = changes.setdefault(mark, {})
                at_mark[device] = at_mark.get(device, 0) + size
        live = dict.fromkeys(devices, 0)
        events: list[Event] = []
        for time, number, is_end in marks:
            for device, change in changes.get((number, is_end), {}).items():
                live[device] += change
                events.append(
                    {
                        "ph": "C",
                        "name": "live bytes",
                        "pid": devices[device],
                        "ts": (time - marks[0][0]) / 1e3,
                        "args": {"bytes": live[device]},
                    }
                )
        return events


def _mark(append: Callable[[Mark], None], number: int, is_end: bool) -> None:
    append((perf_counter_ns(), number, is_end))


def _operation(step: OperationStep, number: int) -> Event:
    op = step.op
    place = place_of(op)
    return {
        "ph": "X",
        "name": name_of(op),
        "cat": "copy" if isinstance(op, CopyOp | DeviceCopyOp) else "op",
        "args": {"step": number, **({"place": place} if place else {})},
    }
