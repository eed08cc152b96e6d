"""Finds regions and numbers of tiles that bring the live bytes below a target.

Around each range of tasks that exceeds the target, the search looks for the smallest
region that helps. A region starts with these tasks, and grows by the task before or
after it, whichever leaves fewer bytes live. If that fails, for example because two
regions meet, regions start with wider ranges: those that exceed a part of the target.
Of the numbers of tiles that suffice, the cheapest is taken. AutoChunk (Zhao et al.,
ICLR 2024) also grows regions from the peak. For attention, the result is slices of
queries or heads, as in Rabe and Staats, "Self-attention does not need O(n^2) memory"
(2021).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from xdsl.ir import Operation

from ....dialects.tgraph.base import TensorOp
from ....planning import deadline
from .bytes import Lifetimes, extra_time
from .dimensions import shape_of
from .regions import Rules, TileableRegion, region

LONGEST = 32
"""The most tasks of a window."""

TARGETS = 6
"""The number of targets that are tried, by bisection."""

STARTS = 1, 3 / 4, 1 / 2, 1 / 4
"""The parts of a target that the ranges exceed with which regions start, in order. A
tiling for a lower target serves for a higher one, too, but regions that start with
narrower ranges may not find it."""

PATIENCE = 12
"""The number of times that a region may grow without a lower peak. Attention on
unsigned 8-bit numbers has eight small tasks, such as sums of rows for zero points,
between the scores and the next large value."""

Window = tuple[int, int]
"""A half-open range of tasks."""


@dataclass(frozen=True)
class TiledRegion:
    """A region that is computed in tiles."""

    seed: Operation  # the member that the region has grown from
    region: TileableRegion
    tiles: int
    window: Window
    peak: int  # the most bytes that are live in the window

    @cached_property
    def extra_time(self) -> int:
        """The nanoseconds by which the region takes longer. Most regions that the
        search grows have too high a peak, and never need it."""
        return extra_time(self.region, self.tiles)


@dataclass(frozen=True)
class Tiling:
    """Regions that are computed in tiles, in order."""

    cuts: Sequence[TiledRegion]
    peak: int  # bytes


@dataclass(frozen=True)
class Search:
    """Looks for tilings of a block on one device.

    tiles: the most tiles that a region may have.
    allowed: the nanoseconds by which all regions together may take longer.
    """

    rules: Rules
    lifetimes: Lifetimes
    tiles: int
    allowed: int
    _known: dict[tuple[int, int, int, Window], TiledRegion | None] = field(
        default_factory=dict[tuple[int, int, int, Window], "TiledRegion | None"]
    )
    """Earlier results, because other targets lead to the same windows."""

    def lowest(self, limit: int) -> Tiling | None:
        """The tiling with the lowest peak found; None if it is not a tenth below
        `limit` bytes."""
        best = self.below(limit * 9 // 10)
        missed = 0
        for _ in range(TARGETS if best else 0):
            assert best is not None
            target = (missed + best.peak) // 2
            if (found := self.below(target)) is not None:
                best = found
            else:
                missed = target
        return best and self._refined(best)

    def _refined(self, tiling: Tiling) -> Tiling:
        """The tiling with more tiles for the regions that need the most bytes, as long
        as that lowers the peak."""
        cuts = list(tiling.cuts)
        while cuts:
            index = max(range(len(cuts)), key=lambda i: cuts[i].peak)
            old = cuts[index]
            if old.peak < tiling.peak:
                break
            size = shape_of(old.seed.results[0])[old.region.dims[old.seed]]
            more = range(old.tiles + 1, self.tiles + 1)
            tiles = next((n for n in more if size % n == 0), None)
            if tiles is None:
                break
            seed = self.lifetimes.number[old.seed]
            dim = old.region.dims[old.seed]
            new = self._tried(seed, dim, tiles, old.window)
            others = sum(cut.extra_time for cut in cuts) - old.extra_time
            if (
                not new
                or new.peak >= old.peak
                or others + new.extra_time > self.allowed
            ):
                break
            cuts[index] = new
            tiling = self._tiling(cuts)
        return tiling

    def below(self, target: int) -> Tiling | None:
        """A tiling with a peak of at most `target` bytes, or None."""
        starts = [tuple(self._above(target, int(part * target))) for part in STARTS]
        tilings = (self._from_all(ranges, target) for ranges in dict.fromkeys(starts))
        return next(filter(None, tilings), None)

    def _from_all(self, ranges: Sequence[Window], target: int) -> Tiling | None:
        """A tiling with a peak of at most `target` bytes whose regions start with
        `ranges`, or None."""
        during = self.lifetimes.during
        found: dict[Window, TiledRegion] = {}
        for start, end in ranges:
            if any(w[0] <= start and end <= w[1] for w in found):
                continue
            lowest = max((w[1] for w in found if w[1] <= start), default=0)
            highest = min((w[0] for w in found if w[0] >= end), default=len(during))
            if start < lowest or highest < end:
                return None
            cut = self._around((start, end), (lowest, highest), target)
            if cut is None:
                return None
            found[cut.window] = cut
            if sum(cut.extra_time for cut in found.values()) > self.allowed:
                return None
        return self._tiling([found[window] for window in sorted(found)])

    def _tiling(self, cuts: Sequence[TiledRegion]) -> Tiling:
        inside = {task for cut in cuts for task in range(*cut.window)}
        during = enumerate(self.lifetimes.during)
        rest = (live for task, live in during if task not in inside)
        peak = max((*rest, *(cut.peak for cut in cuts)), default=0)
        return Tiling(list(cuts), peak)

    def _above(self, target: int, level: int) -> Iterator[Window]:
        """Yields the ranges of tasks with more than `level` live bytes, if a task has
        more than `target`. The highest range comes first."""
        during = self.lifetimes.during
        found: list[Window] = []
        for task, live in enumerate(during):
            if live > level:
                is_next = found and found[-1][1] == task
                start = found.pop()[0] if is_next else task
                found.append((start, task + 1))
        peaks = {(start, end): max(during[start:end]) for start, end in found}
        for window in sorted(found, key=lambda window: (-peaks[window], window)):
            if peaks[window] > target:
                yield window

    def _around(self, above: Window, limits: Window, target: int) -> TiledRegion | None:
        """The cheapest region, in the fewest tiles, that brings the tasks in `above`
        below the target, or None."""
        start, end = above
        if end - start > LONGEST:
            return None
        peak = max(range(start, end), key=lambda task: self.lifetimes.during[task])
        for seed in dict.fromkeys((peak, self._maker(peak))):
            if limits[0] <= seed and end - seed <= LONGEST:
                window = min(start, seed), end
                if cut := self._from(seed, window, limits, target):
                    return cut
        return None

    def _maker(self, peak: int) -> int:
        """The task that writes the largest value that is live during task `peak`."""
        graph, last = self.lifetimes.graph, self.lifetimes.last
        live = [
            (graph.sizes[value], -task)
            for task in range(max(peak - LONGEST, 0), peak)
            for value in graph.tasks[task].writes
            if last[value] >= peak
        ]
        return -max(live, default=(0, -peak))[1]

    def _from(
        self, seed: int, above: Window, limits: Window, target: int
    ) -> TiledRegion | None:
        """The cheapest region grown from `seed` that reaches the target, or None."""
        op = self.lifetimes.memory.ops[seed]
        if not isinstance(op, TensorOp) or not op.res:
            return None
        cuts: list[TiledRegion] = []
        for dim, size in enumerate(shape_of(op.res[0])):
            numbers = [n for n in range(2, self.tiles + 1) if size % n == 0]
            # If the most tiles do not reach the target, fewer do not either.
            while numbers:
                cut = self._grown(seed, dim, numbers.pop(), above, limits, target)
                if cut is None:
                    break
                cuts.append(cut)
        return min(cuts, key=lambda cut: (cut.extra_time, cut.tiles), default=None)

    def _grown(
        self,
        seed: int,
        dim: int,
        tiles: int,
        window: Window,
        limits: Window,
        target: int,
    ) -> TiledRegion | None:
        """The smallest region around `seed` that brings the window below the target.

        The window grows by the task before or after it, whichever leaves the lower
        peak, or by both if the peaks are equal.
        """
        cut = self._tried(seed, dim, tiles, window)
        lowest, patience = cut.peak if cut else None, PATIENCE
        while cut is None or cut.peak > target:
            start, end = window
            if end - start >= LONGEST or not patience:
                return None
            wider: list[Window] = []
            if start > limits[0]:
                wider.append((start - 1, end))
            if end < limits[1]:
                wider.append((start, end + 1))
            if not wider:
                return None
            cuts = [self._tried(seed, dim, tiles, w) for w in wider]
            peaks = [inf if cut is None else cut.peak for cut in cuts]
            if min(peaks) == max(peaks):
                window = wider[0][0], wider[-1][1]
                cut = self._tried(seed, dim, tiles, window)
            else:
                best = peaks.index(min(peaks))
                cut, window = cuts[best], wider[best]
            patience -= 1
            if cut and (lowest is None or cut.peak < lowest):
                lowest, patience = cut.peak, PATIENCE
        return cut

    def _tried(
        self, seed: int, dim: int, tiles: int, window: Window
    ) -> TiledRegion | None:
        if deadline.passed():
            return None
        key = seed, dim, tiles, window
        if key not in self._known:
            self._known[key] = self._made(*key)
        return self._known[key]

    def _made(
        self, seed: int, dim: int, tiles: int, window: Window
    ) -> TiledRegion | None:
        ops, rules = self.lifetimes.memory.ops, self.rules
        start, last = rules.position[ops[window[0]]], rules.position[ops[window[1] - 1]]
        part = rules.ops[start : last + 1]
        found = region(rules, ops[seed], dim, tiles, part)
        if found is None:
            return None
        peak = self.lifetimes.in_tiles(found, tiles, window[1])
        return TiledRegion(ops[seed], found, tiles, window, peak)
