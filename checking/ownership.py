"""The owners of the bytes of a memory, on all paths of a function, for plan-check.

    %a = memref.view %arena[%c0]     a: nothing is written
    tgraph.negate ... outs(%a)       a has its bytes
    scf.if %c {
      %b = memref.view %arena[%c0]
      tgraph.negate ... outs(%b)     b has them, a has lost them
    }
    tgraph.tanh %a ...               fault: on one path a has lost them

The check visits the operations in execution order with sets of buffers: buffers used
since their view was created, buffers that have lost bytes since, buffers whose memory
is freed, and buffers that are not, or not completely, written. Each set is an
over-approximation: where paths meet, the sets are united, and loops are repeated until
nothing changes. A buffer that has lost bytes may only be overwritten completely. An
operation that overwrites one buffer and reads another at the same address passes on
ownership of the bytes; operands.py proves that it may. An
operation that continues after it returns (a DMA) ends at its wait, which counts as
another use of its buffers: in another iteration or block, of those that the start had.
Concurrent loops count as a single operation, except for
memory allocated inside, which belongs to each iteration. A result is used when its
function ends.

What control flow hands on refers to other buffers on other paths, and loses bytes with
those that it refers to (references.py). A buffer that is made anew leaves what refers
to the one before stale: the next use of the new one takes its bytes. Loops that rotate
slots are walked once for each rotation. Shares no code with the planner.
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
    leaves,
    operations_in,
    passed_on,
    yielded,
)
from .ranges import surely_runs
from .references import Moved
from .sharing import Overlaps, Sharing
from .unchecked import Unchecked


class _State(NamedTuple):
    """Sets of buffers, a bit for each, and of references to them; of the memories that
    are not freed; and of the parts of buffers that are not written (`Parts`)."""

    used: int = 0
    lost: int = 0
    freed: int = 0
    blank: int = 0
    missing: int = 0
    open: int = 0
    held: int = 0  # the references that there are
    stale: int = 0  # those to what a buffer was before it was made anew


_States = Sequence[_State]
"""After paths that have met: one for each rotation of slots."""


class Meeting(IntEnum):
    """Of the buffer that a transfer under way has, or has a part of, and that of an
    operand; they are the same only if the transfer has all of it."""

    APART = 0
    UNKNOWN = 1
    SAME = 2


class Ownership(NamedTuple):
    """How a function uses its buffers."""

    accesses: Mapping[Operation, Access]
    """By the operation that accesses some."""
    apart: Container[tuple[SSAValue, SSAValue]]
    """Pairs of operands that never share a byte, if one of them is handed on."""
    given: Container[tuple[SSAValue, SSAValue]]
    """Pairs of operands of which the first takes bytes of the other, which control flow
    has handed on."""
    meetings: Mapping[tuple[Moved, Operation, SSAValue], Meeting]
    """By what a transfer moves that is waited for in another iteration or block, and
    an operand of an operation that runs before: what they have been."""


def check_owners(
    body: Region,
    memories: Sequence[MemoryPool],
    may_be: Mapping[SSAValue, Sequence[int]],
    frees: Mapping[SSAValue, Sequence[int]],
    callees: Callees,
    unchecked: Unchecked,
    sharing: Sharing | None = None,
) -> Ownership:
    """What happens to the buffers of these memories, which are numbered through.

    `may_be` has the buffers, and `frees` the memories, that each memref may be. Which
    buffers share bytes is as their offsets and sizes say, or as `sharing` does.

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
        self._is_placed = sharing is None  # at offsets that are numbers
        self.unchecked = unchecked
        self.references = accesses.references
        self._expanded = cache(self.references.expanded)
        self.states: dict[tuple[Region, _State], _States] = {}
        self.apart: dict[tuple[SSAValue, SSAValue], bool] = {}
        """Whether two operands, one of which is handed on, have no byte in common."""
        self.given: dict[tuple[SSAValue, SSAValue], None] = {}
        self.meetings: dict[tuple[Moved, Operation, SSAValue], Meeting] = {}
        self.undefined: dict[tuple[Operation, int], str | None] = {}
        """Of an operation and a buffer that it computes with: what is wrong if nothing
        has written it, whatever came before; None if something may have."""

    def _united(self, one: _State, other: _State) -> _State:
        """Where two paths meet."""
        united = _State(*(a | b for a, b in zip(one, other, strict=True)))
        if one.missing == other.missing:
            return united
        parts = self.accesses.parts
        missing = parts.missing_in_either(one.missing, other.missing)
        return united._replace(missing=missing)

    def start(self) -> _State:
        """Where the function begins: what is given has contents, results and arenas
        have none.

        Of what the function makes it is said anew where that is made.
        """
        blank = bits_of(self.memories.empty)
        missing = self.accesses.parts.all_of(self.memories.empty)
        used = self.memories.given & ~blank
        return _State(used=used, blank=blank, missing=missing)

    def region(self, region: Region, state: _State) -> _States:
        """The states after a region, given that before it.

        Each loop looks at its body until nothing new comes out: loops within loops
        would be walked twice as often with each level, were the states not kept.
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
        return self._met(ends) or [state]

    def _end(self, block: Block, states: _States) -> _States:
        """After a block that is the last of its region to run."""
        op, last = block.parent_op(), block.last_op
        if op is None or last is None or name_of(op) not in ONE_REGION_RUNS:
            return states
        return self._met([self._bind(s, op.results, last.operands) for s in states])

    def _block(self, block: Block, state: _State) -> _States:
        states: _States = [state]
        for op in block.ops:
            states = self._met([after for s in states for after in self._op(op, s)])
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
        """After a loop that runs once at least, with each rotation of its slots."""
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

    def _met(self, states: _States) -> _States:
        """Those in which the same slots hold the same bytes as one."""
        if len(states) < 2:
            return states
        found: dict[int, _State] = {}
        for state in states:
            key = self._rotation(state)
            known = found.get(key)
            found[key] = state if known is None else self._united(known, state)
        return list(found.values())

    def _rotation(self, state: _State) -> int:
        """Which slots hold which bytes."""
        return state.held & self.references.slots

    def _bind(
        self,
        state: _State,
        targets: Sequence[SSAValue | Moved],
        sources: Sequence[SSAValue],
    ) -> _State:
        """The targets become what the sources are, all at once."""
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
        """What an operation makes of other memrefs is one of these; a view of a slot is
        a new buffer there."""
        if isinstance(op, memref.ViewOp):
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
        """A view is made: what its bytes held before is of no interest."""
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
        """A memory is new: nothing is in it, and it is to be freed."""
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
        if leaves(op):
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
        overwritten = bits_of(access.overwritten)  # a reference to one lost what it did
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
        for value in access.handed_on:
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
            missing=state.missing & ~access.written,
        )

    def _pending(self, op: Operation, state: _State) -> _State:
        """A transfer has its memrefs from its start to its wait."""
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
        """Notes which operands may be what transfers have that are under way."""
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
        """Buffers and references, and what else refers to the same."""
        bits = numbers
        if self.references.of:
            for number in numbers_of(numbers & ~state.stale):
                buffer = self.references.buffer[number]
                aliases = self.references.aliases[buffer] & state.held & ~state.stale
                bits |= 1 << buffer | aliases
        return bits

    def _others(self, number: int, state: _State) -> int:
        """What shares bytes with a buffer or a reference, and is not the same."""
        references = self.references
        buffer = references.buffer[number]
        bits = self._beside(buffer)
        aliases = references.aliases[buffer] | 1 << buffer
        if state.stale >> number & 1:  # other stale ones may be older
            return bits | (aliases & ~(1 << number))
        return bits | (aliases & state.stale)

    def _beside(self, buffer: int) -> int:
        """The buffers that share bytes with one, and the references to these: many have
        the same, but for themselves."""
        itself = 1 << buffer
        bits = self._expanded(self.sharing.with_(buffer) | itself)
        return bits & ~(itself | self.references.aliases[buffer])

    def _compare(self, op: Operation, value: SSAValue, state: _State) -> None:
        """Notes whether other operands may be what one that is handed on is."""
        reach = self.references.reach
        mine = self._same(reach[value] & state.held, state)
        for other in op.operands:
            if other is not value and other in reach:
                theirs = reach[other] & (state.held | self.references.buffers)
                for pair in ((value, other), (other, value)):
                    is_apart = not mine & theirs
                    self.apart[pair] = self.apart.get(pair, True) and is_apart

    def _handed_over(self, access: Access, state: _State) -> Mapping[int, int]:
        """Buffers that an operation overwrites, or only reads, and references that it
        only reads, each with those at the same place that it does the other with, as
        bits."""
        found: dict[int, int] = {}
        memories, references = self.memories, self.references
        for target in access.overwritten:
            place = memories.places[target]
            if place[0] not in memories.of_caller and not self._is_placed:
                continue
            near, same = self.sharing.with_(target), self._same(1 << target, state)
            sources = near & ~access.begun & bits_of(access.read)
            for value in access.handed_on:
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
        """What a buffer that is read lacks."""
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
        """Operations of tgraph compute on values, and what is allocated holds none at
        first. Others may read what is not defined on some path, or in part."""
        pool = self.memories.buffers[number].pool
        if name_of(op).startswith("tgraph.") and (
            pool in self.memories.blank or pool in self.memories.of_caller
        ):
            raise LocatedError(message, op)
        self.unchecked.add("reads of memory that may not be written yet", op)

    def _note_undefined(
        self, op: Operation, number: int, state: _State, fault: str | None
    ) -> None:
        """Only the last state before an operation of a loop has all that may be."""
        is_new = self.memories.buffers[number].pool in self.memories.blank
        is_undefined = is_new and fault and not state.used >> number & 1
        if not is_undefined:
            self.undefined[op, number] = None
        self.undefined.setdefault((op, number), f"{name_of(op)} reads {fault}")

    def refuse_undefined(self) -> None:
        """Refuses to compute with what nothing writes, on any path."""
        for (op, _), fault in self.undefined.items():
            if fault:
                raise LocatedError(fault, op)

    def _leave(self, op: Operation, state: _State) -> None:
        """At the function's end."""
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
        """For the first of the buffers that have lost bytes to one of the owners."""
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
