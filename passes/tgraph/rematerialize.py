"""`tgraph-rematerialize`: recomputes values instead of keeping them (checkpointing).

    %a = tgraph.exponential %x : tensor<1024xf32>
    %b = tgraph.dot_general %a, ...          // %a is read, and much is live from here
    ...
    %z = tgraph.multiply %y, %a : tensor<1024xf32>

    %a = tgraph.exponential %x : tensor<1024xf32>
    %b = tgraph.dot_general %a, ...
    ...
    %0 = tgraph.exponential %x {tgraph.recomputed} : tensor<1024xf32>
    %z = tgraph.multiply %y, %0 : tensor<1024xf32>

The bytes of %a are free between its two readers. The pass counts live bytes as
tgraph-bufferize will store them (analysis/memory_graph.py). It recomputes operations
whose results occupy many bytes for many steps and take little time to compute
(planning/scheduling/rematerialization.py, analysis/cost.py), or chains of them if their
operands are no longer live. A value without an earlier reader is only computed later,
not twice. Remarks report the recomputed operations and their cost.

With a budget, the pass lowers the peak until plan-memory meets the budget on each
device (passes/tgraph/shared/fitting.py) or, before devices are placed, until the live
bytes do. With `exact`, for small functions, it searches for the fastest order with
constraint programming, as Checkmate does. Without a budget, as in the default sequence,
the pass lowers the peak as far as `max-slowdown` allows, and recomputes what is cheap,
such as activations, normalizations, and masks. It starts with the function's block and
goes on with the loops and branches at the peak, each of which may take longer by the
same share. Arenas never grow.

Of the operations of other dialects, the pass recomputes destination-style operations
that work element by element, such as linalg's.

Needs: level 1, after `cse`, which would merge the operands of recomputed operations,
and after tgraph-eliminate-assigns and tgraph-fuse, which decide what is stored.
Preferably after tgraph-schedule.
Leaves: level 1.
Does not: recompute loops, branches, or operations that write variables, results, or
concatenations in place; change functions whose operations have streams; or fail if it
misses the budget. In that case, the pass leaves the lowest peak that it found.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...analysis.concatenations import is_in_place, parts
from ...analysis.cost import times
from ...analysis.destinations import destinations_of
from ...analysis.flops import flops
from ...analysis.functions import is_tensor, tensor_functions
from ...analysis.memory_graph import MemoryGraph, memory_graph
from ...dialects.diagnostics import LocatedError, held_back, remark, say
from ...dialects.memory import overwritable
from ...dialects.tgraph.base import TensorOp, tensor_type_of, typical_bytes
from ...dialects.tgraph.callbacks import may_repeat
from ...dialects.tgraph.structure import IfOp, RegionOp, WhileOp
from ...planning import deadline
from ...planning.scheduling import profile
from ...planning.scheduling.rematerialization import lowest, rematerialize
from .. import driver
from ..optional import OptionalPass
from ..options import Budget, Placing, TimeLimit
from .shared.fitting import Peaks, PlannedBytes, fit, is_static_block, live_peaks
from .shared.streams import has_streams

MAX_SLOWDOWN = 0.03
"""The share of a function's time that recomputation may add without a budget, as for
slices. A step of MobileNetV2 takes 42,416,640 bytes with 2 %, and 34,604,800 with 3 %
(0.8 % measured)."""

WORTH = 0.01
"""The share of the live bytes that recomputation without a budget has to save."""

ROUNDS = 4
"""The largest number of rounds that lower the loops and branches at the peak."""


@dataclass(frozen=True)
class TGraphRematerialize(OptionalPass, TimeLimit, Placing):
    """Recomputes values instead of keeping them.

    budget: the bytes that each arena may have, such as 64MiB; the pass stops once they
        fit.
    max_slowdown: the largest increase in a function's time, as a fraction of it, both
        estimated from types; 0.03 without a budget, unlimited with one.
    effort: how long to search; with a budget, 1 is about ten seconds at most.
    exact: whether to search for the least time if a function is small enough; needs the
        extra `exact`.
    """

    name = "tgraph-rematerialize"
    IDEMPOTENT = False
    TOPIC = "recomputation"

    budget: int | str | None = None
    max_slowdown: float | None = None
    effort: float = 1.0
    exact: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None:
            Budget(self.budget)
        elif self.exact:
            raise ValueError("exact is true, which requires a budget")
        if self.effort < 0:
            raise ValueError(f"effort is {self.effort}, expected 0 or more")
        if self.max_slowdown is not None and self.max_slowdown < 0:
            raise ValueError(f"max-slowdown is {self.max_slowdown}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with deadline.until(driver.deadline(self.time_limit)):
            for func, _ in tensor_functions(op, with_scalars=True):
                if has_streams(func, "nothing is recomputed"):
                    continue
                if self.budget is None:
                    self._lower_at_little_cost(func)
                else:
                    self._fit(func, Budget(self.budget).bytes_allowed)

    def _lower_at_little_cost(self, func: FuncOp) -> None:
        """Lowers the peak of the function's block, then of blocks in its loops and
        branches, as far as `max_slowdown` allows and where that lowers the arenas."""
        planned = PlannedBytes(self)
        before = self._lower_function(func, planned)
        done: set[Block] = set()
        for _ in range(ROUNDS):
            peaks = live_peaks(func.body.block, self.alignment)
            limits = {d: int((1 - WORTH) * peak) for d, peak in peaks.items()}
            found = (block for block, _ in self._above(func.body.block, limits))
            blocks = [block for block in found if block not in done]
            if not blocks:
                return
            original = func.clone()
            with held_back() as remarks:
                changes = [self._lower_cheaply(block) for block in blocks]
            if not any(changes):
                return
            if before is None:
                before = planned.of_all(original)
            if (after := planned.of_all(func)) >= before:
                func.detach_region(0)
                func.add_region(original.detach_region(0))
                return
            say(remarks)
            before = after
            done.update(blocks)

    def _lower_function(self, func: FuncOp, planned: PlannedBytes) -> int | None:
        """Lowers the peak of the function's block. Returns the bytes of the function's
        arenas, or None if they have not been planned."""
        memory, order = self._cheap_order(func.body.block)
        if order is None:
            return None
        live = sum(memory.peaks(range(len(memory.ops))).values())
        original = func.clone()
        with held_back() as remarks:
            _explain(memory, order, func.body.block)
        memory.reorder(order)
        after = planned.of_all(func)
        # Every plan of the original takes at least these bytes.
        least = live - self._in_results(func) - len(memory.sizes) * self.alignment
        if after > least:
            before = planned.of_all(original, memory.storage)
            if after >= before:
                func.detach_region(0)
                func.add_region(original.detach_region(0))
                return before
        say(remarks)
        return after

    def _lower_cheaply(self, block: Block) -> bool:
        """Lowers the peak of a block. Returns whether it could."""
        memory, order = self._cheap_order(block)
        if order is not None:
            _explain(memory, order, block)
            memory.reorder(order)
        return order is not None

    def _cheap_order(self, block: Block) -> tuple[MemoryGraph, Sequence[int] | None]:
        """The memory graph of `block`, and an order with a lower peak within
        `max_slowdown`, or None if there is none."""
        memory = memory_graph(block, self.alignment)
        nanoseconds = times(memory.ops)
        costs = _costs(memory, nanoseconds)
        given = order = range(len(memory.ops))
        for graph in memory.graphs.values():
            most = self._allowed(nanoseconds)
            order = lowest(graph, order, costs, most, self.effort).order
        live, lower = (sum(memory.peaks(x).values()) for x in (given, order))
        return memory, order if lower <= (1 - WORTH) * live else None

    def _above(self, block: Block, limits: Peaks) -> Iterator[tuple[Block, Peaks]]:
        """Yields the blocks of loops and branches during which more than `limits` is
        live in `block`, each with limits of its own that would suffice. A block comes
        before the blocks inside it, and the caller may change it in between."""
        memory = memory_graph(block, self.alignment)
        order = range(len(memory.ops))
        live = {
            device: profile(graph, order) for device, graph in memory.graphs.items()
        }
        for at, op in enumerate(memory.ops):
            over = {d: live[d][at] - limits[d] for d in live if d in limits}
            over = {device: bytes for device, bytes in over.items() if bytes > 0}
            if not over or not isinstance(op, WhileOp | IfOp):
                continue
            blocks = [r.block for r in op.regions if is_static_block(r.block)]
            peaks = [live_peaks(inner, self.alignment) for inner in blocks]
            for inner, own in zip(blocks, peaks, strict=True):
                highest = {d: max(p.get(d, 0) for p in peaks) for d in over}
                inside = {d: max(highest[d] - bytes, 0) for d, bytes in over.items()}
                if any(own.get(d, 0) > limit for d, limit in inside.items()):
                    yield inner, inside
                    yield from self._above(inner, inside)

    def _in_results(self, func: FuncOp) -> int:
        """The largest number of bytes that may lie in the memory of results."""
        if not self.reuse_outputs:
            return 0
        types = filter(is_tensor, func.function_type.outputs)
        return sum(map(typical_bytes, map(tensor_type_of, types)))

    def _allowed(self, times: Sequence[int]) -> float:
        """The nanoseconds that recomputation may take."""
        share = self.max_slowdown
        if share is None:
            share = inf if self.budget is not None else MAX_SLOWDOWN
        return share * sum(times)

    def _fit(self, func: FuncOp, budget: int) -> None:
        before, after = fit(func, budget, None, self._lower, self)
        for device, peak in after.items():
            if before[device] > budget:
                remark(change_of_peak(device, before[device], peak, budget), func)

    def _lower(self, func: FuncOp, budgets: Peaks) -> None:
        """Recomputes values until the live bytes of each device meet its budget: in the
        function's block, then in the blocks of its loops and branches."""
        self._lower_to(func.body.block, budgets)
        for block, limits in self._above(func.body.block, budgets):
            self._lower_to(block, limits)

    def _lower_to(self, block: Block, limits: Peaks) -> None:
        """Recomputes values of a block until the live bytes meet its limits."""
        memory = memory_graph(block, self.alignment)
        nanoseconds = times(memory.ops)
        costs = _costs(memory, nanoseconds)
        given = order = list(range(len(memory.ops)))
        before, most = memory.peaks(given), self._allowed(nanoseconds)
        for device, graph in memory.graphs.items():
            if before[device] > (limit := limits.get(device, before[device])):
                if self.exact:
                    # Imported here, because it needs OR-tools.
                    from ...planning.scheduling.exact_rematerialization import fewest

                    try:
                        order = list(fewest(graph, order, costs, limit).order)
                    except ImportError as error:
                        raise LocatedError(str(error)) from None
                else:
                    found = rematerialize(graph, order, costs, limit, most, self.effort)
                    order = list(found.order)
        if order != given:
            _explain(memory, order, block)
            memory.reorder(order)


