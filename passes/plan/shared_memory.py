"""Decides for plan-in-place which allocations may be merged, and merges them."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from ...analysis.control_flow import ControlFlow
from ...analysis.liveness import merged
from ...analysis.overwriting import reads_nowhere_else
from ...planning.problem import Steps, common


@dataclass(slots=True)
class SharedMemory:
    """An allocation, or several that have been merged."""

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
    """Whether `op` can compute `target` in `source`, its operand `index`."""
    a, b = source.alloc, target.alloc
    step = flow.step[op]
    return (
        a.memref.type == b.memref.type
        and tuple(a.operands) == tuple(b.operands)  # dynamic sizes
        and a.alignment == b.alignment
        and a.parent is b.parent is op.parent
        and reads_nowhere_else(op, op.operands[index])
        and any(start <= step and end == step + 1 for start, end in source.live)
        and any(start == step for start, _ in target.live)
        and common(source.live, target.live) == [(step, step + 1)]
    )


def join(source: SharedMemory, target: SharedMemory, flow: ControlFlow) -> SharedMemory:
    """Merges two allocations: allocated where the first is, freed where the last is."""
    step = flow.step
    first, second = sorted((source, target), key=lambda m: step[m.alloc])
    frees = [m.dealloc for m in (source, target)]
    last = max((d for d in frees if d), key=lambda d: step[d], default=None)
    if None in frees:  # one is never freed, so neither is the merged one
        last = None
    for dealloc in frees:
        if dealloc is not None and dealloc is not last:
            dealloc.detach()
            dealloc.erase()
    Rewriter.replace_op(second.alloc, (), [first.alloc.memref])
    return SharedMemory(first.alloc, last, merged(sorted([*source.live, *target.live])))
