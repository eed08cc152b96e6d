"""The route from a memory to a slower one: the cost of copies, and which operations may
access the contents there."""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ....analysis.control_flow import ControlFlow
from ....analysis.residents import ResidentUse
from ....analysis.sizes import SizeReader
from ....dialects.diagnostics import name_of
from ....dialects.memory import overwrites, says_effects
from ....dialects.strides import has_distinct_elements
from ....dialects.target_memory import (
    Copies,
    TargetMemory,
    target_memories,
)
from ....dialects.tgraph.base import AnyMemRef, element_bytes
from ..placement.arena import Arena

COPY = memref.CopyOp.name

ELEMENTWISE = ("memref.load", "memref.store", "affine.load", "affine.store")
"""Operations that access one element of their memref."""


class Remote(NamedTuple):
    """How a use accesses contents that are in the slower memory."""

    reads: int  # bytes
    writes: int  # bytes
    staged: SSAValue | None = None
    """The view whose bytes are copied to the faster memory for the use. None if the
    operation accesses the slower memory."""
    bytes: int = 0  # of the copy, at most


@dataclass(frozen=True, slots=True)
class Route:
    """The copies from a memory to a slower one, and back."""

    memory: TargetMemory
    slower: TargetMemory
    out: Copies
    back: Copies

    def why_not(self, func: FuncOp, arena: Arena) -> str | None:
        """The reason why no buffer of `func` can move on this route; None if there is
        none."""
        if not arena.pool.is_ordered:
            return "its operations have streams"
        if ControlFlow(func).barriers:
            return "it has barriers"
        for memory in (self.memory, self.slower):
            if not memory.may_read(COPY) or not memory.may_write(COPY):
                return f"{COPY} may not access {memory.name}"
        return None

    def times(self, size: int) -> tuple[int, int]:
        """The times of a copy of `size` bytes out, and of one back; at least 1."""
        return 1 + self.out.time(size), 1 + self.back.time(size)

    def saved(self, remote: Remote, size: int, *, is_stored: bool) -> int:
        """The time by which copies of all `size` bytes exceed the accesses of a use
        while the contents are away. `is_stored` includes the copy out after a write."""
        _, back = self.times(size)
        _, read = self.times(remote.reads) if remote.reads else (0, 0)
        return back - read + is_stored * self.saved_out(remote, size)

    def saved_out(self, remote: Remote, size: int) -> int:
        """The time by which a copy out of all `size` bytes exceeds the writes of a use
        while the contents are away."""
        out, written = (self.times(bytes)[0] for bytes in (size, remote.writes))
        return out - written if remote.writes else 0

    def remote(self, use: ResidentUse, size: int, sizes: SizeReader) -> Remote | None:
        """How `use` accesses a buffer of `size` bytes in the slower memory; None if it
        needs the whole buffer in the faster memory."""
        is_own = all(op is use.op and says_effects(op) for op, _ in use.accesses)
        if not is_own:
            return None
        if self._is_direct(use):
            part = _part(use, size, sizes)
            return Remote(part * use.reads, part * use.writes)
        (view, *others) = dict.fromkeys(view for _, view in use.accesses)
        type = cast(AnyMemRef, view.type)
        is_made = type.has_static_shape() or isinstance(view.owner, memref.SubviewOp)
        shape = sizes.largest(view)
        if others or shape is None or not is_made:
            return None
        part = prod(shape) * element_bytes(type.element_type)
        is_read = use.reads or not overwrites(use.op, view)
        strides = type.get_strides() or [None]
        if not 0 < part < size:
            return None
        if use.writes and not has_distinct_elements(shape, strides):
            return None
        if not _takes(use.op, view, contiguous(type)):
            return None
        return Remote(part * is_read, part * use.writes, view, part)

    def _is_direct(self, use: ResidentUse) -> bool:
        """Whether the operation of `use` may access the buffer in the slower memory."""
        name, slower = name_of(use.op), self.slower
        if isinstance(use.op, memref.CopyOp) and not self._is_copied(use):
            return False
        if use.reads and not slower.may_read(name):
            return False
        if use.writes and not slower.may_write(name):
            return False
        space = slower.memory_space
        return all(_takes(op, v, in_space(v.type, space)) for op, v in use.accesses)

    def _is_copied(self, use: ResidentUse) -> bool:
        """Whether the target has a direct route between the slower memory and the other
        memory that a copy accesses. Memories that it does not describe have one."""
        (copy, view), *_ = use.accesses
        memories, slower = target_memories(copy), self.slower
        for other in (operand for operand in copy.operands if operand is not view):
            memory = memories.get(cast(AnyMemRef, other.type).memory_space, slower)
            source, target = (slower, memory) if use.reads else (memory, slower)
            if memory is not slower and target.name not in source.copies:
                return False
        return True


def _part(use: ResidentUse, size: int, sizes: SizeReader) -> int:
    """An upper bound of the bytes that `use` accesses of a buffer of `size` bytes."""
    bytes = 0
    for op, view in use.accesses:
        type = cast(AnyMemRef, view.type)
        if name_of(op) in ELEMENTWISE:
            bytes += element_bytes(type.element_type)
        elif (shape := sizes.largest(view)) is not None:
            bytes += prod(shape) * element_bytes(type.element_type)
        else:
            return size
    return min(bytes, size)


def _takes(op: Operation, view: SSAValue, type: AnyMemRef) -> bool:
    """Whether `op` verifies with a value of `type` as its operand `view`."""
    other = create_ssa_value(type)
    copy = op.clone()
    copy.operands = [other if v is view else v for v in op.operands]
    try:
        copy.verify()
    except VerifyException:
        return False
    finally:
        copy.erase()
    return True


def in_space(given: Attribute, space: Attribute) -> AnyMemRef:
    type = cast(AnyMemRef, given)
    return MemRefType(type.element_type, type.shape, type.layout, space)


def contiguous(type: AnyMemRef) -> AnyMemRef:
    """The type of a buffer for the elements of a view."""
    return MemRefType(type.element_type, type.shape, memory_space=type.memory_space)
