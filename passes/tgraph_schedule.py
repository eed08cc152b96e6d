"""`tgraph-schedule`: operations are reordered, so that less is live at once.

    %0 = tgraph.dot_general %a, %b ...  : -> tensor<512x512xf32>
    %1 = tgraph.dot_general %c, %d ...  : -> tensor<512x512xf32>
    %2 = tgraph.reduce %0 ...           : -> tensor<512xf32>
    %3 = tgraph.reduce %1 ...           : -> tensor<512xf32>

    %0 = tgraph.dot_general %a, %b ...  : -> tensor<512x512xf32>
    %2 = tgraph.reduce %0 ...           : -> tensor<512xf32>
    %1 = tgraph.dot_general %c, %d ...  : -> tensor<512x512xf32>
    %3 = tgraph.reduce %1 ...           : -> tensor<512xf32>

What is live is counted as tgraph-bufferize will store it (memory_graph.py), on each
device for itself. The order stays as it is unless the new one has a lower peak on a
device, and none has a higher one.

Needs: level 1; best after tgraph-fuse and tgraph-eliminate-assigns, which decide what
is stored. Leaves: level 1, the same operations; reads and writes of a variable in the
same order. Does not: change what is computed, look at the time that it takes, or touch
functions whose operations have streams: there it is these that say what runs when.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import remark
from tensorplan.dialects.tgraph.base import STREAM
from tensorplan.dialects.tgraph.structure import RegionOp
from tensorplan.passes import driver
from tensorplan.passes.functions import tensor_functions
from tensorplan.passes.memory_graph import MemoryGraph, memory_graph
from tensorplan.passes.plan_check import check_plan
from tensorplan.passes.sizes import check_alignment
from tensorplan.planning.scheduling import Graph, schedule


@dataclass(frozen=True)
class TGraphSchedule(ModulePass):
    """Reorders operations to lower the peak of live bytes.

    effort: how much is searched; 0 for list scheduling only, 1 for about a second.
    alignment: what every buffer takes a multiple of, in bytes.
    """

    name = "tgraph-schedule"

    effort: float = 0.2
    alignment: int = 64

    def __post_init__(self) -> None:
        if self.effort < 0:
            raise ValueError(f"effort is {self.effort}, expected 0 or more")
        check_alignment(self.alignment)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if any(STREAM in op.attributes for op in block.ops):
                remark("not reordered: its operations have streams", func)
                continue
            graph = memory_graph(block, self.alignment)
            order = _scheduled(graph, self.effort)
            if order is None:
                continue
            # What loops and branches store inside, the graph does not know.
            has_regions = any(isinstance(op, RegionOp) for op in graph.ops)
            is_placed = None not in graph.sizes
            before = _planned_bytes(func) if has_regions and is_placed else None
            graph.reorder(order)
            if before is not None and _planned_bytes(func) > before:
                graph.reorder(range(len(graph.ops)))


def _planned_bytes(func: FuncOp) -> int:
    """The arenas of a function in the order that it has; its devices must be known."""
    # Here, because most programs have no loops.
    from tensorplan.passes.plan_memory import PlanMemory
    from tensorplan.passes.tgraph_bufferize import TGraphBufferize

    module = ModuleOp([func.clone()])
    driver.run(Context(), module, [TGraphBufferize(), PlanMemory()], verify=False)
    return sum(pool.size for pool in check_plan(module))


def _scheduled(memory: MemoryGraph, effort: float) -> Sequence[int] | None:
    """An order with a lower peak on some device and a higher one on none, if found."""
    graphs = list(memory.graphs.values())
    if len(graphs) > 1:
        totals = [sum(sizes) for sizes in zip(*memory.sizes.values(), strict=True)]
        graphs.append(Graph(memory.tasks, totals, memory.kept))
    best: Sequence[int] | None = None
    given = peaks = memory.peaks(range(len(memory.ops)))
    for graph in graphs:
        order = schedule(graph, effort).order
        new = memory.peaks(order)
        is_above = any(new[device] > given[device] for device in given)
        if not is_above and sum(new.values()) < sum(peaks.values()):
            best, peaks = order, new
    return best
