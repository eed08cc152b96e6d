"""`plan-workspaces`: what kernels need while they run becomes part of the plan.

    tgraph.convolution %x, %w outs(%r) {...} : ...

    %workspace = memref.alloc() : memref<4096xi8, "cpu:0">
    tgraph.convolution %x, %w outs(%r) workspace(%workspace : memref<4096xi8, "cpu:0">)
        {...} : ...
    memref.dealloc %workspace : memref<4096xi8, "cpu:0">

A kernel may need memory besides its operands': a copy of an operand in another layout,
the sums of a part of the result. That is there for one step only, so as buffers of a
plan these mostly lie where others do not live yet or any more; in the runtime's own
memory they come on top. XLA's custom calls have workspaces as one more result.

Who has the kernels says how much they need (`dialects/workspaces.py`).

Needs: level 2, with all operations as they will run: only plan-memory changes no
operation. Leaves: the same, with workspaces of static size. What has one keeps it, and
planned functions stay as they are.
Does not: ask for operations of symbolic size, or of other dialects: these kernels use
the runtime's own memory.
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
from ...dialects.tgraph.base import AnyMemRef, TensorOp, segments
from ...dialects.workspaces import check_kernels, measure_of, workspace_of
from ...threads import checked


@dataclass(frozen=True)
class PlanWorkspaces(ModulePass):
    """Gives each operation the workspace that its kernel needs.

    kernels: those that will run: `native`, those of the executor on this machine;
        `numpy`, those that it has without native code; or `none` that are known.
    threads: how many they use; without, as many as TENSORPLAN_THREADS says, or one for
        each processor.
    """

    name = "plan-workspaces"

    kernels: str = "native"
    threads: int | None = None

    def __post_init__(self) -> None:
        check_kernels("kernels", self.kernels)
        checked(self.threads)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.kernels == "none":
            return
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
