"""Tracks the owners of the bytes of memories, on all paths of a function.

    %a = memref.view %arena[%c0]     a: not written yet
    tgraph.negate ... outs(%a)       a owns its bytes
    scf.if %c {
      %b = memref.view %arena[%c0]
      tgraph.negate ... outs(%b)     b owns them, a has lost them
    }
    tgraph.tanh %a ...               fault: on one path a has lost them

The check visits the operations in execution order with sets of buffers: buffers used
since their view was created, buffers that have lost bytes since, buffers whose memory
is freed, and buffers that are not, or not completely, written. Each set is an
over-approximation: where paths meet, the sets are united, and loops are repeated until
nothing changes. A buffer that has lost bytes may only be overwritten completely. An
operation that overwrites one buffer and reads another at the same address transfers
ownership of the bytes; operands.py proves that it may. An asynchronous operation (a
DMA) ends at its wait, which counts as another use of its buffers: in another iteration
or block, of the buffers that the start had. Concurrent loops count as a single
operation, except for memory allocated inside, which belongs to each iteration. Results
are used when the function ends.

Memrefs that control flow forwards refer to different buffers on different paths, and
lose bytes with the buffer that they refer to (references.py). Creating a buffer again
makes references to the previous instance stale: the next use of the new one takes their
bytes. Loops that rotate slots are walked once for each rotation. Shares no code with
the planner.
"""

from collections.abc import Container, Mapping, Sequence
from enum import IntEnum
from functools import cache
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.dominance import in_order
from .accesses import Access, Accesses, Memories
from .buffers import MemoryPool, bits_of, numbers_of, origin_of
from .effects import Callees
from .pointees import (
    LOOPS,
    ONE_REGION_RUNS,
    carried,
    initial,
    is_return,
    operations_in,
    passed_on,
    yielded,
)
from .ranges import surely_runs
from .references import Moved, is_in_slot
from .sharing import Overlaps, Sharing
from .unchecked import Unchecked


class _State(NamedTuple):
    """Sets of buffers and references, as bits; `open` is a set of memories that are not
    freed, and `missing` one of parts of buffers that are not written (`Parts`)."""

    used: int = 0
    lost: int = 0
    freed: int = 0
    blank: int = 0
    missing: int = 0
    open: int = 0
    held: int = 0  # the references that are bound
    stale: int = 0  # the references to previous instances of buffers


_States = Sequence[_State]
"""The states at a point of the program, one for each rotation of slots."""


class Meeting(IntEnum):
    """Whether the buffer of a transfer in flight is that of an operand. `SAME` requires
    that the transfer moves the whole buffer."""

    APART = 0
    UNKNOWN = 1
    SAME = 2


class Ownership(NamedTuple):
    """The accesses of a function's buffers, and relations of its operands."""

    accesses: Mapping[Operation, Access]
    """The accesses of each operation that has any."""
    apart: Container[tuple[SSAValue, SSAValue]]
    """Pairs of operands that never share a byte, if one of them is a reference."""
    given: Container[tuple[SSAValue, SSAValue]]
    """Pairs of operands: the first takes over bytes of the second, a reference."""
    meetings: Mapping[tuple[Moved, Operation, SSAValue], Meeting]
    """For a transfer whose wait is in another iteration or block, and an operand of an
    operation that runs before the wait: the relations of their buffers so far."""


def check_owners(
    body: Region,
    memories: Sequence[MemoryPool],
    may_be: Mapping[SSAValue, Sequence[int]],
    frees: Mapping[SSAValue, Sequence[int]],
    callees: Callees,
    unchecked: Unchecked,
    sharing: Sharing | None = None,
) -> Ownership:
    """Checks the accesses of the buffers of these memories.

    `may_be` has the buffers, and `frees` the memories, that each memref may refer to,
    both numbered consecutively. Offsets and sizes say which buffers share bytes, or
    `sharing`, if given.

    Raises `LocatedError` if a buffer may be used while its bytes are not its own.
    """
    numbered = Memories(memories)
    accesses = Accesses(body, numbered, may_be, frees, callees, unchecked)
    walk = _Walk(numbered, accesses, sharing, unchecked)
    walk.region(body, walk.start())
    walk.refuse_undefined()
    found = {op: access for op, access in accesses.found.items() if access}
    apart = {pair for pair, is_so in walk.apart.items() if is_so}
    return Ownership(found, apart, walk.given, walk.meetings)


