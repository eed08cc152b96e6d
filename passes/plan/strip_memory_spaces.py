"""`plan-strip-memory-spaces`: all devices are the memory of one host.

    %0 = memref.alloc() : memref<4xf32, "cpu:0">

    %0 = memref.alloc() : memref<4xf32>

MLIR has no LLVM address space for `"cpu:0"`; before a program is lowered to run in one
process, its memory spaces go.

Needs: memrefs (levels 2 to 4). Leaves: the same without memory spaces.
Does not: merge the arenas of devices.
"""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from ...dialects.tgraph.base import AnyMemRef
from ..convert.linalg.types import retype


@dataclass(frozen=True)
class PlanStripMemorySpaces(ModulePass):
    """Drops the memory space of every memref type."""

    name = "plan-strip-memory-spaces"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        retype(op, _without_space)


def _without_space(type: Attribute) -> Attribute:
    if not isinstance(type, MemRefType):
        return type
    memref = cast(AnyMemRef, type)
    return MemRefType(memref.element_type, memref.shape, memref.layout)
