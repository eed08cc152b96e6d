"""Arenas with their mark, `tgraph.arena`, and the views that take the place of
allocations."""

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ....dialects.memory import ARENA
from ....dialects.tgraph.base import AnyMemRef


def marked_arena(
    type: AnyMemRef, alignment: int, name: str = "arena", sizes: Sequence[SSAValue] = ()
) -> memref.AllocOp:
    """Allocates an arena. `sizes` are the sizes that `type` does not state."""
    arena = memref.AllocOp(sizes, (), type, IntegerAttr(alignment, 64))
    arena.attributes[ARENA] = UnitAttr()
    arena.memref.name_hint = name
    return arena


def replace_by(view: memref.ViewOp, alloc: memref.AllocOp) -> None:
    """Replaces an allocation by a view of an arena. The frame of a callee, which is
    marked, stays an arena."""
    view.location = alloc.location
    if ARENA in alloc.attributes:
        view.attributes[ARENA] = UnitAttr()
    Rewriter.replace_op(alloc, view)
