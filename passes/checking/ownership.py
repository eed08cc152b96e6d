"""Who has the bytes of an arena, on all paths of a function: a part of plan-check.

    %a = memref.view %arena[%c0]     a: not used yet
    tgraph.negate ... outs(%a)       a has its bytes
    scf.if %c {
      %b = memref.view %arena[%c0]
      tgraph.negate ... outs(%b)     b has them, a has lost them
    }
    tgraph.tanh %a ...               fault: on one path a has lost them

Walks the operations in the order in which they run, with three sets of buffers: those
used since their view was made, those that have lost bytes since, those whose arena was
freed. Where paths meet the sets are united; loops are walked until nothing is new. A
buffer that has lost bytes may only be overwritten as a whole. Concurrent loops count as
one operation. A result whose memory is a pool is used when its function ends. Shares no
code with what plans.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, Region, SSAValue

from tensorplan.dialects.diagnostics import LocatedError, name_of
from tensorplan.dialects.memory import destinations, effects_on, overwrites
from tensorplan.passes.checking.pointees import (
    LOOPS,
    dominates,
    is_memref,
    leaves,
    passes_on,
)

_ONE_REGION_RUNS = (
    "scf.if",
    "scf.index_switch",
    "affine.if",
    "scf.execute_region",
    "memref.alloca_scope",
)


class ArenaBuffer(NamedTuple):
    """A view of an arena, or of a result's memory, or a result itself."""

    name: str
    value: SSAValue
    pool: SSAValue  # the arena, or the result
    offset: int  # bytes
    size: int  # bytes


class Access(NamedTuple):
    """What an operation does to buffers, by their numbers."""

    touched: Sequence[int]
    overwritten: Sequence[int]  # as a whole, and nothing of them is read
    read: Sequence[int]  # surely, before they are written


class _State(NamedTuple):
    """Sets of buffers, a bit for each."""

    used: int = 0
    lost: int = 0
    freed: int = 0

    def united(self, other: "_State") -> "_State":
        return _State(
            self.used | other.used, self.lost | other.lost, self.freed | other.freed
        )


class Sharing(Protocol):
    """Which buffers share bytes with which."""

    def with_(self, number: int) -> int:
        """The buffers that share bytes with one, without itself, as bits."""
        ...


def check_owners(
    body: Region,
    buffers: Sequence[ArenaBuffer],
    may_be: Mapping[SSAValue, Sequence[int]],
    sharing: Sharing | None = None,
) -> Mapping[Operation, Access]:
    """The operations that access buffers, which are next to others of their arena.

    Which buffers share bytes is as their offsets and sizes say, or as `sharing` does.

    Raises `LocatedError` if a buffer may be used while its bytes are not its own.
    """
    walk = _Walk(buffers, may_be, sharing)
    walk.region(body, _State())
    return {op: access for op, access in walk.accesses.items() if access}


