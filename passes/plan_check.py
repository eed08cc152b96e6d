"""`plan-check`: proves from the IR alone that the arenas' plan is sound.

Takes level 3, and shares no code with what makes it: neither how lifespans are found
nor how buffers are placed. For every arena, that is an allocation of bytes with views:

 * each view has a constant offset, a multiple of the arena's alignment, and is within;
 * each view of a view lies within its buffer;
 * two buffers that share a byte are never live at the same time. A buffer is live from
   the first to the last operation that has it, or a view of it, among its operands; but
   not from one of them to the next if that overwrites all of it without reading it;
 * if operations have streams: all operations that have the one of two such buffers are
   surely over before any that has the other (passes/happens_before.py);
 * nothing reads a buffer that was not written before;
 * nothing uses a buffer after its arena was freed, and none is returned from it.

Raises `LocatedError` for the first fault. A function without arenas is sound.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i8,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from tensorplan.dialects.diagnostics import LocatedError, name_of
from tensorplan.dialects.tgraph.base import (
    STREAM,
    AnyMemRef,
    TensorOp,
    element_bytes,
)
from tensorplan.passes.happens_before import HappensBefore


@dataclass(frozen=True)
class PlanCheck(ModulePass):
    """Checks the arenas of all functions; changes nothing."""

    name = "plan-check"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_plan(op)


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A view of an arena, live in the steps `first` to `last`, both included.

    A view that is overwritten as a whole and used anew appears once for each life.
    """

    name: str
    op: memref.ViewOp
    offset: int  # bytes
    size: int  # bytes
    first: int
    last: int
    steps: Sequence[int]  # in which it is accessed, ascending


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """An arena and what lies in it."""

    device: str  # the memory space; "" if the arena names none
    size: int  # bytes
    alignment: int  # bytes
    buffers: Sequence[PlannedBuffer]


def check_plan(module: ModuleOp) -> list[PlannedPool]:
    """The arenas of the module's functions, proved sound."""
    pools: list[PlannedPool] = []
    for func in module.walk():
        if not isinstance(func, FuncOp) or func.is_declaration:
            continue
        for block in func.body.blocks:
            arenas = [
                _check_arena(op, block)
                for op in block.ops
                if isinstance(op, memref.AllocOp) and _has_views(op)
            ]
            if arenas and any(STREAM in op.attributes for op in block.ops):
                order = HappensBefore(block)
                for arena in arenas:
                    _check_order(arena.buffers, order)
            pools += arenas
    return pools


def _has_views(alloc: memref.AllocOp) -> bool:
    return alloc.memref.type.element_type == i8 and any(
        isinstance(use.operation, memref.ViewOp) for use in alloc.memref.uses
    )


def _check_arena(arena: memref.AllocOp, block: Block) -> PlannedPool:
    size = _size(arena.memref.type, arena)
    alignment = arena.alignment.value.data if arena.alignment else 1
    step = {op: index for index, op in enumerate(block.ops)}
    freed = len(step)
    buffers: list[PlannedBuffer] = []
    for use in arena.memref.uses:
        op = use.operation
        if isinstance(op, memref.DeallocOp) and op in step:
            freed = min(freed, step[op])
        elif isinstance(op, memref.ViewOp) and op in step:
            buffers += _check_buffer(op, size, alignment, step)
        else:
            raise LocatedError(
                f"{name_of(op)} uses the arena itself, expected memref.view or one "
                "memref.dealloc in the arena's block",
                op,
            )
    for buffer in buffers:
        if buffer.last > freed:
            raise LocatedError(
                f"buffer {buffer.name} is used in step {buffer.last}, expected before "
                f"its arena is freed in step {freed}",
                buffer.op,
            )
    _check_disjoint(buffers)
    space = arena.memref.type.memory_space
    device = space.data if isinstance(space, StringAttr) else ""
    buffers.sort(key=lambda b: step[b.op])
    return PlannedPool(device, size, alignment, buffers)


def _size(type: AnyMemRef, op: Operation) -> int:
    if DYNAMIC_INDEX in type.get_shape():
        raise LocatedError(f"{name_of(op)}: {type} has no static size", op)
    return prod(type.get_shape()) * element_bytes(type.element_type)


def _check_buffer(
    view: memref.ViewOp, arena_size: int, alignment: int, step: dict[Operation, int]
) -> Sequence[PlannedBuffer]:
    size = _size(view.result.type, view)
    offset = _constant(view.byte_shift)
    name = f"%{view.result.name_hint or '?'}"
    if offset is None:
        raise LocatedError(f"the offset of buffer {name} is not constant", view)
    if offset < 0 or offset + size > arena_size:
        raise LocatedError(
            f"buffer {name} lies in bytes [{offset}, {offset + size}), expected within "
            f"the arena's [0, {arena_size})",
            view,
        )
    if offset % alignment:
        raise LocatedError(
            f"buffer {name} has offset {offset}, expected a multiple of the arena's "
            f"alignment, {alignment}",
            view,
        )
    lives = _lives(view, name, step) or [[step[view]]]
    return [
        PlannedBuffer(name, view, offset, size, life[0], life[-1], life)
        for life in lives
    ]


def _lives(
    view: memref.ViewOp, name: str, step: dict[Operation, int]
) -> list[list[int]]:
    """The steps of each life of a buffer, in order."""
    written: dict[int, bool] = {}  # by step: whether it begins a new life
    read: dict[int, bool] = {}  # by step: whether it surely reads before any write
    for op, alias in _accesses(view.result):
        at = _step(op, step, view)
        overwrites = op in step and alias is view.result and _overwrites(op, alias)
        written[at] = written.get(at, True) and overwrites
        read[at] = read.get(at, True) and _reads(op, alias)
    lives: list[list[int]] = []
    for at in sorted(written):
        if not lives and read[at]:
            raise LocatedError(
                f"buffer {name} is read in step {at}, expected a write before", view
            )
        if written[at] or not lives:
            lives.append([at])
        else:
            lives[-1].append(at)
    return lives


