"""Decides for plan-in-place which allocations may be one, and joins them."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove

from ...analysis.control_flow import ControlFlow
from ...analysis.liveness import merged
from ...dialects.memory import is_view, overwritable
from ...planning.problem import Steps, common


@dataclass(slots=True)
class SharedMemory:
    """An allocation, or several that have become one."""

    alloc: memref.AllocOp  # the first
    dealloc: Operation | None  # the last
    live: Sequence[Steps]


def may_be_one(
    source: SharedMemory,
    target: SharedMemory,
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
        and reads_nowhere_else(op, op.operands[index])
        and any(start <= step and end == step + 1 for start, end in source.live)
        and any(start == step for start, _ in target.live)
        and common(source.live, target.live) == [(step, step + 1)]
    )


def reads_nowhere_else(op: Operation, memory: SSAValue) -> bool:
    """Whether `op` reads an allocation, or an argument, through operands only that it
    may overwrite."""
    allowed = overwritable(op)
    if not op.has_trait(IsolatedFromAbove) and any(
        isinstance(value.type, MemRefType)
        for region in op.regions
        for inner in region.walk()
        for value in inner.operands
    ):
        return False
    return all(
        index in allowed if value is memory else _is_apart(value, memory)
        for index, value in enumerate(op.operands)
        if isinstance(value.type, MemRefType)
    )


def _is_apart(value: SSAValue, memory: SSAValue) -> bool:
    """Whether a memref surely has no byte of an allocation, or of an argument."""
    while isinstance(op := value.owner, Operation) and is_view(op):
        value = op.operands[0]
    if value is memory:
        return False
    if isinstance(op, Block):  # an argument of the function was there before
        return isinstance(op.parent_op(), FuncOp) and op.prev_block is None
    return isinstance(op, memref.AllocOp | memref.GetGlobalOp)


def join(source: SharedMemory, target: SharedMemory, flow: ControlFlow) -> SharedMemory:
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
    return SharedMemory(first.alloc, last, merged(sorted([*source.live, *target.live])))
