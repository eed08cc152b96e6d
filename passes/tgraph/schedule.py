"""`tgraph-schedule`: reorders operations to lower peak memory.

    %0 = tgraph.dot_general %a, %b ...  : -> tensor<512x512xf32>
    %1 = tgraph.dot_general %c, %d ...  : -> tensor<512x512xf32>
    %2 = tgraph.reduce %0 ...           : -> tensor<512xf32>
    %3 = tgraph.reduce %1 ...           : -> tensor<512xf32>

    %0 = tgraph.dot_general %a, %b ...  : -> tensor<512x512xf32>
    %2 = tgraph.reduce %0 ...           : -> tensor<512xf32>
    %1 = tgraph.dot_general %c, %d ...  : -> tensor<512x512xf32>
    %3 = tgraph.reduce %1 ...           : -> tensor<512xf32>

The pass counts live bytes per device, as tgraph-bufferize will store them
(`analysis/storage`). It adopts a new order only if the order lowers the peak of at
least one device and raises that of none, and if the bytes beside those that plan-memory
places in the memory of results do not grow either. It reorders the bodies of loops and
branches as well, innermost first; a new order there must not raise the peak of the
whole function.

If several devices run in parallel, a new order may take longer, because devices wait
for one another. `max-slowdown` limits this. The pass estimates time from types, and
models a queue for each device and one for the copies to it, as in the runtime.

The pass also reorders operations of other dialects. It knows what destination-style
operations store: linalg's on tensors, and those with the traits of
`dialects/memory.py`.

Needs: level 1, preferably after tgraph-eliminate-assigns and tgraph-fuse, which decide
what is stored.
Leaves: level 1 with the same operations. Reads and writes of each variable keep their
order.
Does not: change what is computed; reorder functions whose operations have streams,
because streams determine when operations run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from ...analysis.caching import cached_by
from ...analysis.cost import times
from ...analysis.dependencies import queue_of
from ...analysis.functions import blocks_within, tensor_functions
from ...analysis.memory_graph import MemoryGraph, memory_graph
from ...analysis.storage import peaks, storage_of
from ...dialects.tgraph.shaping import DeviceCopyOp
from ...planning.scheduling import TaskGraph, makespan, mixtures, schedule
from ..optional import OptionalPass
from ..options import Packing
from .shared.fitting import live_bytes
from .shared.streams import has_streams


class _Order(NamedTuple):
    """An order of a block, as indices of the operations of its graph."""

    graph: MemoryGraph
    order: Sequence[int]


@dataclass(frozen=True)
class TGraphSchedule(OptionalPass, Packing):
    """Reorders operations to lower the peak of live bytes.

    effort: how long to search; 0 for list scheduling only, 1 for about a second.
    max_slowdown: the largest increase in time over the given order, as a fraction of
        it, both estimated from types; unlimited if not given.
    """

    name = "tgraph-schedule"
    LOWERS_PEAK = True
    TOPIC = "schedule"

    effort: float = 0.2
    max_slowdown: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.effort < 0:
            raise ValueError(f"effort is {self.effort}, expected 0 or more")
        if self.max_slowdown is not None and self.max_slowdown < 0:
            raise ValueError(f"max-slowdown is {self.max_slowdown}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op, with_scalars=True):
            if has_streams(func, "not reordered"):
                continue
            blocks = list(blocks_within(block))
            given = [list(inner.ops) for inner in blocks]
            self._reorder_all(block)
            found = [list(inner.ops) for inner in blocks]
            if found == given or not self.reuse_outputs:
                continue
            new = self._beside_outputs(block)
            _put(blocks, given)
            old = self._beside_outputs(block)
            if all(bytes <= old.get(device, 0) for device, bytes in new.items()):
                _put(blocks, found)

    def _beside_outputs(self, block: Block) -> Mapping[str | None, int]:
        """The peak of live bytes on each device without the memory of outputs."""
        return peaks(storage_of(block), self.alignment, reuse_outputs=True)

    def _reorder_all(self, block: Block) -> None:
        """Reorders the block of a function, and those of the loops and branches in it,
        to lower the peak of live bytes."""
        blocks = list(blocks_within(block))[::-1]
        peak = live_bytes(block, self.alignment) if len(blocks) > 1 else 0
        orders = [order for inner in blocks if (order := self._reordered(inner))]
        if len(blocks) > 1:  # the graph of a block does not know what others store
            self._keep(orders, block, peak)

    def _reordered(self, block: Block) -> _Order | None:
        """Reorders a block. Returns its order, or None if it is unchanged."""
        graph = memory_graph(block, self.alignment)
        order = _scheduled(graph, self.effort, self.max_slowdown)
        if order is None:
            return None
        graph.reorder(order)
        return _Order(graph, order)

    def _keep(self, orders: Sequence[_Order], block: Block, peak: int) -> int:
        """Puts blocks within the block of a function into those of the given orders
        that do not raise its peak of live bytes. Returns its peak."""
        for graph, order in orders:
            graph.reorder(order)
        bytes = live_bytes(block, self.alignment)
        if bytes <= peak:
            return bytes
        for graph, _ in orders:
            graph.reorder(range(len(graph.ops)))
        if len(orders) == 1:
            return peak
        middle = len(orders) // 2
        peak = self._keep(orders[:middle], block, peak)
        return self._keep(orders[middle:], block, peak)


def _put(blocks: Sequence[Block], orders: Sequence[Sequence[Operation]]) -> None:
    """Puts the operations of blocks into the given orders."""
    for block, ops in zip(blocks, orders, strict=True):
        for op in ops:
            op.detach()
            block.add_op(op)


def _scheduled(
    memory: MemoryGraph, effort: float, max_slowdown: float | None
) -> Sequence[int] | None:
    """An order with a lower peak on some device and a higher one on none, or None."""
    graphs = list(memory.graphs.values())
    if len(graphs) > 1:
        totals = [sum(sizes) for sizes in zip(*memory.sizes.values(), strict=True)]
        graphs.append(TaskGraph(memory.tasks, totals, memory.kept))
    best: Sequence[int] | None = None
    given = range(len(memory.ops))
    before = lowest = memory.peaks(given)
    is_fast = _limit(memory, max_slowdown)
    for graph in graphs:
        found = _found(graph, effort)
        orders = [found] if is_fast(found) else filter(is_fast, mixtures(found, given))
        for order in orders:
            new = memory.peaks(order)
            is_above = any(new[device] > before[device] for device in before)
            if not is_above and sum(new.values()) < sum(lowest.values()):
                best, lowest = order, new
    return best


def _found(graph: TaskGraph, effort: float) -> Sequence[int]:
    """An order with a low peak. Equal graphs are searched only once, such as those of
    blocks that candidates of tgraph-search have in common."""
    key = schedule, graph.contents, effort
    return cached_by(key, lambda: schedule(graph, effort).order)


def _limit(
    memory: MemoryGraph, max_slowdown: float | None
) -> Callable[[Sequence[int]], bool]:
    """Returns a test of whether an order takes at most `max_slowdown` longer than the
    given order."""
    graph = next(iter(memory.graphs.values()), None)
    queues = [(queue_of(op), isinstance(op, DeviceCopyOp)) for op in memory.ops]
    if graph is None or max_slowdown is None or len(set(queues)) == 1:
        return lambda order: True
    took = times(memory.ops)
    most = (1 + max_slowdown) * makespan(graph, range(len(took)), took, queues)
    return lambda order: makespan(graph, order, took, queues) <= most
