"""`plan-workspaces`: makes the scratch memory of kernels part of the plan.

    tgraph.convolution %x, %w outs(%r) {...} : ...

    %workspace = memref.alloc() : memref<4096xi8, "cpu:0">
    tgraph.convolution %x, %w outs(%r) workspace(%workspace : memref<4096xi8, "cpu:0">)
        {...} : ...
    memref.dealloc %workspace : memref<4096xi8, "cpu:0">

A kernel may need memory besides its operands, such as a copy of an operand in another
layout, or partial sums of the result. It needs this workspace for one step only. As a
buffer of the plan, a workspace mostly fits into gaps between the lifetimes of other
buffers; in the runtime's own memory, it comes on top of the arena. XLA's custom calls
declare a workspace as an additional result.

The owner of the kernels declares how much they need (`dialects/workspaces.py`).

Needs: level 2, with all operations in final form: only plan-memory, which changes no
operation, may follow.
Leaves: level 2, with workspaces of static size. The pass skips operations that already
have a workspace, and functions that are already planned.
Does not: handle operations with symbolic sizes or from other dialects; their kernels
use the runtime's own memory.
"""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, i8
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.allocations import has_plan
from ...analysis.functions import check_memrefs
from ...dialects.tgraph.base import AnyMemRef, TensorOp, segments
from ...dialects.workspaces import check_kernels, measure_of, workspace_of
from ...support import processor
from ...support.threads import checked


@dataclass(frozen=True)
class PlanWorkspaces(ModulePass):
    """Gives each operation the workspace that its kernel needs.

    kernels: the kernels that will run: `native` for the executor's kernels on this
        machine, `numpy` for the executor without native code, or `none`.
    threads: the number of threads that they use; by default TENSORPLAN_THREADS, or else
        one per processor.
    """

    name = "plan-workspaces"

    kernels: str = "native"
    threads: int | None = None

    def __post_init__(self) -> None:
        check_kernels("kernels", self.kernels)
        checked(self.threads)
        processor.level()  # raises for an unknown level

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.kernels == "none":
            return
        check_memrefs(op)
        measure = measure_of(self.kernels, checked(self.threads))
        for func in op.ops:
            if not isinstance(func, FuncOp) or has_plan(func):
                continue
            for inner in list(func.walk()):
                if isinstance(inner, TensorOp) and not inner.res:
                    if size := workspace_of(inner, measure):
                        _add(inner, size)


def _add(op: TensorOp, size: int) -> None:
    space = cast(AnyMemRef, op.outs[0].type).memory_space
    alloc = memref.AllocOp((), (), MemRefType(i8, [size], memory_space=space))
    alloc.memref.name_hint = "workspace"
    alloc.location = op.location
    divided = segments(op.inputs, op.outs, workspace=True)
    op.operands = (*op.operands, alloc.memref)
    op.properties["operandSegmentSizes"] = divided
    Rewriter.insert_op(alloc, InsertPoint.before(op))
    Rewriter.insert_op(memref.DeallocOp.get(alloc.memref), InsertPoint.after(op))