def _constant(value: SSAValue) -> int | None:
    if isinstance(value.owner, arith.ConstantOp) and isinstance(
        attr := value.owner.value, IntegerAttr
    ):
        return attr.value.data
    return None


def _accesses(buffer: SSAValue) -> Iterator[tuple[Operation, SSAValue]]:
    """The operations that have the buffer or a view of it as operand, with that one.

    Any memref that an operation returns which has one of them is taken for a view.
    """
    base = cast(AnyMemRef, buffer.type)
    aliases = [buffer]
    for alias in aliases:  # grows
        for use in alias.uses:
            op = use.operation
            views = [r for r in op.results if isinstance(r.type, MemRefType)]
            views += [
                argument
                for region in op.regions
                if not isinstance(op, TensorOp)
                for block in region.blocks
                for argument in block.args
                if isinstance(argument.type, MemRefType)
            ]
            for view in views:
                _check_view(cast(AnyMemRef, view.type), base, op)
            aliases += [view for view in views if view not in aliases]
            if not views or op.regions:
                yield op, alias


def _check_view(type: AnyMemRef, base: AnyMemRef, op: Operation) -> None:
    """A view must lie within its buffer, as far as its type says where it lies."""
    strides, offset = type.get_strides(), type.get_offset()
    shape = type.get_shape()
    if strides is None or offset is None or DYNAMIC_INDEX in shape or 0 in shape:
        return
    if DYNAMIC_INDEX in strides or None in strides or DYNAMIC_INDEX == offset:
        return
    steps = [
        (size - 1) * stride
        for size, stride in zip(shape, strides, strict=True)
        if stride is not None
    ]
    lowest = offset + sum(s for s in steps if s < 0)
    highest = offset + sum(s for s in steps if s > 0)
    width = element_bytes(type.element_type)
    elements = prod(base.get_shape()) * element_bytes(base.element_type) // width
    if lowest < 0 or highest >= elements:
        raise LocatedError(
            f"{name_of(op)} reaches elements {lowest} to {highest}, expected within "
            f"the buffer's {elements}",
            op,
        )


def _step(op: Operation, step: dict[Operation, int], view: memref.ViewOp) -> int:
    """The step in which a use happens: that of the operation around it."""
    outer: Operation | None = op
    while outer is not None and outer not in step:
        outer = outer.parent_op()
    if outer is None:
        raise LocatedError("buffer is used outside the block of its arena", view)
    if op.has_trait(IsTerminator, value_if_unregistered=False):
        raise LocatedError(
            f"{name_of(op)} passes on an arena's buffer, expected none to outlive it",
            op,
        )
    return step[outer]


def _reads(op: Operation, value: SSAValue) -> bool:
    """Whether the operation surely reads `value` before it writes it, if it does."""
    if isinstance(op, TensorOp):
        return value in op.inputs
    return isinstance(op, memref.CopyOp | memref.LoadOp) and op.operands[0] is value


def _overwrites(op: Operation, value: SSAValue) -> bool:
    """Whether the operation surely writes all of `value` and reads nothing of it."""
    if isinstance(op, TensorOp):
        return value in op.outs and value not in op.inputs
    return isinstance(op, memref.CopyOp) and op.operands[0] is not value


def _check_disjoint(buffers: Sequence[PlannedBuffer]) -> None:
    by_offset = sorted(buffers, key=lambda b: (b.offset, b.first))
    for index, a in enumerate(by_offset):
        for b in by_offset[index + 1 :]:
            if b.offset >= a.offset + a.size:
                break
            if b.size and a.first <= b.last and b.first <= a.last:
                low, high = b.offset, min(a.offset + a.size, b.offset + b.size)
                raise LocatedError(
                    f"buffers {a.name} and {b.name} are both live in step "
                    f"{max(a.first, b.first)} and share bytes [{low}, {high})",
                    b.op,
                )


def _check_order(buffers: Sequence[PlannedBuffer], order: HappensBefore) -> None:
    """Refuses sharing of bytes by buffers whose accesses are not surely in order.

    Goes through the buffers in program order and keeps who had each byte last: that one
    must be over, and then so is who had it before.
    """
    last: list[tuple[int, int, PlannedBuffer]] = []  # (start, end) of bytes, ascending
    for b in sorted(buffers, key=lambda b: b.first):
        if not b.size or not order.end(b.steps):  # empty, or never accessed
            continue
        start, end = b.offset, b.offset + b.size
        low = bisect_right(last, start, key=lambda range: range[1])
        high = bisect_left(last, end, key=lambda range: range[0])
        begin = order.begin(b.steps)
        for _, _, a in last[low:high]:
            if any(n > begin.get(s, 0) for s, n in order.end(a.steps).items()):
                raise LocatedError(
                    f"buffers {a.name} and {b.name} share bytes [{max(a.offset, start)}"
                    f", {min(a.offset + a.size, end)}), but nothing orders their "
                    f"streams so that {a.name} is done with before {b.name} is begun",
                    b.op,
                )
        kept = [(s, min(e, start), a) for s, e, a in last[low:high] if s < start]
        kept.append((start, end, b))
        kept += [(max(s, end), e, a) for s, e, a in last[low:high] if e > end]
        last[low:high] = kept
