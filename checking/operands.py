"""Checks the operands that an operation overwrites, for plan-check: in-place decisions.

    tgraph.negate %x outs(%x)     sound: each element is read, then written
    tgraph.reverse %x outs(%x)    fault: elements are read after they were overwritten
    tgraph.negate %u outs(%v)     fault, if %u and %v are overlapping parts of %x;
                                  sound, if they are two buffers at the same place

Each destination must be disjoint from every other operand, or have exactly the same
layout as an operand that the operation declares it may overwrite. plan-check proves the
declaration of a fusion from its body: an element of the result may depend only on the
same element of the operand, or on elements in its row. If the body ends with an update
of a slice, it may read the same slice of the same operand.

While a transfer is in flight, from a `memref.dma_start` to its wait, no operation may
write its source, or read or write its target. Shares no code with the passes that make
these decisions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from itertools import combinations

from xdsl.dialects import memref
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..analysis.forwarding import CONCURRENT
from ..analysis.functions import arena_arguments
from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.memory import (
    Transfer,
    asynchronous,
    check_dma_start,
    effects_on,
    ends_here,
    freed,
    idle_wait,
    is_barrier,
    overwritable,
    says_effects,
    transfer_of,
    written_operands,
)
from ..dialects.tgraph.base import is_static, shape_of, tensor_type_of
from ..dialects.tgraph.elementwise import ElementwiseOp
from ..dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    ScatterOp,
)
from ..dialects.tgraph.reducing import ReduceOp
from ..dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ReshapeOp
from ..dialects.tgraph.structure import FusionOp
from .buffers import ArenaBuffer, bits_of, name_of_global, origin_of
from .effects import Callees
from .extents import Extent, extent_of, reach_of
from .ownership import Meeting, Ownership
from .pointees import is_memref, may_be, only_forwards, operations_in
from .ranges import Known
from .references import Moved
from .unchecked import Unchecked
from .under_way import under_way


def check_operands(
    func: FuncOp,
    buffers: Sequence[ArenaBuffer],
    owners: Ownership,
    known: Known,
    callees: Callees,
    unchecked: Unchecked,
) -> None:
    """Raises `LocatedError` for an operation that overwrites operands it still reads.

    `buffers` are those in arenas and arguments. They count as separate memory, except
    where they share bytes. `owners` describes the references that control flow
    forwards.
    """
    placed = {buffer.value: buffer for buffer in buffers}
    sources = bases(func, list(placed), callees)
    aliases = may_be({b: n for n, b in enumerate(sources)}, set(sources))
    checker = _Checker(sources, placed, aliases, owners, callees)
    uses = _Uses(func, aliases, callees)
    divided = _Divided(unchecked)
    for op in operations_in(func):
        if is_barrier(op):
            unchecked.add("barriers of several agents, order not checked", op)
        if written := written_operands(op):
            checker.check(op, written, known, unchecked)
            for index in written:
                divided.add(op.operands[index])
        elif isinstance(op, CallOp):
            checker.check_call(op, known, unchecked)
        if transfer := transfer_of(op):
            checker.check_transfer(op, transfer, uses, known, unchecked)
        elif fault := idle_wait(op):
            raise LocatedError(*fault)


def bases(
    func: FuncOp, buffers: Sequence[SSAValue], callees: Callees
) -> list[SSAValue]:
    """The buffers, and every other memref that is derived from no memref."""
    found = dict.fromkeys((*buffers, *callees.new_in(func)))
    for argument in func.body.blocks[0].args:
        found[argument] = None
    for op in operations_in(func):
        if any(map(is_memref, op.operands)) or op.regions:
            continue
        found.update(
            dict.fromkeys(result for result in op.results if is_memref(result))
        )
    return [value for value in found if is_memref(value)]


_MAY_DISTURB = "accesses that a transfer under way may disturb"


def _is_concurrent(start: Operation) -> bool:
    """Whether concurrent iterations start transfers with the same tag."""
    *_, tag = filter(is_memref, start.operands)
    around = start.parent_op()
    while around is not None and not around.is_ancestor(tag.owner):
        if name_of(around) in CONCURRENT:
            return True
        around = around.parent_op()
    return False


class _Uses:
    """The memrefs and globals that the operations of a function use."""

    def __init__(
        self,
        func: FuncOp,
        may_be: Mapping[SSAValue, Sequence[int]],
        callees: Callees,
    ):
        self._uses: dict[Operation, list[tuple[SSAValue, int]]] = {}
        """The memref operands of each operation, each with its memories as bits."""
        self._calls: dict[Operation, frozenset[str]] = {}
        """Calls of functions that use globals, with the names of the globals."""
        for op in operations_in(func):
            for value in dict.fromkeys(filter(is_memref, op.operands)):
                bits = bits_of(may_be.get(value, ()))
                self._uses.setdefault(op, []).append((value, bits))
            made = map(name_of_global, callees.memories_of(op))
            if names := frozenset(filter(None, made)):
                self._calls[op] = names

    def of(
        self, ops: Iterable[Operation], values: Sequence[SSAValue], bits: int
    ) -> Iterator[tuple[Operation, SSAValue]]:
        """The uses in `ops` of `values`, or of memrefs that may be in `bits`."""
        for user in ops:
            for value, memories in self._uses.get(user, ()):
                if memories & bits or value in values:
                    yield user, value

    def calls_in(
        self, ops: Iterable[Operation], names: set[str]
    ) -> Iterator[Operation]:
        """The operations that call functions that use globals of these names."""
        for op in ops:
            if self._calls.get(op, frozenset()) & names:
                yield op


@dataclass(frozen=True, slots=True)
class _Now:
    """An operation that runs while a transfer is in flight."""

    start: Operation
    user: Operation
    is_later: bool  # whether it runs in a later iteration than the start
    is_local_wait: bool  # whether the wait follows in the block of the start

    def is_anew(self, base: SSAValue) -> bool:
        """Whether each iteration has its own instance of the memory `base`."""
        maker = base.owner
        is_in_function = isinstance(maker, Block) or (
            isinstance(maker.parent_op(), FuncOp)
        )
        return self.is_later and not is_in_function


class _Checker:
    def __init__(
        self,
        bases: Sequence[SSAValue],
        placed: Mapping[SSAValue, ArenaBuffer],
        may_be: Mapping[SSAValue, Sequence[int]],
        owners: Ownership,
        callees: Callees,
    ):
        self._bases = bases
        self._placed = placed
        self._may_be = may_be
        self._owners = owners
        self._callees = callees
        self._sharing = cache(self._find_sharing)

    def check(
        self, op: Operation, written: Sequence[int], known: Known, unchecked: Unchecked
    ) -> None:
        allowed: Sequence[int] | None = None
        for position, target in enumerate(written):
            for index, value in enumerate(op.operands):
                if not is_memref(value) or (index in written and index <= target):
                    continue
                relation = self._relation(op.operands[target], value, known)
                if relation is _Relation.DISJOINT:
                    continue
                if allowed is None:
                    allowed = _proved(op, overwritable(op))
                if relation is _Relation.EQUAL and position == 0 and index in allowed:
                    continue
                what = f"operand {index}"
                self._refuse(op, target, what, relation, unchecked)
            for value, _ in _inside(op):
                relation = self._relation(op.operands[target], value, known)
                if relation is not _Relation.DISJOINT:
                    what = "what its region reads"
                    self._refuse(op, target, what, relation, unchecked)

        for value, is_written in _inside(op):
            for index in range(len(op.operands)) if is_written else ():
                relation = self._relation(op.operands[index], value, known)
                if relation is not _Relation.DISJOINT:
                    unchecked.add("regions that write operands of their operation", op)

    def check_call(self, op: Operation, known: Known, unchecked: Unchecked) -> None:
        """Checks that a call passes no memory twice, as functions assume."""
        callee = self._callees.of(op)
        arenas = {a.index for a in arena_arguments(callee)} if callee else set[int]()
        given = [n for n, value in enumerate(op.operands) if is_memref(value)]
        for first, second in combinations(given, 2):
            a, b = op.operands[first], op.operands[second]
            relation = self._relation(a, b, known)
            if relation is _Relation.DISJOINT:
                continue
            if relation is _Relation.UNKNOWN or not {first, second} & arenas:
                unchecked.add("calls that pass the same memory twice", op)
                continue
            raise LocatedError(
                f"{name_of(op)} passes memory of its operand {first} as operand "
                f"{second} too, expected an arena that nothing else shares",
                op,
            )

    def check_transfer(
        self,
        start: Operation,
        transfer: Transfer,
        uses: _Uses,
        known: Known,
        unchecked: Unchecked,
    ) -> None:
        """Checks that nothing else writes source or uses target before the wait."""
        trait = asynchronous(start)
        assert trait is not None
        if fault := trait.fault_of(start):
            check_dma_start(start)
            raise LocatedError(*fault)
        waits = trait.waits_of(start)
        if not waits or _is_concurrent(start):
            unchecked.add("transfers without a known wait", start)
            return
        if not trait.is_local_wait(start):
            unchecked.add("transfers with a tag that callers may use too", start)
        names = self._globals(transfer.source) | self._globals(transfer.target)
        moved = transfer.source, transfer.target
        memories = 0
        for number in (n for value in moved for n in self._may_be.get(value, ())):
            memories |= self._sharing(number)
        beside, is_here = under_way(start, waits), ends_here(start, waits)
        for call in uses.calls_in(beside, names):
            unchecked.add(_MAY_DISTURB, call)
        for user, value in uses.of(beside, moved, memories):
            now = _Now(start, user, beside[user], is_here)
            fault = self._interferes(value, transfer, now, known)
            if fault is None or only_forwards(user):
                continue
            if fault:
                raise LocatedError(
                    f"{name_of(user)} {fault} of {name_of(start)} before "
                    f"{name_of(waits[0])}, expected no such access until the wait",
                    user,
                )
            unchecked.add(_MAY_DISTURB, user)

    def _find_sharing(self, number: int) -> int:
        """The memrefs that may share bytes with one, including itself, as bits."""
        base = self._bases[number]
        name, placed = name_of_global(base), self._placed.get(base)
        bits = 1 << number
        for other, value in enumerate(self._bases):
            of_other = self._placed.get(value)
            if (placed and of_other and placed.overlaps(of_other)) or (
                name and name == name_of_global(value)
            ):
                bits |= 1 << other
        return bits

    def _globals(self, value: SSAValue) -> set[str]:
        """The names of the globals that a memref may refer to."""
        names = (name_of_global(self._bases[n]) for n in self._may_be.get(value, ()))
        return {name for name in names if name}

    def _interferes(
        self, value: SSAValue, transfer: Transfer, now: _Now, known: Known
    ) -> str | None:
        """The conflict between an access of `value` and a transfer in flight; "" if it
        is not known, and None if there is none."""
        user = now.user
        reads, writes = self._callees.effects_of(user, value)
        writes |= any(user.operands[index] is value for index in freed(user))
        checks = (
            (transfer.source, writes, "writes the source", transfer.reads_all),
            (transfer.target, writes, "writes the target", transfer.fills),
            (transfer.target, reads, "reads the target", transfer.fills),
        )
        is_known = says_effects(user) or self._callees.of(user)
        found = None
        for memory, does, fault, is_whole in checks:
            relation = does and self._relation_while(now, memory, value, known)
            if not relation:  # no access, or disjoint
                continue
            if relation is not _Relation.UNKNOWN and is_whole and is_known:
                return fault
            found = ""
        return found

    def _relation_while(
        self, now: _Now, moved: SSAValue, value: SSAValue, known: Known
    ) -> "_Relation":
        """The relation of a memref of a transfer and a memref of an operation. In
        another iteration, the same value may be another memref."""
        if now.is_local_wait:
            return self._relation(moved, value, known)
        first, second = (
            set(self._may_be.get(moved, ())),
            set(self._may_be.get(value, ())),
        )
        is_placed = all(self._bases[n] in self._placed for n in first | second)
        if is_placed and now.start in self._owners.accesses:
            key = Moved(now.start, moved), now.user, value
            meeting = self._owners.meetings.get(key, Meeting.APART)
            if meeting is not Meeting.UNKNOWN:
                is_same = meeting is Meeting.SAME
                return _Relation.EQUAL if is_same else _Relation.DISJOINT
        if not first & second:
            return self._relation(moved, value, known)
        if any(now.is_anew(self._bases[number]) for number in first & second):
            return _Relation.UNKNOWN
        return self._relation_of_parts(moved, value, known)

    def _refuse(
        self,
        op: Operation,
        target: int,
        what: str,
        relation: "_Relation",
        unchecked: Unchecked,
    ) -> None:
        if relation is _Relation.UNKNOWN:
            unchecked.add("operations that may overwrite their own inputs", op)
            return
        raise LocatedError(
            f"{name_of(op)} writes operand {target} over {what} before reading all of "
            "it, expected separate memory"
            if relation is _Relation.EQUAL
            else f"{name_of(op)} writes operand {target} over part of {what}, "
            "expected separate memory",
            op,
        )

    def _relation(self, a: SSAValue, b: SSAValue, known: Known) -> "_Relation":
        first, second = self._may_be.get(a, ()), self._may_be.get(b, ())
        if a is b:
            return _Relation.EQUAL
        common = {self._bases[number] for number in set(first) & set(second)}
        if (a, b) in self._owners.given:  # may be at the same place
            return max(self._across(a, m, b, n) for m in first for n in second)
        if (a, b) in self._owners.apart and common <= self._placed.keys():
            return _Relation.DISJOINT
        if not common:
            return max(
                (self._across(a, m, b, n) for m in first for n in second),
                default=_Relation.DISJOINT,
            )
        return self._relation_of_parts(a, b, known)

    def _relation_of_parts(self, a: SSAValue, b: SSAValue, known: Known) -> "_Relation":
        """The relation of parts of one buffer, in any iterations."""
        first, second = self._may_be.get(a, ()), self._may_be.get(b, ())
        if len(first) > 1 or len(second) > 1:
            return _Relation.UNKNOWN
        base = self._bases[first[0]]
        x, y = extent_of(a, base), extent_of(b, base)
        if x and y:
            return _of_bytes(x, y)
        r, s = reach_of(a, base, known), reach_of(b, base, known)
        if r and s and (r.most < s.least or s.most < r.least):
            return _Relation.DISJOINT
        return _Relation.UNKNOWN

    def _across(self, a: SSAValue, m: int, b: SSAValue, n: int) -> "_Relation":
        """The relation of memrefs in two buffers, which may share bytes."""
        name = name_of_global(self._bases[m])
        if name and name == name_of_global(self._bases[n]):
            return _Relation.UNKNOWN
        one, other = (self._placed.get(self._bases[number]) for number in (m, n))
        if one is None or other is None or not one.overlaps(other):
            return _Relation.DISJOINT
        x, y = extent_of(a, one.value), extent_of(b, other.value)
        if x is None or y is None:
            return _Relation.OVERLAPPING
        return _of_bytes(
            replace(x, start=x.start + one.offset),
            replace(y, start=y.start + other.offset),
        )


def _inside(op: Operation) -> Iterator[tuple[SSAValue, bool]]:
    """The memref operands of operations nested in `op`, and if each is written."""
    for inner in operations_in(op):
        for value in filter(is_memref, inner.operands):
            yield value, effects_on(inner, value)[1]


class _Divided:
    """Finds typed allocations that are divided like arenas: they have overlapping views
    that are each written completely. Each counts as one memory."""

    def __init__(self, unchecked: Unchecked):
        self._unchecked = unchecked
        self._views: dict[SSAValue, dict[SSAValue, Extent]] = {}

    def add(self, view: SSAValue) -> None:
        op, base = view.owner, view
        while isinstance(op, memref.SubviewOp | memref.ReinterpretCastOp):
            base = origin_of(op.operands[0])
            op = base.owner
        if base is view or not isinstance(op, memref.AllocOp | memref.AllocaOp):
            return
        known = self._views.setdefault(base, {})
        extent = extent_of(view, base)
        if extent is None or view in known:
            return
        if any(extent.overlaps(other) for other in known.values()):
            what = "typed memories with overlapping views, checked as one"
            self._unchecked.add(what, op)
        known[view] = extent


class _Relation(IntEnum):
    """The relation of the bytes of two memrefs."""

    DISJOINT = 0
    EQUAL = 1  # the same bytes at each index
    OVERLAPPING = 2
    UNKNOWN = 3


def _of_bytes(x: Extent, y: Extent) -> _Relation:
    if not x.overlaps(y):
        return _Relation.DISJOINT
    return _Relation.EQUAL if x.is_like(y) else _Relation.OVERLAPPING


class _Dependence(IntEnum):
    """The elements of an operand on which an element of a value may depend."""

    NOTHING = 0
    POSITION = 1  # the element at the same position
    ROW = 2  # the elements of the same row
    ANYTHING = 3


def _proved(op: Operation, declared: Sequence[int]) -> Sequence[int]:
    """The operands that `op` may overwrite; for a fusion, only the proved ones."""
    if not isinstance(op, FusionOp):
        return declared
    if not all(is_static(tensor_type_of(a.type)) for a in op.body.block.args):
        declared = range(len(op.inputs))  # a fusion declares none for unknown sizes
    return [n for n in declared if _dependence(op, n) < _Dependence.ANYTHING]


def _dependence(fusion: FusionOp, index: int) -> _Dependence:
    """The dependence of a fusion's first result on an operand."""
    block = fusion.body.block
    values: dict[SSAValue, _Dependence] = {
        argument: _Dependence.NOTHING for argument in block.args
    }
    whole = block.args[index]
    values[whole] = _Dependence.POSITION
    rows = {_rows(op) for op in block.ops if isinstance(op, ReduceOp)}
    last = fusion.yielded[0].owner
    for op in block.ops:
        most = max((values[v] for v in op.operands), default=_Dependence.NOTHING)
        if isinstance(last, DynamicUpdateSliceOp) and last.inputs[0] is whole:
            # From here on, positions are those within the slice.
            if op is last:
                return max(values[value] for value in last.inputs)
            if isinstance(op, DynamicSliceOp) and _is_same_slice(op, last):
                values[op.result] = _Dependence.POSITION
                continue
            if whole in op.operands:
                return _Dependence.ANYTHING
        if isinstance(op, ScatterOp):  # combines elements of operand 0 with the others
            first, *others = (values[value] for value in op.inputs)
            is_alone = all(other is _Dependence.NOTHING for other in others)
            values[op.result] = first if is_alone else _Dependence.ANYTHING
            continue
        for result in op.results:
            values[result] = _step(op, most, one_kind=len(rows) == 1)
    return values[fusion.yielded[0]]


