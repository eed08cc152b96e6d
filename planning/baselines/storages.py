"""From storages to offsets: lays out the plans of planners that share whole storages.

NNVM, TVM Relay and PyTorch Inductor's reuse do not give offsets: they say which buffers
use the same storage, one after the other. This module lays the storages out in bytes,
to compare these planners with others that give offsets.
"""

from collections.abc import Sequence

from ..problem import Placement, Problem, peak_of, round_up


def lay_out(problem: Problem, storage_of: Sequence[int]) -> Placement:
    """The storages one after the other, in order of their first buffer.

    `storage_of[i]` is any number that names the storage of `problem.buffers[i]`;
    buffers of one storage must not be live at the same time. Each buffer of a storage
    lies at the first offset of its alignment, so that a storage is as large as its
    largest buffer. Buffers with a given offset keep it, whatever their storage, and all
    storages lie above them.
    """
    buffers = problem.buffers
    members: dict[int, list[int]] = {}
    for i, storage in enumerate(storage_of):
        if buffers[i].offset is None:
            members.setdefault(storage, []).append(i)
    offsets = [b.offset or 0 for b in buffers]
    fixed = [b for b in buffers if b.offset is not None]
    start = peak_of(fixed, [b.offset or 0 for b in fixed])
    for storage in members.values():
        for i in storage:
            offsets[i] = round_up(start, buffers[i].alignment)
        start = max(offsets[i] + buffers[i].size for i in storage)
    return Placement(offsets)
