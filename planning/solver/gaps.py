"""Which bytes are taken when: gaps for a buffer between those that are placed.

A segment tree over the sections of time (de Berg et al., "Computational Geometry",
section 10.3): a lifetime is a union of O(log n) nodes. Each node has two sorted sets of
ranges of bytes: those taken in any of its sections, and those taken by buffers whose
lifetimes contain the node, but not the one above it. So a buffer meets all others in
the first sets of its own nodes and the second sets of the nodes above. Ranges that
touch become one, so a dense plan has few, and a buffer is placed in O(log n) searches
for each gap that is too small for it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import deadline
from ..problem import Buffer, peak_of, round_up
from .kernels import Integers, compiled, integers, pays, plain, zeros
from .sections import live_ranges_of

LOWEST, SMALLEST, TOPMOST = range(3)
"""The lowest gap, the lowest of the smallest gaps, or what is above all gaps."""

WAITING = -1
"""The offset of a buffer that is not placed."""

GAP_WORK = 300
"""What placing a buffer costs, in sections of `search.py`."""

_SURE = 1000  # buffers placed with care in any case: some hundredths of a second
_CHUNK = 20_000  # buffers until the time is looked at again
_WORK = 1500  # steps of plain Python, per buffer


class _Lives(NamedTuple):
    """What the kernel has to know of the buffers."""

    at: Integers  # buffer i has the live ranges at[i] to at[i + 1]
    first: Integers  # section, per range
    end: Integers  # section after its last, per range
    size: Integers
    alignment: Integers


class _Sets(NamedTuple):
    """Disjoint ranges of bytes, ascending: two sets for each node of the tree."""

    at: Integers  # those of set s are at[s] to at[s] + count[s]
    count: Integers
    low: Integers
    high: Integers


class _Met(NamedTuple):
    """The sets that have what one buffer overlaps."""

    sets: Integers
    next: Integers  # the first range of each that is not passed


class Gaps:
    """Places buffers of any kind, one after another."""

    def __init__(self, buffers: Sequence[Buffer], orders: int = 1) -> None:
        """`orders` is how many orders will be tried: whether to compile for them."""
        self._buffers = buffers
        reach = [b.size + b.alignment + (b.offset or 0) for b in buffers]
        self._fast = fast = pays(_WORK * len(buffers) * orders, reach, _place)
        at, first, end, sections = live_ranges_of(buffers)
        columns = (
            at,
            first,
            end,
            [b.size for b in buffers],
            [b.alignment for b in buffers],
        )
        self._lives = _Lives(*(integers(column, fast) for column in columns))
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
        """The offsets, in bytes, that come of placing the buffers in this order.

        Those with a given offset come first. At a deadline, the rest is put on top.
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
        """The same around those that have an offset; `WAITING` is that of the others.

        What would end above the capacity, if one is given, is left waiting, and so is
        the rest at a deadline, or, unless it is patient, once one waits.
        """
        fast = self._fast
        sets = _Sets(
            self._at,
            zeros(len(self._at), fast),
            zeros(self._at[len(self._at) - 1], fast),
            zeros(self._at[len(self._at) - 1], fast),
        )
        found = integers(offsets, fast)
        place = self._kernel(_place)

        def put(members: Sequence[int]) -> bool:
            queue = integers(members, fast)
            lives, met = self._lives, self._met
            waits = place(lives, sets, met, queue, choice, capacity, is_patient, found)
            return is_patient or not waits

        put([i for i, offset in enumerate(offsets) if offset != WAITING])
        others = [i for i in order if offsets[i] == WAITING]
        done, chunk = 0, _SURE
        while done < len(others) and not (done and deadline.passed()):
            if not put(others[done : done + chunk]):
                break
            done += chunk
            chunk = _CHUNK if fast else _SURE
        return plain(found)


def stack(
    buffers: Sequence[Buffer], order: Sequence[int], offsets: list[int], floor: int
) -> None:
    """Puts those without a given offset above one another, from the floor on."""
    for i in order:
        buffer = buffers[i]
        if buffer.offset is None:
            offsets[i] = round_up(floor, buffer.alignment)
            floor = offsets[i] + buffer.size


def _reserve(lives: _Lives, met: _Met, at: Integers) -> None:
    """Room for all that each set may get: `at` becomes where each begins."""
    half = len(at) // 2
    for index in range(len(lives.size)):
        for slot in range(_meet(lives, met, half, index)):
            this = met.sets[slot]
            at[(this + half) % (2 * half) + 1] += 1
            if this < half:
                at[this + 1] += 1
    for place in range(1, len(at)):
        at[place] += at[place - 1]


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
    """The kernel: the offset of each buffer in `order` that has none. How many wait, at
    most 1 if it is not patient."""
    half = len(sets.count) // 2
    waiting = 0
    for place in range(len(order)):
        index = order[place]
        size = lives.size[index]
        count = _meet(lives, met, half, index)
        low = offsets[index]
        if low == WAITING:
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
    """Writes the sets that have what a buffer overlaps to `met`; how many.

    They are the first sets of the nodes of its lifetime, and the second sets of the
    nodes above. It has to be added to the others of these, and to the former.
    """
    count = 0
    for live in range(lives.at[index], lives.at[index + 1]):
        first, end = lives.first[live] + half // 2, lives.end[live] + half // 2
        low, high = first, end  # nodes of the level that are not below one of its own
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
    """Where the buffer fits in between what it meets: the gap of choice."""
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
        end = -1  # of the gap, if it has one
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
    """The lowest offset from `at` on at which nothing is in the way."""
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
    """Adds a range of bytes to a set, as one with those that it touches."""
    begin = sets.at[this]
    end = begin + sets.count[this]
    first = _beyond(sets.high, begin, end, low - 1)  # that ends at `low` or above
    after = first  # the first that begins above `high`
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
    """The first place of ascending values that has more than the bound."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] > bound:
            end = middle
        else:
            begin = middle + 1
    return begin
