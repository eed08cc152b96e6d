"""Effects of operations on the buffers of memories, for plan-check.

    tgraph.add %a, %b outs(%c)     reads all of a and b, overwrites c
    memref.store %x, %a[%i]        accesses a, and writes some of it
    linalg.generic ... outs(%c)    as its traits and its body say
    scf.parallel { ... }           all accesses inside, in any order
    dma_wait %token                accesses again what the transfer accesses

This module rejects accesses that are wrong at any position: freeing a single buffer of
an arena, and creating a buffer where iterations run concurrently.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.ir import Operation, Region, SSAValue

from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.memory import (
    asynchronous,
    computes_with,
    ends_here,
    freed,
    is_done_at_its_end,
    overwrites,
    says_effects,
)
from .arenas import place_of
from .buffers import MemoryPool, bits_of
from .effects import (
    Callees,
    bytes_used,
    hides,
    is_over_at_its_end,
)
from .pointees import is_memref, is_return, only_forwards, operations_in
from .references import Moved, References
from .unchecked import Unchecked
from .written import Parts

_LOADS = ("memref.load", "affine.load")
"""Operations that read a single element."""


class Access(NamedTuple):
    """The effects of an operation on buffers, which are given by number."""

    touched: Sequence[int]
    overwritten: Sequence[int]
    """Buffers that it writes completely and does not read, unless a reference among
    `forwarded` refers to them."""
    read: Mapping[int, bool]  # buffers read before any write; whether completely
    needed: int  # buffers whose contents it computes with, as bits
    begun: int  # buffers that it writes, or may write, as bits
    written: int  # the parts of buffers that it writes completely, as bits of `Parts`
    taken: int = 0  # buffers that lose bytes to called functions
    reached: int = 0  # touched buffers and references, as bits
    forwarded: Sequence[SSAValue] = ()  # operands that are references
    rewritten: Sequence[SSAValue] = ()  # references that it may write


@dataclass
class _Collected:
    """The accesses of an operation as far as they are known; the fields are those of
    `Access`, if they do not say otherwise."""

    touched: dict[int, None] = field(default_factory=dict[int, None])
    own: dict[int, bool] = field(default_factory=dict[int, bool])
    """The buffers that it touches directly; whether it overwrites them completely."""
    read: dict[int, bool] = field(default_factory=dict[int, bool])
    needed: int = 0
    begun: int = 0
    written: int = 0
    reached: int = 0
    forwarded: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    """The references that it uses; whether it may write them."""

    def access(self, taken: int) -> Access:
        return Access(
            list(self.touched),
            [number for number, is_whole in self.own.items() if is_whole],
            self.read,
            self.needed,
            self.begun,
            self.written,
            taken,
            self.reached,
            list(self.forwarded),
            [value for value, is_written in self.forwarded.items() if is_written],
        )


class Memories:
    """Memories and their buffers, numbered consecutively. A set of buffers is a number
    with a bit for each."""

    def __init__(self, memories: Sequence[MemoryPool]):
        self.pools = memories
        self.buffers = buffers = [b for memory in memories for b in memory.buffers]
        self.number = {b.value: n for n, b in enumerate(buffers)}
        self.places = [(b.pool, b.offset, b.size) for b in buffers]
        self.members = _members(memories)
        self.blank = {m.value: None for m in memories if m.is_blank}
        self.given = bits_of(
            n for n, b in enumerate(buffers) if b.pool not in self.blank
        )
        """The buffers in memory that may have contents when the function starts."""
        self.shared = [(m, p) for m in memories if (p := place_of(m.value))]
        """Memories that called functions may use as well, and their places."""
        self.allocates = {
            cast(Operation, memory.value.owner): index
            for index, memory in enumerate(memories)
            if memory.is_new
        }
        """The memory that each operation allocates."""
        self.makes = {
            cast(Operation, b.value.owner): n
            for n, b in enumerate(buffers)
            if b.value is not b.pool
        }
        """The buffer that each operation makes."""
        self.of_caller = {m.value: m.caller for m in memories if m.caller}
        self.empty = [
            self.number[v] for v, m in self.of_caller.items() if not m.is_given
        ]
        """The buffers without contents when the function starts."""
        self.kept = [self.number[v] for v, m in self.of_caller.items() if m.is_kept]
        """The buffers that must have contents when the function ends."""

    def of_memory(self, index: int) -> int:
        """The buffers of a memory, as bits."""
        first, count = self.members[self.pools[index].value]
        return ((1 << count) - 1) << first

    def first(self, bits: int) -> int:
        """The lowest number in a set of buffers."""
        return (bits & -bits).bit_length() - 1

    def allocated_in(self, op: Operation) -> int:
        """The buffers of memories that are allocated inside of `op`, as bits."""
        if not op.regions:
            return 0
        bits = 0
        for alloc, index in self.allocates.items():
            if op.is_ancestor(alloc):
                bits |= self.of_memory(index)
        return bits


class Accesses:
    """The effects of each operation of a function on buffers.

    `may_be` has the buffers, and `frees` the memories, that each memref may refer to.
    """

    def __init__(
        self,
        body: Region,
        memories: Memories,
        may_be: Mapping[SSAValue, Sequence[int]],
        frees: Mapping[SSAValue, Sequence[int]],
        callees: Callees,
        unchecked: Unchecked,
    ):
        self.memories = memories
        self.may_be = may_be
        self.frees = frees
        self.unchecked = unchecked
        self.callees = callees
        self.parts = Parts(memories.buffers, may_be)
        self.found: dict[Operation, Access | None] = {}
        self._views = dict.fromkeys(memories.number, True)
        """Whether a memref is part of exactly one buffer."""
        ends = self._find_waits(body)
        self.waits: dict[Operation, list[Operation]] = {}
        """The operations that are in flight until each wait."""
        for start, waits in ends.items():
            for wait in waits:
                self.waits.setdefault(wait, []).append(start)
        self.moved = {
            start: [Moved(start, v) for v in start.operands if v in may_be]
            for start, waits in ends.items()
            if not ends_here(start, waits)
        }
        """Operands of transfers whose wait is in another block or iteration."""
        self.references = References(
            *(body, len(memories.buffers), memories.number, may_be),
            {m: may_be[m.value] for moved in self.moved.values() for m in moved},
        )

    def of(self, op: Operation) -> Access | None:
        """The effects of `op` on buffers; None if it accesses none."""
        if op not in self.found:
            self.found[op] = self._access(op)
        return self.found[op]

    def _access(self, op: Operation) -> Access | None:
        found = _Collected()
        inside = self.memories.allocated_in(op)
        outside = ~self.references.expanded(inside)
        is_unknown = bool(op.regions) and not is_over_at_its_end(op)
        for user in (op, *operations_in(op)):
            self._check_created(user, inside, op)
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
            if only_forwards(user):
                continue
            for value, numbers in tracked.items():
                self._add_operand(found, op, user, value, numbers, outside)
        taken = self._taken_by_callees(op)
        if taken & bits_of(found.touched):
            self.unchecked.add("calls that pass memory which the function uses too", op)
        self._add_transfers(found, op)
        if is_return(op):
            found.touched.update(dict.fromkeys(self.memories.kept))
            found.reached |= bits_of(self.memories.kept)
        return found.access(taken) if found.touched or taken else None

    def _add_operand(
        self,
        found: "_Collected",
        op: Operation,
        user: Operation,
        value: SSAValue,
        numbers: Sequence[int],
        outside: int,
    ) -> None:
        """Adds what `user`, which is `op` or nested in it, does with its operand
        `value`, which may refer to the buffers `numbers`. `outside`: the buffers and
        references that are not allocated inside of `op`, as bits."""
        reads, writes = self.callees.effects_of(user, value)
        if not (reads or writes):
            return
        is_buffer = value in self.memories.number
        is_whole = is_buffer and user is op and overwrites(op, value)
        found.reached |= (known := self.references.reach[value] & outside)
        if known & ~self.references.buffers:
            found.forwarded[value] = found.forwarded.get(value, False) or writes
        for number in numbers:
            found.touched[number] = None
            if known >> number & 1:
                found.own[number] = found.own.get(number, True) and is_whole
            if writes:
                found.begun |= 1 << number
                found.written |= self.parts.written(number, value, user)
        if reads and user is op and says_effects(op) and self._is_a_view(value):
            (number,) = numbers
            is_all = is_buffer and name_of(user) not in _LOADS
            found.read[number] = found.read.get(number, False) or is_all
            found.needed |= computes_with(op, value) << number

    def _add_transfers(self, found: "_Collected", op: Operation) -> None:
        """Adds the accesses of transfers that `op` waits for."""
        for start in self.waits.get(op, ()):
            for value in _operands(start):
                numbers = self.may_be.get(value, ())
                found.touched.update(dict.fromkeys(numbers))
                if start not in self.moved:
                    found.own.update(dict.fromkeys(numbers, False))
                    found.reached |= self.references.reach.get(value, 0)
                else:
                    found.reached |= self.references.of.get(Moved(start, value), 0)

    def _of_value(self, value: SSAValue, without: int) -> Sequence[int]:
        """The buffers that `value` may refer to, without those in `without`."""
        numbers = self.may_be.get(value, ())
        return [n for n in numbers if not without >> n & 1] if without else numbers

    def _check_created(self, user: Operation, inside: int, op: Operation) -> None:
        """Raises `LocatedError` if an iteration creates a buffer outside of its own
        memory."""
        made = self.memories.makes.get(user)
        if made is not None and not inside >> made & 1:
            raise LocatedError(
                f"buffer {self.memories.buffers[made].name} is created inside "
                f"{name_of(op)}, which may run concurrently with itself",
                user,
            )

    def _check_free(self, free: memref.DeallocOp, inside: int, op: Operation) -> None:
        """Raises `LocatedError` if an iteration frees memory it has not allocated."""
        for index in self.frees.get(free.memref, ()):
            if self.memories.of_memory(index) & ~inside:
                raise LocatedError(
                    f"memref.dealloc frees an arena inside {name_of(op)}, which may "
                    "run concurrently with itself",
                    free,
                )

    def _check_user(
        self, user: Operation, tracked: Mapping[SSAValue, Sequence[int]]
    ) -> None:
        """Raises `LocatedError` if `user` frees a buffer alone, or returns one of a
        local arena. Notes operations that hide uses of buffers."""
        buffer = self.memories.buffers[next(iter(tracked.values()))[0]]
        if any(user.operands[index] in tracked for index in freed(user)):
            raise LocatedError(
                f"{name_of(user)} frees buffer {buffer.name}, expected only its arena "
                "to be freed",
                user,
            )
        if is_return(user) and buffer.pool.owner in self.memories.allocates:
            raise LocatedError(
                f"{name_of(user)} forwards a buffer of an arena, "
                "expected no buffer to outlive its arena",
                user,
            )
        if hides(user) or self.callees.hide(user):
            self.unchecked.add("escaping addresses of buffers, uses not checked", user)
        elif not (
            says_effects(user)
            or only_forwards(user)
            or asynchronous(user)
            or is_done_at_its_end(user)
            or self.callees.of(user)
        ):
            self.unchecked.add(
                "operations with unknown effects, assumed to end when they return", user
            )

    def _taken_by_callees(self, op: Operation) -> int:
        """The buffers in globals or at addresses that share bytes with memory of called
        functions, as bits."""
        bits = 0
        if not self.memories.shared:
            return bits
        reached = [
            (value, place)
            for call in (op, *operations_in(op))
            for value in self.callees.memories_of(call)
            if (place := place_of(value))
        ]
        for memory, (name, start) in self.memories.shared:
            for value, place in reached:
                if place.name == name:
                    shift = place.start - start
                    first, end = bytes_used(value, shift)
                    bits |= bits_of(
                        self.memories.number[b.value]
                        for b in memory.buffers
                        if b.offset < end and first < b.offset + b.size
                    )
        return bits

    def _find_waits(self, body: Region) -> Mapping[Operation, Sequence[Operation]]:
        """The asynchronous operations on buffers, each with its waits."""
        ends: dict[Operation, Sequence[Operation]] = {}
        function = body.parent_op()
        assert function is not None
        for start in operations_in(function):
            trait = asynchronous(start)
            if not trait or not any(v in self.may_be for v in _operands(start)):
                continue
            if waits := trait.waits_of(start):
                ends[start] = waits
            elif trait.transfer_of(start) is None:  # operands.py has the others
                self.unchecked.add("transfers without a known wait", start)
        return ends

    def _is_a_view(self, value: SSAValue) -> bool:
        """Whether a memref is known to be a view of one buffer."""
        passed: list[SSAValue] = []
        while value not in self._views:
            passed.append(value)
            op = value.owner
            sources: list[SSAValue] = []
            if isinstance(op, Operation) and not op.regions:
                sources = [operand for operand in op.operands if is_memref(operand)]
            if len(sources) != 1:
                self._views[value] = False
            else:
                (value,) = sources
        is_view = self._views[value]
        self._views.update(dict.fromkeys(passed, is_view))
        return is_view


def _members(memories: Sequence[MemoryPool]) -> dict[SSAValue, tuple[int, int]]:
    """The number of the first buffer of each memory, and the number of its buffers."""
    members: dict[SSAValue, tuple[int, int]] = {}
    first = 0
    for memory in memories:
        members[memory.value] = first, len(memory.buffers)
        first += len(memory.buffers)
    return members


def _operands(op: Operation) -> Iterator[SSAValue]:
    """The operands of `op` and of the operations nested in it."""
    return (v for user in (op, *operations_in(op)) for v in user.operands)
