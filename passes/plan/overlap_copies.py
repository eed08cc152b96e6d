"""`plan-overlap-copies`: copies between memories of the target run beside operations.

    linalg.exp ins(%x) outs(%a)
    memref.copy %a, %0                       // from sram to psram
    memref.dealloc %a
    linalg.matmul ...
    %1 = memref.alloc() : memref<4096xf32, "sram">
    memref.copy %0, %1                       // and back
    linalg.add ins(%d, %1) outs(%y)

    %tag = memref.alloca() : memref<1xi32>
    linalg.exp ins(%x) outs(%a)
    memref.dma_start %a[%c0], %0[%c0], %c4096, %tag[%c0]
    linalg.matmul ...
    memref.dma_wait %tag[%c0], %c4096
    memref.dealloc %a
    ...

A `memref.copy` becomes a `memref.dma_start` and a `memref.dma_wait` where the target
says that copies between its memories are asynchronous (dialects/target_memory.py). The
start may come before operations that neither write the source nor access the target of
the copy, and the wait after such ones; what is allocated for the copy, or freed after
it, goes along. So a buffer lives longer: it is the second buffer of double buffering.

As much runs beside a copy as hides its time, if that is there, and only where each
arena still fits its memory: plan-memory is asked for the arenas. If one does not fit as
it is, the function stays. Time is estimated: that of operations by analysis/cost.py,
that of copies from bandwidth and latency. One copy at a time goes from one memory to
another. A copy that takes more time in all comes first. A copy that nothing hides
stays. Transfers that there are already keep the operations beside them.

This is the prefetch interval of XLA's memory-space assignment, after the choice of what
moves. A remark says how much is hidden.

Needs: level 2, and a target; after `plan-spill`.
Leaves: level 2.
Does not: start a copy in another iteration of a loop, or in another block, than that in
which it is waited for; change copies of parts, of symbolic sizes, to or from buffers
that control flow hands on, or in functions with streams or with barriers. MLIR lowers
neither operation itself: the user's compiler does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.allocations import has_plan
from ...analysis.calls import is_over
from ...analysis.control_flow import ControlFlow, moves
from ...analysis.cost import repetitions, time
from ...analysis.liveness import buffer_of, merged, without
from ...dialects.diagnostics import held_back, remark
from ...dialects.memory import (
    asynchronous,
    dma_start,
    effects_on,
    ends_here,
    is_entry,
    is_view,
    root_of,
)
from ...dialects.target_memory import TargetMemories, target_memories
from ...dialects.tgraph.base import AnyMemRef, element_bytes, has_fixed_size
from ...planning import Problem
from ...planning.arena import solve_arena
from ...planning.problem import Steps
from ...support.arrays import Array
from ..options import MemoryOptions
from .memory import PlanMemory
from .placement.arena import Arena

ROUNDS = 8
"""Choices whose placement is tried."""


@dataclass(frozen=True)
class PlanOverlapCopies(ModulePass, MemoryOptions):
    """Starts asynchronous copies early and waits for them late, where there is room."""

    name = "plan-overlap-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if not isinstance(func, FuncOp) or func.is_declaration or has_plan(func):
                continue
            memories = target_memories(func)
            flow = ControlFlow(func)
            if flow.has_streams or flow.barriers:
                continue
            copies = list(_copies(func, flow, memories))
            if copies:
                with held_back():  # what plan-memory is going to say
                    arenas = list(PlanMemory(**self.shared(MemoryOptions)).arenas(func))
                if too_large := [arena for arena in arenas if not arena.fits]:
                    _explain_why_not(func, too_large[0])
                    continue
                transfers = list(_transfers(func, memories))
                _Overlapping(func, flow, copies, transfers, arenas, self.strategy).run()


def _explain_why_not(func: FuncOp, arena: Arena) -> None:
    assert arena.memory is not None
    remark(
        f"no copy runs beside operations: the arena in {arena.memory.name} takes "
        f"{arena.plan.peak} bytes, expected at most {arena.left}",
        func,
    )


@dataclass(frozen=True, slots=True)
class _Memref:
    """An allocation or an argument, and who accesses it."""

    root: SSAValue
    readers: Sequence[Operation]
    writers: Sequence[Operation]
    frees: Sequence[Operation]

    @staticmethod
    def of(root: SSAValue) -> "_Memref | None":
        """What is done with it; None if it may also be other memory, or if what is done
        with it is not over at the end of the operation."""
        if not isinstance(root.owner, memref.AllocOp | Block):
            return None
        if isinstance(root.owner, Block) and not is_entry(root.owner):
            return None
        readers: list[Operation] = []
        writers: list[Operation] = []
        frees: list[Operation] = []
        values = [root]
        for each in values:  # grows
            for use in each.uses:
                op = use.operation
                if is_view(op) and use.index == 0:
                    values.append(op.results[0])
                elif isinstance(op, memref.DeallocOp):
                    frees.append(op)
                elif moves(use) is not None or not is_over(op):
                    return None
                else:
                    reads, writes = effects_on(op, each)
                    readers += [op] * reads
                    writers += [op] * writes
        return _Memref(root, readers, writers, frees)


_Engine: TypeAlias = tuple[str, str]
"""What copies from one memory to another."""


@dataclass(eq=False, slots=True)
class _Copy:
    """A copy that may run beside operations."""

    op: memref.CopyOp
    source: _Memref
    target: _Memref
    bytes: int
    time: int  # nanoseconds
    engine: _Engine
    runs: int
    at: int = 0  # the position in its block
    start: int = 0
    """The position before which it starts."""
    end: int = 0
    """The position before which it is waited for is the next one."""
    hidden: int = 0  # nanoseconds, each time that it runs

    @property
    def total(self) -> int:
        """Nanoseconds, of all times that it runs."""
        return self.time * self.runs

    @property
    def block(self) -> Block:
        assert self.op.parent is not None
        return self.op.parent


def _copies(
    func: FuncOp, flow: ControlFlow, memories: TargetMemories
) -> Iterator[_Copy]:
    known: dict[SSAValue, _Memref | None] = {}

    def memref_of(value: SSAValue) -> _Memref | None:
        root = root_of(value)
        if root not in known:
            known[root] = _Memref.of(root)
        return known[root]

    for op in func.walk():
        if not isinstance(op, memref.CopyOp) or op not in flow.step:
            continue
        if not all(
            type.has_static_shape()
            and isinstance(type.layout, NoneAttr)
            and has_fixed_size(type.element_type)
            for type in map(_type, op.operands)
        ):
            continue
        here, there = (memories.get(_type(value).memory_space) for value in op.operands)
        way = here and there and here.copies.get(there.name)
        if not here or not there or not way or not way.asynchronous:
            continue
        name = memref.DmaStartOp.name
        if not here.may_read(name) or not there.may_write(name):
            continue
        source, target = map(memref_of, op.operands)
        type = _type(op.source)
        bytes = type.element_count() * element_bytes(type.element_type)
        if source and target and bytes:
            engine = here.name, there.name
            nanoseconds = max(way.time(bytes), 1)
            yield _Copy(op, source, target, bytes, nanoseconds, engine, repetitions(op))


class _Transfer(NamedTuple):
    """What copies beside operations already, from where until where."""

    engine: _Engine
    op: Operation
    waits: Sequence[Operation]
    time: int  # nanoseconds


def _transfers(func: FuncOp, memories: TargetMemories) -> Iterator[_Transfer]:
    for op in func.walk():
        start, trait = dma_start(op), asynchronous(op)
        waits = trait.waits_of(op) if trait else ()
        if start is None or not waits:
            continue
        source, target = map(_type, (start.source, start.target))
        here, there = (
            memories.get(source.memory_space),
            memories.get(target.memory_space),
        )
        way = here and there and here.copies.get(there.name)
        elements = start.elements.owner
        if here and there and way and isinstance(elements, arith.ConstantOp):
            assert isinstance(elements.value, IntegerAttr)
            bytes = elements.value.value.data * element_bytes(source.element_type)
            nanoseconds = way.time(bytes)
            yield _Transfer((here.name, there.name), op, waits, nanoseconds)


def _type(value: SSAValue) -> AnyMemRef:
    return cast(AnyMemRef, value.type)


class _Room:
    """What is live in a memory, as far as plan-memory places it."""

    def __init__(self, arena: Arena, capacity: int, steps: int):
        slots, buffers = arena.pool.slots, arena.pool.buffers
        self.space = arena.space
        self.capacity = capacity
        self.buffers = {index: buffers[index] for index in arena.rest}
        self.number: dict[SSAValue, int] = {
            allocation.alloc.memref: index
            for index in arena.rest
            for allocation in slots[index].allocations
            if allocation.slots == 1
        }
        self.live: dict[int, Sequence[Steps]] = {}
        """The ranges of steps in which each buffer is live."""
        self.bytes: Array = np.zeros(steps, np.int64)
        """What is live in each step."""
        self.steps = steps
        self.is_longer = False  # whether any buffer is
        self.reset()

    def reset(self) -> None:
        """Buffers are live as without copies beside operations."""
        self.is_longer = False
        self.live = {index: buffer.live for index, buffer in self.buffers.items()}
        change = [0] * (self.steps + 1)
        for index, ranges in self.live.items():
            for start, end in ranges:
                change[start] += self.buffers[index].size
                change[end] -= self.buffers[index].size
        self.bytes = np.array(list(accumulate(change)), np.int64)

    def lengthen(self, index: int, steps: Steps) -> None:
        """A buffer is live in all of these steps, too."""
        new = without([steps], self.live[index])
        for start, end in new:
            self.bytes[start:end] += self.buffers[index].size
        self.live[index] = merged(sorted([*self.live[index], *new]))
        self.is_longer = True

    def fits(self, index: int, steps: Steps, margin: int) -> bool:
        """Whether a buffer may be live in all of these steps, with so many bytes to
        spare where it is not."""
        most = self.capacity - margin - self.buffers[index].size
        new = without([steps], self.live[index])
        return all(self.bytes[start:end].max() <= most for start, end in new)

    def peak(self, strategy: str) -> int:
        """The bytes of the arena."""
        buffers = [
            buffer_of(b.id, b.size, self.live[index], b.alignment)
            for index, b in self.buffers.items()
        ]
        return solve_arena(Problem(buffers), strategy, self.capacity).peak


@dataclass(slots=True)
class _Beside:
    """The operations of a block beside which an engine may still copy."""

    at: list[int]  # their positions, ascending
    time: list[int]  # nanoseconds, of each operation of the block

    @staticmethod
    def of(times: Sequence[int]) -> "_Beside":
        return _Beside([at for at, time in enumerate(times) if time], [*times])

    def take(self, at: int, most: int) -> int:
        """Takes so much of an operation's time, or what there is."""
        taken = min(self.time[at], most)
        self.time[at] -= taken
        return taken

    def remove_used(self, start: int, end: int) -> None:
        """Removes operations that have no time left, from one position to another."""
        part = slice(bisect_left(self.at, start), bisect_right(self.at, end))
        self.at[part] = [at for at in self.at[part] if self.time[at]]