class _Walk:
    def __init__(
        self,
        buffers: Sequence[ArenaBuffer],
        may_be: Mapping[SSAValue, Sequence[int]],
        sharing: Sharing | None,
    ):
        self.buffers = buffers
        self.may_be = may_be
        self.number = {b.value: n for n, b in enumerate(buffers)}
        self.results = [n for n, b in enumerate(buffers) if b.value is b.pool]
        self.makes = {
            b.value.owner: n
            for n, b in enumerate(buffers)
            if isinstance(b.value.owner, Operation)
        }
        self.arenas = _numbers_by_arena(buffers)
        self.sharing = sharing or _Sharing(buffers, self.arenas)
        self.accesses: dict[Operation, Access | None] = {}
        self._check_arguments()

    def region(self, region: Region, state: _State) -> _State:
        """The state behind a region, given that before it."""
        first = region.first_block
        if first is None:
            return state
        if first.next_block is None:
            return self._block(first, state)
        before = {first: state}
        behind: _State | None = None
        pending = [first]
        while pending:
            block = pending.pop()
            after = self._block(block, before[block])
            terminator = block.last_op
            successors = terminator.successors if terminator else ()
            if not successors:
                behind = after if behind is None else behind.united(after)
            for successor in successors:
                known = before.get(successor)
                met = after if known is None else known.united(after)
                if met != known:
                    before[successor] = met
                    pending.append(successor)
        return behind or state

    def _block(self, block: Block, state: _State) -> _State:
        for op in block.ops:
            name = name_of(op) if op.regions else ""
            if name in _ONE_REGION_RUNS:
                first, *others = (self.region(region, state) for region in op.regions)
                state = first
                for other in others:
                    state = state.united(other)
            elif name in LOOPS:
                state = self._loop(op.regions[0], None, state)
            elif name == "scf.while":
                state = self._loop(op.regions[0], op.regions[1], state)
            elif op in self.makes:
                state = self._make(op, state)
            elif isinstance(op, memref.DeallocOp) and op.memref in self.arenas:
                first, count = self.arenas[op.memref]
                freed = ((1 << count) - 1) << first
                state = state._replace(freed=state.freed | freed)
            else:
                state = self._access(op, state)
        return state

    def _loop(self, region: Region, then: Region | None, state: _State) -> _State:
        """Behind a loop: of `for`, which may run no iteration; `while` has `then`."""
        while True:
            behind = end = self.region(region, state)
            if then is not None:
                end = self.region(then, behind)
            again = state.united(end)
            if again == state:
                return behind if then is not None else state
            state = again

    def _make(self, view: Operation, state: _State) -> _State:
        """A view is made: what its bytes held before is of no interest."""
        bit = 1 << self.makes[view]
        if state.freed & bit:
            raise LocatedError("buffer is made after its arena was freed", view)
        return _State(state.used & ~bit, state.lost & ~bit, state.freed)

    def _access(self, op: Operation, state: _State) -> _State:
        if op not in self.accesses:
            self.accesses[op] = self._accesses_of(op)
        access = self.accesses[op]
        if access is None:
            return state
        used, lost, freed = state
        touched = _bits(access.touched)
        if touched & freed:
            raise LocatedError(
                f"{name_of(op)} uses buffer {self._name(touched & freed)} after its "
                "arena was freed",
                op,
            )
        if access.overwritten:
            lost &= ~_bits(access.overwritten)
        if touched & lost:
            raise self._fault(op, touched & lost, used & ~lost)
        for number in access.read:
            if not used >> number & 1:
                raise LocatedError(
                    f"{name_of(op)} reads buffer {self.buffers[number].name}, expected "
                    "a write before",
                    op,
                )
        others = 0
        for number in access.touched:
            others |= self.sharing.with_(number)
        if others & touched:
            raise self._fault(op, others & touched, touched)
        return _State(used | touched, lost | (others & used), freed)

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
        if not isinstance(self.sharing, _Sharing):
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
        read: list[int] = []
        for user, value in _operands(op):
            if user in self.makes:
                raise LocatedError(
                    f"buffer {self.buffers[self.makes[user]].name} is made inside "
                    f"{name_of(op)}, which may run more than once at a time",
                    user,
                )
            if not (numbers := self.may_be.get(value)):
                continue
            if isinstance(user, memref.DeallocOp):
                raise LocatedError(
                    f"memref.dealloc frees buffer {self.buffers[numbers[0]].name}, "
                    "expected only its arena to be freed",
                    user,
                )
            if leaves(user):
                raise LocatedError(
                    f"{name_of(user)} passes on an arena's buffer, expected none to "
                    "outlive it",
                    user,
                )
            if passes_on(user):
                continue
            is_whole = value in self.number and overwrites(op, value)
            for number in numbers:
                touched[number] = touched.get(number, True) and is_whole
            if _surely_reads(op, value) and self._is_a_view(value):
                read.append(numbers[0])
        if leaves(op):
            touched.update(dict.fromkeys(self.results, False))
        if not touched:
            return None
        overwritten = [number for number, is_whole in touched.items() if is_whole]
        return Access(list(touched), overwritten, read)

    def _is_a_view(self, value: SSAValue) -> bool:
        """Whether a memref can't be other memory than a buffer's."""
        while isinstance(op := value.owner, Operation) and op not in self.makes:
            sources = [operand for operand in op.operands if is_memref(operand)]
            if len(sources) != 1 or op.regions:
                return False
            (value,) = sources
        return isinstance(op, Operation)

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


class _Sharing:
    """Which buffers share bytes with which."""

    def __init__(
        self, buffers: Sequence[ArenaBuffer], arenas: Mapping[SSAValue, tuple[int, int]]
    ):
        self._bytes = [(b.pool, b.offset, b.offset + b.size) for b in buffers]
        self._sets: dict[tuple[SSAValue, int, int], int] = {}
        for first, count in arenas.values():
            self._add([n for n in range(first, first + count) if buffers[n].size])

    def with_(self, number: int) -> int:
        """The buffers that share bytes with one, without itself, as bits."""
        return self._sets.get(self._bytes[number], 0) & ~(1 << number)

    def _add(self, numbers: Sequence[int]) -> None:
        by_end = sorted(numbers, key=lambda n: self._bytes[n][2])
        ended = index = 0
        begun: dict[tuple[SSAValue, int, int], int] = {}
        for number in sorted(numbers, key=lambda n: self._bytes[n][1]):
            key = self._bytes[number]
            while self._bytes[by_end[index]][2] <= key[1]:
                ended |= 1 << by_end[index]
                index += 1
            begun.setdefault(key, ended)
        started = index = 0
        by_start = sorted(numbers, key=lambda n: self._bytes[n][1])
        for key in sorted(begun, key=lambda key: key[2]):
            while index < len(by_start) and self._bytes[by_start[index]][1] < key[2]:
                started |= 1 << by_start[index]
                index += 1
            self._sets[key] = started & ~begun[key]


def _numbers_by_arena(
    buffers: Sequence[ArenaBuffer],
) -> dict[SSAValue, tuple[int, int]]:
    """The number of the first buffer of each pool, and how many it has."""
    arenas: dict[SSAValue, tuple[int, int]] = {}
    for number, buffer in enumerate(buffers):
        first, count = arenas.get(buffer.pool, (number, 0))
        arenas[buffer.pool] = first, count + 1
    return arenas


def _operands(op: Operation) -> Iterator[tuple[Operation, SSAValue]]:
    """The operands of an operation and of those inside, with whose they are."""
    return ((user, value) for user in op.walk() for value in user.operands)


def _bits(numbers: Sequence[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _surely_reads(op: Operation, value: SSAValue) -> bool:
    """Whether the operation reads `value` before it writes it, if it does."""
    says = isinstance(op, memref.LoadOp) or destinations(op)
    return bool(says) and effects_on(op, value)[0]
