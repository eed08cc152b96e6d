"""`tgraph-rematerialize`: values are computed again rather than kept, to fit a budget.

    %a = tgraph.exponential %x : tensor<1024xf32>
    %b = tgraph.dot_general %a, ...          // %a is read, and much is live from here
    ...
    %z = tgraph.multiply %y, %a : tensor<1024xf32>

    %a = tgraph.exponential %x : tensor<1024xf32>
    %b = tgraph.dot_general %a, ...
    ...
    %0 = tgraph.exponential %x {tgraph.recomputed} : tensor<1024xf32>
    %z = tgraph.multiply %y, %0 : tensor<1024xf32>

So %a's bytes are free in between. What is live is counted as tgraph-bufferize will
store it (analysis/memory_graph.py), and brought to where plan-memory meets the budget,
as far as devices are known (passes/tgraph/shared/fitting.py). The operations are
chosen for many bytes over many steps at little time
(planning/scheduling/rematerialization.py, analysis/cost.py), whole chains of them where
what they need is gone too; with `exact`, for small functions, an order that takes the
least time is searched by constraint programming, as in Checkmate. A value that nobody
read before is only computed later. Remarks tell what was repeated, and what that costs.

Needs: level 1, after `cse`, which would merge the repetitions' operands, after
tgraph-eliminate-assigns and tgraph-fuse, which decide what is stored, and best after
tgraph-schedule. Leaves: level 1. Does not: repeat loops, branches and operations that
write variables, results or concatenations in place, touch functions whose operations
have streams, or fail where the budget is not reached: then it leaves the lowest peak
that it found.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...analysis.concatenations import is_in_place, parts
from ...analysis.cost import flops, time
from ...analysis.functions import tensor_functions
from ...analysis.memory_graph import MemoryGraph, memory_graph
from ...dialects.diagnostics import LocatedError, remark
from ...dialects.tgraph.base import STREAM, TensorOp
from ...dialects.tgraph.structure import RegionOp
from ...planning import deadline
from ...planning.scheduling.rematerialization import rematerialize
from .. import driver
from ..optional import OptionalPass
from ..options import Budget, Placing, TimeLimit
from .shared.fitting import Peaks, fit


@dataclass(frozen=True)
class TGraphRematerialize(OptionalPass, Budget, TimeLimit, Placing):
    """Computes values again rather than keeping them, until a budget is met.

    exact: whether the least time is searched for, where a function is small enough;
        needs the extra `exact`.
    """

    name = "tgraph-rematerialize"
    IDEMPOTENT = False
    TOPIC = "recomputation"

    exact: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        budget = self.bytes_allowed
        with deadline.until(driver.due(self.time_limit)):
            for func, block in tensor_functions(op):
                if any(STREAM in op.attributes for op in block.ops):
                    remark("nothing is recomputed: its operations have streams", func)
                    continue
                before, after = fit(func, budget, None, self._lower, self)
                for device, peak in after.items():
                    if before[device] > budget:
                        text = change_of_peak(device, before[device], peak, budget)
                        remark(text, func)

    def _lower(self, func: FuncOp, budgets: Peaks) -> None:
        """Computes values again, until at most so much is live on each device."""
        memory = memory_graph(func.body.block, self.alignment)
        costs = _costs(memory)
        given = order = list(range(len(memory.ops)))
        before = memory.peaks(given)
        for device, graph in memory.graphs.items():
            if before[device] > (budget := budgets[device]):
                if self.exact:
                    # Here, because it needs OR-tools.
                    from ...planning.scheduling.exact_rematerialization import fewest

                    try:
                        order = list(fewest(graph, order, costs, budget).order)
                    except ImportError as error:
                        raise LocatedError(str(error)) from None
                else:
                    order = list(rematerialize(graph, order, costs, budget).order)
        if order != given:
            _explain(memory, order, func)
            memory.reorder(order)


def _costs(memory: MemoryGraph) -> Sequence[int | None]:
    """The time of each operation that may be repeated; None for the others."""
    kept = set(memory.kept)
    joined = parts(memory.block)
    return [
        time(op)
        if isinstance(op, TensorOp)
        and not isinstance(op, RegionOp)
        and not op.outs
        and not is_in_place(op)
        and joined.keys().isdisjoint(op.results)
        and kept.isdisjoint(task.writes)
        else None
        for op, task in zip(memory.ops, memory.tasks, strict=True)
    ]


def _explain(
    memory: MemoryGraph,
    order: Sequence[int],
    func: FuncOp,
) -> None:
    again = {index: n - 1 for index, n in Counter(order).items() if n > 1}
    for index, times in again.items():
        op = memory.ops[index]
        often = "" if times == 1 else f" {times} times"
        remark(f"{op.name} is computed again{often}: {times * flops(op)} FLOPs", op)
    repeated = sum(times * flops(memory.ops[index]) for index, times in again.items())
    total = sum(map(flops, memory.ops))
    percent = 100 * repeated / max(total, 1)
    remark(
        f"operations computed again: {sum(again.values())}, with {repeated} FLOPs, "
        f"{percent:.2f} % of the function's {total}",
        func,
    )


def change_of_peak(device: str | None, before: int, after: int, budget: int) -> str:
    """In words, for a remark. Bytes."""
    where = f" on {device}" if device else ""
    text = f"the peak{where} goes from {before} to {after} bytes"
    return text if after <= budget else f"{text}, {after - budget} above the budget"
