"""Writes offsets that are computed from sizes, for plan-memory.

    %0 = arith.muli %n, %c512                     # the bytes of %a
    %1 = arith.maxsi %0, %2                       # of %b, above %a and %c
    %arena = memref.alloc(%3) : memref<?xi8>
    %b = memref.view %arena[%1][%n] : memref<?xi8> to memref<?x128xf32>

A plan for typical sizes determines which of two buffers that are live at once lies
above the other. This order is kept for all sizes: a buffer starts at the largest end of
the buffers below it, and the arena ends at the largest of all ends. No two such buffers
then share a byte, whatever the sizes. At the typical sizes, the arena is at most as
large as in the plan.

PyTorch Inductor turns its allocation tree (`inductor-tree`) into sizes in the same way:
side by side is a sum, one after the other in time is a maximum. A tree is one such
order. This module takes the order from any strategy, even if no tree can express it.
"""

from collections.abc import Iterator, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, NoneAttr, i8
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.allocations import Allocation
from ....analysis.sizes import SizeReader, SizeWriter, compute_first
from ....dialects.sizes.dims import static
from ....dialects.sizes.symbolic import Size, names_in, round_up
from ....planning import Buffer
from .marked import marked_arena, replace_by


def place(
    sizes: SizeReader,
    space: Attribute,
    alignment: int,
    allocations: Sequence[Allocation],
    spans: Sequence[Buffer],
    offsets: Sequence[int],
) -> memref.AllocOp:
    """Replaces allocations by views of a new arena, which it returns. `spans` are their
    live ranges, and `offsets` say which lies above another. Keeps the deallocations.

    Raises `LocatedError` for sizes that do not follow from arguments.
    """
    used = {name: None for a in allocations for name in names_in(a.size)}
    compute_first(sizes.func, [v for name, v in sizes.operands.items() if name in used])
    writer, first = SizeWriter.following(sizes)
    order = sorted(
        range(len(spans)), key=lambda i: (offsets[i], offsets[i] + spans[i].size, i)
    )
    below: list[int] = []  # by position: the buffers below, as bits
    starts: list[Size] = []
    ends: list[Size] = []
    covered = 0
    for position, live in enumerate(_conflicts([spans[i] for i in order])):
        allocation = allocations[order[position]]
        rest, found, touching = live & ((1 << position) - 1), 0, list[Size]()
        while rest:
            top = rest.bit_length() - 1
            found |= below[top] | 1 << top
            touching.append(ends[top])
            rest &= ~found
        start = writer.maximum(touching, allocation.alloc)
        below.append(found)
        covered |= found
        starts.append(start)
        ends.append(start + round_up(allocation.size, alignment))
    tops = [
        start + allocations[index].size
        for position, (index, start) in enumerate(zip(order, starts, strict=True))
        if not covered >> position & 1
    ]
    size = writer.maximum(tops, first)
    values = [writer.value(start, first) for start in starts]
    given = [] if isinstance(size, int) else [writer.value(size, first)]
    type = MemRefType(i8, static([size]), NoneAttr(), space)
    arena = marked_arena(type, alignment, sizes=given)
    for op in (*writer.ops, arena):
        Rewriter.insert_op(op, InsertPoint.before(first))
    for index, value in zip(order, values, strict=True):
        alloc = allocations[index].alloc
        taken = alloc.memref.type
        view = memref.ViewOp(arena.memref, value, alloc.dynamic_sizes, taken)
        replace_by(view, alloc)
    return arena


def _conflicts(spans: Sequence[Buffer]) -> Iterator[int]:
    """For each buffer, the others that are live in one of its steps, as bits."""
    ranges = sorted(
        (start, end, n) for n, b in enumerate(spans) for start, end in b.live
    )
    by_end = sorted(range(len(ranges)), key=lambda r: ranges[r][1])
    begun: list[int] = []  # by range: the ranges that are over when it starts
    over = index = 0
    for start, _, _ in ranges:
        while ranges[by_end[index]][1] <= start:
            over |= 1 << by_end[index]
            index += 1
        begun.append(over)
    found = [0] * len(spans)
    started = index = 0
    for number in by_end:
        _, end, owner = ranges[number]
        while index < len(ranges) and ranges[index][0] < end:
            started |= 1 << index
            index += 1
        live = started & ~begun[number]
        while live:
            lowest = live & -live
            found[owner] |= 1 << ranges[lowest.bit_length() - 1][2]
            live ^= lowest
    for number, live in enumerate(found):
        yield live & ~(1 << number)
