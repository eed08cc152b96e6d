"""`plan-overlap-copies`: overlaps copies between the target's memories with operations.

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
start may move before operations that neither write the source nor access the target of
the copy, and the wait may move after such operations. The allocation of the target and
the deallocation of the source move along. A buffer is therefore live for longer: it is
the second buffer of double buffering.

The pass overlaps a copy with as many operations as hide its time, if there are so many,
and only while each arena still fits its memory, as plan-memory would place it. If an
arena does not fit from the start, the function is unchanged. Times are estimates, by
analysis/cost.py for operations, and from bandwidth and latency for copies. From one
memory to another, one copy runs at a time. Copies that take the most time in total come
first. A copy that nothing hides stays. Existing transfers keep the operations that they
overlap with.

If its own iteration cannot hide a copy in a loop, the copy starts in the preceding
iteration, into a second slot, or ends in the next one, from a second slot
(overlapping/iterations.py), if this fits and the function does not grow too much.

These are the prefetch intervals of XLA's memory-space assignment, determined after the
choice of what moves. A remark says how much time is hidden.

Needs: level 2, and a target; after `plan-spill`.
Leaves: level 2.
Does not: let a copy continue in another iteration, except in an `scf.for` each of whose
iterations allocates and frees the buffer. The copy must read memory that the loop does
not write, at a place that follows from the loop's variable, or write memory that the
loop does not access otherwise. (A remark says which `affine.for` and `scf.while` have
such copies.) Nor does it change copies with gaps, other than between equidistant rows
and consecutive elements (the start then has strides), copies of symbolic sizes, copies
to or from buffers that control flow forwards, or copies in functions with streams or
barriers. MLIR lowers neither operation itself: the user's compiler does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.allocations import has_plan
from ...analysis.control_flow import ControlFlow
from ...analysis.liveness import buffer_of, merged, without
from ...dialects.diagnostics import held_back, remark
from ...dialects.memory import ends_here
from ...dialects.target_memory import target_memories
from ...planning import Problem
from ...planning.arena import solve_arena
from ...planning.problem import Steps
from ...support.arrays import Array
from ..options import MemoryOptions
from .memory import PlanMemory
from .overlapping.copies import (
    Copy,
    Engine,
    Memref,
    Transfer,
    copies_of,
    time_of,
    transfers_of,
    type_of,
)
from .overlapping.iterations import (
    explain_other_loops,
    most_operations,
    overlap_iterations,
)
from .overlapping.writing import Writer
from .placement.arena import Arena

ROUNDS = 8
"""The largest number of choices to place."""


@dataclass(frozen=True)
class PlanOverlapCopies(ModulePass, MemoryOptions):
    """Starts asynchronous copies early and waits for them late, where there is room."""

    name = "plan-overlap-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if not isinstance(func, FuncOp) or func.is_declaration or has_plan(func):
                continue
            overlapping, most = self._overlapping(func), most_operations(func)
            while overlapping and overlap_iterations(
                func, overlapping.exposed, self._fits, most
            ):
                overlapping = self._overlapping(func)
            if overlapping:
                explain_other_loops(overlapping.exposed)
                overlapping.write()

    def _overlapping(self, func: FuncOp) -> "_Overlapping | None":
        """Chooses the overlap of the function's copies; None if there can be none."""
        flow, memories = ControlFlow(func), target_memories(func)
        if flow.has_streams or flow.barriers:
            return None
        copies = list(copies_of(func, flow, memories))
        if not copies:
            return None
        arenas = self._arenas(func)
        if too_large := [arena for arena in arenas if not arena.fits]:
            _explain_why_not(func, too_large[0])
            return None
        transfers = list(transfers_of(func, memories))
        chosen = _Overlapping(func, flow, copies, transfers, arenas, self.strategy)
        chosen.choose()
        return chosen

    def _fits(self, func: FuncOp) -> bool:
        return all(arena.fits for arena in self._arenas(func))

    def _arenas(self, func: FuncOp) -> Sequence[Arena]:
        with held_back():  # plan-memory will repeat its remarks
            return list(PlanMemory(**self.shared(MemoryOptions)).arenas(func))