class _Overlapping:
    """The copies of one function."""

    def __init__(
        self,
        func: FuncOp,
        flow: ControlFlow,
        copies: Sequence[_Copy],
        transfers: Sequence[_Transfer],
        arenas: Sequence[Arena],
        strategy: str,
    ):
        self.func = func
        self.flow = flow
        self.copies = copies
        self.strategy = strategy
        self.rooms = {
            arena.space: _Room(arena, arena.left, len(flow.node_of))
            for arena in arenas
            if arena.left is not None and arena.dynamic is None
        }
        blocks = dict.fromkeys(copy.block for copy in copies)
        self.ops = {block: [*block.ops] for block in blocks}
        self.position = {
            op: at for ops in self.ops.values() for at, op in enumerate(ops)
        }
        self.margin: dict[Attribute, int] = {}
        times = {block: [*map(_time_of, block.ops)] for block in blocks}
        around: dict[_Engine, set[Operation]] = {}
        """The operations that have copies of each engine inside."""
        for copy in (*copies, *transfers):
            found = around.setdefault(copy.engine, set())
            op = copy.op.parent_op()
            while op is not None and op not in found:
                found.add(op)
                op = op.parent_op()
        self.times = {
            (engine, block): [
                0 if op in found else time
                for op, time in zip(self.ops[block], times[block], strict=True)
            ]
            for engine, found in around.items()
            for block in dict.fromkeys(c.block for c in copies if c.engine == engine)
        }
        """Of each engine and block the time that each operation has for copies."""
        for transfer in transfers:
            self._leave_to(transfer)
        self.beside: dict[tuple[_Engine, Block], _Beside] = {}
        self.under_way: dict[Operation, _Copy] = {copy.op: copy for copy in copies}

    def _leave_to(self, transfer: _Transfer) -> None:
        """Leaves operations to what is copied beside them already."""
        block, left = transfer.op.parent, transfer.time
        if block is None or (transfer.engine, block) not in self.times:
            return
        times, beside = self.times[transfer.engine, block], range(len(self.ops[block]))
        if ends_here(transfer.op, transfer.waits):
            beside = range(self.position[transfer.op], self.position[transfer.waits[0]])
        for at in beside:
            taken = min(times[at], left)
            times[at] -= taken
            left -= taken

    def run(self) -> None:
        by_total = sorted(
            self.copies, key=lambda copy: (-copy.total, self.flow.step[copy.op])
        )
        for _ in range(ROUNDS):
            self._begin()
            for copy in by_total:
                self._hide(copy)
            over = {
                space: peak - room.capacity
                for space, room in self.rooms.items()
                if room.is_longer and (peak := room.peak(self.strategy)) > room.capacity
            }
            if not over:
                break
            for space, bytes in over.items():  # for what offsets need
                self.margin[space] = max(2 * self.margin.get(space, 0), bytes)
        else:
            self._begin()
        hidden = [copy for copy in self.copies if copy.hidden]
        if hidden:
            _write(self.func, hidden, self.ops, self.position)
        self._explain(hidden)

    def _begin(self) -> None:
        self.beside = {key: _Beside.of(times) for key, times in self.times.items()}
        for copy in self.copies:
            copy.at = copy.start = copy.end = self.position[copy.op]
            copy.hidden = 0
        for room in self.rooms.values():
            room.reset()

    def _hide(self, copy: _Copy) -> None:
        """Lets a copy take as long as operations beside it do, or as it has to."""
        earliest, latest = self._bounds(copy)
        beside = self.beside[copy.engine, copy.block]
        after = self._after(copy, latest)
        before = self._before(copy, earliest)
        for at in chain(after, before):
            copy.hidden += beside.take(at, copy.time - copy.hidden)
            copy.start, copy.end = min(at, copy.start), max(at, copy.end)
            if copy.hidden == copy.time:
                break
        beside.remove_used(copy.start, copy.end)
        self._keep(copy.source, copy.block, copy.at, copy.end)
        self._keep(copy.target, copy.block, copy.start, copy.at)

    def _after(self, copy: _Copy, latest: int) -> Iterator[int]:
        """The operations before the wait for a copy that it may run beside, nearest
        first."""
        at = self.beside[copy.engine, copy.block].at
        end = copy.at
        for number in range(bisect_right(at, end), bisect_right(at, latest)):
            if not self._has_room(copy.source, copy.block, end + 1, at[number]):
                return
            end = at[number]
            yield end

    def _before(self, copy: _Copy, earliest: int) -> Iterator[int]:
        """Those after its start."""
        at = self.beside[copy.engine, copy.block].at
        start = copy.at
        for number in range(bisect_left(at, start), bisect_left(at, earliest), -1):
            if not self._has_room(copy.target, copy.block, at[number - 1], start - 1):
                return
            start = at[number - 1]
            yield start

    def _bounds(self, copy: _Copy) -> tuple[int, int]:
        """The first position before which a copy may start, and the last one after
        which it may be waited for. Other copies are under way where they are now."""
        ops, source, target = self.ops[copy.block], copy.source, copy.target
        defined = [value.owner for value in copy.op.operands]
        if isinstance(target.root.owner, memref.AllocOp):  # goes along
            if not target.root.owner.dynamic_sizes:
                defined = [op for op in defined if op is not target.root.owner]
        others = [*source.writers, *target.readers, *target.writers, *target.frees]
        if isinstance(source.root.owner, Operation):
            others += [op for op in source.frees if op.parent is not copy.block]
        earliest, latest = 0, len(ops) - 2
        for op in (*others, *defined):
            if op is copy.op or not isinstance(op, Operation):
                continue
            outer = copy.block.find_ancestor_op_in_block(op)
            if outer is None:
                continue
            first = last = self.position[outer]
            if other := self.under_way.get(outer):
                first, last = other.start, other.end
            if first < copy.at:
                earliest = max(earliest, last + 1)
            else:
                latest = min(latest, first - 1)
        return min(earliest, copy.at), max(latest, copy.at)

    def _has_room(self, memory: _Memref, block: Block, start: int, end: int) -> bool:
        """Whether a memref may live from one position of a block to another."""
        if isinstance(memory.root.owner, Block):
            return True
        room = self.rooms.get(_type(memory.root).memory_space)
        if room is None or memory.root not in room.number:
            return False
        margin = self.margin.get(room.space, 0)
        return room.fits(
            room.number[memory.root], self._steps(block, start, end), margin
        )

    def _keep(self, memory: _Memref, block: Block, start: int, end: int) -> None:
        """A memref is live while these run."""
        room = self.rooms.get(_type(memory.root).memory_space)
        if room is not None and memory.root in room.number and start < end:
            room.lengthen(room.number[memory.root], self._steps(block, start, end))

    def _steps(self, block: Block, start: int, end: int) -> Steps:
        """Of operations but for the last of the block, and all that is inside."""
        ops = self.ops[block]
        return self.flow.step[ops[start]], self.flow.step[ops[end + 1]]

    def _explain(self, hidden: Sequence[_Copy]) -> None:
        nanoseconds = sum(copy.hidden * copy.runs for copy in hidden)
        bytes = sum(
            copy.bytes * copy.runs * copy.hidden // copy.time for copy in hidden
        )
        remark(
            f"{len(hidden)} of {len(self.copies)} asynchronous copies run beside "
            f"operations, which hide an estimated {nanoseconds} of "
            f"{sum(copy.total for copy in self.copies)} ns: {bytes} of "
            f"{sum(copy.bytes * copy.runs for copy in self.copies)} bytes",
            self.func,
        )


