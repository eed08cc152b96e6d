"""`plan-in-place`: an operation's result takes over the memory of an operand.

    %x = memref.alloc() : memref<64xf32>
    npu.load %a, %x
    %y = memref.alloc() : memref<64xf32>
    npu.relu %x, %y
    memref.dealloc %x : memref<64xf32>
    npu.store %y, %r
    memref.dealloc %y : memref<64xf32>

    %x = memref.alloc() : memref<64xf32>
    npu.load %a, %x
    npu.relu %x, %x
    npu.store %x, %r
    memref.dealloc %x : memref<64xf32>

For operations of any dialect that allow it (`overwritable` in dialects/memory.py), if
the only step in which both memories are live is the operation's. Allocations are
looked at in program order; of several operands the first that fits is taken.

Needs: level 2. Leaves: level 2, with fewer allocations. Does not: take over arguments,
parts of memories, memories of another type, or what another block allocates or frees.
tgraph-bufferize leaves nothing to do, so this is no part of `plan-pipeline`: it is for
IR that was bufferized by others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove

from ...analysis.allocations import Allocation, find_allocations
from ...analysis.control_flow import ControlFlow
from ...analysis.liveness import live_steps, merged
from ...dialects.diagnostics import name_of, remark
from ...dialects.memory import DestinationStyle, is_view, overwrites
from ...planning.problem import Steps


@dataclass(frozen=True)
class PlanInPlace(ModulePass):
    """Computes results over operands that are not needed any more."""

    name = "plan-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if isinstance(func, FuncOp) and not func.is_declaration:
                _run(func)


@dataclass(slots=True)
class _SharedMemory:
    """An allocation, or several that have become one."""

    alloc: memref.AllocOp  # the first
    dealloc: Operation | None  # the last
    live: Sequence[Steps]


def _run(func: FuncOp) -> None:
    flow = ControlFlow(func)
    if flow.barriers:  # others may still read what is overwritten
        return
    allocations = find_allocations(func, flow, remarks=False)
    live = live_steps(flow, [a.uses for a in allocations])
    memories: dict[SSAValue, _SharedMemory] = {
        a.alloc.memref: _SharedMemory(a.alloc, next(iter(a.deallocs), None), ranges)
        for a, ranges in zip(allocations, live, strict=True)
        if _is_local(a)
    }
    for op in list(flow.step):
        trait = op.get_trait(DestinationStyle)
        if trait is None or not (written := trait.destinations(op)):
            continue
        target = memories.get(destination := op.operands[written[0]])
        if target is None or not overwrites(op, destination):
            continue
        for index in trait.overwritable(op):
            source = memories.get(value := op.operands[index])
            if source is None or not _may_be_one(source, target, op, index, flow):
                continue
            text = f"{name_of(op)}: the result takes over operand {index}"
            remark(text, op, passed=True)
            joined = _join(source, target, flow)
            del memories[value], memories[destination]
            memories[joined.alloc.memref] = joined
            break


def _is_local(allocation: Allocation) -> bool:
    """Whether it is freed where it is allocated, at most once."""
    alloc, frees = allocation.alloc, allocation.deallocs
    return len(frees) <= 1 and all(
        isinstance(free, memref.DeallocOp)
        and free.parent is alloc.parent
        and free.memref is alloc.memref
        for free in frees
    )


def _may_be_one(
    source: _SharedMemory,
    target: _SharedMemory,
    op: Operation,
    index: int,
    flow: ControlFlow,
) -> bool:
    """Whether `op` can compute what it writes to `target` over its operand `index`."""
    a, b = source.alloc, target.alloc
    step = flow.step[op]
    return (
        a.memref.type == b.memref.type
        and tuple(a.operands) == tuple(b.operands)  # sizes that are not in the type
        and a.alignment == b.alignment
        and a.parent is b.parent is op.parent
        and _reads_nowhere_else(op, op.operands[index])
        and any(start <= step and end == step + 1 for start, end in source.live)
        and any(start == step for start, _ in target.live)
        and _common(source.live, target.live) == [(step, step + 1)]
    )


def _reads_nowhere_else(op: Operation, memory: SSAValue) -> bool:
    """Whether `op` reads a memory through operands only that it may overwrite."""
    trait = op.get_trait(DestinationStyle)
    assert trait is not None
    allowed = trait.overwritable(op)
    if op.regions and not op.has_trait(IsolatedFromAbove):
        return False
    return all(
        index in allowed if value is memory else _is_apart(value, memory)
        for index, value in enumerate(op.operands)
        if isinstance(value.type, MemRefType)
    )


def _is_apart(value: SSAValue, memory: SSAValue) -> bool:
    """Whether a memref surely has no byte of an allocation."""
    while isinstance(op := value.owner, Operation) and is_view(op):
        value = op.operands[0]
    if isinstance(op, Block):  # an argument of the function was there before
        return isinstance(op.parent_op(), FuncOp) and op.prev_block is None
    return value is not memory and isinstance(op, memref.AllocOp)


def _common(a: Sequence[Steps], b: Sequence[Steps]) -> Sequence[Steps]:
    """The ranges of steps in both."""
    both = ((max(s, t), min(e, f)) for s, e in a for t, f in b)
    return [(start, end) for start, end in both if start < end]


def _join(
    source: _SharedMemory, target: _SharedMemory, flow: ControlFlow
) -> _SharedMemory:
    """Makes one allocation of two: where the first is, freed where the last is."""
    step = flow.step
    first, second = sorted((source, target), key=lambda m: step[m.alloc])
    frees = [m.dealloc for m in (source, target)]
    last = max((d for d in frees if d), key=lambda d: step[d], default=None)
    if None in frees:  # nothing frees the one: nothing frees both
        last = None
    for dealloc in frees:
        if dealloc is not None and dealloc is not last:
            dealloc.detach()
            dealloc.erase()
    Rewriter.replace_op(second.alloc, (), [first.alloc.memref])
    return _SharedMemory(
        first.alloc, last, merged(sorted([*source.live, *target.live]))
    )
