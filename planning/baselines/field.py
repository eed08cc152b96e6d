"""The planners of compilers and papers, each as its source describes it.

Most place one buffer after the other (`gaps.py`) and differ in the order of buffers and
the choice of gap; `usmp-hill-climb` searches for a better order, and `tlsf` runs an
allocator. They honor given offsets (which the originals do not have) by placing the
buffers that have them first. Ties that the originals break by name or by address are
broken by the order of buffers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from ..problem import Buffer, Limits, Placement, Problem, peak_of
from ..registry import strategy
from ..solver.budget import SearchBudget
from ..solver.gaps import LOWEST, SMALLEST, TOPMOST, Gaps
from ..solver.greedy import in_order


@strategy("greedy-by-breadth")
def greedy_by_breadth(problem: Problem, limits: Limits) -> Placement:
    """Visits steps by decreasing live bytes, and places the largest buffer of a step
    first.

    Each buffer goes into the smallest gap that holds it. "Efficient Memory Management
    for Deep Neural Net Inference" (Pisarchyk and Lee, 2020), section 5.3.
    """
    rank = _breadth_ranks(problem.buffers)
    return in_order(problem, lambda i, b: (rank[i], -b.size, i), SMALLEST)


def _breadth_ranks(buffers: Sequence[Buffer]) -> Sequence[tuple[int, int]]:
    """For each buffer, the step of most live bytes, as (-bytes, step)."""
    changes: dict[int, int] = {}  # of live bytes, by step
    for buffer in buffers:
        for start, end in buffer.live:
            changes[start] = changes.get(start, 0) + buffer.size
            changes[end] = changes.get(end, 0) - buffer.size
    steps = sorted(changes)
    breadths = accumulate(changes[step] for step in steps)
    ranks = [(-breadth, step) for breadth, step in zip(breadths, steps, strict=True)]
    lowest = [ranks]  # lowest[k][n]: of the 2**k ranks from n on
    while (width := 1 << (len(lowest) - 1)) * 2 <= len(ranks):
        lowest.append(list(map(min, lowest[-1], lowest[-1][width:])))

    def widest(start: int, end: int) -> tuple[int, int]:
        first, last = bisect_left(steps, start), bisect_left(steps, end)
        level = (last - first).bit_length() - 1
        return min(lowest[level][first], lowest[level][last - (1 << level)])

    return [min(widest(*steps) for steps in buffer.live) for buffer in buffers]


@strategy("greedy-by-duration")
def greedy_by_duration(problem: Problem, limits: Limits) -> Placement:
    """Places the longest lifetime first, each at the lowest free offset.

    This is one of the orders of TelaMalloc (Maas et al., 2023). Of equal lifetimes, the
    larger buffer comes first.
    """
    return in_order(problem, lambda i, b: (b.start - b.end, -b.size, i), LOWEST)


@strategy("linear-scan")
def linear_scan(problem: Problem, limits: Limits) -> Placement:
    """Places buffers in order of start, each at the lowest free offset.

    This follows the register allocation of Poletto and Sarkar (1999), without spilling.
    """
    return in_order(problem, lambda i, b: (b.start, i), LOWEST)


@strategy("iree")
def iree(problem: Problem, limits: Limits) -> Placement:
    """Places buffers in order of start, each into the smallest gap that holds it.

    This is the pass `iree-stream-layout-slices` of IREE. Buffers that start together
    keep their order, unlike those of `best-fit`.
    """
    return in_order(problem, lambda i, b: (b.start, i), SMALLEST)


@strategy("tflite")
def tflite(problem: Problem, limits: Limits) -> Placement:
    """Places buffers live in all steps first, then the largest, into the smallest gap.

    This is `ArenaPlanner` and `SimpleMemoryArena` of TensorFlow Lite. Buffers of equal
    size are ordered by their start.
    """
    start = min((b.start for b in problem.buffers), default=0)
    end = max((b.end for b in problem.buffers), default=0)

    def key(i: int, b: Buffer) -> tuple[int, ...]:
        whole_life = (b.start, b.end) == (start, end)
        return (0, i) if whole_life else (1, -b.size, b.start, i)

    return in_order(problem, key, SMALLEST)


@strategy("xla")
def xla(problem: Problem, limits: Limits) -> Placement:
    """The better of largest first and longest-lived first, into the smallest gap.

    This is `GlobalDecreasingSizeBestFitHeap` of XLA, with its spatial and its temporal
    order, as `ChooseBestHeapAlgorithm` runs them.
    """
    spatial = in_order(problem, lambda i, b: (-b.size, b.start - b.end, i), SMALLEST)
    temporal = in_order(problem, lambda i, b: (b.start - b.end, -b.size, i), SMALLEST)
    return min(spatial, temporal, key=lambda p: peak_of(problem.buffers, p.offsets))


@strategy("usmp-size")
def usmp_size(problem: Problem, limits: Limits) -> Placement:
    """Places the largest buffer first, above all its placed neighbors; leaves gaps
    unused.

    This is `greedy_by_size` of TVM's Unified Static Memory Planner. Of buffers of equal
    size, the one with more neighbors comes first.
    """
    count = _conflict_counts(problem.buffers)
    return in_order(problem, lambda i, b: (-b.size, -count[i], i), TOPMOST)


@strategy("usmp-conflicts")
def usmp_conflicts(problem: Problem, limits: Limits) -> Placement:
    """Places the buffer with the most neighbors first, above them; leaves gaps unused.

    This is `greedy_by_conflicts` of TVM's Unified Static Memory Planner. Of buffers
    with equally many neighbors, the larger comes first.
    """
    count = _conflict_counts(problem.buffers)
    return in_order(problem, lambda i, b: (-count[i], -b.size, i), TOPMOST)


def _conflict_counts(buffers: Sequence[Buffer]) -> Sequence[int]:
    """For each buffer, the number of others with overlapping lifetimes. USMP does not
    know gaps in lifetimes."""
    starts = sorted(b.start for b in buffers)
    ends = sorted(b.end for b in buffers)
    return [
        bisect_left(starts, b.end) - bisect_right(ends, b.start) - 1 for b in buffers
    ]


@strategy("usmp-hill-climb")
def usmp_hill_climb(problem: Problem, limits: Limits) -> Placement:
    """First fit in up to 500 orders, each a swap of two buffers in the previous order.

    This is `hill_climb` of TVM's Unified Static Memory Planner. The swap moves a buffer
    that lies below a buffer at the peak. A worse order is accepted with a small,
    decreasing probability, a whole number of percents. Unlike TVM, this strategy
    returns the best plan seen, and stops at the lower bound or the capacity.
    """
    buffers, random = problem.buffers, Random(limits.seed)
    bound = problem.lower_bound
    budget = SearchBudget(limits, bound)
    goal = max(bound, problem.capacity or 0)
    count = _conflict_counts(buffers)
    order = sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, -count[i], i))
    gaps = Gaps(buffers, 500)
    best = kept = gaps.place(order)
    peak = best_peak = peak_of(buffers, best)
    for attempt in range(1, 500):
        budget.report(best_peak)
        if best_peak <= goal or budget.left <= 0:
            break
        swap = _pick_swap(buffers, order, kept, peak, random)
        if swap is None:
            continue
        _swap(order, *swap)
        offsets = gaps.place(order)
        new_peak = peak_of(buffers, offsets)
        percent = 50 * (new_peak - peak) // new_peak // attempt  # TVM truncates, too
        if new_peak >= peak and random.randrange(100) >= percent:
            _swap(order, *swap)
            continue
        kept, peak = offsets, new_peak
        if peak < best_peak:
            best, best_peak = kept, peak
    return Placement(best)


def _swap(order: list[int], a: int, b: int) -> None:
    order[a], order[b] = order[b], order[a]


def _pick_swap(
    buffers: Sequence[Buffer],
    order: Sequence[int],
    offsets: Sequence[int],
    peak: int,
    random: Random,
) -> tuple[int, int] | None:
    """Two random positions in the order to swap, or None.

    The first is that of an earlier neighbor of a buffer at the peak. The second is that
    of another such neighbor or, more often, of an earlier neighbor of one.
    """

    def earlier_neighbors(position: int) -> Sequence[int]:
        buffer = buffers[order[position]]
        return [p for p in range(position) if buffers[order[p]].overlaps(buffer)]

    top = [p for p, i in enumerate(order) if offsets[i] + buffers[i].size == peak]
    first = earlier_neighbors(random.choice(top))
    if not first:
        return None
    a = random.choice(first)
    further = random.randrange(100) > 25
    second = earlier_neighbors(random.choice(first)) if further else ()
    b = random.choice(second or first)
    return (a, b) if a != b else None


@strategy("tlsf")
def tlsf(problem: Problem, limits: Limits) -> Placement:
    """The plan of a run-time allocator in program order: two-level segregated fit.

    This is TLSF (Masmano et al., 2004) as tinygrad plans memory with it: 32 size
    classes per power of two, the oldest block of the first class that always fits, and
    frees before allocations, but without the minimum block size of 4 KiB. It does not
    use gaps in lifetimes, and stays above all buffers with a given offset.
    """
    buffers = problem.buffers
    offsets = [b.offset or 0 for b in buffers]
    fixed = [b for b in buffers if b.offset is not None]
    base = peak_of(fixed, [b.offset or 0 for b in fixed])
    heap = _Heap(base, 4 * sum(b.size + b.alignment for b in buffers))
    events = sorted(
        event
        for i, b in enumerate(buffers)
        if b.offset is None and b.size
        for event in ((b.start, 1, i), (b.end, 0, i))
    )
    for _, starts, i in events:
        if starts:
            offsets[i] = heap.allocate(buffers[i].size, buffers[i].alignment)
        else:
            heap.free(offsets[i], offsets[i] + buffers[i].size)
    return Placement(offsets)


class _Heap:
    """Free blocks of memory by size class. Adjacent blocks are merged."""

    def __init__(self, start: int, size: int) -> None:
        self._ends: dict[int, int] = {}  # of free blocks, by their start
        self._starts: dict[int, int] = {}  # of free blocks, by their end
        self._classes: dict[int, dict[int, None]] = {}  # starts, the oldest first
        self._present = 0  # bit c is set if there is a block of class c
        self.free(start, start + size)

    def allocate(self, size: int, alignment: int) -> int:
        # Every block of the next class has room for this, wherever it starts.
        least = size + alignment - 1
        candidates = self._present >> (wanted := _class_of(least - 1) + 1)
        chosen = wanted + (candidates & -candidates).bit_length() - 1
        start = next(iter(self._classes[chosen]))
        end = self._remove(start)
        offset = -(-start // alignment) * alignment
        self._add(start, offset)
        self._add(offset + size, end)
        return offset

    def free(self, start: int, end: int) -> None:
        if start in self._starts:
            below = self._starts[start]
            self._remove(below)
            start = below
        if end in self._ends:
            end = self._remove(end)
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        if start == end:
            return
        self._ends[start], self._starts[end] = end, start
        size_class = _class_of(end - start)
        self._classes.setdefault(size_class, {})[start] = None
        self._present |= 1 << size_class

    def _remove(self, start: int) -> int:
        """Removes a free block. Returns its end."""
        end = self._ends.pop(start)
        del self._starts[end]
        size_class = _class_of(end - start)
        del self._classes[size_class][start]
        if not self._classes[size_class]:
            self._present &= ~(1 << size_class)
        return end


def _class_of(size: int) -> int:
    """The size class, with 32 classes from each power of two to the next."""
    power = max(size.bit_length() - 6, 0)
    return 32 * power + (size >> power)
