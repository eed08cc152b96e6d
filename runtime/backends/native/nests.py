"""Chooses the loops of a graph of elements: few, in a good order, one vectorized.

Loops over the kept dimensions come first, ordered by the output's strides unless their
order matters, then those over the reduced dimensions, ordered by the largest stride of
any array. Dimensions that all arrays traverse like a single one become one loop. The
vectorized loop, `lane`, is the innermost of the kept ones or the innermost of all. If
it would not fill a vector, such as one over the three colors of pixels, vectors hold
the whole loop for several indices of another loop. If the reduced rows are not much
longer than a vector, vectors hold elements of many rows, which are transposed into
columns. Computations that are needed once per row then fill vectors, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod
from typing import TypeAlias

from ....analysis.cost import BYTES_PER_NS, OTHERS_PER_NS
from ....analysis.flops import flops_of_element
from ....dialects.dtypes import DType, is_float
from ....dialects.tgraph.base import Shape
from ....support.arrays import strided
from ..parts import LANES, cut
from .graphs import Count, ElementGraph, ElementNode, description
from .interleaving import Rows
from .operations import COSTLY

VECTOR = 64
"""The bytes of a vector. LLVM splits vectors that are too large for a register."""

UNROLLED = 4
"""The number of vectors that are processed together to hide latencies."""

LONGEST = 128
"""The maximum elements of rows that are transposed into columns."""

DIVISION, COMBINING, TRANSPOSING = 10, 10, 6
"""Approximate costs in instructions: of a division, of reducing the lanes of a vector,
and of a row's share in transposing a block.
"""

WORTH_TRANSPOSING = 1 << 13
"""The minimum instructions saved, as transposing costs LLVM hundredths of a second."""

MOST = 8
"""The maximum vectors that hold rows of a short loop: there are 32 registers, or 16."""


@dataclass
class LoopNest:
    graph: ElementGraph
    sizes: list[int]
    """The sizes of the loops, outermost first."""
    kept: int
    """The number of loops over kept dimensions."""
    lane: int
    """The loop that is vectorized."""
    strides: list[list[int]]
    """For each array, the stride of each loop in bytes."""
    short: int = -1
    """The loop that vectors hold wholly for each index of `lane`; -1 for none."""
    transposed: list[int] = field(default_factory=list[int])
    """The arrays whose rows are transposed into columns, in buffers."""
    counts: list[list[int]] = field(default_factory=list[list[int]])
    """For each count, the step of each loop."""
    saved: list[ElementNode] = field(default_factory=list[ElementNode])
    """Nodes that are kept from one pass over a row to the next, in buffers of a row."""

    @property
    def root(self) -> ElementNode:
        return self.graph.root

    def key(self) -> object:
        """Equal for nests with the same machine code."""
        number = {node: i for i, node in enumerate(self.graph.nodes)}
        nodes = tuple(
            (
                description(node),
                node.dtype,
                repr(node.number),
                node.array,
                node.count,
                tuple(node.starts),
                tuple(number[x] for x in node.operands),
            )
            for node in self.graph.nodes
        )
        strides = tuple(map(tuple, (*self.strides, *self.counts)))
        loops = tuple(self.sizes), self.kept, self.lane, self.short
        return nodes, loops, tuple(self.transposed), strides

    @property
    def buffers(self) -> list[tuple[Shape, DType]]:
        """The shapes and types of buffers: for `saved`, then for `transposed`."""
        shape = tuple(self.sizes[self.kept :])
        if self.transposed:
            shape = (*shape, UNROLLED * self.lanes)
        arrays = self.graph.arrays
        dtypes = [n.dtype for n in self.saved] + [
            arrays[n].dtype for n in self.transposed
        ]
        return [(shape, dtype) for dtype in dtypes]

    @property
    def lanes(self) -> int:
        """The lanes of a vector of the widest elements."""
        return VECTOR // self.widest

    @property
    def fills_rows(self) -> bool:
        """Whether the output has elements along reduced dimensions."""
        return any(self.strides[-1][self.kept :])

    @property
    def widest(self) -> int:
        """The bytes of the widest element in a register."""
        return max(
            4 if is_float(n.dtype) and n.dtype.itemsize < 4 else n.dtype.itemsize
            for n in self.graph.nodes
        )

    def is_inner(self, node: ElementNode) -> bool:
        """Whether the node varies within a row, that is, along reduced dimensions."""
        return any(d >= self.kept for d in node.dims)


def nest_of(graph: ElementGraph) -> LoopNest:
    arrays = graph.arrays
    kept = [d for d in range(len(graph.shape)) if d not in graph.reduced]
    reduced = sorted(graph.reduced)
    columns = [
        [*(a.strides[d] for a in arrays), *(count.steps[d] for count in graph.counts)]
        for d in range(len(graph.shape))
    ]

    def by_output(d: int) -> int:
        return -abs(arrays[-1].strides[d])

    def by_reading(d: int) -> int:
        return -max(abs(a.strides[d]) for a in arrays)

    order = sorted(kept, key=by_output) if graph.order is None else graph.order
    outer = merged(graph.shape, order, columns)
    inner = merged(graph.shape, sorted(reduced, key=by_reading), columns)
    if not outer and not (reduced and inner):
        outer = [(1, [0] * (len(arrays) + len(graph.counts)))]
    if reduced and not inner:
        inner = [(1, [0] * (len(arrays) + len(graph.counts)))]
    loops = [*outer, *inner]
    strides = [list(column) for column in zip(*(s for _, s in loops), strict=True)]
    counts = strides[len(arrays) :]
    del strides[len(arrays) :]
    sizes = [size for size, _ in loops]
    nest = LoopNest(graph, sizes, len(outer), 0, strides, counts=counts)
    for node in graph.nodes:
        if node.count >= 0:
            steps = counts[node.count]
            node.dims = frozenset(d for d, step in enumerate(steps) if step)
        elif node.array >= 0:
            steps = strides[node.array]
            along = frozenset(d for d, step in enumerate(steps) if step)
            node.dims = along.union(*(x.dims for x in node.operands))
        elif node.is_reduction:
            node.dims = frozenset(d for d in node.operands[0].dims if d < nest.kept)
        else:
            node.dims = frozenset[int]().union(*(x.dims for x in node.operands))
    nest.lane, nest.short = _interleaved(nest) or (_lane(nest), -1)
    if transposed := _transposed(nest):
        nest.lane, nest.transposed = nest.kept - 1, transposed
    if nest.lane >= nest.kept or nest.transposed:
        nest.saved = _worth_saving(nest)
    return nest


Loops: TypeAlias = list[tuple[int, Sequence[int]]]
"""The size of each loop, and its stride for each array."""


def merged(
    shape: Shape, dims: Sequence[int], columns: Sequence[Sequence[int]]
) -> Loops:
    """Loops over the dimensions `dims`, which have the strides in `columns`. Loops of
    size 1 are omitted."""
    loops: Loops = []
    for d in dims:
        size = shape[d]
        if size == 1:
            continue
        whole = [step * size for step in columns[d]]
        if loops and list(loops[-1][1]) == whole:
            loops[-1] = loops[-1][0] * size, columns[d]
        else:
            loops.append((size, columns[d]))
    return loops


def _lane(nest: LoopNest) -> int:
    """The innermost kept or reduced loop: the one along which fewer arrays have gaps,
    or else the innermost."""
    last = len(nest.sizes) - 1
    if nest.kept in (0, last + 1):
        return last

    placed = nest.graph.placed

    def gaps(loop: int) -> int:
        return sum(
            loop in placed.get(number, ()) or steps[loop] not in (0, array.itemsize)
            for number, (steps, array) in enumerate(
                zip(nest.strides, nest.graph.arrays, strict=True)
            )
            if any(steps[nest.kept :])
            or any(d >= nest.kept for d in placed.get(number, ()))
        )

    outer = nest.kept - 1
    return outer if gaps(outer) < gaps(last) else last


def _interleaved(nest: LoopNest) -> tuple[int, int] | None:
    """A loop, and another that is too short for a vector, such that vectors of all
    arrays can hold the whole short loop for several indices of the first. None if there
    are none, or no array has this layout.

        out[i, j] = x[i, j] - mean[j]        lane i, short j
        out[j, i] = x[i, j]
    """
    if nest.kept < len(nest.sizes) or nest.graph.placed or nest.counts:
        return None
    lanes = nest.lanes
    arrays = list(zip(nest.strides, nest.graph.arrays, strict=True))
    for lane, size in enumerate(nest.sizes):
        for short, count in enumerate(nest.sizes):
            if short == lane or count >= lanes or size < lanes:
                continue
            if count // gcd(count, lanes) > MOST:
                continue
            rows = [
                (Rows(count, steps[lane], steps[short]), x.itemsize)
                for steps, x in arrays
            ]
            if all(row.can_be_read(bytes) for row, bytes in rows) and any(
                row.are_joined(bytes) for row, bytes in rows
            ):
                return lane, short
    return None


def _transposed(nest: LoopNest) -> list[int]:
    """The arrays whose rows are transposed into columns; empty if that does not pay."""
    if nest.kept != len(nest.sizes) - 1 or nest.kept == 0:
        return []
    if nest.sizes[-1] > LONGEST or nest.sizes[-2] < nest.lanes:
        return []
    transposed: list[int] = []
    for number, (array, steps) in enumerate(
        zip(nest.graph.arrays, nest.strides, strict=True)
    ):
        if steps[-1] == 0 or steps[-2] in (0, array.itemsize):
            continue
        if number in nest.graph.placed:
            continue
        if steps[-1] != array.itemsize or array.dtype.kind == "c":
            return []
        transposed.append(number)
    saved = _saved_by_transposing(nest, len(transposed)) * prod(nest.sizes[: nest.kept])
    return transposed if transposed and saved > WORTH_TRANSPOSING else []


def _saved_by_transposing(nest: LoopNest, transposed: int) -> float:
    """The approximate instructions per row that vectors of many rows save over vectors
    of each row, if `transposed` arrays have to be transposed."""
    within = once = combined = 0
    for node in nest.graph.nodes:
        if node.is_reduction:
            combined += 1
        elif node.op is not None:
            at_least = DIVISION if isinstance(node.op, COSTLY) else 1
            instructions = max(flops_of_element(node.op), at_least)
            if nest.is_inner(node):
                within += instructions
            else:
                once += instructions
    length, lanes = nest.sizes[-1], nest.lanes
    vectors = -(-length // lanes)
    by_row = vectors * within + once + combined * COMBINING
    return (
        by_row - (length * within + once) / lanes - transposed * vectors * TRANSPOSING
    )


def divided(nest: LoopNest, threads: int) -> Sequence[LoopNest]:
    """The nest in parts along one loop over a kept dimension, which threads can run
    concurrently; the nest itself if that does not pay. Each element is computed exactly
    as by the whole nest, because vectors and passes stay the same."""
    if nest.root.is_scatter:  # several parts could write one element
        return [nest]
    units = [LANES if loop == nest.lane else 1 for loop in range(nest.kept)]
    if nest.short >= 0:
        units[nest.short] = nest.sizes[nest.short]
    loop, spans = cut(nest.sizes[: nest.kept], units, time_of(nest), threads)
    return [_part(nest, loop, x) for x in spans] if len(spans) > 1 else [nest]


def _part(nest: LoopNest, loop: int, span: slice) -> LoopNest:
    place = (*[slice(None)] * loop, span)
    arrays = [
        strided(array, nest.sizes, steps)[place]
        for array, steps in zip(nest.graph.arrays, nest.strides, strict=True)
    ]
    sizes = [*nest.sizes[:loop], span.stop - span.start, *nest.sizes[loop + 1 :]]
    counts = [
        Count(count.first + span.start * steps[loop], count.steps)
        for count, steps in zip(nest.graph.counts, nest.counts, strict=True)
    ]
    graph = replace(nest.graph, arrays=arrays, counts=counts)
    return replace(nest, graph=graph, sizes=sizes)


def time_of(nest: LoopNest) -> float:
    """The estimated nanoseconds of the nest, as in analysis/cost.py."""
    ops = [node.op for node in nest.graph.nodes if node.op is not None]
    flops = sum(map(flops_of_element, ops))
    moved = sum(
        array.itemsize * prod(nest.sizes[d] for d, step in enumerate(steps) if step)
        for array, steps in zip(nest.graph.arrays, nest.strides, strict=True)
    )
    return max(prod(nest.sizes) * flops / OTHERS_PER_NS, moved / BYTES_PER_NS)


def reductions(nest: LoopNest, stage: int) -> list[ElementNode]:
    """The reductions that pass `stage` over a row completes."""
    return [n for n in nest.graph.nodes if n.is_reduction and n.stage == stage + 1]


def targets(nest: LoopNest, stage: int) -> list[ElementNode]:
    """The values that pass `stage` over a row needs."""
    wanted = [node.operands[0] for node in reductions(nest, stage)]
    root = nest.root
    ends = root.operands if root.is_scatter else [root]
    return [*wanted, *ends] if stage == root.stage else wanted


def computed(nest: LoopNest, stage: int) -> list[ElementNode]:
    """The nodes that pass `stage` computes at each index, in no particular order."""
    nodes: dict[ElementNode, None] = {}
    waiting = targets(nest, stage)
    while waiting:
        node = waiting.pop()
        is_done = node in nest.saved and node.stage < stage
        if node in nodes or is_done or (nest.graph.reduced and not nest.is_inner(node)):
            continue
        nodes[node] = None
        waiting += node.operands
    return list(nodes)


def _worth_saving(nest: LoopNest) -> list[ElementNode]:
    """The nodes that a later pass needs again and that are costly to recompute."""
    first: dict[ElementNode, int] = {}
    saved: dict[ElementNode, None] = {}
    costly: dict[ElementNode, bool] = {}
    inner = frozenset(range(nest.kept, len(nest.sizes)))
    for node in nest.graph.nodes:
        costly[node] = nest.is_inner(node) and (
            isinstance(node.op, COSTLY) or any(costly[x] for x in node.operands)
        )

    for stage in range(nest.root.stage + 1):
        visited = set[ElementNode]()
        waiting = targets(nest, stage)[::-1]
        while waiting:
            node = waiting.pop()
            if not nest.is_inner(node) or node in visited:
                continue
            visited.add(node)
            is_later = first.setdefault(node, stage) < stage
            if is_later and costly[node] and inner <= node.dims:
                saved[node] = None
            else:
                waiting += reversed(node.operands)
    return list(saved)
