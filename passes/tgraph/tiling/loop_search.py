"""Finds loops over tiles that would lower the peak of a block, by an estimate.

The estimate assumes that tiles store the values that are stored now, and that the order
does not change. The result is therefore a proposal, which the caller has to measure.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import inf, isqrt, prod
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ....analysis.cost import (
    FAR_BYTES_PER_NS,
    LAUNCH_IN_LOOP,
    NEAR,
    reads_part,
    time_to_start_library,
    times,
)
from ....analysis.functions import blocks_within
from ....analysis.memory_graph import memory_graph
from ....dialects.tgraph.base import value_bytes
from ....dialects.tgraph.fusing import COMPUTED, CONTRACTIONS
from ....dialects.tgraph.indexing import ScatterOp
from ....dialects.tgraph.shaping import ViewOp
from ....dialects.tgraph.structure import IfOp, WhileOp
from ..shared.fitting import is_static_block, live_bytes
from ..shared.ungrouping import ungroup
from .dimensions import shape_of
from .loop_rewriting import write_loop
from .loops import LEAST_TILES, Surroundings, TiledLoop, tiled_loop
from .rematerialization import Rematerializations
from .windows import is_remade, users

IN_CACHE = NEAR
"""In bytes: half of a core's L2 cache, which a tile may fill."""

MOST_LOOPS = 8
"""The most loops that are written in a block."""

A_SIXTH = 6
"""Tiles may always take a sixth of the bytes that are live around their loop."""

LEAST_ROWS = 16
"""The fewest rows of a tile with contractions, or of windows, where possible, if tiles
may fill `IN_CACHE`."""

SEEDS = 3
"""The number of values at the peak, the largest first, around which loops are tried."""

REREAD_DIVISOR = 4
"""Tiles may take a quarter of their block's time to read again the values that each
needs whole, and to add to sums."""

FINER = 16
"""A value of at least a sixteenth of the bytes that tiles may use may get a loop; if it
does not fill a tile, only where tiles take little time (`A_TWENTIETH`)."""

COUNTING = 2
"""The number of operations by which a loop counts its tiles."""

A_TWENTIETH = 20
"""Tiles take little time if they take a twentieth of their block's time to start. Where
they do, they get smaller, down to `A_SIXTH`. Where tiles may fill more than `IN_CACHE`,
because smaller ones took too long, they may take less time."""


@dataclass(frozen=True)
class _Step:
    """An operation, or a loop, and the stored values that it reads and writes."""

    reads: frozenset[SSAValue]
    writes: Sequence[SSAValue]
    inside: int = 0  # bytes that are live in it while it runs
    replaces: Collection[SSAValue] = ()
    """The values where some of its results lie if nothing reads these values later."""


