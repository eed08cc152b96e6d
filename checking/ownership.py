"""Who has the bytes of a memory, on all paths of a function: a part of plan-check.

    %a = memref.view %arena[%c0]     a: nothing is written
    tgraph.negate ... outs(%a)       a has its bytes
    scf.if %c {
      %b = memref.view %arena[%c0]
      tgraph.negate ... outs(%b)     b has them, a has lost them
    }
    tgraph.tanh %a ...               fault: on one path a has lost them

Walks the operations in the order in which they run, with sets of buffers: those used
since their view was made, those that have lost bytes since, those whose memory was
freed, those that are not written, or not as a whole. Each says what may be so: where
paths meet the sets are united; loops are walked until nothing is new. A buffer that has
lost bytes may only be overwritten as a whole. What goes on when an operation ends (a
DMA) is over at its wait, which uses its buffers once more. Concurrent loops count as
one operation, but for the memories allocated inside, which are each iteration's own. A
result is used when its function ends. Shares no code with what plans.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.memory import (
    asynchronous,
    freed,
    is_done_at_its_end,
    overwrites,
    says_effects,
)
from .buffers import MemoryPool, bits_of, name_of_global, origin_of
from .effects import (
    bytes_used,
    callee_hides,
    callee_of,
    effects_of,
    hides,
    is_over_at_its_end,
    reached_from,
)
from .pointees import (
    LOOPS,
    ONE_REGION_RUNS,
    dominates,
    is_memref,
    leaves,
    operations_in,
    passes_on,
)
from .ranges import surely_runs
from .sharing import Overlaps, Sharing
from .unchecked import Unchecked
from .written import Parts

_LOADS = ("memref.load", "affine.load")
"""Operations that read one element."""


class Access(NamedTuple):
    """What an operation does to buffers, by their numbers."""

    touched: Sequence[int]
    overwritten: Sequence[int]  # as a whole, and nothing of them is read
    read: Mapping[int, bool]  # surely, before they are written; whether all of it
    begun: int  # the buffers that it writes, or may write, as bits
    written: int  # what of them as a whole, as bits of `Parts`
    taken: int = 0  # the buffers that lose bytes to functions that are called


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
    walk = _Walk(body, memories, may_be, frees, unchecked, sharing)
    walk.region(body, walk.start())
    return {op: access for op, access in walk.accesses.items() if access}


class _Walk:
    def __init__(
        self,
        body: Region,
        memories: Sequence[MemoryPool],
        may_be: Mapping[SSAValue, Sequence[int]],
        frees: Mapping[SSAValue, Sequence[int]],
        unchecked: Unchecked,
        sharing: Sharing | None,
    ):
        self.memories = memories
        self.buffers = buffers = [b for memory in memories for b in memory.buffers]
        self.may_be = may_be
        self.frees = frees
        self.unchecked = unchecked
        self.number = {b.value: n for n, b in enumerate(buffers)}
        self.members = _members(memories)
        self.globals = [m for m in memories if name_of_global(m.value)]
        self.allocates = {
            cast(Operation, memory.value.owner): index
            for index, memory in enumerate(memories)
            if memory.is_new
        }
        self.makes = {
            cast(Operation, b.value.owner): n
            for n, b in enumerate(buffers)
            if b.value is not b.pool
        }
        self.is_result = {m.value: None for m in memories if m.result is not None}
        self.results = [self.number[value] for value in self.is_result]
        self.parts = Parts(buffers, may_be)
        self.sharing = sharing or Overlaps(buffers, self.members)
        self.accesses: dict[Operation, Access | None] = {}
        self.states: dict[tuple[Region, _State], _State] = {}
        self.waits = self._find_waits(body)
        self._check_arguments()

    def start(self) -> _State:
        """Where the function begins: all that is given has contents, results have none.

        Of what the function makes it is said anew where that is made.
        """
        blank = bits_of(self.results)
        missing = self.parts.all_of(self.results)
        used = bits_of(range(len(self.buffers))) & ~blank
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
            elif op in self.makes:
                state = self._make(op, state)
            elif op in self.allocates:
                state = self._allocate(op, state)
            elif isinstance(op, memref.DeallocOp) and op.memref in self.frees:
                state = self._free(op, state)
            else:
                if self._allocated_in(op):
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
        number = self.makes[view]
        bit = 1 << number
        if state.freed & bit:
            raise LocatedError("buffer is made after its arena was freed", view)
        return state._replace(
            used=state.used & ~bit,
            lost=state.lost & ~bit,
            blank=state.blank | bit,
            missing=state.missing | self.parts.all_of([number]),
        )

    def _allocate(self, op: Operation, state: _State) -> _State:
        """A memory is new: nothing is in it, and it is to be freed."""
        index = self.allocates[op]
        members = self._of_memory(index)
        if state.open >> index & 1:
            self.unchecked.add("arenas not freed before they are allocated again", op)
        itself = [n for n in (self.number.get(op.results[0]),) if n is not None]
        return _State(
            used=state.used & ~members,
            lost=state.lost & ~members,
            freed=state.freed & ~members,
            blank=state.blank | bits_of(itself),
            missing=state.missing | self.parts.all_of(itself),
            open=state.open | self.memories[index].is_allocated << index,
        )

    def _free(self, op: memref.DeallocOp, state: _State) -> _State:
        freed, closed = 0, 0
        for index in self.frees[op.memref]:
            memory = self.memories[index]
            if not memory.is_allocated:
                raise LocatedError(
                    f"memref.dealloc frees {memory.buffers[0].name}, expected what "
                    "memref.alloc allocates",
                    op,
                )
            freed |= self._of_memory(index)
            if origin_of(op.memref) is memory.value:
                closed |= 1 << index
        if state.freed & freed:
            raise LocatedError(
                "memref.dealloc frees an arena that may be freed already", op
            )
        return state._replace(freed=state.freed | freed, open=state.open & ~closed)

    def _of_memory(self, index: int) -> int:
        first, count = self.members[self.memories[index].value]
        return ((1 << count) - 1) << first

    def _access(self, op: Operation, state: _State) -> _State:
        if op not in self.accesses:
            self.accesses[op] = self._accesses_of(op)
        if leaves(op):
            self._leave(op, state)
        access = self.accesses[op]
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
        others = 0
        for number in access.touched:
            others |= self.sharing.with_(number)
        if others & touched:
            raise self._fault(op, others & touched, touched)
        return state._replace(
            used=used | touched,
            lost=lost | ((others | access.taken) & used),
            blank=state.blank & ~access.begun,
            missing=state.missing & ~access.written,
        )

    def _unwritten(self, number: int, is_whole: bool, state: _State) -> str | None:
        """What a buffer that is read lacks."""
        name = self.buffers[number].name
        if state.blank >> number & 1:
            if not state.used >> number & 1:
                return f"buffer {name}, expected a write before"
            return f"buffer {name}, expected a write before on every path"
        if not is_whole:
            return None
        size, known = self.buffers[number].size, self.parts.bytes(number, state.missing)
        if known >= size:
            return None
        return (
            f"all {size} bytes of buffer {name}, of which at most {known} are written "
            "before on every path"
        )

    def _refuse(self, message: str, number: int, op: Operation) -> None:
        """Operations of tgraph compute on values, and what is allocated holds none at
        first. Other operations may read what is not defined."""
        pool = self.buffers[number].pool
        if name_of(op).startswith("tgraph.") and (
            pool.owner in self.allocates or pool in self.is_result
        ):
            raise LocatedError(message, op)
        self.unchecked.add("reads of what may not be written yet", op)

    def _leave(self, op: Operation, state: _State) -> None:
        """At the function's end."""
        for number in self.results:
            fault = self._unwritten(number, True, state)
            if fault and not state.used >> number & 1:
                raise LocatedError(f"{name_of(op)} hands out {fault}", op)
            if fault:
                self.unchecked.add("results that may not be written as a whole", op)
        for alloc, index in self.allocates.items():
            if state.open >> index & 1:
                self.unchecked.add("arenas not freed on every path", alloc)

    def _fault(self, op: Operation, lost: int, owners: int) -> LocatedError:
        """For the first of the buffers that have lost bytes to one of the owners."""
        number = (lost & -lost).bit_length() - 1
        a = self.buffers[number]
        takers = self.sharing.with_(number) & owners
        if not takers:  # on another path
            return LocatedError(
                f"{name_of(op)} uses buffer {a.name}, whose bytes another buffer may "
                "have taken",
                op,
            )
        b = self.buffers[(takers & -takers).bit_length() - 1]
        if not isinstance(self.sharing, Overlaps):
            return LocatedError(
                f"{name_of(op)} uses buffer {a.name}, whose bytes buffer {b.name} may "
                "have as well",
                op,
            )
        low, high = max(a.offset, b.offset), min(a.offset + a.size, b.offset + b.size)
        return LocatedError(
            f"{name_of(op)} uses buffer {a.name}, whose bytes [{low}, {high}) buffer "
            f"{b.name} has as well",
            op,
        )

    def _name(self, bits: int) -> str:
        return self.buffers[(bits & -bits).bit_length() - 1].name

    def _accesses_of(self, op: Operation) -> Access | None:
        """What an operation does to buffers; None if it only passes them on."""
        touched: dict[int, bool] = {}  # whether it overwrites all
        read: dict[int, bool] = {}
        begun = written = 0
        inside = self._allocated_in(op)
        is_unknown = bool(op.regions) and not is_over_at_its_end(op)
        for user in (op, *operations_in(op)):
            if user in self.makes and not inside >> self.makes[user] & 1:
                raise LocatedError(
                    f"buffer {self.buffers[self.makes[user]].name} is made inside "
                    f"{name_of(op)}, which may run more than once at a time",
                    user,
                )
            if isinstance(user, memref.DeallocOp):
                self._check_free(user, inside, op)
            tracked = {
                value: numbers
                for value in user.operands
                if (numbers := self._of_value(value, inside))
            }
            if not tracked:
                continue
            self._check_user(op if is_unknown else user, tracked)
            if passes_on(user):
                continue
            for value, numbers in tracked.items():
                reads, writes = effects_of(user, value)
                if not (reads or writes):
                    continue
                is_whole = value in self.number and user is op and overwrites(op, value)
                for number in numbers:
                    touched[number] = touched.get(number, True) and is_whole
                    if writes:
                        begun |= 1 << number
                        written |= self.parts.written(number, value, user)
                if reads and user is op and says_effects(op) and self._is_a_view(value):
                    (number,) = numbers
                    is_all = value in self.number and name_of(user) not in _LOADS
                    read[number] = read.get(number, False) or is_all
        taken = self._taken_by_callees(op)
        for start in self.waits.get(op, ()):
            for value in _operands(start):
                touched.update(dict.fromkeys(self.may_be.get(value, ()), False))
        if leaves(op):
            touched.update(dict.fromkeys(self.results, False))
        if not touched and not taken:
            return None
        overwritten = [number for number, is_whole in touched.items() if is_whole]
        return Access(list(touched), overwritten, read, begun, written, taken)

    def _of_value(self, value: SSAValue, without: int) -> Sequence[int]:
        """The buffers that a value may be, but for some."""
        numbers = self.may_be.get(value, ())
        return [n for n in numbers if not without >> n & 1] if without else numbers

    def _check_free(self, free: memref.DeallocOp, inside: int, op: Operation) -> None:
        """Refuses to free what is not each iteration's own."""
        for index in self.frees.get(free.memref, ()):
            if self._of_memory(index) & ~inside:
                raise LocatedError(
                    f"memref.dealloc frees an arena inside {name_of(op)}, which may "
                    "run more than once at a time",
                    free,
                )

    def _check_user(
        self, user: Operation, tracked: Mapping[SSAValue, Sequence[int]]
    ) -> None:
        """Refuses what ends a buffer's life, and notes what hides its uses."""
        buffer = self.buffers[next(iter(tracked.values()))[0]]
        if any(user.operands[index] in tracked for index in freed(user)):
            raise LocatedError(
                f"{name_of(user)} frees buffer {buffer.name}, expected only its arena "
                "to be freed",
                user,
            )
        if leaves(user) and buffer.pool.owner in self.allocates:
            raise LocatedError(
                f"{name_of(user)} passes on an arena's buffer, expected none to "
                "outlive it",
                user,
            )
        if hides(user) or callee_hides(user):
            self.unchecked.add("addresses taken of buffers, uses not checked", user)
        elif not (
            says_effects(user)
            or passes_on(user)
            or asynchronous(user)
            or is_done_at_its_end(user)
            or callee_of(user)
        ):
            self.unchecked.add(
                "operations of unknown effect, taken to be over when they end", user
            )

    def _taken_by_callees(self, op: Operation) -> int:
        """Buffers in globals that share bytes with those of what is called."""
        bits = 0
        if not self.globals:
            return bits
        reached = [
            inner
            for call in (op, *operations_in(op))
            for inner in reached_from(call)
            if isinstance(inner, memref.GetGlobalOp)
        ]
        for memory in self.globals:
            for get in reached:
                if name_of_global(get.memref) == name_of_global(memory.value):
                    first, end = bytes_used(get, memory.size)
                    bits |= bits_of(
                        self.number[b.value]
                        for b in memory.buffers
                        if b.offset < end and first < b.offset + b.size
                    )
        return bits

    def _find_waits(self, body: Region) -> Mapping[Operation, Sequence[Operation]]:
        """What goes on until an operation."""
        waits: dict[Operation, list[Operation]] = {}
        function = body.parent_op()
        assert function is not None
        for start in operations_in(function):
            trait = asynchronous(start)
            if not trait or not any(v in self.may_be for v in _operands(start)):
                continue
            if wait := trait.wait_of(start):
                waits.setdefault(wait, []).append(start)
            else:
                self.unchecked.add("transfers whose wait is not known", start)
        return waits

    def _allocated_in(self, op: Operation) -> int:
        """The buffers of memories that are allocated inside an operation."""
        if not op.regions:
            return 0
        bits = 0
        for alloc, index in self.allocates.items():
            if op.is_ancestor(alloc):
                bits |= self._of_memory(index)
        return bits

    def _is_a_view(self, value: SSAValue) -> bool:
        """Whether a memref can't be other memory than a buffer's."""
        while value not in self.number:
            op = value.owner
            if isinstance(op, Block) or op.regions:
                return False
            sources = [operand for operand in op.operands if is_memref(operand)]
            if len(sources) != 1:
                return False
            (value,) = sources
        return True

    def _check_arguments(self) -> None:
        """No buffer may be made anew while a block's argument still stands for it."""
        for value, numbers in self.may_be.items():
            block = value.owner
            if not isinstance(block, Block) or block.parent is None:
                continue
            for number in numbers:
                view = self.buffers[number].value.owner
                inside = view.parent_block()  # of a result: where its function is
                assert inside is not None
                around = block.parent.find_ancestor_block_in_region(inside)
                if around is not None and dominates(block, around):
                    raise LocatedError(
                        f"buffer {self.buffers[number].name} is handed on to where it "
                        "is made anew",
                        cast(Operation, view),
                    )


def _members(memories: Sequence[MemoryPool]) -> dict[SSAValue, tuple[int, int]]:
    """The number of the first buffer of each memory, and how many it has."""
    members: dict[SSAValue, tuple[int, int]] = {}
    first = 0
    for memory in memories:
        members[memory.value] = first, len(memory.buffers)
        first += len(memory.buffers)
    return members


def _operands(op: Operation) -> Iterator[SSAValue]:
    """The operands of an operation and of those inside."""
    return (v for user in (op, *operations_in(op)) for v in user.operands)
