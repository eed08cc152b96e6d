"""A memory and its buffers, for plan-check."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ..analysis.functions import CallerMemory, arena_alignment
from ..dialects.compatibility import AssumeAlignmentOp
from ..dialects.tgraph.base import AnyMemRef

SAME_ADDRESS = memref.CastOp | memref.MemorySpaceCastOp | AssumeAlignmentOp
"""Operations whose result has the same address as their operand."""


class ArenaBuffer(NamedTuple):
    """A view of an arena or of an argument's memory, or all of such memory."""

    name: str
    value: SSAValue
    pool: SSAValue  # the memory
    offset: int  # bytes
    size: int  # bytes
    alignment: int | None = None  # bytes; None if it is that of the memory

    def overlaps(self, other: "ArenaBuffer") -> bool:
        """Whether the two buffers share a byte."""
        return (
            self.pool is other.pool
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )


@dataclass(frozen=True, slots=True)
class MemoryPool:
    """An arena, or an argument whose memory buffers use, with its buffers."""

    value: SSAValue  # the allocation, the argument, or the first view of a global
    size: int  # bytes
    alignment: int  # bytes; 1 if it is not known
    buffers: Sequence[ArenaBuffer]  # in program order as far as known
    caller: CallerMemory | None = None  # the argument, if it is one

    @property
    def device(self) -> str:
        """The memory space; "" if it has no name."""
        space = cast(AnyMemRef, self.value.type).memory_space
        return space.data if isinstance(space, StringAttr) else ""

    @property
    def is_allocated(self) -> bool:
        """Whether the function allocates it, and must free it."""
        return isinstance(self.value.owner, memref.AllocOp)

    @property
    def is_new(self) -> bool:
        """Whether the function makes it, so that it has no contents at first."""
        return isinstance(self.value.owner, memref.AllocOp | memref.AllocaOp)

    @property
    def is_blank(self) -> bool:
        """Whether it has no contents when the function starts, or allocates it."""
        return self.is_new or arena_alignment(self.value) is not None


def name_of_buffer(value: SSAValue) -> str:
    return f"%{value.name_hint or '?'}"


def origin_of(value: SSAValue) -> SSAValue:
    """The memref of which `value` is a cast to another type at the same address."""
    while isinstance(op := value.owner, SAME_ADDRESS):
        value = op.operands[0]
    return value


def alignment_of(arena: SSAValue) -> int | None:
    """The alignment of a memory's address in bytes; None if nothing states it."""
    op = arena.owner
    if isinstance(op, memref.AllocOp | memref.AllocaOp):
        return op.alignment.value.data if op.alignment else None
    return arena_alignment(arena)


def name_of_global(value: SSAValue) -> str | None:
    """The name of the global whose memory `value` is; None for others."""
    op = value.owner
    return op.name_.string_value() if isinstance(op, memref.GetGlobalOp) else None


def bits_of(numbers: Iterable[int]) -> int:
    """A set of numbers as bits."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def numbers_of(bits: int) -> list[int]:
    """The numbers in a set of bits, ascending."""
    numbers: list[int] = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers
