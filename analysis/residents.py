"""Divides the contents of a buffer into residents, each with its uses.

    %a = memref.alloc()
    linalg.exp ins(%x) outs(%a)        the first resident: written here
    linalg.add ins(%a, %x) outs(%b)    and read here
    scf.for %i = ... {                 the whole loop is one more use of it
      linalg.add ins(%a, %x) outs(%b)  by this operation in its body
    }
    linalg.mul ins(%b, %b) outs(%a)    the second resident, which overwrites the first
    linalg.exp ins(%a) outs(%y)
    memref.dealloc %a

A resident belongs to the innermost block that its contents do not outlive, so contents
that each iteration of a loop writes anew are residents of the body, wherever the buffer
is allocated. Its uses are operations of that block, including their regions. Each use
can be given other memory of the same type: only these operations, and views of the
buffer, access it.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import effects_on, freed, is_memref, is_view
from ..planning.problem import Steps
from .allocations import Allocation
from .control_flow import ControlFlow
from .forwarding import is_structured, moves


@dataclass(frozen=True, slots=True)
class ResidentUse:
    """An operation of the block that accesses the buffer."""

    op: Operation
    at: int  # the step of the operation
    end: int  # the step of the next operation, after all nested ones
    accesses: Sequence[tuple[Operation, SSAValue]]
    """The operation, or those nested in it, each with the view that it accesses."""
    inside: Sequence["Resident"] = ()
    """The residents of the blocks in its regions that enter or leave the block."""

    @property
    def reads(self) -> bool:
        return any(effects_on(op, view)[0] for op, view in self.accesses)

    @property
    def writes(self) -> bool:
        return any(effects_on(op, view)[1] for op, view in self.accesses)


@dataclass(frozen=True, slots=True)
class Resident:
    """Contents of a buffer within a block."""

    allocation: Allocation
    block: Block
    views: Sequence[SSAValue]
    """The allocation, and its views in the block and in those around it."""
    uses: Sequence[ResidentUse]  # in order
    enters: bool = False  # whether the contents are from before the block
    leaves: bool = False  # whether they are needed after it

    @property
    def is_own(self) -> bool:
        """Whether the contents exist only within the block."""
        return not (self.enters or self.leaves)


def residents(
    allocation: Allocation, live: Sequence[Steps], flow: ControlFlow
) -> list[Resident]:
    """The successive contents of an allocation, each in the innermost block for which
    it `is_own`. Empty if the uses cannot be told apart."""
    block = allocation.alloc.parent
    if block is None or allocation.slots != 1:
        return []
    if not all(flow.calls.is_over(op) for op, _ in allocation.accesses):
        return []
    return [
        each for each in _Residents(allocation, live, flow).of(block) if each.is_own
    ]


def forwarded_residents(
    allocation: Allocation, live: Sequence[Steps], flow: ControlFlow
) -> list[Resident]:
    """The contents of an allocation that blocks of `cf` forward to one another, with
    those that enter, leave or pass through each block. Empty if the uses cannot be told
    apart, or if a block may be entered with contents that were never written."""
    block = allocation.alloc.parent
    if block is None or block.parent is None or allocation.slots != 1:
        return []
    if not all(flow.calls.is_over(op) for op, _ in allocation.accesses):
        return []
    found = _Residents(allocation, live, flow).of_region(block.parent)
    using = {each.block for each in found if each.uses}
    entered = {each.block for each in found if each.enters}
    return found if entered <= _after(block, using) else []


def _after(alloc: Block, using: Set[Block]) -> Set[Block]:
    """The blocks that are reached from `alloc` only through blocks in `using`."""
    assert alloc.parent is not None
    after = {*alloc.parent.blocks} - {alloc}
    before = {block: block.predecessors() for block in after}
    while without := [
        block
        for block in after
        if any(p not in using and p not in after for p in before[block])
    ]:
        after.difference_update(without)
    return after


def why_none(allocation: Allocation, flow: ControlFlow) -> str:
    """Why an allocation has no residents, as a clause that completes a sentence."""
    for op, _ in allocation.accesses:
        if not flow.calls.is_over(op):
            return f"which {name_of(op)} may keep"
    values: list[SSAValue] = [allocation.alloc.memref]
    for value in values:  # grows during the loop
        for use in value.uses:
            if is_view(use.operation):
                values.append(use.operation.results[0])
            elif moves(use) is not None:
                return f"which {name_of(use.operation)} forwards"
    return "whose uses cannot be distinguished"


class _Residents:
    """Finds the residents of one allocation."""

    def __init__(
        self, allocation: Allocation, live: Sequence[Steps], flow: ControlFlow
    ):
        self.allocation = allocation
        self.live = live
        self.flow = flow

    def of(self, block: Block, around: Sequence[SSAValue] = ()) -> list[Resident]:
        """The residents of a block, and those that nested blocks own. `around` are the
        views outside. Empty if other values in the block may be the memory."""
        views = self._views(block, around)
        if views is None:
            return []
        found: list[Resident] = []
        uses: list[ResidentUse] = []
        for op, accesses in self._accesses(block).items():
            inside: list[Resident] = []
            if op in self.flow.step and is_structured(op):
                for inner in [b for region in op.regions for b in region.blocks]:
                    inside += self.of(inner, views)
            found += (own := [each for each in inside if each.is_own])
            done = {access for each in own for u in each.uses for access in u.accesses}
            if left := [access for access in accesses if access not in done]:
                passing = [each for each in inside if not each.is_own]
                assert op.next_op is not None
                span = self.flow.step[op], self.flow.step[op.next_op]
                uses.append(ResidentUse(op, *span, left, passing))
        return [*self._groups(block, views, uses), *found]

    def of_region(self, region: Region) -> list[Resident]:
        """The residents of the blocks of a region, each with all views around it."""
        views: list[SSAValue] = [self.allocation.alloc.memref]
        for value in views:  # grows during the loop
            for use in value.uses:
                if is_view(use.operation) and use.operation.parent_region() is region:
                    views.append(use.operation.results[0])
        found: list[Resident] = []
        for block in region.blocks:
            around = [
                view
                for view in views
                if view.owner.parent is not block or view is views[0]
            ]
            if self._views(block, around) is None:
                return []
            found += self.of(block, around)
        return found

    def _accesses(
        self, block: Block
    ) -> Mapping[Operation, Sequence[tuple[Operation, SSAValue]]]:
        """By operation of a block, in order: its accesses, and those nested in it."""
        found: dict[Operation, list[tuple[Operation, SSAValue]]] = {}
        for op, view in self.allocation.accesses:
            if outer := block.find_ancestor_op_in_block(op):
                found.setdefault(outer, []).append((op, view))
        return {op: found[op] for op in sorted(found, key=self.flow.step.__getitem__)}

    def _groups(
        self, block: Block, views: Sequence[SSAValue], uses: Sequence[ResidentUse]
    ) -> Iterator[Resident]:
        """Groups the uses of the same contents. Contents that only pass through the
        block have no uses."""
        assert block.first_op is not None
        assert block.last_op is not None
        first, last = (self.flow.step[op] for op in (block.first_op, block.last_op))
        groups: list[list[ResidentUse]] = [] if uses else [[]]
        for use in uses:
            if not groups or not self._enters(use.at):
                groups.append([])
            groups[-1].append(use)
        for group in groups:
            enters = group is groups[0] and self._enters(first)
            leaves = group is groups[-1] and self._is_live(last)
            if group or enters:
                yield Resident(self.allocation, block, views, group, enters, leaves)

    def _enters(self, step: int) -> bool:
        """Whether the buffer has contents at the start of `step` that are needed from
        then on, or were needed until then. They may come from any predecessor, not only
        from the previous step."""
        if not self._is_live(step):
            return False
        is_whole = self.allocation.uses.accesses.get(step, False)
        return not is_whole or (self._is_live(step - 1) and not self._is_entry(step))

    def _is_entry(self, step: int) -> bool:
        """Whether `step` is the first of a block to which other blocks branch. The step
        before it in the text is not a predecessor."""
        op = self.flow.ops[step]
        block, region = op.parent, op.parent_region()
        assert block is not None
        assert region is not None
        return op is block.first_op and block is not region.first_block

    def _is_live(self, step: int) -> bool:
        return any(start <= step < end for start, end in self.live)

    def _views(
        self, block: Block, around: Sequence[SSAValue]
    ) -> Sequence[SSAValue] | None:
        """The allocation and its views around the block and in it; None if other values
        there may be its memory."""
        alloc = self.allocation.alloc
        views = [*around] or [alloc.memref]
        for value in views:  # grows during the loop
            for use in value.uses:
                op = use.operation
                outer = block.find_ancestor_op_in_block(op)
                if use.index in freed(op):
                    if (
                        not isinstance(op, memref.DeallocOp)
                        or op.parent_region() is not alloc.parent_region()
                    ):
                        return None
                elif outer is None:
                    if not around:
                        return None
                elif op is outer and is_view(op):
                    if use.index or not _is_plain_view(op, alloc):
                        return None
                    views.append(op.results[0])
                elif any(map(is_memref, outer.results)):
                    return None
                elif op is outer and moves(use) is not None:  # the block forwards it
                    return None
        return views


def _is_plain_view(op: Operation, alloc: memref.AllocOp) -> bool:
    """Whether the only result of `op` is a memref in the same memory space."""
    space = alloc.memref.type.memory_space
    of_space = [
        isinstance(t, MemRefType) and t.memory_space == space for t in op.result_types
    ]
    return of_space == [True]
