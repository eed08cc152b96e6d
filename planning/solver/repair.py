"""Placement with ejection: fits buffers under a capacity around those placed already.

First fit places what it can; the other buffers wait in a queue. Each goes to the lowest
offset that is free; if none is, to where the buffers in its way weigh least, and those
go to the end of the queue. A buffer for which others had to leave weighs more from then
on, so that the search does not go round in circles. As in Nagata and Bräysy, "A
Powerful Route Minimization Heuristic for the Vehicle Routing Problem with Time
Windows", 2009, where vehicles are what offsets are here. It proves nothing: it finds a
plan or gives up.

The placed buffers that overlap one in time are found in a tree of the latest ends.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import isqrt
from typing import Any, NamedTuple

from ..problem import Buffer
from .budget import SearchBudget
from .gaps import GAP_WORK, WAITING, Gaps
from .kernels import LARGEST, Integers, as_arrays, compiled, pays, plain
from .sections import live_ranges_of

_STEP_WORK = 20  # what taking one from the queue costs, in pairs of buffers
_PAIR_WORK = 5  # what a pair of buffers costs, in sections of `search.py`
_CHUNK, _PLAIN_CHUNK = 1_000_000, 200_000  # work until the time is looked at again
_FIXED = 1 << 45  # worth of a given offset: more than all else


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
    start_at: Integers  # section s: start_at[s] buffers start before it
    worth: Integers  # what it costs to take one away, times its weight


class _State(NamedTuple):
    """What is placed, and what waits."""

    weight: Integers  # per buffer
    offset: Integers  # per buffer, or WAITING
    queue: Integers  # a ring
    near: Integers  # scratch: placed buffers that overlap one
    stack: Integers  # scratch: nodes of the tree


class Repair:
    """Places the same buffers, of any kind, again and again."""

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
        """The work of placing every buffer once, about."""
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
        """Places those that wait, in this order, for about `limit` of work.

        `offsets` are those of the buffers that are placed, below the capacity, and
        `WAITING`; `weights` say how firmly they are placed, 1 or more, and are what
        they have become afterwards. The work is spent from the budget.
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
            list(weights),
            list(offsets),
            [*waiting, *[0] * (count + 1 - len(waiting))],
            [0] * count,
            [0] * (2 * len(lives.latest).bit_length() + 2),
        )
        reach = [b.size + b.alignment + (b.offset or 0) for b in self._buffers]
        fast = False
        kernel: Callable[..., Any] = _repair
        head, left, chance = 0, len(waiting), 1
        while left:
            allowed = min(limit, budget.left, _CHUNK if fast else _PLAIN_CHUNK)
            if allowed <= 0 or head < 0:
                return None
            if not fast and pays(3 * allowed, [*reach, capacity], _repair):
                fast = True
                kernel = compiled(_repair, _neighbours, _are_live_together)
                lives, state = as_arrays(lives), as_arrays(state)
            since = budget.seconds
            head, left, chance, pairs = kernel(
                lives, state, capacity, head, left, chance, allowed // _PAIR_WORK
            )
            weights[:] = plain(state.weight)
            work = int(pairs) * _PAIR_WORK
            limit -= work
            budget.spend(work, since)
        return plain(state.offset)


def _latest_ends(end: Sequence[int]) -> list[int]:
    """A balanced tree: place i has its leaf in place i of the second half."""
    width = 1 << (len(end) - 1).bit_length()
    tree = [0] * width + list(end) + [0] * (width - len(end))
    for node in range(width - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])
    return tree


def _repair(
    lives: _Lives,
    state: _State,
    capacity: int,
    head: int,
    left: int,
    chance: int,
    limit: int,
) -> tuple[int, int, int, int]:
    """The kernel: where the queue starts now (below 0 if one does not fit at all), how
    many are in it, the state of chance, and the work in pairs."""
    work = 0
    while left and work <= limit:
        index = state.queue[head]
        size, alignment = lives.size[index], lives.alignment[index]
        head = (head + 1) % len(state.queue)
        left -= 1
        count = _neighbours(lives, state, index)
        work += count + _STEP_WORK
        bottoms = [
            (state.offset[j], lives.worth[j] * state.weight[j])
            for j in state.near[:count]
        ]
        tops = [
            (state.offset[j] + lives.size[j], lives.worth[j] * state.weight[j])
            for j in state.near[:count]
        ]
        bottoms.sort()
        tops.sort()
        least, offset, equals = LARGEST, WAITING, 0
        for upwards in (1, 0):  # onto another or the floor; below another or the lid
            reached, reached_weight = 0, 0  # those that start below the buffer's end
            passed, passed_weight = 0, 0  # those that end at or below its start
            for place in range(count + 1):
                if upwards:
                    at = tops[place - 1][0] if place else 0
                    at += -at % alignment
                else:
                    at = (bottoms[place][0] if place < count else capacity) - size
                    at -= at % alignment
                if at < 0:
                    continue
                if at + size > capacity:
                    break
                while reached < count and bottoms[reached][0] < at + size:
                    reached_weight += bottoms[reached][1]
                    reached += 1
                while passed < count and tops[passed][0] <= at:
                    passed_weight += tops[passed][1]
                    passed += 1
                cost = reached_weight - passed_weight
                if cost < least:
                    least, offset, equals = cost, at, 1
                elif cost == least and at != offset:
                    equals += 1
                    chance = (chance * 1103515245 + 12345) % 2147483648
                    if (chance >> 8) % equals == 0:
                        offset = at
                if least == 0:
                    break
            if least == 0:
                break
        if least >= _FIXED:
            return -1, left + 1, chance, work
        if least:
            state.weight[index] += 1
            for j in state.near[:count]:
                other = state.offset[j]
                if other < offset + size and other + lives.size[j] > offset:
                    state.offset[j] = WAITING
                    state.queue[(head + left) % len(state.queue)] = j
                    left += 1
        state.offset[index] = offset
    return head, left, chance, work


def _neighbours(lives: _Lives, state: _State, index: int) -> int:
    """Writes the placed buffers that overlap this one to `near`; how many."""
    count = 0
    start = lives.first[index]
    low = lives.start_at[start]  # those from here on start in this section or later
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
    """Whether two buffers that overlap do so outside of their gaps."""
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
