"""`tgraph-tile`: computes chains of operations with a wide middle in tiles.

The first form slices the operands and computes one tile after the other:

    %1 = tgraph.dot_general %q, %k ...   : ... -> tensor<4x512x512xf32>
    %2 = tgraph.exponential %1           : tensor<4x512x512xf32>
    %3 = tgraph.dot_general %2, %v ...   : ... -> tensor<4x512x64xf32>

    %q0 = tgraph.slice %q ...            : ... -> tensor<2x512x64xf32>
    ...
    %4 = tgraph.dot_general %q0, %k0 ... : ... -> tensor<2x512x512xf32>
    %5 = tgraph.exponential %4           : tensor<2x512x512xf32>
    %6 = tgraph.dot_general %5, %v0 ...  : ... -> tensor<2x512x64xf32>
    ...                                  // the same for %q1, %k1, %v1: %9
    %3 = tgraph.concatenate %6, %9 {dimension = 0, tgraph.in_place} : ...

The middle of the chain then needs memory for only one tile. Slices are views, and each
tile is computed directly into its part of the result. The pass cuts a region along a
dimension that all its operations keep separate: heads or queries of attention, rows, or
the batch. A region may end in variables, with each tile writing its own rows; an
optimizer then needs only the gradient of one tile. The pass chooses the regions and the
number of tiles by the peak of live bytes, counted as in tgraph-schedule.

The second form is a loop, which can also sum over the dimension:

    %h = tgraph.dot_general %x, %w ...   : ... -> tensor<65536x256xf32>
    %t = tgraph.tanh %h                  : tensor<65536x256xf32>
    %s = tgraph.reduce %t {kind = "add", dimensions = array<i64: 0, 1>} : ...

    %n, %s = tgraph.while %zero, %start, %x, %w ... do {
      %i = tgraph.read %counter          : tensor<i32>
      %x0 = tgraph.dynamic_slice %x, %i, ... : ... -> tensor<1x256x256xf32>
      %x1 = tgraph.reshape %x0           : ... -> tensor<256x256xf32>
      %h = tgraph.dot_general %x1, %w ... : ... -> tensor<256x256xf32>
      %t = tgraph.tanh %h                : tensor<256x256xf32>
      %p = tgraph.reduce %t {kind = "add", dimensions = array<i64: 0, 1>} : ...
      %1 = tgraph.add %sum, %p           : tensor<f32>
      tgraph.assign %vs, %1              : tensor<f32>
      ...
    }

A loop contains every operation around one of the largest values at the peak that can be
computed tile by tile along one dimension: the forward and backward passes of layers by
rows or by batch (gradient accumulation), or attention by queries. If there are several
such peaks, as with equal layers, each of them gets a loop. A loop carries sums over the
dimension, in f32 for bf16 and f16, and adds them in the order of the tiles. The same
holds for products, maxima, minima, contractions, convolutions, and scatters that add.
Results that have the dimension are assembled from the tiles: in place of a value of
which each tile reads only its own rows, if nothing reads this value later and, for the
contents of a variable, if the result is assigned to it. A loop that would begin or
end in the middle of an elementwise chain does so at the narrowest value of the chain,
because that value is stored: in a quantized network, the bytes between two layers. A
tile uses up to half of a core's L2 cache, or more if that raises the peak only slightly
or if each tile rereads a lot of data. It uses less, as long as that lowers the peak, if
starting the operations of all tiles takes at most a twentieth of the block's time: rows
of a pairwise kernel, but not of a product with a large matrix. Only in this case does a
value that is smaller than the limit for a tile get a loop, if it has at least a
sixteenth of that limit. Tiles of contractions have at least 16 rows, where possible. A
loop that only writes parts of results is faster than a loop that adds to sums, so the
pass prefers it unless the other one takes a tenth fewer bytes. The pass builds a loop
on a copy of the program whose fusions are split into their operations, then fuses and
schedules the copy again.

A value may be read first by a reduction to a number, and then by operations that need
this number: the scale of a dynamic quantization, or the mean of a whole tensor. No loop
can contain both readers. The pass then tries loops that recompute the value
(passes/tgraph/tiling/rematerialization.py), and takes them if they need a tenth fewer
bytes than other loops. Recomputation counts as time.

The pass tiles convolutions and pooling by rows, with tiles large enough that a window
spans at most two of them. The rows that the next tile reads again are kept (Alwani et
al., "Fused-layer CNN accelerators", 2016) rather than recomputed. The first and the
last tile, which contain the padding, are outside of the loop. Padding with a number
that convolutions do not support, such as a zero point, is a `tgraph.pad`. If only
windows read its result, each tile pads its own rows.

The pass lowers the peak as far as possible. It changes the program only if the new peak
is at least a tenth below the arena that plan-memory needs for the original, and the new
arena is smaller than the original's also after `tgraph-concatenate-in-place`. Data that
all tiles read, such as weights, is read again by each of them; `max-slowdown` limits
the estimated cost. The estimate omits the time that a library takes to start
contractions, so that networks of small contractions are tiled, too; tgraph-fit counts
it. A loop is assumed to be one native call, in which operations start faster. For
loops, the limit is several times as high, depending on how often they halve the bytes.

With a budget, the pass writes only as many loops as the budget requires, with the
fewest tiles that suffice according to the estimate.

Needs: level 1, in the order in which the program will run: after tgraph-schedule.
Leaves: level 1.
Does not: cut into unequal tiles; tile windows in the sliced form; put windows into
loops if they lack the padding for one result row per stride; or change functions whose
operations have streams, which could run the tiles in parallel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...analysis.cost import (
    duration,
    time_with_native_loops,
    time_without_library,
    times,
)
from ...analysis.functions import blocks_within, tensor_functions
from ...analysis.memory_graph import memory_graph
from ...dialects.diagnostics import held_back, remark
from ...dialects.tgraph.base import TILES, value_bytes
from .. import driver
from ..optional import OptionalPass
from ..options import Budget, Packing, Placing
from .concatenate_in_place import lowest
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .schedule import TGraphSchedule
from .shared.fitting import Peaks, PlannedBytes, is_static_block
from .shared.streams import has_streams
from .tiling.bytes import Lifetimes
from .tiling.loop_search import IN_CACHE, least_bytes, write_loops
from .tiling.regions import Rules
from .tiling.rewriting import write
from .tiling.search import Search

MOST_TILES = 1024

ROUNDS = 3
"""The number of rounds in which loops that take too long get larger tiles."""

UNSEEN, MOST_UNSEEN = 6, 9
"""Multiples of `max_slowdown` that loops may take longer: the increase for each time
that they halve the bytes, and the maximum. The estimate ignores that tiles stay in a
core's cache: layer norms that should take a tenth longer take half as long."""