def _time_of(op: Operation) -> int:
    """The time of an operation in which others may copy."""
    copies = memref.CopyOp | memref.DmaStartOp | memref.DmaWaitOp
    plain = memref.AllocOp | memref.AllocaOp | memref.DeallocOp
    if isinstance(op, copies | plain) or is_view(op):
        return 0
    computes = op.regions or any(isinstance(v.type, MemRefType) for v in op.operands)
    return time(op) if computes else 0


# Writing


def _write(
    func: FuncOp,
    copies: Sequence[_Copy],
    ops: Mapping[Block, Sequence[Operation]],
    position: Mapping[Operation, int],
) -> None:
    """Makes starts and waits of the copies. Where copies end and others start, those
    that end make room."""
    numbers: dict[int, SSAValue] = {}
    entry = func.body.blocks[0]
    first = entry.first_op
    assert first is not None

    def constant(number: int) -> SSAValue:
        if number not in numbers:
            made = arith.ConstantOp(IntegerAttr(number, IndexType()))
            made.result.name_hint = f"c{number}"
            Rewriter.insert_op(made, InsertPoint.before(first))
            numbers[number] = made.result
        return numbers[number]

    tags: dict[_Copy, SSAValue] = {}
    waits: dict[_Copy, Operation] = {}
    for copy in copies:
        tag = memref.AllocaOp.get(i32, shape=[1])
        tag.memref.name_hint = "tag"
        Rewriter.insert_op(tag, InsertPoint.before(first))
        tags[copy] = tag.memref
        count = constant(_type(copy.op.source).element_count())
        waits[copy] = wait = memref.DmaWaitOp.get(tag.memref, [constant(0)], count)
        wait.location = copy.op.location
        anchor = ops[copy.block][copy.end + 1]
        Rewriter.insert_op(wait, InsertPoint.before(anchor))
    starts: dict[_Copy, Operation] = {}
    for copy in copies:
        source, target = copy.op.operands
        here, there = (
            [constant(0)] * _type(v).get_num_dims() for v in (source, target)
        )
        count = constant(_type(source).element_count())
        starts[copy] = start = memref.DmaStartOp.get(
            source, here, target, there, count, tags[copy], [constant(0)]
        )
        start.location = copy.op.location
        anchor = ops[copy.block][copy.start]
        Rewriter.insert_op(start, InsertPoint.before(anchor))
    last: dict[Operation, _Copy] = {}  # by what is freed after it
    first_of: dict[Operation, _Copy] = {}  # by what is allocated for it
    for copy in copies:
        for free in copy.source.frees:
            if free.parent is copy.block and position[free] <= copy.end:
                if free not in last or last[free].end <= copy.end:
                    last[free] = copy
        alloc = copy.target.root.owner
        if isinstance(alloc, memref.AllocOp) and alloc.parent is copy.block:
            if copy.start <= position[alloc]:
                if alloc not in first_of or copy.start < first_of[alloc].start:
                    first_of[alloc] = copy
    for free, copy in last.items():
        free.detach()
        Rewriter.insert_op(free, InsertPoint.after(waits[copy]))
    for alloc, copy in first_of.items():
        alloc.detach()
        Rewriter.insert_op(alloc, InsertPoint.before(starts[copy]))
    for copy in copies:
        Rewriter.erase_op(copy.op)
