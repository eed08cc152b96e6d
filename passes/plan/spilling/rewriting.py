"""Inserts the copies and allocations of a buffer that moves."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import memref
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.residents import Resident
from ....dialects.memory import is_view
from ....dialects.target_memory import TargetMemory
from ....dialects.tgraph.base import AnyMemRef
from .moving import Moving
from .route import Remote, contiguous, in_space


class Rewriting:
    """Rewrites the uses of one resident: inserts its allocations and copies."""

    def __init__(self, each: Moving, slower: TargetMemory):
        self.each = each
        self.alloc = each.resident.allocation.alloc
        self.slower = slower
        self.there: SSAValue | None = None  # the allocation in the slower memory
        self.use = self.end = next((use.op for use in each.resident.uses), self.alloc)
        """`use` is the use in the outermost block that is being changed; `end` is the
        last operation there that needs the slower memory."""
        self.views: dict[tuple[SSAValue, SSAValue, Block | None], SSAValue] = {}
        """The views of new memory, by the buffer's view that each one replaces, the new
        memory, and the block."""
        self.part: SSAValue = self.alloc.memref  # the current copy of a part
        self.is_changed = False  # whether it was written
        self.last: dict[Operation, Operation] = {}
        """By operation: the last operation that was inserted after it."""

    def run(self) -> None:
        self._change(self.each, is_stored=False)
        if self.there is not None:
            self._after(self.end, memref.DeallocOp.get(self.there))

    def forward(self, memory: SSAValue | None) -> SSAValue:
        """Changes one of the blocks that forward the contents in the slower memory.
        Returns that memory: `memory`, or a new allocation with the buffer's lifetime if
        `memory` is None."""
        if memory is None:
            memory = self._allocate(self.alloc, self.slower.memory_space)
            for freeing in self.each.resident.allocation.deallocs:
                self._after(freeing, memref.DeallocOp.get(memory))
        self.there = memory
        self._change(self.each, is_stored=self.each.resident.enters)
        return memory

    def _change(self, each: Moving, is_stored: bool) -> bool:
        """Inserts the copies of a resident in its block. Returns whether the slower
        memory has the contents at the end of the block; `is_stored` is whether it has
        them at the start.

        Contents that enter or leave the block come back to the memory that the use
        around the block has.
        """
        resident, memory = each.resident, self.alloc.memref
        here = None if each.is_own or each.away[0] else memory
        if each.away[0] and not each.wraps and not is_stored:
            assert resident.block.first_op is not None
            self._before(resident.block.first_op, memref.CopyOp(memory, self._slow()))
            is_stored = True
        for number, use in enumerate(resident.uses):
            op = use.op
            if each is self.each:
                self.use = op
            if each.is_away_at(number):
                if (remote := each.remote[number]) and remote.staged is not None:
                    self._stage(each, number, remote)
                elif remote:
                    self._give(resident, op, self._slow())
                self._pass(each, number, None, is_stored)
                is_stored = True
                here = None
                continue
            if here is None:
                here = self._allocate(op) if each.is_own else memory
                if number or resident.enters:
                    back = memref.CopyOp(self._slow(), here)
                    self._before(op, back)
                    if each is self.each:
                        self.end = back
            is_stored = self._pass(each, number, here, is_stored)
            if each.is_own:
                self._give(resident, op, here)
            leaves = each.away[number + 1]
            if leaves and not is_stored:
                self._after(op, memref.CopyOp(here, self._slow()))
                is_stored = True
            if each.is_own and (leaves or use is resident.uses[-1]):
                self._after(op, memref.DeallocOp.get(here))
            if leaves:
                here = None
        if here is None and not each.is_own:
            assert resident.block.last_op is not None
            self._before(resident.block.last_op, memref.CopyOp(self._slow(), memory))
        return is_stored

    def _pass(
        self, each: Moving, number: int, here: SSAValue | None, is_stored: bool
    ) -> bool:
        """Inserts the copies in the nested blocks of use `number`. Returns whether the
        slower memory has the contents after it; `is_stored` is whether it has them
        before."""
        use, inside = each.resident.uses[number], each.inside[number]
        changed = [inner for inner in inside if inner.is_ever_away]
        is_loop = any(inner.loop is not None for inner in changed)
        wraps = any(inner.wraps for inner in changed)
        if here is not None and is_loop and not use.writes and not is_stored:
            self._before(use.op, memref.CopyOp(here, self._slow()))  # before all runs
            is_stored = True
        for inner in changed:
            self._change(inner, is_stored and (wraps or not (is_loop and use.writes)))
        return is_stored and (wraps or not use.writes)

    def _stage(self, each: Moving, number: int, remote: Remote) -> None:
        """Gives use `number` a copy of the view that it accesses."""
        view = remote.staged
        assert view is not None
        op = each.resident.uses[number].op
        there = self._view(view, self._slow(), op)
        if number not in each.joined:
            type = contiguous(cast(AnyMemRef, view.type))
            given: Sequence[SSAValue] = ()
            if isinstance(view.owner, memref.SubviewOp):
                given = view.owner.sizes
            made = memref.AllocOp(given, (), type, self.alloc.alignment)
            made.memref.name_hint = self.alloc.memref.name_hint
            self._before(op, made)
            self.part, self.is_changed = made.memref, False
            if remote.reads and (number or each.resident.enters):
                self._before(op, memref.CopyOp(there, self.part))
        self.is_changed |= remote.writes > 0
        op.operands = [self.part if v is view else v for v in op.operands]
        if number + 1 not in each.joined:
            if self.is_changed:
                self._after(op, memref.CopyOp(self.part, there))
            self._after(op, memref.DeallocOp.get(self.part))

    def _slow(self) -> SSAValue:
        """The allocation in the slower memory, for the current use and later ones."""
        self.end = self.use
        if self.there is None:
            self.there = self._allocate(self.use, self.slower.memory_space)
        return self.there

    def _allocate(self, op: Operation, space: Attribute | None = None) -> SSAValue:
        """Allocates memory like the buffer's before `op`, in `space` if given."""
        given = self.alloc
        type = given.memref.type
        if space is not None:
            type = in_space(type, space)
        made = memref.AllocOp(given.dynamic_sizes, (), type, given.alignment)
        self._before(op, made)
        made.memref.name_hint = given.memref.name_hint
        return made.memref

    def _give(self, resident: Resident, op: Operation, memory: SSAValue) -> None:
        """Makes `op` and all operations nested in it use `memory`."""
        for inner in op.walk():
            inner.operands = [
                self._view(value, memory, op) if value in resident.views else value
                for value in inner.operands
            ]

    def _view(self, view: SSAValue, memory: SSAValue, op: Operation) -> SSAValue:
        """The view of `memory` that replaces `view`, for `op` and later operations."""
        if view is self.alloc.memref:
            return memory
        key = view, memory, op.parent
        if key not in self.views:
            maker = view.owner
            assert isinstance(maker, Operation)
            space = cast(AnyMemRef, memory.type).memory_space
            viewed = self._view(maker.operands[0], memory, op)
            made = type(maker).create(
                operands=[viewed, *maker.operands[1:]],
                result_types=[in_space(view.type, space)],
                properties=maker.properties,
                attributes=maker.attributes,
            )
            self._before(op, made)
            made.results[0].name_hint = view.name_hint
            self.views[key] = made.results[0]
        return self.views[key]

    def _before(self, op: Operation, made: Operation) -> None:
        made.location = self.alloc.location
        Rewriter.insert_op(made, InsertPoint.before(op))

    def _after(self, op: Operation, made: Operation) -> None:
        made.location = self.alloc.location
        Rewriter.insert_op(made, InsertPoint.after(self.last.get(op, op)))
        self.last[op] = made


def erase_unused(buffer: SSAValue) -> None:
    """Erases `buffer` if only deallocations use it, after its unused views."""
    for user in [use.operation for use in buffer.uses]:
        if is_view(user):
            erase_unused(user.results[0])
    users = [use.operation for use in buffer.uses]
    if all(isinstance(user, memref.DeallocOp) for user in users):
        for op in (*users, buffer.owner):
            assert isinstance(op, Operation)
            Rewriter.erase_op(op)
