"""`plan-check`: proves from the IR alone that the arenas' plan is sound.

Takes level 3, and shares no code with what makes it: neither how lifespans are found
nor how buffers are placed. For every arena, that is an allocation of bytes with views,
and every result that has buffers in its memory (checking/result_pools.py):

 * each view has a known offset, a multiple of the arena's alignment, and is within;
 * each view of a view lies within its buffer;
 * nothing uses a buffer when another may have had some of its bytes since it was used
   before, on any path through the function, except to overwrite all of it without
   reading it (checking/ownership.py);
 * if operations have streams: all operations that have the one of two such buffers are
   surely over before any that has the other (checking/happens_before.py);
 * nothing reads a buffer that was not written before;
 * nothing uses a buffer after its arena was freed, nothing else frees it, and none is
   returned from its function.

Where sizes are symbolic, that is checked for the largest that the function's bounds
allow; without bounds, for typical ones and then proved for all
(checking/symbolic_plan.py). If the proof fails a remark says so, and the runtime checks
again for the sizes of a call.

An operation is taken to be done with its operands when it ends. Raises `LocatedError`
for the first fault. A function without arenas is sound.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    ModuleOp,
    StringAttr,
    i8,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import LocatedError, name_of
from tensorplan.dialects.tgraph.base import STREAM, AnyMemRef, element_bytes
from tensorplan.passes.checking.happens_before import HappensBefore
from tensorplan.passes.checking.ownership import Access, ArenaBuffer, check_owners
from tensorplan.passes.checking.pointees import may_be
from tensorplan.passes.checking.result_pools import buffers_of, result_pools
from tensorplan.passes.checking.symbolic_plan import (
    CountedSizes,
    name_of_buffer,
    prove,
)


@dataclass(frozen=True)
class PlanCheck(ModulePass):
    """Checks the arenas of all functions; changes nothing."""

    name = "plan-check"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_plan(op)


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A buffer of a pool, live in the steps `first` to `last`, both included.

    A step is an operation directly in one of the function's blocks. A view that is
    overwritten as a whole and used anew appears once for each life.
    """

    name: str
    value: SSAValue  # a view of the pool, or, in a result's memory, the result
    offset: int  # bytes
    size: int  # bytes
    first: int
    last: int
    steps: Sequence[int]  # in which it is accessed, ascending


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """An arena, or a result with others in its memory, and what lies in it."""

    device: str  # the memory space; "" if the arena names none
    size: int  # bytes
    alignment: int  # bytes
    buffers: Sequence[PlannedBuffer]
    result: int | None = None  # its number; None for an arena


def check_plan(module: ModuleOp) -> list[PlannedPool]:
    """The arenas of the module's functions, proved sound, and the results like them."""
    pools: list[PlannedPool] = []
    for func in module.walk():
        if isinstance(func, FuncOp) and not func.is_declaration:
            pools += _check_function(func)
    return pools


def _check_function(func: FuncOp) -> Sequence[PlannedPool]:
    entry = func.body.blocks[0]
    arenas = [
        op for op in entry.ops if isinstance(op, memref.AllocOp) and _is_arena(op)
    ]
    results = result_pools(func)
    if not arenas and not results:
        return ()
    sizes = CountedSizes(func)
    by_pool = [list(_buffers(arena, sizes)) for arena in arenas]
    by_pool += [list(buffers_of(result)) for result in results]
    buffers = [buffer for of_pool in by_pool for buffer in of_pool]
    aliases = may_be({buffer.value: n for n, buffer in enumerate(buffers)})
    for value, numbers in aliases.items():
        type: Attribute = value.type
        if isinstance(type, MemRefType) and isinstance(value.owner, Operation):
            for number in numbers:
                base = cast(AnyMemRef, buffers[number].value.type)
                _check_view(cast(AnyMemRef, type), base, value.owner)
    accesses = check_owners(func.body, buffers, aliases)
    if sizes.are_typical:
        prove(func, [b for of in by_pool[: len(arenas)] for b in of], aliases)
    lives = _lives(func, buffers, accesses)
    pools: list[PlannedPool] = []
    for pool, of_pool in zip((*arenas, *results), by_pool, strict=True):
        planned = [
            PlannedBuffer(b.name, b.value, b.offset, b.size, life[0], life[-1], life)
            for b in of_pool
            for life in lives[b.value]
        ]
        if isinstance(pool, memref.AllocOp):
            type = pool.memref.type
            size, alignment = sizes.bytes(pool.memref), _alignment(pool)
            pools.append(PlannedPool(_device(type), size, alignment, planned))
        else:
            size, alignment = of_pool[0].size, element_bytes(pool.type.element_type)
            device = _device(pool.type)
            pools.append(PlannedPool(device, size, alignment, planned, pool.number))
    if any(STREAM in op.attributes for block in func.body.blocks for op in block.ops):
        if len(func.body.blocks) > 1:
            raise LocatedError(
                f"function @{func.sym_name.data} has operations with streams and "
                f"{len(func.body.blocks)} blocks, expected 1",
                func,
            )
        order = HappensBefore(entry)
        for pool in pools:
            _check_order(pool.buffers, order)
    return pools