MAX_OVERESTIMATE = 2.5
"""The multiple of the needed bytes above which an estimate rules out loops: no estimate
has been seen that was too high by this factor."""

LESS = 1.25
"""The factor by which the estimate has to fall further below a peak if it is wrong."""

SMALL = 4
"""The multiple of `tile_bytes` up to which a tile in a loop is not cut into slices."""

MIN_ALLOWED_SLOWDOWN = 0.001
"""The share of the time to divide by if no slowdown is allowed."""


class _Cut(NamedTuple):
    """The state of a function whose chains are cut into slices to lower its peak."""

    bytes: int | None = None  # of the arenas now, if planned
    given: FuncOp | None = None  # the function without slices, if it has slices


class _Looped(NamedTuple):
    """A function with loops over tiles."""

    func: FuncOp
    bytes: int  # of the arenas
    tiles: Sequence[int]  # of each loop
    repeated: int  # the number of recomputed values

    def __str__(self) -> str:
        tiles = ", ".join(map(str, self.tiles))
        repeated = f"; values computed again: {self.repeated}" if self.repeated else ""
        return f"{len(self.tiles)} ({tiles} tiles){repeated}"


@dataclass(frozen=True)
class TGraphTile(OptionalPass, Placing):
    """Computes chains of operations in tiles, to lower the peak of live bytes.

    tiles: the largest number of tiles per region, at most 1024.
    max_slowdown: the largest increase in a function's time, as a fraction of it, both
        estimated from types.
    tile_bytes: the bytes that a tile in a loop may use, by default half of a core's L2
        cache; 0 disables loops.
    effort: the effort of tgraph-schedule inside and around loops.
    budget: the bytes that each arena may have, such as 64MiB: slices and loops are then
        chosen to meet it in the least time, or to come as close to it as possible.
    """

    name = "tgraph-tile"
    EXACT = False  # sums are added up in another order
    IDEMPOTENT = False  # a tile may be cut again
    LOWERS_PEAK = True
    TOPIC = "tiling"

    tiles: int = 8
    max_slowdown: float = 0.03
    tile_bytes: int = IN_CACHE
    effort: float = 0.2
    budget: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None:
            Budget(self.budget)
        if not 1 <= self.tiles <= MOST_TILES:
            raise ValueError(f"tiles is {self.tiles}, expected 1 to {MOST_TILES}")
        if self.max_slowdown < 0:
            raise ValueError(f"max-slowdown is {self.max_slowdown}, expected 0 or more")
        if self.tile_bytes < 0:
            raise ValueError(f"tile-bytes is {self.tile_bytes}, expected 0 or more")
        if self.effort < 0:
            raise ValueError(f"effort is {self.effort}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.tiles == 1 and not self.tile_bytes:
            return
        planned_bytes = PlannedBytes(self)
        for func, _ in tensor_functions(op):
            if has_streams(func, "nothing is tiled"):
                continue
            if self._has_large_values(func):
                untiled = planned_bytes.of_all(func)
                cut = self._cut(func, planned_bytes, untiled)
                self._write_loops(ctx, func, cut, untiled, planned_bytes)
            else:
                self._cut(func, planned_bytes)

    def _has_large_values(self, func: FuncOp) -> bool:
        """Whether a value is large enough for a loop."""
        return self.tile_bytes > 0 and any(
            value_bytes(value) >= least_bytes(self.tile_bytes)
            for block in blocks_within(func.body.block)
            for op in block.ops
            for value in op.results
        )

    def _write_loops(
        self,
        ctx: Context,
        func: FuncOp,
        cut: _Cut,
        untiled: int,
        planned_bytes: PlannedBytes,
    ) -> None:
        """Uses loops instead of slices, if that lowers the function's peak, and loops
        that recompute values, if that lowers it by another tenth.

        untiled: the bytes of the function's arenas without slices.
        """
        given, before = cut.given or func, cut.bytes
        assert before is not None

        def looped(share: float) -> tuple[_Looped | None, bool]:
            return self._loops(ctx, given, before, untiled, planned_bytes, share)

        found, has_tried = looped(MOST_UNSEEN * self.max_slowdown)
        if has_tried:
            usual, _ = looped(0)
            if usual and not (found and found.bytes <= usual.bytes * 9 // 10):
                found = usual
        if found and _gains(func, before, found.func, found.bytes, planned_bytes):
            func.detach_region(0)
            func.add_region(found.func.detach_region(0))
            remark(
                f"loops over tiles: {found}; the peak goes from {before} to "
                f"{found.bytes} bytes",
                func,
                passed=True,
            )

    def _loops(
        self,
        ctx: Context,
        given: FuncOp,
        before: int,
        untiled: int,
        planned_bytes: PlannedBytes,
        share: float,
    ) -> tuple[_Looped | None, bool]:
        """Returns a copy of a function with loops that takes a tenth fewer bytes than
        `before`, or as few as the budget requires, or None; and whether loops that
        recompute values were considered.

        untiled: the bytes of `given`, with whose time loops are compared.
        share: the share of a block's time that recomputing values may take.
        """
        has_tried = False
        budget, enough, saving = 0, before * 9 // 10, inf
        if self.budget is not None:
            budget = Budget(self.budget).bytes_allowed
            enough, saving = before - 1, before - budget
        found: _Looped | None = None
        took, coarser = 0, 1.0
        tried: Sequence[tuple[int, int]] = ()
        for _ in range(ROUNDS):
            copy = given.clone()
            bytes = int(coarser * self.tile_bytes)
            most = MAX_OVERESTIMATE * before
            done = write_loops(copy, self.alignment, bytes, most, share, saving)
            loops, has_tried = done.loops, has_tried or done.has_tried
            sizes = [(loop.tiles, len(loop.members)) for loop in loops]
            if not loops:
                break
            if sizes == tried:
                coarser, saving = 2 * coarser, LESS * saving
                continue
            tried = sizes
            module = ModuleOp([copy])
            passes = [
                TGraphEliminateAssigns(),
                TGraphFuse(),
                TGraphSchedule(self.effort, **self.shared(Packing)),
            ]
            with held_back():
                driver.run(ctx, module, passes, verify=False)
                after = self._cut(copy, planned_bytes).bytes
            if after is None:
                after = planned_bytes.within(copy, enough)
            if after is None or after > enough:
                if self.budget is None:
                    break
                saving += (after or before) - budget  # the estimate was too low
                continue
            took = took or duration(given, time_with_native_loops)
            longer = duration(copy, time_with_native_loops) / took - 1
            allowed = _unseen(untiled, after) * self.max_slowdown
            if longer <= allowed:
                tiles = [loop.tiles for loop in loops]
                if found is None or after < found.bytes:
                    found = _Looped(copy, after, tiles, done.repeated)
                if self.budget is None or after <= budget:
                    break
                saving += after - budget
                continue
            coarser *= max(longer / max(allowed, MIN_ALLOWED_SLOWDOWN), 2)
        return found, has_tried

    def _cut(
        self, func: FuncOp, planned_bytes: PlannedBytes, bytes: int | None = None
    ) -> _Cut:
        """Cuts chains into slices, if that lowers the function's peak.

        bytes: the bytes of the function's arenas, if they have been planned.
        """
        cut = _Cut(bytes)
        for number in range(len(_blocks(func))):
            cut = self._lower(func, number, cut, planned_bytes)
        return cut

    def _is_small_tile(self, block: Block, peaks: Peaks) -> bool:
        """Whether `block` is in a loop over tiles that need not be cut again."""
        loop = block.parent_op()
        is_tile = loop is not None and TILES in loop.attributes
        return is_tile and max(peaks.values()) <= SMALL * self.tile_bytes

    def _lower(
        self, func: FuncOp, number: int, cut: _Cut, planned_bytes: PlannedBytes
    ) -> _Cut:
        """Cuts chains of one block into slices, if that lowers the function's peak.

        cut: the state after the preceding blocks.
        """
        block = _blocks(func)[number]
        if not is_static_block(block):
            return cut
        memory = memory_graph(block, self.alignment)
        peaks = memory.peaks(range(len(memory.ops)))
        if not any(peaks.values()) or self._is_small_tile(block, peaks):
            return cut
        device = max(peaks, key=lambda device: peaks[device])
        rules = Rules(block)
        took = sum(times(memory.ops, time_without_library))
        allowed = int(self.max_slowdown * took)
        lifetimes = Lifetimes(memory, memory.graphs[device], self.alignment)
        search = Search(rules, lifetimes, self.tiles, allowed)
        before, limit = cut.bytes, peaks[device]
        is_all = len(peaks) == 1 and len(_blocks(func)) == 1
        if before is None:
            if self.budget is None and search.below(limit * 9 // 10) is None:
                return cut
            before = planned_bytes.of_all(func)
        if self.budget is None:
            found = search.lowest(min(limit, before) if is_all else limit)
        else:
            target = limit - (before - Budget(self.budget).bytes_allowed)
            found = search.below(target) if target < limit else None
            if found is None and target < limit:
                found = search.lowest(limit)
        if found is None:
            return _Cut(before, cut.given)
        original = func.clone()
        for chain in found.cuts:
            last = rules.position[memory.ops[chain.window[1] - 1]]
            write(chain.region, chain.tiles, rules.ops[last + 1])
        enough = before * 9 // 10 if self.budget is None else before - 1
        after = planned_bytes.within(func, enough)
        # Otherwise, the function's peak is elsewhere.
        if after is None or not _gains(original, before, func, after, planned_bytes):
            func.detach_region(0)
            func.add_region(original.detach_region(0))
            return _Cut(before, cut.given)
        remark(
            f"chains of operations computed in tiles: {len(found.cuts)}; the peak "
            f"goes from {before} to {after} bytes",
            func,
            passed=True,
        )
        return _Cut(after, cut.given or original)


def _gains(
    given: FuncOp, before: int, tiled: FuncOp, after: int, planned_bytes: PlannedBytes
) -> bool:
    """Whether a function needs fewer bytes in tiles even after
    tgraph-concatenate-in-place."""
    least = lowest(given, before, planned_bytes)
    return after < least or lowest(tiled, after, planned_bytes) < least


def _unseen(before: int, after: int) -> float:
    """The multiple of `max_slowdown` that loops may take longer if they lower the bytes
    from `before` to `after`."""
    return min(1 + UNSEEN * log2(before / max(after, 1)), MOST_UNSEEN)


def _blocks(func: FuncOp) -> Sequence[Block]:
    return list(blocks_within(func.body.block))
