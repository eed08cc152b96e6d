"""Finds loops over tiles that would lower what a block needs, by an estimate.

It takes what is stored now for what would be stored in a tile, and the order as it is.
So the outcome is a proposal, which is to be measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import isqrt, prod
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ....analysis.cost import LAUNCH, reads_part, time_to_start_library, times
from ....analysis.functions import blocks_within
from ....analysis.memory_graph import memory_graph
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.indexing import ScatterOp
from ....dialects.tgraph.structure import AssignOp, IfOp, WhileOp
from ..shared.fitting import is_static_block, live_bytes
from ..shared.ungrouping import ungroup
from .dimensions import bytes_of, shape_of
from .loop_rewriting import write_loop
from .loops import LEAST_TILES, Surroundings, TiledLoop, tiled_loop
from .twice import Again
from .windows import is_remade, users

IN_CACHE = 1 << 19
"""Bytes: half of a core's second cache, which a tile may fill."""

MOST_LOOPS = 8
"""That are written in a block."""

A_SIXTH = 6
"""Of what is live around a loop: nor need they be smaller than this part of it."""

LEAST_ROWS = 16
"""That a tile has along its dimension, if there are as many, but for smaller tiles."""

SEEDS = 3
"""Of the largest values that are live at the peak."""

BYTES_PER_NS = 16
"""Bandwidth of memory for one core, GB/s."""

AGAIN = 4
"""The part of a block's time that its tiles may take to read anew what each reads all
of, and to add to sums: a fourth."""

FINER = 16
"""The part of the bytes that a tile may use, down to which tiles are smaller where that
takes next to no time. From there on a value gets a loop: if it does not fill a tile,
only where tiles take next to no time."""

A_TWENTIETH = 20
"""Next to no time: the part of a block's that tiles may take to start."""


@dataclass(frozen=True)
class _Step:
    """An operation, or a loop, and the stored values that it reads and writes."""

    reads: frozenset[SSAValue]
    writes: Sequence[SSAValue]
    inside: int = 0  # bytes that live while it runs


class Estimate:
    """What is live in a block, whose groups are taken apart.

    sizes: bytes of the values that were stored when there were groups.
    time: nanoseconds that the block took then.
    inside: bytes that live in loops and branches while they run.
    behind: what comes after values without reading them.
    """

    def __init__(
        self,
        block: Block,
        sizes: Mapping[SSAValue, int],
        inside: Mapping[Operation, int],
        time: int,
        behind: Mapping[Operation, Sequence[SSAValue]],
    ):
        self.time = time
        self.sizes = sizes
        self.around = Surroundings(block, behind)
        self._steps: dict[Operation, _Step] = {}
        read: dict[SSAValue, frozenset[SSAValue]] = {}  # through what is not stored
        for op in block.ops:
            reads = frozenset[SSAValue]().union(
                *(read.get(value, ()) for value in op.operands)
            )
            for value in op.results:
                read[value] = frozenset([value]) if value in sizes else reads
            writes = [value for value in op.results if value in sizes]
            self._steps[op] = _Step(reads, writes, inside.get(op, 0))
        self._remade = [
            op for op, step in self._steps.items() if step.writes and is_remade(op)
        ]
        """What is stored, but not where only tiles read it: each makes its own."""
        steps = list(self._steps.values())
        self._during = during = _profile(steps, sizes)
        self.peak = max(during, default=0)
        self.enough = self.peak * 9 // 10
        """More than this is live at a peak."""
        self.peaks = _peaks(during, self.enough)
        self.largest: Sequence[SSAValue] = ()
        """What is live at the peak, the largest first."""
        if during:
            self.largest = _live(steps, sizes, during.index(self.peak))

    def live_at_peaks(self) -> Sequence[SSAValue]:
        """The largest first."""
        steps = list(self._steps.values())
        last = {v: at for at, step in enumerate(steps) for v in step.reads}
        before = [0, *accumulate(live > self.enough for live in self._during)]
        found = (
            value
            for at, step in enumerate(steps)
            for value in step.writes
            if before[last.get(value, at) + 1] > before[at]
        )
        return sorted(found, key=lambda value: -self.sizes[value])

    def with_loop(self, loop: TiledLoop) -> "_WithLoop":
        """What is live with a loop."""
        position = self.around.position
        members = set(loop.members)
        remade = {op for op in self._remade if members.issuperset(users(op.results[0]))}
        in_tiles = (*members, *loop.padding, *remade)
        computed = sorted(in_tiles, key=lambda op: position[op])
        made = {value for op in computed for value in op.results}
        kept = set(loop.carried)
        sizes = {**self.sizes, **{v: bytes_of(v) for v in kept if not is_given(v)}}
        steps = [self._steps[op] for op in computed]
        reads = frozenset[SSAValue]().union(*(step.reads for step in steps))
        order = [self._steps[op] for op in loop.before if op not in remade]
        at = len(order)
        order += [_Step(reads - made, list(kept))]
        order += [self._steps[op] for op in loop.after if op not in remade]
        outside = _profile(order, sizes)
        tiled = {v: n for v, n in self.sizes.items() if v in made and v not in kept}
        inside = max(_profile(steps, tiled), default=0)
        inside += sum(map(bytes_of, loop.sliced)) + 2 * loop.tiles * _of_lines(loop)
        return _WithLoop(outside, at, inside)

    def is_lower(self, peak: int, peaks: int) -> bool:
        """Whether a tenth less is live at most, or no more and at fewer peaks: those of
        equal layers need a loop each."""
        return peak < self.enough or (peak <= self.peak and peaks < self.peaks)

    def time_to_start(self, loop: TiledLoop) -> int:
        """Nanoseconds that each tile takes, however small: to start the operations
        that store something, and to read what it has no tiles of. Libraries pack that
        for each tile again, even if it is in the cache."""
        starts = (op for op in loop.members if self._steps[op].writes)
        starting = sum(LAUNCH + time_to_start_library(op) for op in starts)
        return starting + _bytes_again(loop) // BYTES_PER_NS


