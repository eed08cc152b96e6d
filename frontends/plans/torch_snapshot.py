"""Reads a trace of PyTorch's caching allocator from a snapshot of its memory.

    torch.cuda.memory._record_memory_history()
    ...
    torch.cuda.memory._dump_snapshot("snapshot.pickle")

Segments are memories, blocks are values, and each event of the trace is a step. A block
is live from its allocation until it is free again (`free_completed`). The file is a
pickle, in which anything but plain data is refused, so no code runs.
"""

import io
import pickle
import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ...support.foreign_plan import (
    ForeignPlan,
    ForeignPlanError,
    Memory,
    Region,
    Step,
    Value,
)

ENDINGS = (".pickle", ".pkl")

Span: TypeAlias = tuple[int, int, int]
"""A device, the first address, and the address after the last byte."""

_RESERVED = ("segment_alloc", "segment_map")
_FREED = ("free_completed", "free")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not plain data")


def read_file(path: Path) -> ForeignPlan:
    """The trace in a snapshot. Raises `ForeignPlanError` or `OSError`."""
    data = path.read_bytes()
    try:
        snapshot = _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # a damaged pickle may raise any exception
        raise ForeignPlanError(
            f"this cannot be read as a pickle: {error}", str(path)
        ) from None
    try:
        return _plan(path.name, snapshot["segments"], snapshot["device_traces"])
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ForeignPlanError("this is not a PyTorch snapshot", str(path)) from None


def _plan(
    name: str, segments: Sequence[Any], traces: Sequence[Sequence[Any]]
) -> ForeignPlan:
    events = sorted(
        ((device, event) for device, trace in enumerate(traces) for event in trace),
        key=lambda pair: pair[1].get("time_us", 0),
    )
    spans = [_span(s["device"], s["address"], s["total_size"]) for s in segments]
    spans += [
        _span(device, event["addr"], event["size"])
        for device, event in events
        if event["action"] in ("alloc", *_RESERVED, *_FREED)
    ]
    memories = _joined(spans)
    steps: list[Step] = []
    given: list[Value] = []
    live: dict[tuple[int, int], Value] = {}
    for number, (device, event) in enumerate(events):
        step, address = f"event {number}", (device, event["addr"])
        if event["action"] == "alloc":
            size, frames = event["size"], event.get("frames", ())
            value = _value(f"block {number}", memories, (*address, size), frames)
            live[address] = value
            steps.append(Step(step, "alloc", (), [value], value.location))
        elif event["action"] in _FREED:
            if address not in live:  # allocated before the trace begins
                what = (*address, event["size"])
                live[address] = _value(f"block {number}", memories, what, ())
                given.append(live[address])
            steps.append(Step(step, "free", [live.pop(address)]))
    for device, address, size, frames in _active(segments):
        if (device, address) not in live:
            number = f"block at {address:#x} of device {device}"
            value = _value(number, memories, (device, address, size), frames)
            live[device, address] = value
            given.append(value)
    sizes = {
        _memory(number, span): Memory(span[2] - span[1], "temporary")
        for number, span in enumerate(memories)
    }
    devices = {_memory(n, span): f"device {span[0]}" for n, span in enumerate(memories)}
    kept = [*live.values()]
    return ForeignPlan(name, sizes, steps, given, kept, is_trace=True, devices=devices)


def _span(device: int, address: int, size: int) -> Span:
    return device, address, address + size


def _joined(spans: Iterable[Span]) -> Sequence[Span]:
    """Merges overlapping and adjacent spans; segments may grow or be mapped again."""
    found: list[Span] = []
    for device, begin, end in sorted(spans):
        if found and found[-1][0] == device and begin <= found[-1][2]:
            found[-1] = device, found[-1][1], max(end, found[-1][2])
        else:
            found.append((device, begin, end))
    return found


def _memory(number: int, span: Span) -> str:
    return f"device {span[0]}, segment {number}"


def _value(
    name: str, segments: Sequence[Span], what: Sequence[int], frames: Sequence[Any]
) -> Value:
    device, address, size = what
    number = bisect_right(segments, (device, address, sys.maxsize)) - 1
    segment = segments[number]
    region = Region(_memory(number, segment), address - segment[1], size)
    own = [frame for frame in frames if not is_library(frame["filename"])]
    for frame in (own or frames)[:1]:
        place = filter(None, (frame["filename"], str(frame["line"] or "")))
        return Value(name, region, "", frame["name"], ":".join(place))
    return Value(name, region)


def is_library(file: str) -> bool:
    """Whether a stack frame is in PyTorch, not in the user's program."""
    return file.startswith("??") or "/torch/" in file


def _active(segments: Sequence[Any]) -> Iterable[tuple[int, int, int, Sequence[Any]]]:
    """The allocations after the trace: device, address, size, and stack."""
    for segment in segments:
        sizes = [block["size"] for block in segment["blocks"]]
        starts = accumulate(sizes, initial=segment["address"])
        for block, start in zip(segment["blocks"], starts, strict=False):
            if block["state"].startswith("active"):
                frames = block.get("frames", ())
                yield segment["device"], start, block["size"], frames
