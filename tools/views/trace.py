"""A plan as a trace, for chrome://tracing and ui.perfetto.dev.

A pool is a process with a counter of its live bytes. A buffer is a slice in one of the
threads of the process; the slices of a thread do not overlap. One step takes one
microsecond.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush

from .model import PlanView, PoolView

Event = Mapping[str, object]


def trace(plans: Sequence[PlanView]) -> str:
    """The trace in Chrome's JSON format."""
    pools = [(plan.title, pool) for plan in plans for pool in plan.pools]
    events = [
        event
        for pid, (title, pool) in enumerate(pools, 1)
        for event in _events(pid, title, pool)
    ]
    return json.dumps({"traceEvents": events}) + "\n"


def _events(pid: int, title: str, pool: PoolView) -> Iterator[Event]:
    name = f"{title}: {pool.name}" if pool.name else title
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    first, _ = pool.steps
    for step, live in pool.curve:
        yield {
            "ph": "C",
            "pid": pid,
            "name": "live bytes",
            "ts": step - first,
            "args": {"bytes": live},
        }
    pieces = sorted(
        (start, end, index)
        for index, placed in enumerate(pool.buffers)
        for start, end in placed.buffer.live
    )
    lanes = _lanes([(start, end) for start, end, _ in pieces])
    for lane in range(max(lanes, default=-1) + 1):
        args = {"name": f"lane {lane}"}
        yield {
            "ph": "M",
            "pid": pid,
            "tid": lane + 1,
            "name": "thread_name",
            "args": args,
        }
    for (start, end, index), lane in zip(pieces, lanes, strict=True):
        placed = pool.buffers[index]
        yield {
            "ph": "X",
            "pid": pid,
            "tid": lane + 1,
            "name": placed.buffer.id,
            "ts": start - first,
            "dur": end - start,
            "args": {
                "offset": placed.offset,
                "size": placed.buffer.size,
                "steps": [start, end],
                "op": placed.op,
                "location": placed.location,
            },
        }


def _lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each span, by ascending start, the smallest number of a free lane."""
    busy: list[tuple[int, int]] = []  # (end, lane)
    lanes: list[int] = []
    free: list[int] = []
    for start, end in spans:
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        lane = heappop(free) if free else len(busy)
        lanes.append(lane)
        heappush(busy, (end, lane))
    return lanes
