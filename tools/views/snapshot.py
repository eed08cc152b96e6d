"""A plan as a memory snapshot, for PyTorch's viewer at pytorch.org/memory_viz.

A pool is a device with one segment at a distinct address. "Allocator State History"
shows the offsets; "Active Memory Timeline" stacks buffers in its own order. The stack
of a buffer names its operation and location. Buffers of zero bytes are left out,
because the viewer identifies allocations by address.

The viewer reads pickles of protocols 2 to 4 that contain plain types only. It fails for
events with a `category` if none is `unknown`, so the events have no category.
"""

import pickle
from collections.abc import Sequence

from ...planning import round_up
from .model import PlanView, PoolView, ShownBuffer

_PROTOCOL = 4
_PAGE = 1 << 21  # bytes; segments start at multiples, but not at 0


def snapshot(plans: Sequence[PlanView]) -> bytes:
    """The pickled snapshot; pools are devices 0, 1, ..."""
    segments: list[dict[str, object]] = []
    traces: list[list[dict[str, object]]] = []
    address = _PAGE
    for plan in plans:
        for pool in plan.pools:
            frames = [_frame(f"{plan.title} {pool.name}".rstrip(), "")]
            segments.append(_segment(pool, address, len(segments), frames))
            traces.append(_trace(pool, address, frames))
            address = round_up(address + pool.size + 1, _PAGE)
    whole = {"segments": segments, "device_traces": traces}
    return pickle.dumps(whole, protocol=_PROTOCOL)


def _segment(
    pool: PoolView, address: int, device: int, frames: Sequence[object]
) -> dict[str, object]:
    """The segment of a pool after the last step, when nothing is live."""
    free: dict[str, object] = {
        "address": address,
        "size": pool.size,
        "requested_size": pool.size,
        "state": "inactive",
        "frames": [],
    }
    return {
        "device": device,
        "address": address,
        "total_size": pool.size,
        "allocated_size": 0,
        "active_size": 0,
        "requested_size": 0,
        "stream": 0,
        "segment_type": "large",
        "frames": frames,
        "blocks": [free],
    }


def _trace(
    pool: PoolView, address: int, frames: Sequence[object]
) -> list[dict[str, object]]:
    """The events of a pool in order; in each step, frees precede allocations."""
    first, _ = pool.steps
    changes = sorted(
        change
        for index, placed in enumerate(pool.buffers)
        if placed.buffer.size
        for start, end in placed.buffer.live
        for change in ((start, 1, index), (end, 0, index))
    )

    def event(
        action: str, at: int, size: int, step: int, stack: Sequence[object]
    ) -> dict[str, object]:
        return {
            "action": action,
            "addr": address + at,
            "size": size,
            "stream": 0,
            "time_us": step - first,
            "frames": stack,
        }

    events = [event("segment_alloc", 0, pool.size, first, frames)]
    for step, begins, index in changes:
        placed = pool.buffers[index]
        for action in ("alloc",) if begins else ("free_requested", "free_completed"):
            at, size = placed.offset, placed.buffer.size
            events.append(event(action, at, size, step, _stack(placed)))
    return events


def _stack(placed: ShownBuffer) -> list[object]:
    name = f"{placed.buffer.id} {placed.op}".rstrip()
    return [_frame(name, placed.location)]


def _frame(name: str, location: str) -> dict[str, object]:
    file, line = location, 0
    if location.count(":") > 1:
        file, number, _ = location.rsplit(":", 2)
        line = int(number) if number.isascii() and number.isdigit() else 0
    return {"name": name, "filename": file, "line": line}
