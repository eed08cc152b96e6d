"""`tgraph-tile`: chains of operations with a wide middle are computed in tiles.

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

The tiles are computed one after the other, so what is in the middle needs the memory
of one. Slices are views, and the tiles of the result are computed straight into it. A
region is cut along a dimension that all its operations keep apart: heads or queries of
attention, rows, the batch. Every element is computed from the same elements in the same
order as before. A region may end in variables, each tile in their rows at once: so an
optimiser needs the gradient of one tile.

Where, and into how many tiles, follows from the peak of live bytes, counted as tgraph-
schedule counts it. It is brought as low as it goes, if that is a tenth or more below
what plan-memory needs as it is; otherwise nothing is changed. What each tile reads all
of, such as weights, it reads anew: `max-slowdown` limits an estimate of the time for
that.

Needs: level 1, in the order in which it is to run: after tgraph-schedule. Leaves:
level 1. Does not: cut sums, so that no value changes; cut into unequal tiles; or touch
functions whose operations have streams, which could run the tiles side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...analysis.cost import time
from ...analysis.functions import blocks_within, tensor_functions
from ...analysis.memory_graph import memory_graph
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import STREAM
from ..optional import OptionalPass
from ..options import Placing
from .shared.fitting import PlannedBytes, is_static_block
from .tiling.bytes import Lifetimes
from .tiling.regions import Rules
from .tiling.rewriting import write
from .tiling.search import Search

MOST_TILES = 1024


@dataclass(frozen=True)
class TGraphTile(OptionalPass, Placing):
    """Computes chains of operations in tiles, to lower the peak of live bytes.

    tiles: the most that a region is cut into, up to 1024.
    max_slowdown: how much longer a function may take, as a part of its time, both
        estimated from types.
    """

    name = "tgraph-tile"
    EXACT = False  # a product of a tile may add up in another order
    IDEMPOTENT = False  # a tile may be cut again
    LOWERS_PEAK = True
    TOPIC = "tiling"

    tiles: int = 8
    max_slowdown: float = 0.03

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.tiles <= MOST_TILES:
            raise ValueError(f"tiles is {self.tiles}, expected 1 to {MOST_TILES}")
        if self.max_slowdown < 0:
            raise ValueError(f"max-slowdown is {self.max_slowdown}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        planned_bytes = PlannedBytes(self)
        for func, block in tensor_functions(op):
            if any(STREAM in op.attributes for op in block.ops):
                remark("nothing is tiled: its operations have streams", func)
                continue
            bytes: int | None = None
            for number in range(len(_blocks(func))):
                bytes = self._lower(func, number, bytes, planned_bytes)

    def _lower(
        self, func: FuncOp, number: int, before: int | None, planned_bytes: PlannedBytes
    ) -> int | None:
        """Writes chains of one block in tiles, if that lowers the function's peak.

        Takes and returns the bytes that the function needs, if they are known.
        """
        block = _blocks(func)[number]
        if not is_static_block(block):
            return before
        memory = memory_graph(block, self.alignment)
        peaks = memory.peaks(range(len(memory.ops)))
        if not any(peaks.values()):
            return before
        device = max(peaks, key=lambda device: peaks[device])
        rules = Rules(block)
        allowed = int(self.max_slowdown * sum(map(time, memory.ops)))
        lifetimes = Lifetimes(memory, memory.graphs[device], self.alignment)
        search = Search(rules, lifetimes, self.tiles, allowed)
        if search.below(peaks[device] * 9 // 10) is None:
            return before
        if before is None:
            before = planned_bytes.of_all(func)
        limit = peaks[device]
        if len(peaks) == 1 and len(_blocks(func)) == 1:
            limit = min(limit, before)
        found = search.lowest(limit)
        if found is None:
            return before
        original = func.clone()
        for cut in found.cuts:
            last = rules.position[memory.ops[cut.window[1] - 1]]
            write(cut.region, cut.tiles, rules.ops[last + 1])
        after = planned_bytes.of_all(func)
        if after * 10 > before * 9:  # the function's peak is somewhere else
            func.detach_region(0)
            func.add_region(original.detach_region(0))
            return before
        remark(
            f"chains of operations computed in tiles: {len(found.cuts)}; the peak "
            f"goes from {before} to {after} bytes",
            func,
            passed=True,
        )
        return after


def _blocks(func: FuncOp) -> Sequence[Block]:
    return list(blocks_within(func.body.block))
