"""First fit and best fit in any order: finds the free gaps among the placed buffers.

The occupied bytes lie in a segment tree over the sections of time (de Berg et al.,
"Computational Geometry", section 10.3). A lifetime is a union of O(log n) nodes. Each
node has two sorted sets of ranges of bytes: the first has the bytes occupied in any of
its sections, the second those occupied by buffers whose lifetime contains the node but
not its parent. The ranges that a new buffer must avoid are therefore in the first sets
of its own nodes and in the second sets of their ancestors. Adjacent ranges are merged,
so dense plans have few ranges. Placing a buffer takes O(log n) searches for each gap
that is too small.

In plain Python, it is faster to compare a buffer with all placed buffers, up to some
thousand. The live ranges are then sets of sections, one bit per section.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, isqrt
from typing import Any, NamedTuple, TypeAlias

from .. import deadline
from ..problem import Buffer, peak_of, round_up
from .kernels import Integers, compiled, integers, pays, plain, zeros
from .sections import live_ranges_of

LOWEST, SMALLEST, TOPMOST = range(3)
"""Choices of a gap: the lowest, the smallest (lowest of these), or above all gaps."""

WAITING = -1
"""The offset of a buffer that is not placed yet."""

GAP_WORK = 300
"""The work of placing a buffer, in sections of `search.py`."""

_SURE = 1000  # buffers before the first deadline check: some hundredths of a second
_CHUNK = 20_000  # buffers that a compiled kernel places between two checks
_FEW = 2000  # buffers that plain Python compares in pairs
_PAIR_WORK, _PAIRS = 20, 5  # steps of plain Python, per buffer, and pairs in a step
_WORK, _ROOT_WORK = 100, 8  # the same for more buffers: `_work_of`


class _Lives(NamedTuple):
    """The buffers, as the kernel reads them."""

    at: Integers  # buffer i has the live ranges at[i] to at[i + 1]
    first: Integers  # section, per range
    end: Integers  # section after its last, per range
    size: Integers
    alignment: Integers


class _Sets(NamedTuple):
    """Disjoint ranges of bytes, ascending: two sets for each node of the tree."""

    at: Integers  # set s has the ranges at[s] to at[s] + count[s]
    count: Integers
    low: Integers
    high: Integers


class _Met(NamedTuple):
    """The sets that have the ranges of all buffers that overlap one buffer."""

    sets: Integers
    next: Integers  # the first range of each set that the scan has not passed


_Live: TypeAlias = tuple[int, int, int]
"""The first section of a buffer, the one after its last, and the set of its sections
(one bit each)."""

_Block: TypeAlias = tuple[int, int, *_Live]
"""A placed buffer: its first byte, the byte after its last, and its sections."""


class Gaps:
    """Places buffers of any kind, one after another."""

    def __init__(self, buffers: Sequence[Buffer], orders: int = 1) -> None:
        """`orders` is the expected number of plans; with many, compiling pays."""
        self._buffers = buffers
        reach = [b.size + b.alignment + (b.offset or 0) for b in buffers]
        self._fast = fast = pays(_work_of(len(buffers)) * orders, reach, _place)
        at, first, end, sections = live_ranges_of(buffers)
        columns = (
            at,
            first,
            end,
            [b.size for b in buffers],
            [b.alignment for b in buffers],
        )
        self._lives = _Lives(*(integers(column, fast) for column in columns))
        self._spans: Sequence[_Live] | None = None
        if not fast and len(buffers) <= _FEW:
            ranges = zip(first, end, strict=True)
            bits = [(1 << stop) - (1 << start) for start, stop in ranges]
            spans = pairwise(at)
            self._spans = [(first[a], end[b - 1], sum(bits[a:b])) for a, b in spans]
            return
        leaves = 1 << (sections - 1).bit_length()
        most = 4 * leaves.bit_length() * max((len(b.live) for b in buffers), default=0)
        self._met = _Met(zeros(most, fast), zeros(most, fast))
        self._at = zeros(4 * leaves + 1, fast)
        self._kernel(_reserve)(self._lives, self._met, self._at)

    def _kernel(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        if not self._fast:
            return kernel
        return compiled(kernel, _meet, _beyond, _next_gap, _offset, _add)

    def place(self, order: Sequence[int], choice: int = LOWEST) -> list[int]:
        """Places the buffers in this order, and returns their offsets in bytes.

        Buffers with a given offset are placed first. At a deadline, the remaining
        buffers are stacked on top.
        """
        buffers = self._buffers
        offsets = [WAITING if b.offset is None else b.offset for b in buffers]
        found = self.place_around(offsets, order, choice)
        rest = [i for i in order if found[i] == WAITING]
        if rest:
            placed = [i for i in order if found[i] != WAITING]
            floor = peak_of([buffers[i] for i in placed], [found[i] for i in placed])
            stack(buffers, rest, found, floor)
        return found

    def place_around(
        self,
        offsets: Sequence[int],
        order: Sequence[int],
        choice: int = LOWEST,
        capacity: int = -1,
        is_patient: bool = True,
    ) -> list[int]:
        """Places the buffers whose offset is `WAITING` around the others, by `order`.

        A buffer keeps the offset `WAITING` if it would end above `capacity` (bytes; -1:
        no limit). So do all remaining buffers at a deadline and, unless `is_patient`,
        after the first buffer that does not fit.
        """
        fast = self._fast
        found = integers(offsets, fast)
        place = self._placing(choice, capacity, is_patient, found)

        def put(members: Sequence[int]) -> bool:
            return not place(integers(members, fast)) or is_patient

        put([i for i, offset in enumerate(offsets) if offset != WAITING])
        others = [i for i in order if offsets[i] == WAITING]
        done, chunk = 0, _SURE
        while done < len(others) and not (done and deadline.passed()):
            if not put(others[done : done + chunk]):
                break
            done += chunk
            chunk = _CHUNK if fast else _SURE
        return plain(found)

    def _placing(
        self, choice: int, capacity: int, is_patient: bool, found: Integers
    ) -> Callable[[Integers], int]:
        """Places buffers as `_place` does. Starts without placed buffers."""
        lives, spans, fast = self._lives, self._spans, self._fast
        if spans is not None:
            blocks: list[_Block] = []
            return lambda queue: _place_among(
                lives, spans, blocks, queue, choice, capacity, is_patient, found
            )
        ranges = self._at[len(self._at) - 1]
        numbers = len(self._at), ranges, ranges
        sets = _Sets(self._at, *(zeros(number, fast) for number in numbers))
        met, kernel = self._met, self._kernel(_place)
        return lambda queue: kernel(
            lives, sets, met, queue, choice, capacity, is_patient, found
        )


def _work_of(count: int) -> int:
    """The steps of plain Python that placing `count` buffers takes: a buffer meets more
    others, or more sets with more ranges, the more buffers there are."""
    if count <= _FEW:
        return (_PAIR_WORK + count // _PAIRS) * count
    return (_WORK + _ROOT_WORK * isqrt(count)) * count


def stack(
    buffers: Sequence[Buffer], order: Sequence[int], offsets: list[int], floor: int
) -> None:
    """Stacks the buffers of `order` without a given offset, from `floor` upwards."""
    for i in order:
        buffer = buffers[i]
        if buffer.offset is None:
            offsets[i] = round_up(floor, buffer.alignment)
            floor = offsets[i] + buffer.size


def _reserve(lives: _Lives, met: _Met, at: Integers) -> None:
    """Reserves room for every range that a set may get: `at` has where each begins."""
    half = len(at) // 2
    for index in range(len(lives.size)):
        for slot in range(_meet(lives, met, half, index)):
            this = met.sets[slot]
            at[(this + half) % (2 * half) + 1] += 1
            if this < half:
                at[this + 1] += 1
    for place in range(1, len(at)):
        at[place] += at[place - 1]


def _place_among(
    lives: _Lives,
    spans: Sequence[_Live],
    blocks: list[_Block],
    order: Sequence[int],
    choice: int,
    capacity: int,
    is_patient: bool,
    offsets: list[int],
) -> int:
    """The same as the kernel `_place`, for few buffers in plain Python. `blocks` has
    the placed buffers, in order of their offsets."""
    waiting = 0
    for index in order:
        size, live = lives.size[index], spans[index]
        low = offsets[index]
        if low == WAITING:
            low = 0
            if size:
                low = _offset_among(blocks, live, size, lives.alignment[index], choice)
            if 0 <= capacity < low + size:
                waiting += 1
                if is_patient:
                    continue
                break
            offsets[index] = low
        if size:
            insort(blocks, (low, low + size, *live))
    return waiting


def _offset_among(
    blocks: Sequence[_Block], live: _Live, size: int, alignment: int, choice: int
) -> int:
    """The offset of a buffer in the chosen gap between blocks."""
    first, end, sections = live
    at, best, least = 0, -1, inf
    for low, high, other_first, other_end, others in blocks:
        if other_end <= first or other_first >= end or not sections & others:
            continue
        gap = low - at
        if size <= gap < least and choice != TOPMOST:
            if choice == LOWEST or gap == size:
                return at
            best, least = at, gap
        if high > at:
            at = -(-high // alignment) * alignment
    return at if best < 0 else best


def _place(
    lives: _Lives,
    sets: _Sets,
    met: _Met,
    order: Integers,
    choice: int,
    capacity: int,
    is_patient: bool,
    offsets: Integers,
) -> int:
    """The kernel: writes the offset of each buffer in `order` that has none.

    Returns the number of buffers that did not fit. Stops at the first of them unless
    `is_patient`.
    """
    half = len(sets.count) // 2
    waiting = 0
    for place in range(len(order)):
        index = order[place]
        size = lives.size[index]
        count = _meet(lives, met, half, index)
        low = offsets[index]
        if low == WAITING:
            low = 0
            if size:
                low = _offset(sets, met, count, size, lives.alignment[index], choice)
            if capacity >= 0 and low + size > capacity:
                waiting += 1
                if is_patient:
                    continue
                break
            offsets[index] = low
        if size:
            for slot in range(count):
                this = met.sets[slot]
                _add(sets, (this + half) % (2 * half), low, low + size)
                if this < half:
                    _add(sets, this, low, low + size)
    return waiting


def _meet(lives: _Lives, met: _Met, half: int, index: int) -> int:
    """Writes the sets to search for a buffer to `met`, and returns their number.

    These are the first sets of the nodes of its lifetime, and the second sets of their
    ancestors. Once placed, the buffer belongs in both sets of its own nodes, and in the
    first sets of the ancestors.
    """
    count = 0
    for live in range(lives.at[index], lives.at[index + 1]):
        first, end = lives.first[live] + half // 2, lives.end[live] + half // 2
        low, high = first, end  # nodes of this level not below a node of its own
        level = 0
        while first >> level:
            left, right = first >> level, (end - 1) >> level
            is_above = left << level < first
            if is_above:
                met.sets[count] = half + left
                count += 1
            if (right + 1) << level > end and not (is_above and left == right):
                met.sets[count] = half + right
                count += 1
            if low < high and low % 2:
                met.sets[count] = low
                count += 1
                low += 1
            if low < high and high % 2:
                high -= 1
                met.sets[count] = high
                count += 1
            low //= 2
            high //= 2
            level += 1
    return count


def _offset(
    sets: _Sets, met: _Met, count: int, size: int, alignment: int, choice: int
) -> int:
    """The offset of a buffer in the chosen gap between the ranges in `met`."""
    at = 0
    for slot in range(count):
        begin = met.next[slot] = sets.at[met.sets[slot]]
        last = begin + sets.count[met.sets[slot]] - 1
        if choice == TOPMOST and last >= begin:
            at = max(at, sets.high[last])
    at = -(-at // alignment) * alignment
    best, least = -1, -1
    while choice != TOPMOST:
        at = _next_gap(sets, met, count, at, size, alignment)
        end = -1  # of the gap; -1 if nothing lies above it
        for slot in range(count):
            this, place = met.sets[slot], met.next[slot]
            if place < sets.at[this] + sets.count[this]:
                end = sets.low[place] if end < 0 else min(end, sets.low[place])
        if best < 0 or 0 <= end < at + least:
            best, least = at, end - at
        if choice == LOWEST or end < 0 or least == size:
            return best
        at = -(-end // alignment) * alignment
    return at


def _next_gap(
    sets: _Sets, met: _Met, count: int, at: int, size: int, alignment: int
) -> int:
    """The lowest aligned offset, `at` or higher, with `size` bytes free in all sets."""
    slot, agreed = 0, 0
    while agreed < count:
        place = met.next[slot]
        end = sets.at[met.sets[slot]] + sets.count[met.sets[slot]]
        agreed += 1
        while place < end and sets.low[place] < at + size:
            if sets.high[place] > at:
                at = -(-sets.high[place] // alignment) * alignment
                agreed = 1
                place += 1
            else:
                place = _beyond(sets.high, place, end, at)
        met.next[slot] = place
        slot = slot + 1 if slot + 1 < count else 0
    return at


def _add(sets: _Sets, this: int, low: int, high: int) -> None:
    """Adds the bytes `[low, high)` to a set, and merges the ranges that they touch."""
    begin = sets.at[this]
    end = begin + sets.count[this]
    first = _beyond(sets.high, begin, end, low - 1)  # that ends at `low` or above
    after = first  # becomes the first range that begins above `high`
    while after < end and sets.low[after] <= high:
        low, high = min(low, sets.low[after]), max(high, sets.high[after])
        after += 1
    if after == first:
        for place in range(end, first, -1):
            sets.low[place] = sets.low[place - 1]
            sets.high[place] = sets.high[place - 1]
    elif after > first + 1:
        for place in range(after, end):
            to = place - after + first + 1
            sets.low[to], sets.high[to] = sets.low[place], sets.high[place]
    sets.low[first], sets.high[first] = low, high
    sets.count[this] += 1 - (after - first)


def _beyond(values: Integers, begin: int, end: int, bound: int) -> int:
    """The first index in `[begin, end)` whose value exceeds `bound`, or else `end`.

    The values are ascending.
    """
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] > bound:
            end = middle
        else:
            begin = middle + 1
    return begin