def _explain_why_not(func: FuncOp, arena: Arena) -> None:
    assert arena.memory is not None
    remark(
        f"no copy overlaps with operations: the arena in {arena.memory.name} takes "
        f"{arena.plan.peak} bytes, expected at most {arena.left}",
        func,
    )


class _Room:
    """The live bytes of a memory, as far as plan-memory places them."""

    def __init__(self, arena: Arena, capacity: int, steps: int):
        slots, buffers = arena.pool.slots, arena.pool.buffers
        self.space = arena.space
        self.capacity = capacity
        self.buffers = {index: buffers[index] for index in arena.members}
        self.number: dict[SSAValue, int] = {
            allocation.alloc.memref: index
            for index in arena.members
            for allocation in slots[index].allocations
            if allocation.slots == 1
        }
        self.live: dict[int, Sequence[Steps]] = {}
        """The ranges of steps in which each buffer is live."""
        self.bytes: Array = np.zeros(steps, np.int64)
        """The live bytes in each step."""
        self.steps = steps
        self.is_longer = False  # whether any live range is
        self.reset()

    def reset(self) -> None:
        """Restores the live ranges without overlapping copies."""
        self.is_longer = False
        self.live = {index: buffer.live for index, buffer in self.buffers.items()}
        change = [0] * (self.steps + 1)
        for index, ranges in self.live.items():
            for start, end in ranges:
                change[start] += self.buffers[index].size
                change[end] -= self.buffers[index].size
        self.bytes = np.array(list(accumulate(change)), np.int64)

    def lengthen(self, index: int, steps: Steps) -> None:
        """Adds `steps` to the live range of a buffer."""
        new = without([steps], self.live[index])
        for start, end in new:
            self.bytes[start:end] += self.buffers[index].size
        self.live[index] = merged(sorted([*self.live[index], *new]))
        self.is_longer = True

    def fits(self, index: int, steps: Steps, margin: int) -> bool:
        """Whether the live range of a buffer may include `steps`, with `margin` bytes
        to spare in the added ones."""
        most = self.capacity - margin - self.buffers[index].size
        new = without([steps], self.live[index])
        return all(self.bytes[start:end].max() <= most for start, end in new)

    def peak(self, strategy: str) -> int:
        """The bytes of the arena with the present live ranges."""
        buffers = [
            buffer_of(b.id, b.size, self.live[index], b.alignment)
            for index, b in self.buffers.items()
        ]
        return solve_arena(Problem(buffers), strategy, self.capacity).peak


@dataclass(slots=True)
class _Beside:
    """The operations of a block that an engine's copies may still overlap with."""

    at: list[int]  # their positions, ascending
    time: list[int]  # nanoseconds left, of each operation of the block

    @staticmethod
    def of(times: Sequence[int]) -> "_Beside":
        return _Beside([at for at, time in enumerate(times) if time], [*times])

    def take(self, at: int, most: int) -> int:
        """Takes up to `most` nanoseconds of an operation's time. Returns how many."""
        taken = min(self.time[at], most)
        self.time[at] -= taken
        return taken

    def remove_used(self, start: int, end: int) -> None:
        """Removes operations without time left, from position `start` to `end`."""
        part = slice(bisect_left(self.at, start), bisect_right(self.at, end))
        self.at[part] = [at for at in self.at[part] if self.time[at]]