def _device(type: AnyMemRef) -> str:
    return type.memory_space.data if isinstance(type.memory_space, StringAttr) else ""


def _is_arena(alloc: memref.AllocOp) -> bool:
    type = alloc.memref.type
    if type.element_type != i8:
        return False
    return any(isinstance(use.operation, memref.ViewOp) for use in alloc.memref.uses)


def _buffers(arena: memref.AllocOp, sizes: CountedSizes) -> Iterator[ArenaBuffer]:
    """The views of an arena, each within it, in program order as far as known."""
    size, alignment = sizes.bytes(arena.memref), _alignment(arena)
    for use in reversed(list(arena.memref.uses)):
        op = use.operation
        if isinstance(op, memref.ViewOp):
            yield _check_buffer(op, sizes, size, alignment)
        elif not isinstance(op, memref.DeallocOp):
            raise LocatedError(
                f"{name_of(op)} uses the arena itself, expected memref.view or "
                "memref.dealloc",
                op,
            )


def _alignment(arena: memref.AllocOp) -> int:
    return arena.alignment.value.data if arena.alignment else 1


def _check_buffer(
    view: memref.ViewOp, sizes: CountedSizes, arena_size: int, alignment: int
) -> ArenaBuffer:
    size, offset = sizes.bytes(view.result), sizes.offset(view)
    name = name_of_buffer(view.result)
    if offset is None:
        raise LocatedError(f"the offset of buffer {name} is not known", view)
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
    return ArenaBuffer(name, view.result, view.source, offset, size)


def _lives(
    func: FuncOp,
    buffers: Sequence[ArenaBuffer],
    accesses: Mapping[Operation, Access],
) -> Mapping[SSAValue, Sequence[Sequence[int]]]:
    """For each buffer the steps of its lives, in order; that which makes it if it has
    none. Another life begins with an operation, not in a region, that overwrites it.
    """
    ops = (op for block in func.body.blocks for op in block.ops)
    step = {op: number for number, op in enumerate(ops)}
    found: list[list[list[int]]] = [[] for _ in buffers]
    by_step = [(_step(op, step), op in step, a) for op, a in accesses.items()]
    for at, is_outermost, access in sorted(by_step, key=lambda item: item[0]):
        for number in access.touched:
            lives = found[number]
            if not lives or (is_outermost and number in access.overwritten):
                lives.append([at])
            elif lives[-1][-1] != at:
                lives[-1].append(at)
    return {
        buffer.value: lives or [[_step(buffer.value.owner, step)]]
        for buffer, lives in zip(buffers, found, strict=True)
    }


def _step(op: Operation | Block, step: Mapping[Operation, int]) -> int:
    """The step of an operation: that of the one around it that has one."""
    assert isinstance(op, Operation)  # a result is accessed when its function ends
    while op not in step:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return step[op]


def _check_view(type: AnyMemRef, base: AnyMemRef, op: Operation) -> None:
    """A view must lie within its buffer, as far as its type says where it lies."""
    strides, offset = type.get_strides(), type.get_offset()
    shape = type.get_shape()
    if strides is None or offset is None or DYNAMIC_INDEX in shape or 0 in shape:
        return
    if None in strides:
        return
    steps = [
        (size - 1) * stride
        for size, stride in zip(shape, strides, strict=True)
        if stride is not None
    ]
    first = base.get_offset() or 0  # of the buffer, in what it is a view of
    lowest = offset - first + sum(s for s in steps if s < 0)
    highest = offset - first + sum(s for s in steps if s > 0)
    width = element_bytes(type.element_type)
    elements = prod(base.get_shape()) * element_bytes(base.element_type) // width
    if lowest < 0 or highest >= elements:
        raise LocatedError(
            f"{name_of(op)} reaches elements {lowest} to {highest}, expected within "
            f"the buffer's {elements}",
            op,
        )


def _maker(value: SSAValue) -> Operation | None:
    """What makes a buffer; for a result its function."""
    owner = value.owner
    return owner if isinstance(owner, Operation) else owner.parent_op()


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
                    _maker(b.value),
                )
        kept = [(s, min(e, start), a) for s, e, a in last[low:high] if s < start]
        kept.append((start, end, b))
        kept += [(max(s, end), e, a) for s, e, a in last[low:high] if e > end]
        last[low:high] = kept
