"""The memories of a function that hold several buffers, for plan-check.

An arena is memory that `tgraph.arena` marks: an allocation, on the heap or the stack,
in any block; an argument; a global; or the result of another operation. Its views are
its buffers. Views of other memory are parts of one buffer: they may overlap, and their
offsets may be known only at run time. Plans of others have no marks. If `unmarked` is
set, all memory with a `memref.view` is an arena.

If a view is marked, and only further views use it, those are buffers at offsets in the
arena itself. The arena of an inlined function has this form.

    %arena = memref.alloc() {tgraph.arena} : memref<512xi8>
    %part = memref.view %arena[%c256][] {tgraph.arena}
          : memref<512xi8> to memref<256xi8>
    %a = memref.view %part[%c64][] : memref<256xi8> to memref<16xf32>    at byte 320

If an arena has any other use, the arena is itself a buffer with all its bytes.
Arguments with buffers in their memory (caller_pools.py) are memories as well. Shares no
code with the planner.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ..analysis.functions import CallerMemory, arena_alignment, size_function
from ..dialects.diagnostics import LocatedError
from ..dialects.memory import ALIGNMENT, is_entry, maker_of
from ..dialects.tgraph.base import AnyMemRef, element_alignment, element_bytes
from .buffers import (
    SAME_ADDRESS,
    ArenaBuffer,
    MemoryPool,
    alignment_of,
    name_of_buffer,
    name_of_global,
    origin_of,
)
from .caller_pools import buffers_of, caller_pools
from .pointees import is_memref, may_be, memrefs_in, operations_in
from .references import is_in_slot
from .symbolic_plan import CountedSizes
from .unchecked import Unchecked

SEVERAL = "buffers that may be in one of several memories, not checked"
PARTS = "parts of memory that tgraph.arena does not mark, which may overlap"


def find_memories(
    func: FuncOp, sizes: CountedSizes, unchecked: Unchecked, unmarked: bool
) -> list[MemoryPool]:
    """The arenas in program order, then the arguments whose memory holds buffers.

    Raises `LocatedError` for a buffer that is not within its memory, or not aligned.
    """
    views = [op for op in operations_in(func) if isinstance(op, memref.ViewOp)]
    finder = _Finder(views, sizes, unmarked)
    by_arena: dict[SSAValue, list[tuple[memref.ViewOp, int]]] = {}
    others: list[memref.ViewOp] = []
    for view in views:
        if view.result in finder.divided:
            continue
        if place := finder.place(view.source):
            arena, start = place
            by_arena.setdefault(arena, []).append((view, start))
        elif not (is_in_slot(view) or _is_part(view)):
            others.append(view)
    memrefs = memrefs_in(func) if others else ()
    found = (value for value in memrefs if arena_alignment(value) is not None)
    marked = {value: number for number, value in enumerate(found)}
    chosen = may_be(marked, {view.result for view in views})
    for view in others:
        if unmarked or view.source in chosen:
            unchecked.add(SEVERAL, view)
        elif _is_not_forwarded(origin_of(view.source)):
            unchecked.add(PARTS, view)
    position: dict[Operation | Block, int] = {
        op: number for number, op in enumerate(operations_in(func))
    }
    arenas = sorted(by_arena, key=lambda arena: position.get(arena.owner, -1))
    memories = [_arena(a, by_arena[a], sizes, unchecked) for a in arenas]
    return [*memories, *map(_of_caller, caller_pools(func))]


class _Finder:
    """Finds the memory of views, and their offsets."""

    def __init__(
        self, views: Sequence[memref.ViewOp], sizes: CountedSizes, unmarked: bool
    ):
        self._sizes = sizes
        self._unmarked = unmarked
        self._globals: dict[str, SSAValue] = {}
        """The first memref of each global that is an arena."""
        self.divided: dict[SSAValue, None] = {}
        """Arenas in arenas: views that are only divided into further views."""
        for origin in (origin_of(view.source) for view in views):
            if (
                isinstance(origin.owner, memref.ViewOp)
                and self._is_arena(origin)
                and all(isinstance(use, memref.ViewOp) for use in _users(origin))
            ):
                self.divided[origin] = None
            elif self._is_arena(origin) and (name := name_of_global(origin)):
                self._globals.setdefault(name, origin)

    def _is_arena(self, value: SSAValue) -> bool:
        return self._unmarked or arena_alignment(value) is not None

    def place(self, value: SSAValue) -> tuple[SSAValue, int] | None:
        """The arena of a memref, and the first byte in it; None if it is in no arena,
        or may be in one of several."""
        offset = 0
        while (origin := origin_of(value)) in self.divided:
            parent = cast(memref.ViewOp, origin.owner)
            offset += _known_offset(parent, self._sizes)
            value = parent.source
        if name := name_of_global(origin):
            origin = self._globals.get(name, origin)
        if not self._is_arena(origin):
            return None
        return (origin, offset) if _is_not_forwarded(origin) else None


def _is_not_forwarded(value: SSAValue) -> bool:
    """Whether a memref is the only one that it may be."""
    if isinstance(owner := value.owner, Block):
        return is_entry(owner)
    return not (any(map(is_memref, owner.operands)) or owner.regions)


def _is_part(view: memref.ViewOp) -> bool:
    """Whether `view` is a part of a buffer that another view makes."""
    return isinstance(origin_of(view.source).owner, memref.ViewOp)


def _users(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a memref, or a cast of it at the same address."""
    for use in value.uses:
        if isinstance(use.operation, SAME_ADDRESS):
            yield from _users(use.operation.results[0])
        else:
            yield use.operation


