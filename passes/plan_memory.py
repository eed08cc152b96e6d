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

The steps are the operations of the function's block. A buffer is live from the first to
the last step that accesses it, through views too, and inside regions. A pool's
alignment is the option's, or the largest that an allocation of it asks for. If
operations have streams (`tgraph.stream`), two buffers share bytes only if one is surely
done with before the other is begun, in whatever way the streams run (stream_order.py).

Needs: memrefs, from tgraph-bufferize or from mlir-opt. Leaves: level 3, checked by
plan-check; what can't be planned stays as it is, with a remark: dynamic sizes, layouts
other than the identity, buffers that escape or whose uses are not understood, blocks
other than a function's only one.
Does not: reorder operations, hoist allocations out of loops.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    i8,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, get_effects

from tensorplan.dialects.diagnostics import name_of, remark
from tensorplan.dialects.tgraph.base import STREAM, AnyMemRef
from tensorplan.passes.dependencies import MEMREF_VIEWS
from tensorplan.passes.plan_check import check_plan
from tensorplan.passes.stream_order import StreamOrder
from tensorplan.planning import Buffer, Limits, Plan, Problem, find, solve

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
        allocs = [op for op in func.walk() if isinstance(op, memref.AllocOp)]
        ops = list(func.body.blocks[0].ops)
        step = {op: index for index, op in enumerate(ops)}
        pools: dict[Attribute, list[_Allocation]] = {}
        for alloc in allocs:
            if _is_arena(alloc):
                continue
            try:
                allocation = _follow(alloc, func, step)
            except _NotPlannable as reason:
                remark(f"memref.alloc is left as it is: {reason}", alloc)
            else:
                pools.setdefault(alloc.memref.type.memory_space, []).append(allocation)
        has_streams = pools and any(STREAM in op.attributes for op in ops)
        order = StreamOrder(ops) if has_streams else None
        for space, allocations in pools.items():
            self._place(func.body.block, space, allocations, order)

    def _solve(self, problem: Problem) -> Plan:
        return solve(problem, self.strategy, Limits(effort=EFFORT))

    def _place(
        self,
        block: Block,
        space: Attribute,
        allocations: Sequence["_Allocation"],
        order: StreamOrder | None,
    ) -> None:
        alignment = max(self.alignment, *(a.alignment for a in allocations))
        buffers = [
            Buffer(a.name, a.size, a.start, a.end, alignment) for a in allocations
        ]
        if order is None:
            plan = self._solve(Problem(buffers))
        else:
            plan = order.place(buffers, [a.accesses for a in allocations], self._solve)
        arena = memref.AllocOp(
            (),
            (),
            MemRefType(i8, [plan.peak], NoneAttr(), space),
            IntegerAttr(alignment, 64),
        )
        arena.memref.name_hint = "arena"
        first, last = block.first_op, block.last_op
        assert first is not None
        assert last is not None
        Rewriter.insert_op(arena, InsertPoint.before(first))
        constants: dict[int, arith.ConstantOp] = {}
        for allocation, offset in zip(allocations, plan.offsets, strict=True):
            for dealloc in allocation.deallocs:
                dealloc.detach()
                dealloc.erase()
            alloc = allocation.alloc
            if offset not in constants:
                constants[offset] = arith.ConstantOp(IntegerAttr(offset, IndexType()))
                constants[offset].result.name_hint = f"c{offset}"
                Rewriter.insert_op(constants[offset], InsertPoint.before(alloc))
            view = memref.ViewOp(
                arena.memref, constants[offset].result, (), alloc.memref.type
            )
            view.location = alloc.location
            Rewriter.replace_op(alloc, view)
        Rewriter.insert_op(memref.DeallocOp.get(arena.memref), InsertPoint.before(last))


@dataclass(frozen=True, slots=True)
class _Allocation:
    """An allocation that can be planned."""

    alloc: memref.AllocOp
    deallocs: Sequence[Operation]
    size: int  # bytes
    alignment: int  # bytes; 1 if the allocation asks for none
    start: int  # step of the first access
    end: int  # step behind the last access
    accesses: Sequence[int]  # steps, without those of deallocs

    @property
    def name(self) -> str:
        return f"%{self.alloc.memref.name_hint or self.start}"


class _NotPlannable(Exception):
    """Why an allocation is left as it is."""


def _is_arena(alloc: memref.AllocOp) -> bool:
    """Whether the allocation is what this pass makes: bytes, and views of them."""
    users = {type(use.operation) for use in alloc.memref.uses}
    return memref.ViewOp in users and users <= {memref.ViewOp, memref.DeallocOp}


def _follow(
    alloc: memref.AllocOp, func: FuncOp, step: dict[Operation, int]
) -> _Allocation:
    """Finds the buffer's size and lifespan; raises `_NotPlannable`."""
    size = _bytes(alloc.memref.type)
    if alloc.parent_op() is not func:
        raise _NotPlannable("it is inside a region of another operation")
    if len(func.body.blocks) > 1:
        raise _NotPlannable(f"the function has {len(func.body.blocks)} blocks, not 1")
    deallocs: list[Operation] = []
    accessed: list[int] = []
    aliases: list[SSAValue] = [alloc.memref]
    for alias in aliases:  # grows
        for use in alias.uses:
            user = use.operation
            if isinstance(user, memref.DeallocOp):
                if user.parent_op() is not func:
                    raise _NotPlannable("it is freed inside a region")
                deallocs.append(user)
            elif isinstance(user, MEMREF_VIEWS):
                aliases.append(user.results[0])
            elif reason := _unclear(user):
                raise _NotPlannable(reason)
            else:
                accessed.append(step[_ancestor(user, func)])
    alignment = alloc.alignment.value.data if alloc.alignment else 1
    live = accessed or [step[alloc]]
    return _Allocation(
        alloc, deallocs, size, alignment, min(live), max(live) + 1, accessed
    )


def _bytes(type: AnyMemRef) -> int:
    if DYNAMIC_INDEX in type.get_shape():
        raise _NotPlannable(f"{type} has a dynamic size")
    if not isinstance(type.layout, NoneAttr):
        raise _NotPlannable(f"{type} has a layout other than the identity")
    if not isinstance(type.element_type, FixedBitwidthType):
        raise _NotPlannable(f"elements of type {type.element_type} have no fixed size")
    return prod(type.get_shape()) * type.element_type.size


def _unclear(user: Operation) -> str | None:
    """Why a use may let the buffer live on after the operation; None if it can't."""
    if user.has_trait(IsTerminator, value_if_unregistered=False):
        return f"it is passed on by {name_of(user)}"
    if any(isinstance(result.type, MemRefType) for result in user.results):
        return f"{name_of(user)} may return it"
    if user.dialect_name() != "linalg" and get_effects(user) is None:
        return f"what {name_of(user)} does with it is not known"
    return None


def _ancestor(op: Operation, func: FuncOp) -> Operation:
    """The operation around `op`, or itself, that is directly in the function."""
    found = func.body.block.find_ancestor_op_in_block(op)
    assert found is not None
    return found
