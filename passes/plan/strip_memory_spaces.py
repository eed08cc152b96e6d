"""`plan-strip-memory-spaces`: removes memory spaces, to run all devices in host memory.

    %0 = memref.alloc() : memref<4xf32, "cpu:0">

    %0 = memref.alloc() : memref<4xf32>

MLIR has no LLVM address space for `"cpu:0"`, so remove the memory spaces before you
lower a program to run in a single process.

Needs: memrefs (levels 2 to 4).
Leaves: the same without memory spaces.
Does not: merge the arenas of different devices.
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
    """Removes the memory space from every memref type."""

    name = "plan-strip-memory-spaces"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        retype(op, _without_space)


def _without_space(type: Attribute) -> Attribute:
    if not isinstance(type, MemRefType):
        return type
    memref = cast(AnyMemRef, type)
    return MemRefType(memref.element_type, memref.shape, memref.layout)
