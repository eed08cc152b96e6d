"""Computes the order of the steps of a planned block, for plan-check.

A step is an operation of the block. The steps of a stream of a device run in program
order. Otherwise, a step waits only for the steps that computed its operands, for the
last step that wrote memory that it accesses, and, if it writes memory, for the steps
that read it. Sharing an arena implies no order: each buffer counts as separate memory.

Each step has a vector clock: the number of steps of each stream that are finished
before it starts. Shares no code with the planner; see plan_check.py.
"""

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ..dialects.memory import effects_on
from ..dialects.tgraph.base import STREAM, device_of

Clock = Mapping[Hashable, int]
"""By stream: the number of its finished steps."""


@dataclass(slots=True)
class _Accesses:
    """The accesses of a memory so far."""

    written: int | None = None  # the last step that wrote it
    read: list[int] = field(default_factory=list[int])  # the steps that read it since


class HappensBefore:
    """The order of a block's steps on their streams.

    Each of `buffers` counts as separate memory, even if it is a view.
    """

    def __init__(self, block: Block, buffers: Container[SSAValue]):
        self._buffers = buffers
        self._clocks: list[Clock] = []
        self._place: list[tuple[Hashable, int] | None] = []  # stream, position in it
        self._memories: dict[Hashable, _Accesses] = {}
        self._lies_in: dict[SSAValue, Sequence[Hashable]] = {}
        step: dict[Operation | Block, int] = {}
        latest: dict[Hashable, int] = {}  # the last step of each stream so far
        length: dict[Hashable, int] = {}  # the length of each stream so far
        for index, op in enumerate(block.ops):
            step[op] = index
            waits = [step[v.owner] for v in _operands(op) if v.owner in step]
            self._follow(op)
            if not _runs(op):
                self._place.append(None)
                self._clocks.append(self._after(waits))
                continue
            waits += self._access(op, index)
            stream = _stream(op)
            if stream in latest:
                waits.append(latest[stream])
            latest[stream] = index
            length[stream] = length.get(stream, 0) + 1
            self._place.append((stream, length[stream]))
            self._clocks.append(self._after(waits))

    def begin(self, steps: Sequence[int]) -> Clock:
        """The steps that are finished before any of `steps` that runs starts."""
        first, *others = (self._clocks[step] for step in steps if self._place[step])
        return {s: min([n, *(c.get(s, 0) for c in others)]) for s, n in first.items()}

    def end(self, steps: Iterable[int]) -> Clock:
        """The clock at which all of `steps` are finished."""
        end: dict[Hashable, int] = {}
        for step in steps:
            if place := self._place[step]:
                stream, number = place
                end[stream] = max(number, end.get(stream, 0))
        return end

    def _after(self, steps: Sequence[int]) -> Clock:
        """The steps that are finished when all of `steps` are."""
        if not steps:
            return {}
        merged = dict(self.end(steps))
        for step in steps:
            for stream, number in self._clocks[step].items():
                if number > merged.get(stream, 0):
                    merged[stream] = number
        return merged

    def _access(self, op: Operation, step: int) -> list[int]:
        """The steps that `op` waits for because of memory; notes its accesses."""
        waits: list[int] = []
        for value in _operands(op):
            if not isinstance(value.type, MemRefType):
                continue
            for name in self._lies_in.get(value, (value,)):
                memory = self._memories.setdefault(name, _Accesses())
                if memory.written is not None and memory.written != step:
                    waits.append(memory.written)
                if _only_reads(op, value):
                    memory.read.append(step)
                    continue
                waits += [reader for reader in memory.read if reader != step]
                memory.written, memory.read = step, []
        return waits

    def _follow(self, op: Operation) -> None:
        """Notes the memory of the memrefs that an operation makes."""
        made = [result for result in op.results if isinstance(result.type, MemRefType)]
        if any(result in self._buffers for result in made):
            return
        if isinstance(op, memref.GetGlobalOp):
            self._lies_in[op.memref] = (op.name_,)
            return
        sources = [v for v in _operands(op) if isinstance(v.type, MemRefType)]
        memories = dict.fromkeys(m for v in sources for m in self._lies_in.get(v, (v,)))
        for value in made if sources else ():
            self._lies_in[value] = tuple(memories)


def _operands(op: Operation) -> Iterator[SSAValue]:
    for inner in op.walk():
        yield from inner.operands


def _runs(op: Operation) -> bool:
    """Whether an operation accesses memory at run time."""
    return (
        not isinstance(op, memref.DeallocOp)
        and not op.has_trait(IsTerminator, value_if_unregistered=False)
        and (bool(op.regions) or not any(_is_memref(r) for r in op.results))
        and any(map(_is_memref, _operands(op)))
    )


def _is_memref(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)


def _only_reads(op: Operation, value: SSAValue) -> bool:
    return not effects_on(op, value)[1]


def _stream(op: Operation) -> Hashable:
    """The device of the last memref operand, and the stream number."""
    *_, written = filter(_is_memref, _operands(op))
    stream = op.attributes.get(STREAM)
    number = stream.value.data if isinstance(stream, IntegerAttr) else 0
    return device_of(written.type), number
