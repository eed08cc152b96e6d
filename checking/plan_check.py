"""The checks of `plan-check`; passes/plan/check.py says what is proved and assumed."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..analysis.functions import arena_alignment, arena_arguments
from ..dialects.compatibility import AssumeAlignmentOp
from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.memory import is_view, maker_of
from ..dialects.tgraph.base import (
    STREAM,
    AnyMemRef,
    element_alignment,
    element_bytes,
    is_static,
)
from .arenas import check_arenas
from .buffers import ArenaBuffer, MemoryPool, alignment_of, origin_of
from .effects import Callees
from .extents import extent_of, is_reached, reach_of
from .happens_before import HappensBefore
from .memories import SEVERAL, find_memories
from .operands import bases, check_operands
from .ownership import Access, check_owners
from .pointees import may_be, memrefs_in, operations_in
from .references import is_in_slot
from .symbolic_plan import CountedSizes, prove
from .target import check_target
from .unchecked import Unchecked


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A buffer of a pool, live in the steps `first` to `last`, both included.

    A step is an operation directly in one of the function's blocks. A view that is
    completely overwritten and then used again appears once for each live range.
    """

    name: str
    value: SSAValue  # a view of the pool, or the argument whose memory it is
    offset: int  # bytes
    size: int  # bytes
    first: int
    last: int
    steps: Sequence[int]  # the steps that access it, ascending
    alignment: int  # bytes


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """An arena, or an argument whose memory holds buffers, with its buffers."""

    device: str  # the memory space; "" if it has no name
    size: int  # bytes
    alignment: int  # bytes
    buffers: Sequence[PlannedBuffer]
    argument: str | None = None  # "result 1", "argument 0"; None for an arena


def check_plan(module: ModuleOp, *, unmarked: bool | None = None) -> list[PlannedPool]:
    """Checks the plan of a module. Returns the arenas of its functions, and the
    arguments whose memory holds buffers.

    unmarked: whether all memory with views is an arena, not only what `tgraph.arena`
        marks; by default only if nothing is marked, as in a plan of another planner.
    """
    if unmarked is None:
        unmarked = all(arena_alignment(value) is None for value in memrefs_in(module))
    pools: list[PlannedPool] = []
    callees, unchecked = Callees(), Unchecked()
    for func in operations_in(module):
        if isinstance(func, FuncOp) and any(memrefs_in(func)):
            pools += _check_function(func, callees, unchecked, unmarked)
        elif isinstance(func, memref.ViewOp) and not _is_in_function(func):
            unchecked.add("buffers outside of any func.func, not checked", func)
    unchecked.remark()
    return pools


def _is_in_function(op: Operation) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, FuncOp):
        around = around.parent_op()
    return around is not None


def _check_function(
    func: FuncOp, callees: Callees, unchecked: Unchecked, unmarked: bool
) -> Sequence[PlannedPool]:
    sizes = CountedSizes(func)
    memories = find_memories(func, sizes, unchecked, unmarked)
    buffers = [buffer for memory in memories for buffer in memory.buffers]
    check_arenas(func, memories, unchecked)
    values = {buffer.value: number for number, buffer in enumerate(buffers)}
    apart = {*values, *callees.new_in(func)}
    aliases = may_be(values, apart)
    for value, numbers in aliases.items():
        if isinstance(value.owner, Operation):
            for number in numbers:
                base = buffers[number].value
                if is_in_slot(value.owner):
                    _check_slot(value.owner, buffers[number], memories, sizes)
                    continue
                _check_view(value, base, value.owner, sizes, unchecked)
                _check_alignment(value, buffers[number], memories, unchecked)
    _check_slots_are_known(func, values, callees, unchecked)
    _check_calls(func, aliases, buffers, memories, callees)
    frees = may_be({memory.value: n for n, memory in enumerate(memories)}, apart)
    owners = check_owners(func.body, memories, aliases, frees, callees, unchecked)
    check_operands(func, buffers, owners, sizes.range, callees, unchecked)
    check_target(func, memories, unchecked)
    if sizes.are_typical:
        prove(func, memories, aliases, frees, callees, sizes)
    lives = _lives(func, buffers, owners.accesses)
    pools = [
        PlannedPool(
            memory.device,
            memory.size,
            memory.alignment,
            [
                PlannedBuffer(
                    *(b.name, b.value, b.offset, b.size, life[0], life[-1], life),
                    b.alignment or memory.alignment,
                )
                for b in memory.buffers
                for life in lives[b.value]
            ],
            memory.caller and memory.caller.title,
        )
        for memory in memories
        if memory.caller is None or len(memory.buffers) > 1
    ]
    _check_streams(func, pools, values)
    return pools


