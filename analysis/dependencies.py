"""Dependencies between operations: through values, and through reads and writes.

    0  tgraph.exponential %a outs(%x)      waits for
    1  tgraph.add %x, %v outs(%r)          0, whose result it reads
    2  tgraph.negate %a outs(%v)           1, which reads the old %v
    3  tgraph.tanh %v outs(%x)             2, 1

This is NNVM's OrderMutation for everything that has memory: variables at level 1, and
memrefs with their views at levels 2 and 3. Each write to a memory creates a version. A
reader waits for the writer of its version. A writer waits for all readers of the
previous version, or for its writer if it has no readers. Transitive dependencies are
omitted.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, get_effects

from ..dialects.memory import effects_on, is_buffer, is_view
from ..dialects.tgraph.base import STREAM, TensorOp, VariableType, device_of
from ..dialects.tgraph.callbacks import has_side_effect
from ..dialects.tgraph.shaping import ViewOp
from ..dialects.tgraph.structure import AssignOp, ReadOp
from .functions import arena_alignment
from .operations import operands_within

_ANY_MEMORY = "any memory"
"""The memory that an operation with unknown effects may access."""

_OUTSIDE = "outside"
"""What callbacks with effects write, so they stay in program order."""


class Access(NamedTuple):
    """A read or a write of a memory by an operation."""

    memory: Hashable
    version: int  # the number of writes before a read; a write counts itself
    writes: bool = False


def memory_order(accesses: Sequence[Sequence[Access]]) -> list[list[int]]:
    """For each operation, those that it waits for because of memory, ascending.

    `accesses[i]` are those of operation i. Takes near-linear time: only the next write
    visits the readers of a version.
    """
    writers: dict[tuple[Hashable, int], int] = {}
    readers: dict[tuple[Hashable, int], list[int]] = {}
    for index, of_operation in enumerate(accesses):
        for memory, version, writes in of_operation:
            if writes:
                writers[memory, version] = index
            else:
                readers.setdefault((memory, version), []).append(index)
    waits: list[list[int]] = []
    for index, of_operation in enumerate(accesses):
        found: set[int] = set()
        for memory, version, writes in of_operation:
            seen = (memory, version - writes)
            before = [i for i in readers.get(seen, ()) if i != index] if writes else []
            if not before and seen in writers:
                before.append(writers[seen])
            found.update(before)
        waits.append(sorted(found))
    return waits


def dependencies(ops: Sequence[Operation]) -> list[list[int]]:
    """For each operation of a block, the earlier operations it waits for, ascending."""
    index: dict[Operation | Block, int] = {op: n for n, op in enumerate(ops)}
    by_memory = memory_order(accesses(ops))
    waits: list[list[int]] = []
    for op, before in zip(ops, by_memory, strict=True):
        owners = [value.owner for value in operands_within(op)]
        producers = {index[owner] for owner in owners if owner in index}
        waits.append(sorted(producers.union(before)) if producers else before)
    return waits


def accesses(ops: Sequence[Operation]) -> list[list[Access]]:
    """The memory accesses of each operation of a block, with versions in program order.

    At level 1, an operation that reads a tensor in a variable reads the variable until
    the next write to it: afterwards it reads a copy.
    """
    return list(_Accesses().of_all(ops))


def runs(op: Operation) -> bool:
    """Whether an operation does any work when the program runs."""
    names_memory = (
        memref.AllocOp | memref.DeallocOp | memref.GetGlobalOp | arith.ConstantOp
    )
    if isinstance(op, ViewOp):
        return bool(op.outs)
    return not (
        isinstance(op, names_memory | ReadOp)
        or is_view(op)
        or op.has_trait(IsTerminator, value_if_unregistered=False)
    )


Queue = tuple[str | None, int]
"""A device, and the number of a stream on it."""


def queue_of(op: Operation) -> Queue:
    """The device that `op` writes, and its stream, 0 by default."""
    written = [*op.results, *reversed(op.operands)]
    if isinstance(op, AssignOp):
        written = [op.variable]
    types = [value.type for value in written if _is_on_device(value.type)]
    device = device_of(types[0]) if types else None
    stream = op.attributes.get(STREAM)
    return device, stream.value.data if isinstance(stream, IntegerAttr) else 0


def _is_on_device(type: Attribute) -> bool:
    return isinstance(type, TensorType | VariableType | MemRefType)


class _Accesses:
    """Maps values to the memory that holds them, in program order."""

    def __init__(self) -> None:
        self.writes: Counter[Hashable] = Counter()  # their number so far, by memory
        self.memory: dict[SSAValue, Hashable] = {}  # of each memref that is a view
        self.contents: dict[SSAValue, Access] = {}  # by tensor in a variable: its read
        self.parts: dict[SSAValue, list[SSAValue]] = {}  # the views of each arena

    def of_all(self, ops: Sequence[Operation]) -> Iterator[list[Access]]:
        for op in ops:
            reads, writes = self._touched(op)
            found = [Access(m, self.writes[m]) for m in reads]
            for memory in writes:
                self.writes[memory] += 1
                found.append(Access(memory, self.writes[memory], writes=True))
            self._follow(op)
            yield found

    def _follow(self, op: Operation) -> None:
        """Notes the memory of the results."""
        match op:
            case ReadOp():
                self._put(op.result, op.variable)
            case ViewOp() if not op.outs:
                if source := self.contents.get(op.inputs[0]):
                    self.contents[op.result] = source
            case TensorOp():
                for result, variable in zip(op.res, op.outs, strict=False):
                    self._put(result, variable)
            case memref.GetGlobalOp():
                self.memory[op.memref] = op.name_
            case memref.ViewOp(source=OpResult(op=memref.AllocOp())) if arena_alignment(
                op.source
            ):
                self.parts.setdefault(op.source, []).append(op.result)
            case memref.AllocOp() | memref.AllocaOp():
                pass
            case _ if is_buffer(op):
                pass
            case _ if is_view(op):
                self.memory[op.results[0]] = self._memory(op.operands[0])
            case _:
                for result in op.results:
                    if isinstance(result.type, MemRefType):
                        self.memory[result] = _ANY_MEMORY

    def _put(self, result: SSAValue, variable: SSAValue) -> None:
        self.contents[result] = Access(variable, self.writes[variable])

    def _memory(self, value: SSAValue) -> Hashable:
        return self.memory.get(value, value)

    def _touched(
        self, op: Operation
    ) -> tuple[dict[Hashable, None], dict[Hashable, None]]:
        """The memories that `op` reads, and those that it writes, in order."""
        reads: dict[Hashable, None] = {}
        writes: dict[Hashable, None] = {}
        if is_view(op) or (isinstance(op, ViewOp) and not op.outs):
            return reads, writes
        for value in operands_within(op):
            if isinstance(value.type, VariableType):
                (reads if isinstance(op, ReadOp) else writes)[value] = None
            elif known := self.contents.get(value):
                if self.writes[known.memory] == known.version:
                    reads[known.memory] = None
            elif isinstance(value.type, MemRefType):
                is_read, is_written = _does(op, value)
                for part in self.parts.get(value, (value,)):
                    if is_read:
                        reads[self._memory(part)] = None
                    if is_written:
                        writes[self._memory(part)] = None
        if reads or writes:
            reads[_ANY_MEMORY] = None
        if has_side_effect(op):
            writes[_OUTSIDE] = None
        if _is_unknown(op):
            writes[_ANY_MEMORY] = None
        return reads, writes


def _does(op: Operation, value: SSAValue) -> tuple[bool, bool]:
    """Whether `op` reads, and whether it writes or frees, its operand `value`."""
    return (False, True) if isinstance(op, memref.DeallocOp) else effects_on(op, value)


def _is_unknown(op: Operation) -> bool:
    """Whether an operation may access more than its operands."""
    if isinstance(op, TensorOp | ReadOp | AssignOp) or is_view(op):
        return False
    if op.regions and any(_is_unknown(inner) for inner in op.walk() if inner is not op):
        return True
    return not (
        op.dialect_name() in ("linalg", "scf", "arith")
        or op.has_trait(IsTerminator, value_if_unregistered=False)
        or get_effects(op) is not None
    )