class Estimate:
    """The live bytes of a block whose groups are taken apart.

    sizes: the bytes of each value that was stored when there were groups.
    time: the nanoseconds that the block took with the groups.
    inside: the bytes that are live in each loop and branch while it runs.
    behind: by operation, the values that it must follow without reading them.
    replaced: the values in whose place the results of each loop over tiles are.
    """

    def __init__(
        self,
        block: Block,
        sizes: Mapping[SSAValue, int],
        inside: Mapping[Operation, int],
        time: int,
        behind: Mapping[Operation, Sequence[SSAValue]],
        replaced: Mapping[Operation, Collection[SSAValue]],
    ):
        self.time = time
        self.sizes = sizes
        self.around = Surroundings(block, behind)
        self._steps: dict[Operation, _Step] = {}
        read: dict[SSAValue, frozenset[SSAValue]] = {}  # the stored values behind each
        for op in block.ops:
            reads = frozenset[SSAValue]().union(
                *(read.get(value, ()) for value in op.operands)
            )
            for value in op.results:
                read[value] = frozenset([value]) if value in sizes else reads
            writes = [value for value in op.results if value in sizes]
            self._steps[op] = _Step(
                reads, writes, inside.get(op, 0), replaced.get(op, ())
            )
        self._remade = [
            op for op, step in self._steps.items() if step.writes and is_remade(op)
        ]
        """Operations with stored results that tiles repeat if only tiles read them."""
        steps = list(self._steps.values())
        self._during = during = _profile(steps, sizes)
        self.peak = max(during, default=0)
        self.enough = self.peak * 9 // 10
        """A step is part of a peak if more bytes than these are live."""
        self.peaks = _peaks(during, self.enough)
        self.largest: Sequence[SSAValue] = ()
        """The values that are live at the highest peak, the largest first."""
        if during:
            self.largest = _live(steps, sizes, during.index(self.peak))

    def live_at_peaks(self) -> Sequence[SSAValue]:
        """The values that are live at any peak, the largest first."""
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
        """The live bytes of the block with `loop`."""
        position = self.around.position
        members = set(loop.members)
        remade = {op for op in self._remade if members.issuperset(users(op.results[0]))}
        in_tiles = (*members, *loop.padding, *remade)
        computed = sorted(in_tiles, key=lambda op: position[op])
        made = {value for op in computed for value in op.results}
        kept = set(loop.carried)
        sizes = {**self.sizes, **{v: value_bytes(v) for v in kept if loop.stores(v)}}
        steps = [self._steps[op] for op in computed]
        reads = frozenset[SSAValue]().union(*(step.reads for step in steps)) - made
        ungrouped = self._ungrouped(computed, made)
        sizes |= {value: value_bytes(value) for value in ungrouped}
        before = [
            replace(self._steps[op], writes=op.results)
            if ungrouped.intersection(op.results)
            else self._steps[op]
            for op in loop.before
            if op not in remade
        ]
        at = len(before)
        replaced = tuple(loop.updates.values())
        order = [*before, _Step(reads | ungrouped, list(kept), replaces=replaced)]
        order += [self._steps[op] for op in loop.after if op not in remade]
        outside = _profile(order, sizes)
        tiled = {v: n for v, n in self.sizes.items() if v in made and v not in kept}
        inside = max(_profile(steps, tiled), default=0)
        inside += sum(map(value_bytes, loop.sliced)) + 2 * loop.tiles * _of_lines(loop)
        return _WithLoop(outside, at, inside)

    def _ungrouped(
        self, computed: Iterable[Operation], made: Container[SSAValue]
    ) -> frozenset[SSAValue]:
        """The values outside a loop that were not stored, because their readers were in
        the same groups, but are now: operations in the loop read them, or views of
        them."""
        found: set[SSAValue] = set()
        for value in (operand for op in computed for operand in op.operands):
            while value not in made and isinstance(value.owner, ViewOp):
                value = value.owner.inputs[0]
            op = value.owner
            if value in made or value in self.sizes or op not in self._steps:
                continue
            if isinstance(op, COMPUTED):
                found.add(value)
        return frozenset(found)

    def is_lower(self, peak: int, peaks: int) -> bool:
        """Whether `peak` bytes are a tenth less than now, or not more and the peaks are
        fewer: equal layers have equal peaks, each of which needs a loop."""
        return peak < self.enough or (peak <= self.peak and peaks < self.peaks)

    def time_to_start(self, loop: TiledLoop) -> int:
        """The nanoseconds that each tile takes, however small, to start the operations
        that store something, to take slices and to write results, to count, and to read
        the values that it needs whole. Libraries pack these values again for each tile,
        even if they are in the cache."""
        starts = [op for op in loop.members if self._steps[op].writes]
        slices = sum(value in loop.read for op in loop.members for value in op.operands)
        count = len(starts) + slices + len(loop.carried) + COUNTING
        starting = count * LAUNCH_IN_LOOP + sum(map(time_to_start_library, starts))
        return starting + _bytes_again(loop) // FAR_BYTES_PER_NS


def _live(
    steps: Sequence[_Step], sizes: Mapping[SSAValue, int], at: int
) -> Sequence[SSAValue]:
    """The values that are live during step `at`, the largest first."""
    later = frozenset[SSAValue]().union(*(step.reads for step in steps[at:]))
    written = [value for step in steps[: at + 1] for value in step.writes]
    live = [v for v in written if v in later or v in steps[at].writes]
    return sorted(live, key=lambda value: -sizes[value])


def _profile(steps: Sequence[_Step], sizes: Mapping[SSAValue, int]) -> list[int]:
    """The bytes that are live during each step, of values in `sizes` and inside it."""
    last: dict[SSAValue, int] = {}
    for index, step in enumerate(steps):
        for value in (*step.writes, *step.reads):
            last[value] = index
    ending: dict[int, int] = {}
    during: list[int] = []
    live = 0
    for index, step in enumerate(steps):
        for value in step.replaces:
            if last.get(value) == index:
                size = sizes.get(value, 0)
                live -= size
                ending[index] -= size
        for value in step.writes:
            size = sizes.get(value, 0)
            live += size
            ending[last[value]] = ending.get(last[value], 0) + size
        during.append(live + step.inside)
        live -= ending.get(index, 0)
    return during


@dataclass(frozen=True)
class _WithLoop:
    """The live bytes of a block with a loop.

    outside: the live bytes in each step, without those in the loop.
    at: the number of the loop's step.
    inside: the live bytes in the loop if it had one tile.
    """

    outside: Sequence[int]
    at: int
    inside: int

    def during(self, tiles: int) -> Sequence[int]:
        """The live bytes in each step, with `tiles` tiles."""
        loop = self.outside[self.at] + self.inside // tiles
        return [*self.outside[: self.at], loop, *self.outside[self.at + 1 :]]