def _check_streams(
    func: FuncOp, pools: Sequence[PlannedPool], buffers: Container[SSAValue]
) -> None:
    entry = func.body.blocks[0]
    with_streams = [op for op in operations_in(func) if STREAM in op.attributes]
    if not with_streams:
        return
    for op in with_streams:
        if op.parent_op() is not func:
            raise LocatedError(
                f"{name_of(op)} has a stream inside a region, expected one on the "
                "enclosing operation",
                op,
            )
    if len(func.body.blocks) > 1:
        raise LocatedError(
            f"function @{func.sym_name.data} has operations with streams and "
            f"{len(func.body.blocks)} blocks, expected 1",
            func,
        )
    order = HappensBefore(entry, buffers)
    for pool in pools:
        _check_order(pool.buffers, order)


def _lives(
    func: FuncOp,
    buffers: Sequence[ArenaBuffer],
    accesses: Mapping[Operation, Access],
) -> Mapping[SSAValue, Sequence[Sequence[int]]]:
    """For each buffer, the steps of its live ranges, in order; for an unused buffer,
    the step that makes it, and nothing for an argument. A new range begins with an
    operation outside of regions that overwrites the buffer completely.
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
    for buffer, lives in zip(buffers, found, strict=True):
        maker = buffer.value.owner
        if not lives and isinstance(maker, Operation):
            lives.append([_step(maker, step)])
    values = (buffer.value for buffer in buffers)
    return dict(zip(values, found, strict=True))


def _step(op: Operation, step: Mapping[Operation, int]) -> int:
    """The step of an operation, or of the operation around it that is a step."""
    while op not in step:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return step[op]


def _check_view(
    value: SSAValue,
    base: SSAValue,
    op: Operation,
    sizes: CountedSizes,
    unchecked: Unchecked,
) -> None:
    """Checks that a view of a buffer is within it."""
    type: Attribute = value.type
    if value is base or not isinstance(type, MemRefType) or not is_view(op):
        return
    whole, width = sizes.bytes(base), element_bytes(cast(AnyMemRef, type).element_type)
    if origin_of(value) is base and not is_static(cast(AnyMemRef, type)):
        return
    reach = reach_of(value, base, sizes.range)
    if reach is not None and (
        reach.most < reach.least or (reach.least >= 0 and reach.most < whole // width)
    ):
        return
    is_for_all_sizes = is_static(cast(AnyMemRef, base.type)) and (
        reach_of(value, base) == reach
    )
    if reach is None or not is_for_all_sizes or not is_reached(value, base):
        unchecked.add("views that may extend beyond their buffer", op)
        return
    raise LocatedError(
        f"{name_of(op)} accesses elements {reach.least} to {reach.most}, expected 0 "
        f"to {whole // width - 1}",
        op,
    )


def _check_slot(
    view: memref.ViewOp,
    slot: ArenaBuffer,
    memories: Sequence[MemoryPool],
    sizes: CountedSizes,
) -> None:
    """Checks that a buffer made in a slot is within the slot and aligned."""
    (memory,) = (m for m in memories if m.value is slot.pool)
    start, size = sizes.offset(view), sizes.bytes(view.result)
    if start is None or start < 0 or start + size > slot.size:
        raise LocatedError(
            f"a buffer of {size} bytes is created at byte {start} of buffer "
            f"{slot.name}, "
            f"expected within [0, {slot.size})",
            view,
        )
    natural = element_alignment(view.result.type.element_type)
    if gcd(memory.alignment, slot.offset + start) % natural:
        raise LocatedError(
            f"a buffer is created at byte {start} of buffer {slot.name}, expected a "
            f"multiple of {natural} for {view.result.type.element_type}",
            view,
        )


def _check_slots_are_known(
    func: FuncOp,
    buffers: Mapping[SSAValue, int],
    callees: Callees,
    unchecked: Unchecked,
) -> None:
    """Notes views of slots that may refer to memory other than known buffers."""
    views = list(filter(is_in_slot, operations_in(func)))
    if not views:
        return
    sources = bases(func, list(buffers), callees)
    known = may_be({base: n for n, base in enumerate(sources)}, set(sources))
    for view in views:
        found = [sources[number] for number in known.get(view.source, ())]
        if not found or not buffers.keys() >= set(found):
            unchecked.add(SEVERAL, view)


def _check_alignment(
    value: SSAValue,
    buffer: ArenaBuffer,
    memories: Sequence[MemoryPool],
    unchecked: Unchecked,
) -> None:
    """Checks that an assumed alignment follows from the arena's."""
    op = value.owner
    if not isinstance(op, AssumeAlignmentOp):
        return
    sure = _sure_alignment(value, buffer, memories)
    if sure is None:
        unchecked.add("views of unknown alignment", op)
        return
    wanted = op.alignment.value.data
    if wanted > sure:
        raise LocatedError(
            f"memref.assume_alignment assumes {wanted} of a part of buffer "
            f"{buffer.name}, expected at most {sure}",
            op,
        )


