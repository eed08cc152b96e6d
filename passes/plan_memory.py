"""`plan-memory`: allocations move into one arena per memory space, at fixed offsets.

    %0 = memref.alloc() : memref<4x8xf32, "cpu:0">
    ...
    memref.dealloc %0 : memref<4x8xf32, "cpu:0">

    %arena = memref.alloc() {alignment = 64 : i64} : memref<256xi8, "cpu:0">
    %c128 = arith.constant 128 : index
    ...
    %0 = memref.view %arena[%c128][]
         : memref<256xi8, "cpu:0"> to memref<4x8xf32, "cpu:0">
    ...
    memref.dealloc %arena : memref<256xi8, "cpu:0">

The steps are the function's operations, in regions and blocks too (control_flow.py). A
buffer is live where its memory has been accessed and may be again, on some path
(liveness.py); one that is allocated in a loop, within an iteration. A pool's alignment
is the option's, or the largest that an allocation of it asks for. If operations have
streams (`tgraph.stream`), two buffers share bytes only if one is surely done with
before the other is begun, in whatever way the streams run (stream_order.py).

Needs: memrefs, from tgraph-bufferize or from mlir-opt. Leaves: level 3, checked by
plan-check; what can't be planned stays as it is, with a remark: dynamic sizes, layouts
other than the identity, buffers that escape or whose uses are not understood, buffers
that a loop hands on to its next iteration, and what is freed together with these
(allocations.py).
Does not: reorder operations, make two buffers of one that is handed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    i8,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import STREAM, AnyMemRef
from tensorplan.passes.allocations import Allocation, find_allocations
from tensorplan.passes.control_flow import ControlFlow, ends
from tensorplan.passes.liveness import buffer_of, live_steps
from tensorplan.passes.plan_check import check_plan
from tensorplan.passes.stream_order import StreamOrder
from tensorplan.planning import Limits, Plan, Problem, find, solve

EFFORT = 0.02
"""Of a strategy's usual work: seconds at most, and the same plan on every machine."""


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """Plans the allocations of each function into arenas.

    strategy: how buffers are placed; one of `tensorplan.planning`'s.
    alignment: of every buffer and of the arenas, in bytes, a power of two.
    """

    name = "plan-memory"

    strategy: str = "auto"
    alignment: int = 64

    def __post_init__(self) -> None:
        find(self.strategy)  # raises ValueError for an unknown one
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ValueError(f"alignment is {self.alignment}, expected a power of two")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if isinstance(func, FuncOp) and not func.is_declaration:
                self._plan(func)
        check_plan(op)

    def _plan(self, func: FuncOp) -> None:
        flow = ControlFlow(func)
        pools: dict[Attribute, list[Allocation]] = {}
        for allocation in find_allocations(func, flow):
            space = allocation.alloc.memref.type.memory_space
            pools.setdefault(space, []).append(allocation)
        if not pools:
            return
        order = _stream_order(func, flow)
        for space, allocations in pools.items():
            alignment = max(self.alignment, *(a.alignment for a in allocations))
            live = live_steps(flow, [a.uses for a in allocations])
            buffers = [
                buffer_of(a.name, a.size, ranges, alignment)
                for a, ranges in zip(allocations, live, strict=True)
            ]
            if order is None:
                plan = self._solve(Problem(buffers))
            else:
                accesses = [order.places(a.uses.accesses) for a in allocations]
                whole = [replace(b, gaps=()) for b in buffers]
                plan = order.place(whole, accesses, self._solve)
            type = MemRefType(i8, [plan.peak], NoneAttr(), space)
            _rewrite(func, type, alignment, allocations, plan.offsets)

    def _solve(self, problem: Problem) -> Plan:
        return solve(problem, self.strategy, Limits(effort=EFFORT))


def _stream_order(func: FuncOp, flow: ControlFlow) -> StreamOrder | None:
    """The order of operations that have streams; None if none has.

    Raises `LocatedError` for streams in a function of several blocks.
    """
    blocks = func.body.blocks
    if not any(STREAM in op.attributes for block in blocks for op in block.ops):
        return None
    if len(blocks) > 1:
        raise LocatedError(
            f"function @{func.sym_name.data} has operations with streams and "
            f"{len(blocks)} blocks, expected 1",
            func,
        )
    return StreamOrder(flow, blocks[0].ops)


def _rewrite(
    func: FuncOp,
    type: AnyMemRef,
    alignment: int,
    allocations: Sequence[Allocation],
    offsets: Sequence[int],
) -> None:
    """Makes an arena of the allocations, which lie at `offsets` in it."""
    entry = func.body.blocks[0]
    arena = memref.AllocOp((), (), type, IntegerAttr(alignment, 64))
    arena.memref.name_hint = "arena"
    last = entry.last_op
    assert last is not None
    constants: dict[int, arith.ConstantOp] = {}
    for allocation, offset in zip(allocations, offsets, strict=True):
        alloc = allocation.alloc
        if offset not in constants:
            # Where it dominates all that comes later in the text.
            first = entry.find_ancestor_op_in_block(alloc) or last
            constants[offset] = arith.ConstantOp(IntegerAttr(offset, IndexType()))
            constants[offset].result.name_hint = f"c{offset}"
            Rewriter.insert_op(constants[offset], InsertPoint.before(first))
        view = memref.ViewOp(
            arena.memref, constants[offset].result, (), alloc.memref.type
        )
        view.location = alloc.location
        Rewriter.replace_op(alloc, view)
    for dealloc in {d: None for a in allocations for d in a.deallocs}:
        dealloc.detach()
        dealloc.erase()
    Rewriter.insert_op(arena, InsertPoint.at_start(entry))
    for end in list(ends(func)):
        Rewriter.insert_op(memref.DeallocOp.get(arena.memref), InsertPoint.before(end))