class _Walk:
    def __init__(
        self,
        memories: Memories,
        accesses: Accesses,
        sharing: Sharing | None,
        unchecked: Unchecked,
    ):
        self.memories = memories
        self.accesses = accesses
        self.sharing = sharing or Overlaps(memories.buffers, memories.members)
        self._is_placed = sharing is None  # whether offsets are known numbers
        self.unchecked = unchecked
        self.references = accesses.references
        self._expanded = cache(self.references.expanded)
        self.states: dict[tuple[Region, _State], _States] = {}
        self.apart: dict[tuple[SSAValue, SSAValue], bool] = {}
        """Whether two operands, one of which is a reference, share no byte."""
        self.given: dict[tuple[SSAValue, SSAValue], None] = {}
        self.meetings: dict[tuple[Moved, Operation, SSAValue], Meeting] = {}
        self.undefined: dict[tuple[Operation, int], str | None] = {}
        """For an operation and a buffer that it computes with: the error if nothing has
        written the buffer on any path; None if something may have."""

    def _united(self, one: _State, other: _State) -> _State:
        """The state where two paths meet."""
        united = _State(*(a | b for a, b in zip(one, other, strict=True)))
        if one.missing == other.missing:
            return united
        parts = self.accesses.parts
        missing = parts.missing_in_either(one.missing, other.missing)
        return united._replace(missing=missing)

    def start(self) -> _State:
        """The state at the start of the function. Arguments have contents; results and
        arenas have none.

        Memory that the function makes gets its state where it is made.
        """
        blank = bits_of(self.memories.empty)
        missing = self.accesses.parts.all_of(self.memories.empty)
        used = self.memories.given & ~blank
        return _State(used=used, blank=blank, missing=missing)

    def region(self, region: Region, state: _State) -> _States:
        """The states after a region that is entered in `state`.

        They are cached, because each loop walks its body until nothing changes: without
        a cache, the walks would double with each level of nested loops.
        """
        key = (region, state)
        if key not in self.states:
            self.states[key] = self._region(region, state)
        return self.states[key]

    def _region(self, region: Region, state: _State) -> _States:
        first = region.first_block
        if first is None:
            return [state]
        if first.next_block is None:
            return self._end(first, self._block(first, state))
        blocks = in_order(first)
        number_of = {block: number for number, block in enumerate(blocks)}
        before = {(first, self._rotation(state)): state}
        ends: list[_State] = []
        pending = [(0, self._rotation(state))]
        while pending:
            number, rotation = heappop(pending)
            if pending and pending[0] == (number, rotation):
                continue
            block = blocks[number]
            after = self._block(block, before[block, rotation])
            terminator = block.last_op
            if terminator is None or not terminator.successors:
                ends += self._end(block, after)
                continue
            for successor, passed in passed_on(terminator):
                values = [terminator.operands[index] for index in passed]
                for each in after:
                    entering = self._bind(each, successor.args, values)
                    rotation = self._rotation(entering)
                    known = before.get(key := (successor, rotation))
                    met = entering if known is None else self._united(known, entering)
                    if met != known:
                        before[key] = met
                        heappush(pending, (number_of[successor], rotation))
        return self._united_by_rotation(ends) or [state]

    def _end(self, block: Block, states: _States) -> _States:
        """The states after a block that ends a region."""
        op, last = block.parent_op(), block.last_op
        if op is None or last is None or name_of(op) not in ONE_REGION_RUNS:
            return states
        return self._united_by_rotation(
            [self._bind(s, op.results, last.operands) for s in states]
        )

    def _block(self, block: Block, state: _State) -> _States:
        states: _States = [state]
        for op in block.ops:
            states = self._united_by_rotation(
                [after for s in states for after in self._op(op, s)]
            )
        return states

    def _op(self, op: Operation, state: _State) -> _States:
        name = name_of(op) if op.regions else ""
        if name in ONE_REGION_RUNS:
            return [s for region in op.regions for s in self.region(region, state)]
        if name in LOOPS:
            after = self._loop(op, state)
            skipped = self._bind(state, op.results, initial(op))
            return after if surely_runs(op) else [skipped, *after]
        if name == "scf.while":
            return self._loop(op, state)
        if op in self.memories.makes:
            return [self._make(op, state)]
        if op in self.memories.allocates:
            return [self._allocate(op, state)]
        if isinstance(op, memref.DeallocOp) and op.memref in self.accesses.frees:
            return [self._free(op, state)]
        if self.memories.allocated_in(op):
            for region in op.regions:
                self.region(region, state)
        self._meet(op, state)
        state = self._pending(op, self._access(op, state))
        if op.results and any(r in self.references.of for r in op.results):
            state = self._derive(op, state)
        return [state]

    def _loop(self, loop: Operation, state: _State) -> _States:
        """The states after a loop that runs at least once, one for each rotation."""
        first, *then = loop.regions
        heads: dict[int, _State] = {}
        pending = [self._bind(state, carried(loop), initial(loop))]
        while pending:
            state = pending.pop()
            key = self._rotation(state)
            known = heads.get(key)
            state = state if known is None else self._united(known, state)
            if state == known:
                continue
            heads[key] = state
            states = self.region(first, state)
            for region in then:
                args = region.block.args
                entered = [self._bind(s, args, yielded(first)) for s in states]
                states = [after for s in entered for after in self.region(region, s)]
            last = yielded(then[-1] if then else first)
            pending += [self._bind(s, carried(loop), last) for s in states]
        ends = (end for head in heads.values() for end in self.region(first, head))
        outside = ~self.references.inside(loop)
        return [
            end._replace(held=end.held & outside)
            for end in (self._bind(s, loop.results, yielded(first)) for s in ends)
        ]

    def _united_by_rotation(self, states: _States) -> _States:
        """Unites the states in which the same slots hold the same bytes."""
        if len(states) < 2:
            return states
        found: dict[int, _State] = {}
        for state in states:
            key = self._rotation(state)
            known = found.get(key)
            found[key] = state if known is None else self._united(known, state)
        return list(found.values())

    def _rotation(self, state: _State) -> int:
        """A key for which slots hold which bytes."""
        return state.held & self.references.slots

    def _bind(
        self,
        state: _State,
        targets: Sequence[SSAValue | Moved],
        sources: Sequence[SSAValue],
    ) -> _State:
        """Binds the targets to the buffers of the sources, all at once."""
        references = self.references
        gone = held = lost = used = stale = 0
        for target, source in zip(targets, sources, strict=False):
            gone |= references.of.get(target, 0)
            reached = references.reach.get(source, 0)
            reached &= state.held | references.buffers
            for buffer, number in references.by_value.get(target, {}).items():
                same = reached & (references.aliases[buffer] | 1 << buffer)
                held |= bool(same) << number
                lost |= bool(same & state.lost) << number
                used |= bool(same & state.used) << number
                stale |= bool(same & state.stale) << number
        if not gone:
            return state
        return state._replace(
            held=state.held & ~gone | held,
            lost=state.lost & ~gone | lost,
            used=state.used & ~gone | used,
            stale=state.stale & ~gone | stale,
        )

    def _derive(self, op: Operation, state: _State) -> _State:
        """Binds the results of an operation to the buffers of its operands. A view of a
        slot is a new buffer there."""
        if is_in_slot(op):
            taken = self.references.reach[op.source] & state.held
            for number in numbers_of(taken):
                state = self._made(self.references.buffer[number], state)
            made = self._bind(state, op.results, [op.source])
            mine = self.references.of[op.result]
            return made._replace(
                lost=made.lost & ~mine, used=made.used & ~mine, stale=made.stale & ~mine
            )
        ends = [
            self._bind(state, op.results, [source] * len(op.results))
            for source in op.operands
            if source in self.references.reach
        ]
        state = ends[0]
        for end in ends[1:]:
            state = self._united(state, end)
        return state

    def _make(self, view: Operation, state: _State) -> _State:
        """Creates a buffer; its bytes count as unwritten."""
        number = self.memories.makes[view]
        bit = 1 << number
        if state.freed & bit:
            raise LocatedError("buffer is created after its arena was freed", view)
        return self._made(number, state)

    def _made(self, number: int, state: _State) -> _State:
        bit = 1 << number
        return state._replace(
            used=state.used & ~bit,
            lost=state.lost & ~bit,
            blank=state.blank | bit,
            missing=state.missing | self.accesses.parts.all_of([number]),
            stale=state.stale | (self.references.aliases[number] & state.held),
        )

    def _allocate(self, op: Operation, state: _State) -> _State:
        """Allocates a memory, which has no contents and must be freed."""
        index = self.memories.allocates[op]
        members = self.memories.of_memory(index)
        if state.open >> index & 1:
            self.unchecked.add("arenas not freed before the next allocation", op)
        number = self.memories.number.get(op.results[0])
        itself = [] if number is None else [number]
        return state._replace(
            used=state.used & ~members,
            lost=state.lost & ~members,
            freed=state.freed & ~members,
            blank=state.blank | bits_of(itself),
            missing=state.missing | self.accesses.parts.all_of(itself),
            open=state.open | self.memories.pools[index].is_allocated << index,
        )

    def _free(self, op: memref.DeallocOp, state: _State) -> _State:
        freed, closed = 0, 0
        for index in self.accesses.frees[op.memref]:
            memory = self.memories.pools[index]
            if not memory.is_allocated:
                raise LocatedError(
                    f"memref.dealloc frees {memory.buffers[0].name}, expected "
                    "memory from memref.alloc",
                    op,
                )
            freed |= self.memories.of_memory(index)
            if origin_of(op.memref) is memory.value:
                closed |= 1 << index
        if state.freed & freed:
            raise LocatedError(
                "memref.dealloc frees an arena that may already be freed", op
            )
        return state._replace(freed=state.freed | freed, open=state.open & ~closed)

    def _access(self, op: Operation, state: _State) -> _State:
        access = self.accesses.of(op)
        if is_return(op):
            self._leave(op, state)
        if access is None:
            return state
        used, lost, references = state.used, state.lost, self.references
        reached = access.reached & (state.held | references.buffers)
        touched = bits_of(references.buffer[n] for n in numbers_of(reached))
        if touched & state.freed:
            raise LocatedError(
                f"{name_of(op)} uses buffer {self._name(touched & state.freed)} after "
                "its arena was freed",
                op,
            )
        overwritten = bits_of(access.overwritten)  # references to these may have lost
        if missed := reached & lost & ~overwritten:
            raise self._fault(op, missed, used & ~lost)
        if overwritten:
            lost &= ~self._same(overwritten, state)
        for number, is_whole in access.read.items():
            fault = self._unwritten(number, is_whole, state)
            if fault:
                self._refuse(f"{name_of(op)} reads {fault}", number, op)
            if access.needed >> number & 1:
                self._note_undefined(op, number, state, fault)
        others = given = 0
        handed_over = self._handed_over(access, state)
        for number in access.touched:
            if reached >> number & 1:
                shared = self._others(number, state)
                shared &= ~references.expanded(handed_over.get(number, 0))
                is_written = access.begun >> number & 1
                others |= shared if is_written else shared & references.buffers
        for value in access.rewritten:
            shared, own = 0, references.reach[value]
            for number in numbers_of(own & state.held):
                shared |= self._others(number, state)
            others |= shared & ~own
        for value in access.forwarded:
            self._compare(op, value, state)
        if others & reached:
            raise self._fault(op, others & reached, reached)
        for number in access.overwritten:
            given |= handed_over.get(number, 0)
        others |= references.expanded(access.taken)
        return state._replace(
            used=used | self._same(reached, state),
            lost=lost | (others & used) | references.expanded(given),
            blank=state.blank & ~access.begun,
            missing=self.accesses.parts.after(op, state.missing, access.written),
        )

    def _pending(self, op: Operation, state: _State) -> _State:
        """Binds a transfer's memrefs at its start, and releases them at its wait."""
        moved = self.accesses.moved.get(op, ())
        state = self._bind(state, moved, [each.value for each in moved])
        over = 0
        for start in self.accesses.waits.get(op, ()):
            for each in self.accesses.moved.get(start, ()):
                over |= self.references.of[each]
        return state._replace(
            held=state.held & ~over,
            lost=state.lost & ~over,
            used=state.used & ~over,
            stale=state.stale & ~over,
        )

    def _meet(self, op: Operation, state: _State) -> None:
        """Notes which operands may be the memrefs of transfers in flight."""
        held, references = state.held, self.references
        if not held & references.moved:
            return
        buffers = references.buffer
        for each in chain.from_iterable(self.accesses.moved.values()):
            theirs = {buffers[n] for n in numbers_of(references.of[each] & held)}
            is_whole = each.value in references.of or each.value in self.memories.number
            for user in (op, *operations_in(op)) if theirs else ():
                for value in user.operands:
                    reached = references.reach.get(value, 0)
                    reached &= held | references.buffers
                    mine = {buffers[number] for number in numbers_of(reached)}
                    key, meeting = (each, user, value), Meeting.APART
                    if mine & theirs:
                        is_sure = len(mine) == len(theirs) == 1 and is_whole
                        meeting = Meeting.SAME if is_sure else Meeting.UNKNOWN
                    self.meetings[key] = max(self.meetings.get(key, meeting), meeting)

    def _same(self, numbers: int, state: _State) -> int:
        """`numbers` with all buffers and references that are the same ones."""
        bits = numbers
        if self.references.of:
            for number in numbers_of(numbers & ~state.stale):
                buffer = self.references.buffer[number]
                aliases = self.references.aliases[buffer] & state.held & ~state.stale
                bits |= 1 << buffer | aliases
        return bits

    def _others(self, number: int, state: _State) -> int:
        """Buffers and references that share bytes with `number`, but are different."""
        references = self.references
        buffer = references.buffer[number]
        bits = self._sharers(buffer)
        aliases = references.aliases[buffer] | 1 << buffer
        if state.stale >> number & 1:  # other stale ones may be of older instances
            return bits | (aliases & ~(1 << number))
        return bits | (aliases & state.stale)

    def _sharers(self, buffer: int) -> int:
        """The buffers that share bytes with one, and the references to them. The cached
        sets include the buffer itself, so that buffers at one place share them."""
        itself = 1 << buffer
        bits = self._expanded(self.sharing.with_(buffer) | itself)
        return bits & ~(itself | self.references.aliases[buffer])

    def _compare(self, op: Operation, value: SSAValue, state: _State) -> None:
        """Notes whether other operands may share bytes with the reference `value`."""
        reach = self.references.reach
        mine = self._same(reach[value] & state.held, state)
        for other in op.operands:
            if other is not value and other in reach:
                theirs = reach[other] & (state.held | self.references.buffers)
                for pair in ((value, other), (other, value)):
                    is_apart = not mine & theirs
                    self.apart[pair] = self.apart.get(pair, True) and is_apart

    def _handed_over(self, access: Access, state: _State) -> Mapping[int, int]:
        """Pairs of a buffer that the operation overwrites, and a buffer or reference at
        the same place that it only reads: each is mapped to its partners, as bits."""
        found: dict[int, int] = {}
        memories, references = self.memories, self.references
        for target in access.overwritten:
            place = memories.places[target]
            if place[0] not in memories.of_caller and not self._is_placed:
                continue
            near, same = self.sharing.with_(target), self._same(1 << target, state)
            sources = near & ~access.begun & bits_of(access.read)
            for value in access.forwarded:
                reached = references.reach[value] & state.held
                reached &= self._expanded(near | 1 << target) & ~same
                if reached and value not in access.rewritten:
                    sources |= reached
                    self.given[memories.buffers[target].value, value] = None
            for source in numbers_of(sources):
                if memories.places[references.buffer[source]] == place:
                    found[target] = found.get(target, 0) | 1 << source
                    found[source] = found.get(source, 0) | 1 << target
        return found

    def _unwritten(self, number: int, is_whole: bool, state: _State) -> str | None:
        """Which bytes of a buffer that is read may be unwritten; None if none."""
        name = self.memories.buffers[number].name
        if state.blank >> number & 1:
            if not state.used >> number & 1:
                return f"buffer {name}, expected an earlier write"
            return f"buffer {name}, expected an earlier write on every path"
        if not is_whole:
            return None
        size = self.memories.buffers[number].size
        known = self.accesses.parts.bytes(number, state.missing)
        if known >= size:
            return None
        return (
            f"all {size} bytes of buffer {name}, of which at most {known} were "
            "written on every path"
        )

    def _refuse(self, message: str, number: int, op: Operation) -> None:
        """Reports a read of unwritten bytes. It is an error if the operation is
        tgraph's, which computes on values, and the memory has no contents at first, or
        is an argument's. Other operations may read bytes that are undefined on some
        paths."""
        pool = self.memories.buffers[number].pool
        if name_of(op).startswith("tgraph.") and (
            pool in self.memories.blank or pool in self.memories.of_caller
        ):
            raise LocatedError(message, op)
        self.unchecked.add("reads of memory that may not be written yet", op)

    def _note_undefined(
        self, op: Operation, number: int, state: _State, fault: str | None
    ) -> None:
        """Notes a buffer that nothing has written before `op`. In a loop, only the last
        visit knows all writes."""
        is_new = self.memories.buffers[number].pool in self.memories.blank
        is_undefined = is_new and fault and not state.used >> number & 1
        if not is_undefined:
            self.undefined[op, number] = None
        self.undefined.setdefault((op, number), f"{name_of(op)} reads {fault}")

    def refuse_undefined(self) -> None:
        """Raises `LocatedError` for an operation that computes with contents that
        nothing writes on any path."""
        for (op, _), fault in self.undefined.items():
            if fault:
                raise LocatedError(fault, op)

    def _leave(self, op: Operation, state: _State) -> None:
        """Checks results and arenas at the end of the function."""
        for number in self.memories.kept:
            fault = self._unwritten(number, True, state)
            if fault and not state.used >> number & 1:
                raise LocatedError(f"{name_of(op)} returns {fault}", op)
            if fault:
                self.unchecked.add("results that may not be completely written", op)
        for alloc, index in self.memories.allocates.items():
            if state.open >> index & 1:
                self.unchecked.add("arenas not freed on every path", alloc)

    def _fault(self, op: Operation, lost: int, owners: int) -> LocatedError:
        """The error for the first buffer in `lost`, which lost bytes to an owner."""
        number = self.references.buffer[self.memories.first(lost)]
        owners &= self.references.buffers
        a = self.memories.buffers[number]
        takers = self.sharing.with_(number) & owners
        if not takers:  # on another path
            return LocatedError(
                f"{name_of(op)} uses buffer {a.name}, whose bytes may now belong to "
                "another buffer",
                op,
            )
        b = self.memories.buffers[self.memories.first(takers)]
        if not isinstance(self.sharing, Overlaps):
            return LocatedError(
                f"{name_of(op)} uses buffer {a.name}, whose bytes may now belong to "
                f"buffer {b.name}",
                op,
            )
        low, high = max(a.offset, b.offset), min(a.offset + a.size, b.offset + b.size)
        return LocatedError(
            f"{name_of(op)} uses buffer {a.name}, whose bytes [{low}, {high}) now "
            f"belong to buffer {b.name}",
            op,
        )

    def _name(self, bits: int) -> str:
        return self.memories.buffers[self.memories.first(bits)].name