def _sure_alignment(
    value: SSAValue, buffer: ArenaBuffer, memories: Sequence[MemoryPool]
) -> int | None:
    """The largest known divisor of a memref's address, in bytes; None if unknown."""
    extent = extent_of(value, buffer.value)
    if extent is None:
        return None
    (memory,) = (m for m in memories if m.value is buffer.pool)
    return gcd(memory.alignment, buffer.offset, extent.start)


def _check_calls(
    func: FuncOp,
    aliases: Mapping[SSAValue, Sequence[int]],
    buffers: Sequence[ArenaBuffer],
    memories: Sequence[MemoryPool],
    callees: Callees,
) -> None:
    """Checks the type and alignment of the arenas that calls pass."""
    for op in operations_in(func):
        callee = callees.of(op)
        for arena in arena_arguments(callee) if callee else ():
            value, wanted = op.operands[arena.index], arena_alignment(arena) or 1
            if value.type != arena.type:
                raise LocatedError(
                    f"{name_of(op)} passes {value.type} as an arena, expected "
                    f"{arena.type}",
                    op,
                )
            known = [
                _sure_alignment(value, buffers[number], memories)
                for number in aliases.get(value, ())
            ] or [alignment_of(origin_of(value))]
            sure = gcd(*(alignment or 1 for alignment in known))
            if sure % wanted:
                raise LocatedError(
                    f"{name_of(op)} passes an arena with alignment {sure}, expected a "
                    f"multiple of {wanted}",
                    op,
                )


def _check_order(buffers: Sequence[PlannedBuffer], order: HappensBefore) -> None:
    """Raises `LocatedError` if buffers share bytes without an order of their accesses.

    Visits the buffers in program order, and keeps the last owner of each byte. The last
    owner must be finished; then all earlier owners are finished, too.
    """
    last: list[tuple[int, int, PlannedBuffer]] = []  # ranges of bytes, ascending
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
                    f", {min(a.offset + a.size, end)}), but no dependency orders "
                    f"all uses of {a.name} before those of {b.name}",
                    maker_of(b.value),
                )
        kept = [(s, min(e, start), a) for s, e, a in last[low:high] if s < start]
        kept.append((start, end, b))
        kept += [(max(s, end), e, a) for s, e, a in last[low:high] if e > end]
        last[low:high] = kept