def _costs(memory: MemoryGraph, times: Sequence[int]) -> Sequence[int | None]:
    """The nanoseconds of each operation that may be repeated; None for the others."""
    kept = set(memory.kept)
    joined = parts(memory.storage.block)
    return [
        nanoseconds
        if _may_be_repeated(op)
        and not is_in_place(op)
        and joined.keys().isdisjoint(op.results)
        and kept.isdisjoint(task.writes)
        else None
        for op, task, nanoseconds in zip(memory.ops, memory.tasks, times, strict=True)
    ]


def _may_be_repeated(op: Operation) -> bool:
    """Whether `op` can be recomputed. In other dialects, only elementwise operations
    can: the times of others are not known."""
    if isinstance(op, TensorOp):
        return not isinstance(op, RegionOp) and not op.outs and may_repeat(op)
    return bool(destinations_of(op)) and bool(overwritable(op))


def _explain(memory: MemoryGraph, order: Sequence[int], block: Block) -> None:
    around = block.parent_op()
    assert around is not None
    what = "function" if isinstance(around, FuncOp) else "block"
    again = {index: n - 1 for index, n in Counter(order).items() if n > 1}
    for index, count in again.items():
        op = memory.ops[index]
        often = "" if count == 1 else f" {count} times"
        remark(f"{op.name} is recomputed{often}: {count * flops(op)} FLOPs", op)
    repeated = sum(count * flops(memory.ops[index]) for index, count in again.items())
    total = sum(map(flops, memory.ops))
    percent = 100 * repeated / max(total, 1)
    remark(
        f"recomputed operations: {sum(again.values())}, with {repeated} FLOPs, "
        f"{percent:.2f} % of the {what}'s {total}",
        around,
    )


def change_of_peak(device: str | None, before: int, after: int, budget: int) -> str:
    """Text for a remark about peaks, which are in bytes."""
    where = f" on {device}" if device else ""
    text = f"the peak{where} goes from {before} to {after} bytes"
    return text if after <= budget else f"{text}, {after - budget} above the budget"