def _live(
    steps: Sequence[_Step], sizes: Mapping[SSAValue, int], at: int
) -> Sequence[SSAValue]:
    """What is live during a step, the largest first."""
    later = frozenset[SSAValue]().union(*(step.reads for step in steps[at:]))
    written = [value for step in steps[: at + 1] for value in step.writes]
    live = [v for v in written if v in later or v in steps[at].writes]
    return sorted(live, key=lambda value: -sizes[value])


def _profile(steps: Sequence[_Step], sizes: Mapping[SSAValue, int]) -> list[int]:
    """The bytes that are live during each step, of the values that have sizes."""
    last: dict[SSAValue, int] = {}
    for index, step in enumerate(steps):
        for value in (*step.writes, *step.reads):
            last[value] = index
    ending: dict[int, int] = {}
    during: list[int] = []
    live = 0
    for index, step in enumerate(steps):
        for value in step.writes:
            size = sizes.get(value, 0)
            live += size
            ending[last[value]] = ending.get(last[value], 0) + size
        during.append(live + step.inside)
        live -= ending.get(index, 0)
    return during


def is_given(value: SSAValue) -> bool:
    """Whether a loop makes a value in memory that the block is given: in a result, not
    in a variable, whose old contents its tiles may read."""
    return any(not isinstance(user, TensorOp | AssignOp) for user in users(value))


@dataclass(frozen=True)
class _WithLoop:
    """Bytes that are live with a loop.

    outside: in each step, without those in the loop.
    at: which step the loop is.
    inside: in the loop, were all one tile.
    """

    outside: Sequence[int]
    at: int
    inside: int

    def during(self, tiles: int) -> Sequence[int]:
        """In each step, with so many tiles."""
        loop = self.outside[self.at] + self.inside // tiles
        return [*self.outside[: self.at], loop, *self.outside[self.at + 1 :]]


def _peaks(during: Sequence[int], enough: int) -> int:
    """How often more than `enough` is live, for however many steps."""
    is_above = [False, *(live > enough for live in during)]
    return sum(now and not before for before, now in pairwise(is_above))


@dataclass(frozen=True)
class Proposal:
    """A loop, and the bytes that live with it, while it runs, and in it, at most."""

    loop: TiledLoop
    peak: int
    peaks: int  # that are left
    during: int
    inside: int

    @property
    def bytes(self) -> tuple[float, int, int]:
        """What to have as few of as possible. Tiles that add to sums, and read and
        write them, have to take a tenth less than those that only write results."""
        peak = self.peak * (1.1 if self.loop.parts else 1)
        return peak, self.peaks, self.during


