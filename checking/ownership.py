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
nothing changes. A buffer that has lost bytes may only be overwritten completely. In the
memory of an argument, an operation that overwrites one buffer and reads another at the
same address passes on ownership of the bytes; operands.py proves that it may. An
operation that continues after it returns (a DMA) ends at its wait, which counts as
another use of its buffers. Concurrent loops count as a single operation, except for
memory allocated inside, which belongs to each iteration. A result is used when its
function ends. Shares no code with the planner.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.diagnostics import LocatedError, name_of
from .accesses import Access, Accesses, Memories
from .buffers import MemoryPool, bits_of, origin_of
from .pointees import (
    LOOPS,
    ONE_REGION_RUNS,
    dominates,
    leaves,
)
from .ranges import surely_runs
from .sharing import Overlaps, Sharing
from .unchecked import Unchecked


class _State(NamedTuple):
    """Sets of buffers, a bit for each; of the memories that are not freed; and of the
    parts of buffers that are not written (`Parts`)."""

    used: int = 0
    lost: int = 0
    freed: int = 0
    blank: int = 0
    missing: int = 0
    open: int = 0

    def united(self, other: "_State") -> "_State":
        return _State(*(a | b for a, b in zip(self, other, strict=True)))


def check_owners(
    body: Region,
    memories: Sequence[MemoryPool],
    may_be: Mapping[SSAValue, Sequence[int]],
    frees: Mapping[SSAValue, Sequence[int]],
    unchecked: Unchecked,
    sharing: Sharing | None = None,
) -> Mapping[Operation, Access]:
    """The operations that access buffers of these memories, which are numbered through.

    `may_be` has the buffers, and `frees` the memories, that each memref may be. Which
    buffers share bytes is as their offsets and sizes say, or as `sharing` does.

    Raises `LocatedError` if a buffer may be used while its bytes are not its own.
    """
    numbered = Memories(memories)
    accesses = Accesses(body, numbered, may_be, frees, unchecked)
    _check_arguments(numbered, may_be)
    walk = _Walk(numbered, accesses, sharing, unchecked)
    walk.region(body, walk.start())
    return {op: access for op, access in accesses.found.items() if access}


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
        self.unchecked = unchecked
        self.states: dict[tuple[Region, _State], _State] = {}

    def start(self) -> _State:
        """Where the function begins: what is given has contents, results and arenas
        have none.

        Of what the function makes it is said anew where that is made.
        """
        blank = bits_of(self.memories.empty)
        missing = self.accesses.parts.all_of(self.memories.empty)
        used = self.memories.given & ~blank
        return _State(used=used, blank=blank, missing=missing)

    def region(self, region: Region, state: _State) -> _State:
        """The state after a region, given that before it.

        Each loop looks at its body until nothing new comes out: loops within loops
        would be walked twice as often with each level, were the states not kept.
        """
        key = (region, state)
        if key not in self.states:
            self.states[key] = self._region(region, state)
        return self.states[key]

    def _region(self, region: Region, state: _State) -> _State:
        first = region.first_block
        if first is None:
            return state
        if first.next_block is None:
            return self._block(first, state)
        before = {first: state}
        end: _State | None = None
        pending = [first]
        while pending:
            block = pending.pop()
            after = self._block(block, before[block])
            terminator = block.last_op
            successors = terminator.successors if terminator else ()
            if not successors:
                end = after if end is None else end.united(after)
            for successor in successors:
                known = before.get(successor)
                met = after if known is None else known.united(after)
                if met != known:
                    before[successor] = met
                    pending.append(successor)
        return end or state

    def _block(self, block: Block, state: _State) -> _State:
        for op in block.ops:
            name = name_of(op) if op.regions else ""
            if name in ONE_REGION_RUNS:
                first, *others = (self.region(region, state) for region in op.regions)
                state = first
                for other in others:
                    state = state.united(other)
            elif name in LOOPS:
                after = self._loop(op.regions[0], None, state)
                state = after if surely_runs(op) else state.united(after)
            elif name == "scf.while":
                state = self._loop(op.regions[0], op.regions[1], state)
            elif op in self.memories.makes:
                state = self._make(op, state)
            elif op in self.memories.allocates:
                state = self._allocate(op, state)
            elif isinstance(op, memref.DeallocOp) and op.memref in self.accesses.frees:
                state = self._free(op, state)
            else:
                if self.memories.allocated_in(op):
                    for region in op.regions:
                        self.region(region, state)
                state = self._access(op, state)
        return state

    def _loop(self, region: Region, then: Region | None, state: _State) -> _State:
        """After a loop that runs once at least; `while` has `then`."""
        while True:
            after = end = self.region(region, state)
            if then is not None:
                end = self.region(then, after)
            again = state.united(end)
            if again == state:
                return after
            state = again

    def _make(self, view: Operation, state: _State) -> _State:
        """A view is made: what its bytes held before is of no interest."""
        number = self.memories.makes[view]
        bit = 1 << number
        if state.freed & bit:
            raise LocatedError("buffer is created after its arena was freed", view)
        return state._replace(
            used=state.used & ~bit,
            lost=state.lost & ~bit,
            blank=state.blank | bit,
            missing=state.missing | self.accesses.parts.all_of([number]),
        )

    def _allocate(self, op: Operation, state: _State) -> _State:
        """A memory is new: nothing is in it, and it is to be freed."""
        index = self.memories.allocates[op]
        members = self.memories.of_memory(index)
        if state.open >> index & 1:
            self.unchecked.add("arenas not freed before the next allocation", op)
        number = self.memories.number.get(op.results[0])
        itself = [] if number is None else [number]
        return _State(
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
        used, lost, freed = state.used, state.lost, state.freed
        touched = bits_of(access.touched)
        if touched & freed:
            raise LocatedError(
                f"{name_of(op)} uses buffer {self._name(touched & freed)} after its "
                "arena was freed",
                op,
            )
        if access.overwritten:
            lost &= ~bits_of(access.overwritten)
        if touched & lost:
            raise self._fault(op, touched & lost, used & ~lost)
        for number, is_whole in access.read.items():
            if fault := self._unwritten(number, is_whole, state):
                self._refuse(f"{name_of(op)} reads {fault}", number, op)
        others = given = 0
        handed_over = self._handed_over(access)
        for number in access.touched:
            others |= self.sharing.with_(number) & ~handed_over.get(number, 0)
        if others & touched:
            raise self._fault(op, others & touched, touched)
        for number in access.overwritten:
            given |= handed_over.get(number, 0)
        return state._replace(
            used=used | touched,
            lost=lost | ((others | access.taken) & used) | given,
            blank=state.blank & ~access.begun,
            missing=state.missing & ~access.written,
        )

    def _handed_over(self, access: Access) -> Mapping[int, int]:
        """Buffers that an operation overwrites, or only reads, each with those at the
        same place that it does the other with, as bits."""
        found: dict[int, int] = {}
        places = self.memories.places
        for target in access.overwritten:
            if places[target][0] not in self.memories.of_caller:
                continue
            near = self.sharing.with_(target) & ~access.begun
            for source in access.read:
                if near >> source & 1 and places[source] == places[target]:
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
        first. Other operations may read what is not defined."""
        pool = self.memories.buffers[number].pool
        if name_of(op).startswith("tgraph.") and (
            pool in self.memories.blank or pool in self.memories.of_caller
        ):
            raise LocatedError(message, op)
        self.unchecked.add("reads of memory that may not be written yet", op)

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
        number = self.memories.first(lost)
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


def _check_arguments(
    memories: Memories, may_be: Mapping[SSAValue, Sequence[int]]
) -> None:
    """No buffer may be made anew while a block's argument still stands for it."""
    for value, numbers in may_be.items():
        block = value.owner
        if not isinstance(block, Block) or block.parent is None:
            continue
        for number in numbers:
            view = memories.buffers[number].value.owner
            inside = view.parent_block()  # of a result: where its function is
            assert inside is not None
            around = block.parent.find_ancestor_block_in_region(inside)
            if around is not None and dominates(block, around):
                raise LocatedError(
                    f"buffer {memories.buffers[number].name} is passed on to a "
                    "point where "
                    "it is created again",
                    cast(Operation, view),
                )