def _is_same_slice(read: DynamicSliceOp, written: DynamicUpdateSliceOp) -> bool:
    """Whether both slices have the same operand, start and size."""
    sizes = tensor_type_of(read.result.type), tensor_type_of(written.inputs[1].type)
    starts = zip(read.starts, written.starts, strict=True)
    return (
        read.inputs[0] is written.inputs[0]
        and sizes[0] == sizes[1]
        and all(
            x is y or (_number(x) is not None and _number(x) == _number(y))
            for x, y in starts
        )
    )


def _number(value: SSAValue) -> Attribute | None:
    return value.owner.value if isinstance(value.owner, ConstantOp) else None


def _step(op: Operation, most: _Dependence, *, one_kind: bool) -> _Dependence:
    """The dependence of an operation's result if its operands depend on `most`. With
    `one_kind`, all reductions have the same rows."""
    if most in (_Dependence.NOTHING, _Dependence.ANYTHING):
        return most
    match op:
        case ElementwiseOp():
            return most
        case ReduceOp() if one_kind and _rows(op) is not None:
            return _Dependence.ROW
        case BroadcastInDimOp() if _keeps_rows(op):
            return _Dependence.ROW
        case ReshapeOp() if _keeps_sizes(op):
            return most
        case _:
            return _Dependence.ANYTHING


def _keeps_sizes(op: ReshapeOp) -> bool:
    """Whether a reshape only adds or removes dimensions of size 1, so rows remain."""
    types = (tensor_type_of(value.type) for value in (op.inputs[0], op.results[0]))
    before, after = ([n for n in shape_of(type) if n != 1] for type in types)
    return before == after


def _rows(op: ReduceOp) -> int | None:
    """The number of leading dimensions that index rows; None if others are reduced."""
    dims = sorted(op.dimensions.get_values())
    rank = len(shape_of(tensor_type_of(op.inputs[0].type)))
    kept = rank - len(dims)
    return kept if dims == list(range(kept, rank)) else None


def _keeps_rows(op: BroadcastInDimOp) -> bool:
    """Whether a broadcast repeats a number per row along the row."""
    dims = list(op.broadcast_dimensions.get_values())
    source = shape_of(tensor_type_of(op.inputs[0].type))
    rows = [n for n, size in enumerate(source) if size != 1]
    return all(dims[n] == n for n in rows)
