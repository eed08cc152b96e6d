"""`tgraph-color-streams`: assigns each operation to a stream of its device.

    %0 = tgraph.dot_general %a, %w {...} : ...
    %1 = tgraph.dot_general %a, %v {...} : ...
    %2 = tgraph.add %0, %1 : ...

    %0 = tgraph.dot_general %a, %w {..., tgraph.stream = 0 : i32} : ...
    %1 = tgraph.dot_general %a, %v {..., tgraph.stream = 1 : i32} : ...
    %2 = tgraph.add %0, %1 {tgraph.stream = 1 : i32} : ...

Operations in the same stream run in program order. Operations in different streams or
on different devices wait for each other only where a dependency requires it
(analysis/dependencies.py). The memory plan takes this into account: parallel branches
share no bytes, so neither waits for the other.

 * `mode=critical-path` is list scheduling. Among the operations that are ready, the one
   with the longest remaining path, by estimated time (analysis/cost.py), goes to the
   stream that can start it first. If several streams can, it goes to the stream of the
   operand that it waited for, which keeps chains together.
 * `mode=nnvm` is NNVM's ColorNodeGroup, for each device: the longest path, counted in
   operations, gets a stream; then the longest path of the remaining operations does.

Needs: level 1, preferably after fusion, placement, and tgraph-eliminate-assigns.
Leaves: level 1; existing streams are replaced.
Does not: reorder operations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from ...analysis.cost import time
from ...analysis.dependencies import dependencies, queue_of, runs
from ...analysis.functions import tensor_functions
from ...dialects.tgraph.base import STREAM
from ...planning.baselines.nnvm import Entry, Graph, Node, color_nodes
from ...support.choices import ChoiceError
from ..optional import OptionalPass
from ..options import check_streams


@dataclass(frozen=True)
class TGraphColorStreams(OptionalPass):
    """Assigns streams to operations.

    streams: the number of streams per device.
    mode: `critical-path` or `nnvm`.
    """

    name = "tgraph-color-streams"

    streams: int = 2
    mode: str = "critical-path"

    def __post_init__(self) -> None:
        check_streams(self.streams)
        if self.mode not in _MODES:
            raise ChoiceError("mode", self.mode, _MODES)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, block in tensor_functions(op):
            ops = [o for o in block.ops if o is not block.last_op]
            waits = dependencies(ops)
            count = min(self.streams, len(ops))  # more would be empty
            streams = _MODES[self.mode](ops, waits, count)
            for each, stream in zip(ops, streams, strict=True):
                each.attributes.pop(STREAM, None)
                if runs(each):
                    each.attributes[STREAM] = IntegerAttr(stream, i32)


def _critical_path(
    ops: Sequence[Operation], waits: Sequence[Sequence[int]], streams: int
) -> list[int]:
    """Returns a stream for each operation, by list scheduling.

    This is HEFT (Topcuoglu et al. 2002) with streams as processors.
    """
    times = list(map(time, ops))
    devices = [queue_of(op)[0] for op in ops]
    users: list[list[int]] = [[] for _ in ops]
    to_go = times.copy()  # until the end of the program, this operation included
    for index in reversed(range(len(ops))):
        to_go[index] += max((to_go[user] for user in users[index]), default=0)
        for before in waits[index]:
            users[before].append(index)
    missing = [len(before) for before in waits]
    ready = [(-to_go[i], i) for i, count in enumerate(missing) if not count]
    ready.sort()
    ends = [0] * len(ops)
    result = [0] * len(ops)
    free: dict[str | None, list[int]] = {d: [0] * streams for d in devices}
    while ready:
        _, index = heappop(ready)
        last = max(waits[index], key=lambda i: (ends[i], i), default=None)
        start = 0 if last is None else ends[last]
        queues = free[devices[index]]
        stream = min(
            range(streams),
            key=lambda s: (
                max(queues[s], start),
                last is None or devices[last] != devices[index] or s != result[last],
                s,
            ),
        )
        result[index] = stream
        ends[index] = start
        if times[index]:
            ends[index] = queues[stream] = max(queues[stream], start) + times[index]
        for user in users[index]:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, (-to_go[user], user))
    return result


def _nnvm(
    ops: Sequence[Operation], waits: Sequence[Sequence[int]], streams: int
) -> list[int]:
    """Returns a stream for each operation: its color in the graph of its device."""
    devices = [queue_of(op)[0] for op in ops]
    result = [0] * len(ops)
    for device in dict.fromkeys(devices):
        members = [index for index, d in enumerate(devices) if d == device]
        place = {index: number for number, index in enumerate(members)}
        nodes = [
            Node(
                ops[index].name,
                outputs=(),
                inputs=[Entry(place[i]) for i in waits[index] if i in place],
                is_variable=not runs(ops[index]),
            )
            for index in members
        ]
        colors = color_nodes(Graph(nodes), streams)
        for index, color in zip(members, colors, strict=True):
            result[index] = color
    return result


_MODES: dict[
    str, Callable[[Sequence[Operation], Sequence[Sequence[int]], int], list[int]]
] = {"critical-path": _critical_path, "nnvm": _nnvm}