def _peaks(during: Sequence[int], enough: int) -> int:
    """The number of runs of consecutive steps in which more than `enough` bytes are
    live."""
    is_above = [False, *(live > enough for live in during)]
    return sum(now and not before for before, now in pairwise(is_above))


@dataclass(frozen=True)
class Proposal:
    """A loop, and the bytes that are live with it according to the estimate."""

    loop: TiledLoop
    peak: int  # of the block
    peaks: int  # the number of peaks that remain
    during: int  # while the loop runs
    inside: int  # in the loop

    @property
    def bytes(self) -> tuple[float, int, int]:
        """The cost to minimize. A loop whose tiles add to sums, and so read and write
        these, has to take a tenth less than one whose tiles only write results."""
        peak = self.peak * (1.1 if self.loop.parts else 1)
        return peak, self.peaks, self.during


_Peaks = tuple[int, int]
"""Estimated peaks of a block in bytes: without loops over tiles, and with them."""


@dataclass
class Written:
    """The loops that were written in a function.

    loops: the loops over tiles.
    repeated: the number of values that loops compute again.
    has_tried: whether the search could choose loops that compute values again.
    """

    loops: list[TiledLoop] = field(default_factory=list[TiledLoop])
    repeated: int = 0
    has_tried: bool = False


def write_loops(
    func: FuncOp,
    alignment: int,
    tile_bytes: int,
    most: float,
    share: float = 0,
    saving: float = inf,
) -> Written:
    """Takes the groups of a function apart and writes loops that lower its peak.

    tile_bytes: the bytes that a tile may need.
    share: the part of a block's time that computing values again may take.
    saving: the bytes by which the peak has to be lower: loops then have the fewest
        tiles that suffice.

    Returns no loops unless they lower the estimate for the function's block by a tenth,
    and to at most `most` bytes. Without loops, the caller has to discard `func`.
    """
    done = Written()
    peaks: dict[Block, _Peaks] = {}
    for block in reversed(list(blocks_within(func.body.block))):
        if is_static_block(block):
            estimates = _write(
                block, alignment, tile_bytes, done, peaks, most, share, saving
            )
            peaks[block] = estimates
        else:
            live = live_bytes(block, alignment)
            peaks[block] = live, live
        if peaks[block][1] > most:  # blocks around it need at least as much
            return replace(done, loops=[])
    without, peak = peaks[func.body.block]
    if is_static_block(func.body.block) and peak > max(
        without * 9 // 10, without - saving
    ):
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
    saving: float,
) -> _Peaks:
    """Adds loops to a block. Returns the estimates of its peak without and with loops.
    If the latter exceeds `most`, it is only a lower bound of the estimate.

    peaks: the estimates for the blocks nested in it.
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
    replaced: dict[Operation, Collection[SSAValue]] = {}
    repetitions = Rematerializations(share * took, least_bytes(tile_bytes))
    renamed = ungroup(block)
    sizes = {renamed.get(value, value): size for value, size in stored.items()}
    estimate = Estimate(block, sizes, without, took, repetitions.behind, replaced)
    peak = estimate.peak
    target = max(peak - saving, 0)
    if inside != without:
        estimate = Estimate(block, sizes, inside, took, repetitions.behind, replaced)
    for _ in range(MOST_LOOPS):
        if estimate.peak <= target:
            break
        while repetitions.write(estimate.around, sizes, estimate.live_at_peaks()):
            estimate = Estimate(
                block, sizes, inside, took, repetitions.behind, replaced
            )
            done.has_tried = True
        found = lowest(estimate, tile_bytes, target)
        if found is None:
            break
        if found.inside > most:  # further loops do not change that
            return peak, found.inside
        outside = [
            n for n, v in enumerate(found.loop.carried, 1) if not found.loop.stores(v)
        ]
        loop = write_loop(found.loop)
        inside[loop] = found.inside
        replaced[loop] = tuple(found.loop.updates.values())
        sizes |= {v: value_bytes(v) for v in loop.res}
        sizes |= {loop.res[number]: 0 for number in outside}
        done.loops.append(found.loop)
        estimate = Estimate(block, sizes, inside, took, repetitions.behind, replaced)
    done.repeated += repetitions.end()
    return peak, estimate.peak


def least_bytes(tile_bytes: int) -> int:
    """The fewest bytes of a value that gets a loop around it."""
    return max(tile_bytes // FINER, 1)


def lowest(estimate: Estimate, tile_bytes: int, target: float = 0) -> Proposal | None:
    """The loop with the lowest peak, if that is a tenth lower than without the loop, or
    if the loop removes one of several peaks; or the loop that takes the least time to
    start its tiles, of those whose peak is at most `target`.

    Values in the loop around another value are tried, too: the loops around them may
    have other members, and be the only ones that meet a budget.
    """
    best: Proposal | None = None
    least: tuple[float, ...] = ()

    def cost(found: Proposal) -> tuple[float, ...]:
        if found.peak > target:
            return 1, *found.bytes
        return 0, found.loop.tiles * estimate.time_to_start(found.loop)

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
            numbers = _numbers(seed.results[0], dim)
            if target and shape_of(seed.results[0])[dim] % 2 == 0:
                numbers = [2, *(n for n in numbers if n > 2)]
            limit = best.peak if best else estimate.peak
            for found in _around(
                estimate, seed, dim, tile_bytes, numbers, limit, is_small, target
            ):
                is_enough = found.peak <= target
                if not is_enough and not estimate.is_lower(found.peak, found.peaks):
                    continue
                if best is None or cost(found) < least:
                    best, least = found, cost(found)
    return best


def _numbers(value: SSAValue, dim: int) -> Sequence[int]:
    """The numbers of tiles that a loop around `value` may have, ascending."""
    numbers = _divisors(shape_of(value)[dim])[1:]
    return [n for n in numbers if n >= LEAST_TILES] or numbers


def _of_enough_rows(
    numbers: Sequence[int], loop: TiledLoop, value: SSAValue, dim: int
) -> Sequence[int]:
    """The numbers of tiles, in a loop around `value`, that are fast: contractions of
    few rows are slow, and windows share many of them with the next tile."""
    contracts = any(isinstance(op, CONTRACTIONS) for op in loop.members)
    if not loop.is_peeled and not contracts:
        return numbers
    shape = shape_of(value)
    rows = shape[dim] * prod(shape[dim + 1 : -1])
    return [n for n in numbers if rows // n >= LEAST_ROWS] or numbers


def _around(
    estimate: Estimate,
    seed: Operation,
    dim: int,
    tile_bytes: int,
    numbers: Sequence[int],
    limit: int,
    is_small: bool,
    target: float,
) -> Iterator[Proposal]:
    """Yields loops around `seed` along `dim`, with more and more tiles up to as many as
    needed. Stops when the bytes outside a loop, which more tiles do not change, are too
    many.

    is_small: whether the value of `seed` fits into a tile. Then only loops that take
        little time are proposed.
    """
    loop: TiledLoop | None = None
    tiles = next(iter(numbers), None)
    while tiles is not None:
        loop = (loop and loop.in_tiles(tiles)) or tiled_loop(
            estimate.around, seed, dim, tiles
        )
        if loop is None:
            break
        if tile_bytes >= IN_CACHE:
            numbers = _of_enough_rows(numbers, loop, seed.results[0], dim)
        little = estimate.time * IN_CACHE // (A_TWENTIETH * max(tile_bytes, IN_CACHE))
        cheap = little // max(estimate.time_to_start(loop), 1)
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
        most = estimate.time // REREAD_DIVISOR // max(reread_time(loop), 1)
        numbers = [n for n in numbers if n <= most] or numbers[:1]
        more = _enough(numbers, inside, max(tile_bytes, outside // A_SIXTH))
        finer = _enough(numbers, inside, max(outside // A_SIXTH, 1))
        more = max([more, *(n for n in numbers if n <= min(cheap, finer))])
        more = next((n for n in numbers if max(live.during(n)) <= target), more)
        if loop.is_peeled:  # loops of smaller tiles have fewer members
            more = next((n for n in numbers if tiles < n <= more), tiles)
        tiles = more if more > tiles else None


def _enough(numbers: Sequence[int], inside: int, wanted: int) -> int:
    """The first number of tiles that need at most `wanted` bytes each, or the last."""
    return next((n for n in numbers if inside <= n * wanted), numbers[-1])


def _of_lines(loop: TiledLoop) -> int:
    """The bytes of the rows that a tile keeps for the next one."""
    return sum(
        value_bytes(op.results[0]) * rows // shape_of(op.results[0])[loop.dims[op]]
        for op, rows in loop.kept.items()
    )


def reread_time(loop: TiledLoop) -> int:
    """The nanoseconds in which each tile reads and writes the values that it needs
    whole, as far as they have left the cache: all, if they are twice its size."""
    bytes, cache = _bytes_again(loop), 2 * IN_CACHE
    return max(min(bytes, 2 * (bytes - cache)), 0) // FAR_BYTES_PER_NS


def _bytes_again(loop: TiledLoop) -> int:
    """The bytes of values that each tile reads and writes whole."""
    bytes = sum(
        value_bytes(value)
        for op in loop.members
        for value, along in zip(op.operands, loop.needs[op], strict=True)
        if along is None and not reads_part(op, value)
    )
    added = (op for op in loop.parts if not isinstance(op, ScatterOp))
    return bytes + sum(2 * value_bytes(op.results[0]) for op in added)


def _divisors(size: int) -> Sequence[int]:
    """The divisors of `size`, ascending."""
    small = [n for n in range(1, isqrt(size) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)})
