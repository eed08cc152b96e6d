"""Copies and transfers between memories of the target that may be asynchronous."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ....analysis.calls import Calls
from ....analysis.control_flow import ControlFlow
from ....analysis.cost import repetitions, time
from ....analysis.forwarding import moves
from ....dialects.memory import (
    asynchronous,
    dma_start,
    effects_on,
    is_entry,
    is_view,
    root_of,
    strides_between,
)
from ....dialects.target_memory import Copies, TargetMemories, TargetMemory
from ....dialects.tgraph.base import AnyMemRef, element_bytes, has_fixed_size


@dataclass(frozen=True, slots=True)
class Memref:
    """An allocation or an argument, with the operations that access and free it."""

    root: SSAValue
    readers: Sequence[Operation]
    writers: Sequence[Operation]
    frees: Sequence[Operation]

    @staticmethod
    def of(root: SSAValue, calls: Calls) -> "Memref | None":
        """The accesses of `root`; None if it is neither an allocation nor an argument,
        if control flow forwards it, or if an access continues after its operation."""
        if not isinstance(root.owner, memref.AllocOp | Block):
            return None
        if isinstance(root.owner, Block) and not is_entry(root.owner):
            return None
        readers: list[Operation] = []
        writers: list[Operation] = []
        frees: list[Operation] = []
        values = [root]
        for each in values:  # the body appends
            for use in each.uses:
                op = use.operation
                if is_view(op) and use.index == 0:
                    values.append(op.results[0])
                elif isinstance(op, memref.DeallocOp):
                    frees.append(op)
                elif moves(use) is not None or not calls.is_over(op):
                    return None
                else:
                    reads, writes = effects_on(op, each)
                    readers += [op] * reads
                    writers += [op] * writes
        return Memref(root, readers, writers, frees)


Engine: TypeAlias = tuple[str, str]
"""The names of the memories that an engine copies from and to."""


@dataclass(eq=False, slots=True)
class Copy:
    """A copy that may overlap with operations."""

    op: memref.CopyOp
    source: Memref
    target: Memref
    bytes: int
    time: int  # nanoseconds
    engine: Engine
    runs: int
    at: int = 0  # the position in its block
    start: int = 0
    """The position before which it starts."""
    end: int = 0
    """The position after which its wait comes."""
    hidden: int = 0  # nanoseconds, each time that it runs

    @property
    def total(self) -> int:
        """The nanoseconds of all its runs."""
        return self.time * self.runs

    @property
    def block(self) -> Block:
        assert self.op.parent is not None
        return self.op.parent


def copies_of(
    func: FuncOp, flow: ControlFlow, memories: TargetMemories
) -> Iterator[Copy]:
    """The copies that may become transfers: of consecutive elements, or between rows
    and consecutive elements, in memories whose accesses are known."""
    known: dict[SSAValue, Memref | None] = {}

    def memref_of(value: SSAValue) -> Memref | None:
        root = root_of(value)
        if root not in known:
            known[root] = Memref.of(root, flow.calls)
        return known[root]

    for op in func.walk():
        if not isinstance(op, memref.CopyOp) or op not in flow.step:
            continue
        if strides_between(op.source, op.destination) is None:
            continue
        way = _Way.between(op.source, op.destination, memories)
        if not way or not way.is_asynchronous:
            continue
        source, target = map(memref_of, op.operands)
        type = type_of(op.source)
        if not has_fixed_size(type.element_type):
            continue
        bytes = type.element_count() * element_bytes(type.element_type)
        if source and target and bytes:
            nanoseconds = max(way.speed.time(bytes), 1)
            yield Copy(
                op, source, target, bytes, nanoseconds, way.engine, repetitions(op)
            )


class _Way(NamedTuple):
    """The copies of the target from one memory to another."""

    here: TargetMemory
    there: TargetMemory
    speed: Copies

    @staticmethod
    def between(
        source: SSAValue, target: SSAValue, memories: TargetMemories
    ) -> "_Way | None":
        here, there = (
            memories.get(type_of(value).memory_space) for value in (source, target)
        )
        speed = here and there and here.copies.get(there.name)
        return _Way(here, there, speed) if here and there and speed else None

    @property
    def engine(self) -> Engine:
        return self.here.name, self.there.name

    @property
    def is_asynchronous(self) -> bool:
        """Whether a copy may be a transfer."""
        name = memref.DmaStartOp.name
        may_access = self.here.may_read(name) and self.there.may_write(name)
        return self.speed.asynchronous and may_access


class Transfer(NamedTuple):
    """An existing asynchronous copy, with its waits."""

    engine: Engine
    op: Operation
    waits: Sequence[Operation]
    time: int  # nanoseconds


def transfers_of(func: FuncOp, memories: TargetMemories) -> Iterator[Transfer]:
    """The transfers whose waits and bytes are known."""
    for op in func.walk():
        start, trait = dma_start(op), asynchronous(op)
        waits = trait.waits_of(op) if trait else ()
        if start is None or not waits:
            continue
        way = _Way.between(start.source, start.target, memories)
        elements = start.elements.owner
        if way and isinstance(elements, arith.ConstantOp):
            assert isinstance(elements.value, IntegerAttr)
            element = element_bytes(type_of(start.source).element_type)
            bytes = elements.value.value.data * element
            yield Transfer(way.engine, op, waits, way.speed.time(bytes))


def type_of(value: SSAValue) -> AnyMemRef:
    return cast(AnyMemRef, value.type)


def time_of(op: Operation) -> int:
    """The nanoseconds of an operation that copies may overlap with, or 0."""
    copies = memref.CopyOp | memref.DmaWaitOp
    plain = memref.AllocOp | memref.AllocaOp | memref.DeallocOp
    if isinstance(op, copies | plain) or is_view(op) or dma_start(op):
        return 0
    computes = op.regions or any(isinstance(v.type, MemRefType) for v in op.operands)
    return time(op) if computes else 0