_Peaks = tuple[int, int]
"""Estimates of what is live at most in a block: without loops over tiles, and with."""


@dataclass
class Written:
    """What has become of a function.

    loops: over tiles.
    again: how many values they compute again.
    has_tried: whether there were loops around what is computed again to choose from.
    """

    loops: list[TiledLoop] = field(default_factory=list[TiledLoop])
    again: int = 0
    has_tried: bool = False


def written(
    func: FuncOp, alignment: int, tile_bytes: int, most: float, share: float = 0
) -> Written:
    """Takes the groups of a function apart and writes loops that lower its peak.

    tile_bytes: that a tile may need.
    share: the part of a block's time that computing values again may take.

    There are no loops unless they lower the estimate for the function's block by a
    tenth, and to at most `most`. Then the function is to be thrown away.
    """
    done = Written()
    peaks: dict[Block, _Peaks] = {}
    for block in reversed(list(blocks_within(func.body.block))):
        if is_static_block(block):
            estimates = _write(block, alignment, tile_bytes, done, peaks, most, share)
            peaks[block] = estimates
        else:
            live = live_bytes(block, alignment)
            peaks[block] = live, live
        if peaks[block][1] > most:  # as much lives around it
            return replace(done, loops=[])
    without, peak = peaks[func.body.block]
    if is_static_block(func.body.block) and peak * 10 > without * 9:
        return replace(done, loops=[])  # the function's peak is somewhere else
    return done


def _write(
    block: Block,
    alignment: int,
    tile_bytes: int,
    done: Written,
    peaks: Mapping[Block, _Peaks],
    most: float,
    share: float,
) -> _Peaks:
    """Adds loops of a block. Returns the estimates of its peak without any, and with;
    the latter is too low if it is more than `most`.

    peaks: the same of the blocks in it.
    """
    memory = memory_graph(block, alignment)
    without, inside = (
        {
            cast(Operation, op): max(peaks[r.block][looped] for r in op.regions)
            for op in block.ops
            if isinstance(op, WhileOp | IfOp)
        }
        for looped in (False, True)
    )
    stored = {
        value: sum(sizes[number] for sizes in memory.sizes.values())
        for number, value in memory.names.items()
    }
    took = sum(times(block.ops))
    again = Again(share * took, least_bytes(tile_bytes))
    renamed = ungroup(block)
    sizes = {renamed.get(value, value): size for value, size in stored.items()}
    estimate = Estimate(block, sizes, without, took, again.behind)
    peak = estimate.peak
    if inside != without:
        estimate = Estimate(block, sizes, inside, took, again.behind)
    for _ in range(MOST_LOOPS):
        while again.write(estimate.around, sizes, estimate.live_at_peaks()):
            estimate = Estimate(block, sizes, inside, took, again.behind)
            done.has_tried = True
        found = lowest(estimate, tile_bytes)
        if found is None:
            break
        if found.inside > most:  # further loops do not change that
            return peak, found.inside
        loop = write_loop(found.loop)
        inside[loop] = found.inside
        sizes |= {v: 0 if is_given(v) else bytes_of(v) for v in loop.res}
        done.loops.append(found.loop)
        estimate = Estimate(block, sizes, inside, took, again.behind)
    done.again += again.end()
    return peak, estimate.peak


