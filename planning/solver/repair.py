"""Placement with ejection: a local search for a plan under a capacity.

First fit places as many buffers as it can; the others wait in a queue. Each is then
placed at the lowest free offset. If none is free, it is placed where the buffers in its
way weigh least in sum; these are ejected to the end of the queue. The weight of a
buffer grows each time others are ejected for it, which prevents endless cycles. The
method is that of Nagata and Bräysy, "A Powerful Route Minimization Heuristic for the
Vehicle Routing Problem with Time Windows", 2009, with offsets in place of vehicles. The
search proves nothing: it finds a plan or gives up.

Ejected buffers leave free bytes in many places, each too small for the next buffer.
Now and then, all placed buffers therefore drop as far as they can, in ascending order
of their offsets; the next time, they rise to the capacity. This collects the free bytes
at one end, and takes the search to different plans.

A tree of the latest ends finds the placed buffers that overlap a given one in time.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import isqrt
from typing import Any, NamedTuple

from ..problem import Buffer
from .budget import SearchBudget
from .gaps import GAP_WORK, WAITING, Gaps
from .kernels import LARGEST, Integers, as_arrays, ascend, compiled, pays, plain
from .sections import live_ranges_of

_STEP_WORK = 20  # work of taking a buffer from the queue, in pairs of buffers
_PAIR_WORK = 5  # work of a pair of buffers, in sections of `search.py`
_CHUNK, _PLAIN_CHUNK = 1_000_000, 200_000  # work between two checks of the budget
_SECTIONS = 32  # sections in which a buffer drops in the time of a pair of buffers
_FIXED = 1 << 45  # cost of ejecting a buffer with a given offset: more than all others


class _Lives(NamedTuple):
    """The buffers."""

    by_start: Integers  # all of them, by their first section
    first: Integers  # section, per buffer
    end: Integers  # section after its last, per buffer
    size: Integers
    alignment: Integers
    live_at: Integers  # buffer i is live in ranges live_at[i] to live_at[i + 1]
    live_first: Integers  # section, per range
    live_end: Integers  # section after its last, per range
    latest: Integers  # the tree of the latest ends, in order of `by_start`
    start_at: Integers  # start_at[s] buffers start before section s
    worth: Integers  # the cost of ejecting a buffer is this times its weight


class _State(NamedTuple):
    """The placed buffers, and the queue of the others."""

    point: Integers  # where the search is: see `_HEAD`
    weight: Integers  # per buffer
    offset: Integers  # per buffer, or WAITING
    queue: Integers  # a ring buffer of indices
    near: Integers  # scratch: the placed buffers that overlap the current one
    bottoms: Integers  # scratch: the same buffers, by their offsets
    tops: Integers  # scratch: the same buffers, by their ends
    key: Integers  # scratch: by what buffers are sorted, per buffer
    stack: Integers  # scratch: nodes of the tree
    height: Integers  # scratch: bytes that buffers have taken, per section


_HEAD, _LEFT, _CHANCE, _SINCE, _DOWN = range(5)
"""The numbers in `point`: the queue's head (-1 if a buffer fits nowhere), its length,
the state of the random numbers, the work since the placed buffers moved, in pairs of
buffers, and whether they drop next (1) or rise (0)."""


class Repair:
    """Searches for plans of the same buffers under any number of capacities.

    The buffers may have gaps, given offsets and different alignments.
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._buffers = buffers
        self._gaps = Gaps(buffers)
        live = live_ranges_of(buffers)
        first, end = ([hull[n] for hull in live.hulls] for n in (0, 1))
        by_start = sorted(range(len(buffers)), key=first.__getitem__)
        counts = [0] * (live.sections + 1)
        for section in first:
            counts[section + 1] += 1
        area = [b.size * (end[i] - first[i]) for i, b in enumerate(buffers)]
        largest = max(area)
        self._sections = live.sections
        self._lives = _Lives(
            by_start,
            first,
            end,
            [b.size for b in buffers],
            [b.alignment for b in buffers],
            live.at,
            live.first,
            live.end,
            _latest_ends([end[i] for i in by_start]),
            list(accumulate(counts)),
            [
                1 + isqrt(1_000_000 * a // largest) if b.offset is None else _FIXED
                for b, a in zip(buffers, area, strict=True)
            ],
        )

    @property
    def pass_work(self) -> int:
        """An estimate of the work of placing every buffer once."""
        lives = self._lives
        spans = zip(lives.first, lives.end, strict=True)
        pairs = sum(lives.start_at[end] - lives.start_at[first] for first, end in spans)
        return _PAIR_WORK * (pairs + _STEP_WORK * len(self._buffers))

    def fit(
        self,
        capacity: int,
        offsets: Sequence[int],
        weights: list[int],
        order: Sequence[int],
        limit: int,
        budget: SearchBudget,
    ) -> Sequence[int] | None:
        """Places the waiting buffers, in this order, with about `limit` of work.

        Returns the offsets, or None if it gives up. `offsets` has the offsets of the
        placed buffers, which end at `capacity` or below, and `WAITING` for the others.
        `weights` says how firmly buffers are placed (1 or more); the search increases
        these weights in place, and spends its work from `budget`.
        """
        count = len(self._buffers)
        if budget.left < GAP_WORK * count:
            return None
        since = budget.seconds
        offsets = self._gaps.place_around(offsets, order, capacity=capacity)
        budget.spend(GAP_WORK * count, since)
        waiting = [i for i in order if offsets[i] == WAITING]
        lives = self._lives
        state = _State(
            [0, len(waiting), 1, 0, 1],
            list(weights),
            list(offsets),
            [*waiting, *[0] * (count + 1 - len(waiting))],
            [0] * count,
            [0] * count,
            [0] * count,
            [0] * count,
            [0] * (2 * len(lives.latest).bit_length() + 2),
            [0] * self._sections,
        )
        reach = [b.size + b.alignment + (b.offset or 0) for b in self._buffers]
        fast = False
        kernel: Callable[..., Any] = _repair
        while state.point[_LEFT]:
            allowed = min(limit, budget.left, _CHUNK if fast else _PLAIN_CHUNK)
            if allowed <= 0 or state.point[_HEAD] < 0:
                return None
            if not fast and pays(3 * allowed, [*reach, capacity], _repair):
                fast = True
                helpers = _cheapest, _settle, _neighbors, _are_live_together
                kernel = compiled(_repair, *helpers)
                lives, state = as_arrays(lives), as_arrays(state)
            since = budget.seconds
            work = int(kernel(lives, state, capacity, allowed // _PAIR_WORK))
            work *= _PAIR_WORK
            weights[:] = plain(state.weight)
            limit -= work
            budget.spend(work, since)
        return plain(state.offset)


def _latest_ends(end: Sequence[int]) -> list[int]:
    """A binary tree of maxima. The second half has the leaves, from `end`."""
    width = 1 << (len(end) - 1).bit_length()
    tree = [0] * width + list(end) + [0] * (width - len(end))
    for node in range(width - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])
    return tree


def _repair(lives: _Lives, state: _State, capacity: int, limit: int) -> int:
    """The kernel: places buffers from the queue until it is empty or `limit` is spent.

    Returns the work in pairs of buffers.
    """
    head, left, chance, since, down = state.point
    covered = 0  # sections, by all buffers
    for place in range(len(lives.live_first)):
        covered += lives.live_end[place] - lives.live_first[place]
    settling = len(lives.size) + covered // _SECTIONS
    work = 0
    while left and work <= limit:
        if since > settling:
            _settle(lives, state, capacity, down)
            work += settling
            since, down = 0, 1 - down
        index = state.queue[head]
        size = lives.size[index]
        head = (head + 1) % len(state.queue)
        left -= 1
        count = _neighbors(lives, state, index)
        work += count + _STEP_WORK
        since += count + _STEP_WORK
        for place in range(count):
            j = state.near[place]
            state.bottoms[place] = j
            state.key[j] = state.offset[j] + lives.size[j]
        ascend(state.bottoms, count, state.offset)
        for place in range(count):
            state.tops[place] = state.bottoms[place]  # almost in order: quick to sort
        ascend(state.tops, count, state.key)
        least, offset, chance = _cheapest(lives, state, count, index, capacity, chance)
        if least >= _FIXED:
            head, left = -1, left + 1
            break
        if least:
            state.weight[index] += 1
            for place in range(count):
                j = state.near[place]
                if state.offset[j] < offset + size and state.key[j] > offset:
                    state.offset[j] = WAITING
                    state.queue[(head + left) % len(state.queue)] = j
                    left += 1
        state.offset[index] = offset
    state.point[_HEAD], state.point[_LEFT], state.point[_CHANCE] = head, left, chance
    state.point[_SINCE], state.point[_DOWN] = since, down
    return work


def _cheapest(
    lives: _Lives, state: _State, count: int, index: int, capacity: int, chance: int
) -> tuple[int, int, int]:
    """The offset of a buffer at which the buffers in its way cost least to eject.

    The first `count` buffers of `bottoms`, by offset, and of `tops`, by their ends in
    `key`, are placed and overlap it in time. Returns the cost, the offset (the first
    free one, or one of the cheapest at random), and the next `chance`.
    """
    size, alignment = lives.size[index], lives.alignment[index]
    bottoms, tops = state.bottoms, state.tops
    bottom, top = state.offset, state.key
    least, offset, equals = LARGEST, WAITING, 0
    for upwards in (1, 0):  # on a buffer or the floor; below a buffer or the lid
        reached, reached_cost = 0, 0  # buffers that start below this one's end
        passed, passed_cost = 0, 0  # buffers that end at or below its start
        for place in range(count + 1):
            if upwards:
                at = top[tops[place - 1]] if place else 0
                at += -at % alignment
            else:
                at = (bottom[bottoms[place]] if place < count else capacity) - size
                at -= at % alignment
            if at < 0:
                continue
            if at + size > capacity:
                break
            while reached < count and bottom[bottoms[reached]] < at + size:
                j = bottoms[reached]
                reached_cost += lives.worth[j] * state.weight[j]
                reached += 1
            while passed < count and top[tops[passed]] <= at:
                j = tops[passed]
                passed_cost += lives.worth[j] * state.weight[j]
                passed += 1
            cost = reached_cost - passed_cost
            if cost < least:
                least, offset, equals = cost, at, 1
            elif cost == least and at != offset:
                equals += 1
                chance = (chance * 1103515245 + 12345) % 2147483648
                if (chance >> 8) % equals == 0:
                    offset = at
            if least == 0:
                return least, offset, chance
    return least, offset, chance


def _settle(lives: _Lives, state: _State, capacity: int, down: int) -> None:
    """Moves the placed buffers down, or up, until each rests on another or an end.

    The order of the buffers stays. Buffers with a given offset do not move.
    """
    count = 0
    for i in range(len(state.offset)):
        offset = state.offset[i]
        if offset >= 0:
            state.near[count] = i
            state.key[i] = offset if down else capacity - offset - lives.size[i]
            count += 1
    ascend(state.near, count, state.key)
    height = state.height  # from the end to which they move
    for section in range(len(height)):
        height[section] = 0
    for place in range(count):
        i = state.near[place]
        ranges = range(lives.live_at[i], lives.live_at[i + 1])
        size, alignment = lives.size[i], lives.alignment[i]
        rest = 0
        for live in ranges:
            for section in range(lives.live_first[live], lives.live_end[live]):
                rest = max(rest, height[section])
        if lives.worth[i] >= _FIXED:
            rest = state.key[i]
        elif down:
            rest += -rest % alignment
        else:
            rest += (capacity - rest - size) % alignment
        for live in ranges:
            for section in range(lives.live_first[live], lives.live_end[live]):
                height[section] = rest + size
        state.offset[i] = rest if down else capacity - rest - size


def _neighbors(lives: _Lives, state: _State, index: int) -> int:
    """Writes the placed buffers that overlap `index` to `near`. Returns the number."""
    count = 0
    start = lives.first[index]
    low = lives.start_at[start]  # buffers from here on start in this section or later
    width = len(lives.latest) // 2
    state.stack[0] = 1
    depth = 1
    while depth:
        depth -= 1
        node = state.stack[depth]
        leftmost = node
        while leftmost < width:
            leftmost *= 2
        if lives.latest[node] <= start or leftmost - width >= low:
            continue
        if node < width:
            state.stack[depth] = 2 * node + 1
            state.stack[depth + 1] = 2 * node
            depth += 2
            continue
        other = lives.by_start[node - width]
        if state.offset[other] >= 0 and _are_live_together(lives, index, other):
            state.near[count] = other
            count += 1
    for place in range(low, lives.start_at[lives.end[index]]):
        other = lives.by_start[place]
        if state.offset[other] >= 0 and _are_live_together(lives, index, other):
            state.near[count] = other
            count += 1
    return count


def _are_live_together(lives: _Lives, one: int, other: int) -> bool:
    """Whether two buffers with overlapping lifespans overlap outside their gaps."""
    mine, others = lives.live_at[one], lives.live_at[other]
    my_end, others_end = lives.live_at[one + 1], lives.live_at[other + 1]
    if my_end - mine + others_end - others == 2:
        return True
    while mine < my_end and others < others_end:
        if lives.live_end[mine] <= lives.live_first[others]:
            mine += 1
        elif lives.live_end[others] <= lives.live_first[mine]:
            others += 1
        else:
            return True
    return False
