"""What is in a buffer from the first access of it to the last, and who uses it.

    %a = memref.alloc()
    linalg.exp ins(%x) outs(%a)        the first resident: written here,
    linalg.add ins(%a, %x) outs(%b)    and read here
    linalg.mul ins(%b, %b) outs(%a)    the second one: nothing of the first is left
    linalg.exp ins(%a) outs(%y)
    memref.dealloc %a

The uses are operations of the allocation's block, with all that is in their regions.
Each may be given other memory of the same type instead, for itself alone: what is known
of the buffer are the operations that use it, and views of it in that block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.memory import effects_on, freed, is_done_at_its_end, is_view
from ..dialects.tgraph.base import TensorOp
from ..planning.problem import Steps
from .allocations import Allocation
from .control_flow import ControlFlow, moves


@dataclass(frozen=True, slots=True)
class ResidentUse:
    """An operation of the block that accesses the buffer."""

    op: Operation
    at: int  # its step
    end: int  # that of the next operation, after all that is inside
    accesses: Sequence[tuple[Operation, SSAValue]]
    """It, or operations inside it, each with the view that it accesses."""

    @property
    def reads(self) -> bool:
        return any(effects_on(op, view)[0] for op, view in self.accesses)

    @property
    def writes(self) -> bool:
        return any(effects_on(op, view)[1] for op, view in self.accesses)


@dataclass(frozen=True, slots=True)
class Resident:
    """Contents of a buffer that nothing follows from what was there before."""

    allocation: Allocation
    views: Sequence[SSAValue]
    """The allocation, and its views in the block."""
    uses: Sequence[ResidentUse]  # in order


def residents(
    allocation: Allocation, live: Sequence[Steps], flow: ControlFlow
) -> list[Resident]:
    """What an allocation holds in the steps in which it is live, one after the other;
    nothing if its uses can't be told apart."""
    alloc = allocation.alloc
    block = alloc.parent
    if block is None or allocation.slots != 1:
        return []
    views = _views(allocation, block)
    if views is None or not all(_is_over(op) for op, _ in allocation.accesses):
        return []
    accesses: dict[Operation, list[tuple[Operation, SSAValue]]] = {}
    for op, view in allocation.accesses:
        outer = block.find_ancestor_op_in_block(op)
        assert outer is not None
        accesses.setdefault(outer, []).append((op, view))
    uses: list[ResidentUse] = []
    for op in sorted(accesses, key=flow.step.__getitem__):
        assert op.next_op is not None
        uses.append(ResidentUse(op, flow.step[op], flow.step[op.next_op], accesses[op]))
    found: list[list[ResidentUse]] = []
    for use, is_new in zip(uses, _begins(uses, live), strict=True):
        if is_new:
            found.append([])
        found[-1].append(use)
    return [Resident(allocation, views, each) for each in found]


def _begins(uses: Sequence[ResidentUse], live: Sequence[Steps]) -> Iterator[bool]:
    """Whether the buffer is not live before each use."""
    yield from [True] * bool(uses)
    for use in uses[1:]:
        yield not any(start < use.at < end for start, end in live)


def _views(allocation: Allocation, block: Block) -> Sequence[SSAValue] | None:
    """The allocation and its views in the block; None if other values there may be its
    memory."""
    alloc = allocation.alloc
    views: list[SSAValue] = [alloc.memref]
    for value in views:  # grows
        for use in value.uses:
            op = use.operation
            if use.index in freed(op):
                if not isinstance(op, memref.DeallocOp) or op.parent is not block:
                    return None
            elif is_view(op) and op.parent is block:
                if use.index or not _is_plain_view(op, alloc):
                    return None
                views.append(op.results[0])
            else:
                outer = block.find_ancestor_op_in_block(op)
                if outer is None or any(map(_is_memref, outer.results)):
                    return None
                if op is outer and moves(use) is not None:  # its block hands it on
                    return None
    return views


def _is_plain_view(op: Operation, alloc: memref.AllocOp) -> bool:
    """Whether all that an operation returns is a view in the same memory space."""
    space = alloc.memref.type.memory_space
    of_space = [
        isinstance(t, MemRefType) and t.memory_space == space for t in op.result_types
    ]
    return of_space == [True]


def _is_memref(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType | UnrankedMemRefType)


def _is_over(op: Operation) -> bool:
    """Whether an operation accesses its memrefs only while it runs, and keeps no
    address."""
    if isinstance(op, memref.ExtractAlignedPointerAsIndexOp):
        return False
    return isinstance(op, TensorOp) or is_done_at_its_end(op)