def least_bytes(tile_bytes: int) -> int:
    """That a value has which gets a loop around it."""
    return max(tile_bytes // FINER, 1)


def lowest(estimate: Estimate, tile_bytes: int) -> Proposal | None:
    """The loop with which the least lives, if that is a tenth less than without, or if
    one of several peaks goes.

    Values that were taken into the loop around another one are tried, too: the loops
    around them may take in something else, and be the only ones that meet a budget.
    """
    best: Proposal | None = None
    for value in estimate.largest[:SEEDS]:
        seed = value.owner
        if isinstance(seed, Operation) and is_remade(seed):
            seed = next(users(value), seed)
        if not isinstance(seed, Operation) or not estimate.around.may_join(seed):
            continue
        if estimate.sizes[value] < least_bytes(tile_bytes):
            continue
        is_small = estimate.sizes[value] < tile_bytes
        for dim in range(len(shape_of(seed.results[0]))):
            numbers = _numbers(seed.results[0], dim, tile_bytes)
            limit = best.peak if best else estimate.peak
            for found in _around(
                estimate, seed, dim, tile_bytes, numbers, limit, is_small
            ):
                if not estimate.is_lower(found.peak, found.peaks):
                    continue
                if best is None or found.bytes < best.bytes:
                    best = found
    return best


def _numbers(value: SSAValue, dim: int, tile_bytes: int) -> Sequence[int]:
    """The numbers of tiles that a loop may have which begins with a value."""
    shape = shape_of(value)
    numbers = _divisors(shape[dim])[1:]
    numbers = [n for n in numbers if n >= LEAST_TILES] or numbers
    if tile_bytes >= IN_CACHE:
        rows = shape[dim] * prod(shape[dim + 1 : -1])
        numbers = [n for n in numbers if rows // n >= LEAST_ROWS] or numbers
    return numbers


def _around(
    estimate: Estimate,
    seed: Operation,
    dim: int,
    tile_bytes: int,
    numbers: Sequence[int],
    limit: int,
    is_small: bool,
) -> Iterator[Proposal]:
    """Loops around a seed along a dimension, in no more tiles than they need; no more
    of them when too much lives around one, which more tiles do not change.

    is_small: whether the seed's value fits into a tile. Then there are only loops that
        take next to no time.
    """
    loop: TiledLoop | None = None
    tiles = next(iter(numbers), None)
    while tiles is not None:
        loop = (loop and loop.in_tiles(tiles)) or tiled_loop(
            estimate.around, seed, dim, tiles
        )
        if loop is None:
            break
        cheap = estimate.time // A_TWENTIETH // max(estimate.time_to_start(loop), 1)
        if is_small and tiles > cheap:
            break
        live = estimate.with_loop(loop)
        inside, outside = live.inside, max(live.outside)
        during = live.during(tiles)
        peaks = _peaks(during, estimate.enough)
        yield Proposal(loop, max(during), peaks, during[live.at], inside // tiles)
        peaks = _peaks(live.outside, estimate.enough)
        if outside > limit or not estimate.is_lower(outside, peaks):
            break
        if outside > estimate.enough:  # at other peaks, which get loops of their own
            outside = live.outside[live.at]
        most = estimate.time // AGAIN // max(again(loop), 1)
        numbers = [n for n in numbers if n <= most] or numbers[:1]
        more = _enough(numbers, inside, max(tile_bytes, outside // A_SIXTH))
        finer = _enough(numbers, inside, max(tile_bytes // FINER, outside // A_SIXTH))
        more = max([more, *(n for n in numbers if n <= min(cheap, finer))])
        if loop.is_peeled:  # smaller tiles take in less
            more = next((n for n in numbers if tiles < n <= more), tiles)
        tiles = more if more > tiles else None


def _enough(numbers: Sequence[int], inside: int, wanted: int) -> int:
    """The first number of tiles that need no more than `wanted` each; else the last."""
    return next((n for n in numbers if inside <= n * wanted), numbers[-1])


def _of_lines(loop: TiledLoop) -> int:
    """Bytes of the rows that tiles keep for the next."""
    return sum(
        bytes_of(op.results[0]) * rows // shape_of(op.results[0])[loop.dims[op]]
        for op, rows in loop.kept.items()
    )


def again(loop: TiledLoop) -> int:
    """Nanoseconds for what each tile reads and writes, but has no tiles, as far as it
    has left the cache: all of it, if that is twice as large."""
    bytes, cache = _bytes_again(loop), 2 * IN_CACHE
    return max(min(bytes, 2 * (bytes - cache)), 0) // BYTES_PER_NS


def _bytes_again(loop: TiledLoop) -> int:
    """Bytes that each tile reads and writes, but has no tiles of."""
    bytes = sum(
        bytes_of(value)
        for op in loop.members
        for value, along in zip(op.operands, loop.needs[op], strict=True)
        if along is None and not reads_part(op, value)
    )
    added = (op for op in loop.parts if not isinstance(op, ScatterOp))
    return bytes + sum(2 * bytes_of(op.results[0]) for op in added)


def _divisors(size: int) -> Sequence[int]:
    """In order."""
    small = [n for n in range(1, isqrt(size) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)})
