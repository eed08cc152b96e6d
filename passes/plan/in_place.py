"""`plan-in-place`: computes an operation's result in the memory of an operand.

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

The pass applies to operations of any dialect that allow it (`overwritable` in
dialects/memory.py), linalg's among them, if the step of the operation is the only one
in which both memories are live. It visits operations in program order, and uses the
first operand that fits.

Needs: level 2.
Leaves: level 2, with fewer allocations.
Does not: reuse arguments, parts of memory, memory of another type, or memory that
another block allocates or frees. tgraph-bufferize already computes in place, so
`plan-pipeline` omits this pass; it is for IR that other tools have bufferized.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...analysis.allocations import Allocation, find_allocations
from ...analysis.control_flow import ControlFlow
from ...analysis.liveness import live_steps
from ...dialects.diagnostics import name_of, remark
from ...dialects.memory import destinations, overwritable, overwrites
from .shared_memory import SharedMemory, join, may_be_one


@dataclass(frozen=True)
class PlanInPlace(ModulePass):
    """Computes results in the memory of operands that are dead afterwards."""

    name = "plan-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if isinstance(func, FuncOp) and not func.is_declaration:
                _run(func)


def _run(func: FuncOp) -> None:
    flow = ControlFlow(func)
    if flow.barriers:  # other agents may still read an operand
        return
    allocations = find_allocations(func, flow, remarks=False)
    live = live_steps(flow, [a.uses for a in allocations])
    memories: dict[SSAValue, SharedMemory] = {
        a.alloc.memref: SharedMemory(a.alloc, next(iter(a.deallocs), None), ranges)
        for a, ranges in zip(allocations, live, strict=True)
        if _is_local(a)
    }
    for op in list(flow.step):
        if isinstance(op, memref.CopyOp) or not (written := destinations(op)):
            continue
        target = memories.get(destination := op.operands[written[0]])
        if target is None or not overwrites(op, destination):
            continue
        for index in overwritable(op):
            source = memories.get(value := op.operands[index])
            if source is None or not may_be_one(source, target, op, index, flow):
                continue
            text = f"{name_of(op)}: the result takes over operand {index}"
            remark(text, op, passed=True)
            joined = join(source, target, flow)
            del memories[value], memories[destination]
            memories[joined.alloc.memref] = joined
            break


def _is_local(allocation: Allocation) -> bool:
    """Whether an allocation is freed at most once, in the block that allocates it."""
    alloc, frees = allocation.alloc, allocation.deallocs
    return len(frees) <= 1 and all(
        isinstance(free, memref.DeallocOp)
        and free.parent is alloc.parent
        and free.memref is alloc.memref
        for free in frees
    )