def _known_offset(view: memref.ViewOp, sizes: CountedSizes) -> int:
    offset = sizes.offset(view)
    if offset is None:
        name = name_of_buffer(view.result)
        raise LocatedError(f"the offset of buffer {name} is unknown", view)
    return offset


def _arena(
    arena: SSAValue,
    views: Sequence[tuple[memref.ViewOp, int]],
    sizes: CountedSizes,
    unchecked: Unchecked,
) -> MemoryPool:
    buffers = [_buffer(arena, view, start, sizes) for view, start in views]
    alignment, type = alignment_of(arena), cast(AnyMemRef, arena.type)
    if isinstance(arena.owner, Block) and DYNAMIC_INDEX in type.get_shape():
        func = arena.owner.parent_op()
        is_asked = isinstance(func, FuncOp) and size_function(func) is not None
        if arena_alignment(arena) is None or not is_asked:
            unchecked.add("arenas whose size the caller determines", views[0][0])
        size = max(buffer.offset + buffer.size for buffer in buffers)
    else:
        size = sizes.bytes(arena)
    for buffer in buffers:
        _check_place(buffer, size, alignment)
    if any(not isinstance(u, memref.ViewOp | memref.DeallocOp) for u in _users(arena)):
        buffers.insert(0, ArenaBuffer(name_of_buffer(arena), arena, arena, 0, size))
    return MemoryPool(arena, size, alignment or 1, buffers)


def _buffer(
    arena: SSAValue, view: memref.ViewOp, start: int, sizes: CountedSizes
) -> ArenaBuffer:
    offset = start + _known_offset(view, sizes)
    name = name_of_buffer(view.result)
    own = view.attributes.get(ALIGNMENT)
    alignment = own.value.data if isinstance(own, IntegerAttr) else None
    size = sizes.bytes(view.result)
    return ArenaBuffer(name, view.result, arena, offset, size, alignment)


def _check_place(buffer: ArenaBuffer, size: int, alignment: int | None) -> None:
    """Checks that a buffer is within its arena, and sufficiently aligned."""
    view = maker_of(buffer.value)
    first, end = buffer.offset, buffer.offset + buffer.size
    if first < 0 or end > size:
        raise LocatedError(
            f"buffer {buffer.name} lies in bytes [{first}, {end}), expected within the "
            f"arena's [0, {size})",
            view,
        )
    wanted = buffer.alignment or alignment
    if wanted and (first % wanted or (alignment and alignment % wanted)):
        whose = "its" if buffer.alignment else "the arena's"
        raise LocatedError(
            f"buffer {buffer.name} has offset {first}, expected a multiple of {whose} "
            f"alignment, {wanted}",
            view,
        )
    element = cast(AnyMemRef, buffer.value.type).element_type
    natural = element_alignment(element)
    if first % natural or (alignment and alignment % natural):
        raise LocatedError(
            f"buffer {buffer.name} has offset {first} in an arena with alignment "
            f"{alignment or 'unknown'}, expected multiples of {natural} for {element}",
            view,
        )


def _of_caller(pool: CallerMemory) -> MemoryPool:
    buffers = list(buffers_of(pool))
    alignment = element_bytes(cast(AnyMemRef, pool.argument.type).element_type)
    return MemoryPool(pool.argument, buffers[0].size, alignment, buffers, pool)