class _Overlapping:
    """The overlap of one function's copies with operations."""

    def __init__(
        self,
        func: FuncOp,
        flow: ControlFlow,
        copies: Sequence[Copy],
        transfers: Sequence[Transfer],
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
        times = {block: [*map(time_of, block.ops)] for block in blocks}
        around: dict[Engine, set[Operation]] = {}
        """For each engine, the operations that contain copies of it."""
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
        """For each engine and block, the nanoseconds of each operation for copies."""
        for transfer in transfers:
            self._reserve(transfer)
        self.beside: dict[tuple[Engine, Block], _Beside] = {}
        self.under_way: dict[Operation, Copy] = {copy.op: copy for copy in copies}
        self.accesses: dict[
            tuple[SSAValue, Block, bool], tuple[Sequence[int], Sequence[bool]]
        ] = {}

    def _reserve(self, transfer: Transfer) -> None:
        """Reserves the time of operations for an existing transfer beside them."""
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

    def choose(self) -> None:
        """Chooses the start and the end of each copy."""
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
            for space, bytes in over.items():  # for fragmentation
                self.margin[space] = max(2 * self.margin.get(space, 0), bytes)
        else:
            self._begin()

    @property
    def exposed(self) -> Sequence[Copy]:
        """The copies that take longer than the operations beside them."""
        return [copy for copy in self.copies if copy.hidden < copy.time]

    def write(self) -> None:
        """Replaces the copies that overlap with operations by transfers."""
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

    def _hide(self, copy: Copy) -> None:
        """Overlaps a copy with as many operations as hide its time, if possible."""
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

    def _after(self, copy: Copy, latest: int) -> Iterator[int]:
        """The positions of the operations after a copy that it may overlap with,
        nearest first, up to `latest`."""
        at = self.beside[copy.engine, copy.block].at
        end = copy.at
        for number in range(bisect_right(at, end), bisect_right(at, latest)):
            if not self._has_room(copy.source, copy.block, end + 1, at[number]):
                return
            end = at[number]
            yield end

    def _before(self, copy: Copy, earliest: int) -> Iterator[int]:
        """The positions of the operations before a copy that it may overlap with,
        nearest first, down to `earliest`."""
        at = self.beside[copy.engine, copy.block].at
        start = copy.at
        for number in range(bisect_left(at, start), bisect_left(at, earliest), -1):
            if not self._has_room(copy.target, copy.block, at[number - 1], start - 1):
                return
            start = at[number - 1]
            yield start

    def _bounds(self, copy: Copy) -> tuple[int, int]:
        """The first position before which a copy may start, and the last one after
        which its wait may come. Other copies count with their present range."""
        ops = self.ops[copy.block]
        defined = [copy.block.find_ancestor_op_in_block(op) for op in self._made(copy)]
        earliest, latest = 0, len(ops) - 2
        for at in (*(self.position[op] for op in defined if op), *self._barriers(copy)):
            first = last = at
            if other := self.under_way.get(ops[at]):
                first, last = other.start, other.end
            if first < copy.at:
                earliest = max(earliest, last + 1)
            else:
                latest = min(latest, first - 1)
        return min(earliest, copy.at), max(latest, copy.at)

    @staticmethod
    def _made(copy: Copy) -> Iterator[Operation]:
        """The operations that define the operands of a copy, except for an allocation
        that moves along."""
        root = copy.target.root.owner
        goes_along = isinstance(root, memref.AllocOp) and not root.dynamic_sizes
        for value in copy.op.operands:
            op = value.owner
            if isinstance(op, Operation) and not (goes_along and op is root):
                yield op

    def _barriers(self, copy: Copy) -> Iterator[int]:
        """The positions of operations that a copy must not pass: before and after it,
        the nearest one that writes its memory, and readers of its target up to
        there."""
        for memory, is_target in ((copy.source, False), (copy.target, True)):
            positions, writes = self._accesses(memory, copy.block, is_target)
            before = range(bisect_left(positions, copy.at) - 1, -1, -1)
            after = range(bisect_right(positions, copy.at), len(positions))
            for number in chain(_until(before, writes), _until(after, writes)):
                yield positions[number]

    def _accesses(
        self, memory: Memref, block: Block, is_target: bool
    ) -> tuple[Sequence[int], Sequence[bool]]:
        """The positions in a block, ascending, of operations that a copy from `memory`,
        or to it if `is_target`, must not pass; and whether each of them writes."""
        key = memory.root, block, is_target
        if key not in self.accesses:
            frees = [op for op in memory.frees if is_target or op.parent is not block]
            readers = memory.readers if is_target else ()
            found: dict[int, bool] = {}
            for op in (*readers, *memory.writers, *frees):
                if outer := block.find_ancestor_op_in_block(op):
                    found[self.position[outer]] = False
            for op in (*memory.writers, *frees):
                if outer := block.find_ancestor_op_in_block(op):
                    found[self.position[outer]] = True
            self.accesses[key] = sorted(found), [found[at] for at in sorted(found)]
        return self.accesses[key]

    def _has_room(self, memory: Memref, block: Block, start: int, end: int) -> bool:
        """Whether a memref may be live from one position of a block to another."""
        if isinstance(memory.root.owner, Block):
            return True
        room = self.rooms.get(type_of(memory.root).memory_space)
        if room is None or memory.root not in room.number:
            return False
        margin = self.margin.get(room.space, 0)
        return room.fits(
            room.number[memory.root], self._steps(block, start, end), margin
        )

    def _keep(self, memory: Memref, block: Block, start: int, end: int) -> None:
        """Makes a memref live from one position of a block to another."""
        room = self.rooms.get(type_of(memory.root).memory_space)
        if room is not None and memory.root in room.number and start < end:
            room.lengthen(room.number[memory.root], self._steps(block, start, end))

    def _steps(self, block: Block, start: int, end: int) -> Steps:
        """The steps of operations and all nested ones, from one position of a block to
        another. The last operation of the block is not among them."""
        ops = self.ops[block]
        return self.flow.step[ops[start]], self.flow.step[ops[end + 1]]

    def _explain(self, hidden: Sequence[Copy]) -> None:
        nanoseconds = sum(copy.hidden * copy.runs for copy in hidden)
        bytes = sum(
            copy.bytes * copy.runs * copy.hidden // copy.time for copy in hidden
        )
        remark(
            f"{len(hidden)} of {len(self.copies)} asynchronous copies overlap with "
            f"operations, which hide an estimated {nanoseconds} of "
            f"{sum(copy.total for copy in self.copies)} ns: {bytes} of "
            f"{sum(copy.bytes * copy.runs for copy in self.copies)} bytes",
            self.func,
        )


def _until(numbers: Sequence[int], ends: Sequence[bool]) -> Iterator[int]:
    """The first numbers, up to and including one at which `ends` is true."""
    for number in numbers:
        yield number
        if ends[number]:
            return


# Writing


def _write(
    func: FuncOp,
    copies: Sequence[Copy],
    ops: Mapping[Block, Sequence[Operation]],
    position: Mapping[Operation, int],
) -> None:
    """Replaces copies by starts and waits. Waits precede starts at the same place."""
    writer = Writer(func)
    tags = {copy: writer.tag() for copy in copies}
    waits: dict[Copy, Operation] = {}
    for copy in copies:
        waits[copy] = wait = writer.wait(copy.op, tags[copy])
        anchor = ops[copy.block][copy.end + 1]
        Rewriter.insert_op(wait, InsertPoint.before(anchor))
    starts: dict[Copy, Operation] = {}
    for copy in copies:
        start = writer.start(copy.op, copy.op.source, copy.op.destination, tags[copy])
        starts[copy] = start
        anchor = ops[copy.block][copy.start]
        Rewriter.insert_op(start, InsertPoint.before(anchor))
    last: dict[Operation, Copy] = {}  # by deallocations that follow it
    first_of: dict[Operation, Copy] = {}  # by allocations that precede it
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
