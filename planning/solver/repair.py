"""Placement with ejection: fits buffers under a capacity around those placed already.

Buffers wait in a queue. Each goes to the lowest offset that is free; if none is, to
where the buffers in its way weigh least, and those go to the end of the queue. A
buffer for which others had to leave weighs more from then on, so that the search does
not go round in circles. As in Nagata and Bräysy, "A Powerful Route Minimization
Heuristic for the Vehicle Routing Problem with Time Windows", 2009, where vehicles are
what offsets are here. It proves nothing: it finds a plan or gives up.

The placed buffers that overlap one in time are found in a tree of the latest ends.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import isqrt

from .budget import SearchBudget
from .kernels import LARGEST, Integers, compiled, integers, pays, plain, zeros
from .sections import Part

WAITING = -1
"""The offset of a buffer that is in the queue."""

_STEP_WORK = 20  # what taking one from the queue costs, in pairs of buffers
_PAIR_WORK = 5  # what a pair of buffers costs, in sections of `search.py`
_CHUNK = 1_000_000  # work until the time is looked at again


class Repair:
    """Places the buffers of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._tree = _latest_ends(part.end)
        counts = [0] * (part.sections + 1)
        for first in part.first:
            counts[first + 1] += 1
        self._start_at = list(accumulate(counts))
        area = [
            size * (end - first)
            for size, first, end in zip(part.size, part.first, part.end, strict=True)
        ]
        largest = max(area)
        self._worth = [1 + isqrt(1_000_000 * a // largest) for a in area]

    @property
    def pass_work(self) -> int:
        """The work of placing every buffer once, about."""
        at = self._start_at
        spans = zip(self.part.first, self.part.end, strict=True)
        pairs = sum(at[end] - at[first] for first, end in spans)
        return _PAIR_WORK * (pairs + _STEP_WORK * len(self.part.size))

    def fit(
        self,
        capacity: int,
        offsets: Sequence[int],
        weights: Sequence[int],
        order: Sequence[int],
        limit: int,
        budget: SearchBudget,
    ) -> Sequence[int] | None:
        """Places those in `order`, for about `limit` of work, which is spent.

        `offsets` are those of the buffers that are placed, below the capacity, and
        `WAITING`; `weights` say how firmly they are placed, 1 or more. In units.
        """
        part = self.part
        sizes = part.size
        fast = pays(2 * min(limit, self.pass_work), [sum(sizes), capacity], _repair)
        kernel = compiled(_repair, _neighbours) if fast else _repair
        found = integers(offsets, fast)
        queue = integers([*order, *[0] * (len(sizes) + 1 - len(order))], fast)
        arguments = (
            integers(part.first, fast),
            integers(part.end, fast),
            integers(sizes, fast),
            integers(self._tree, fast),
            integers(self._start_at, fast),
            integers(self._worth, fast),
            integers(weights, fast),
            found,
            queue,
            zeros(len(sizes), fast),
            zeros(2 * len(self._tree).bit_length() + 2, fast),
            capacity,
        )
        head, left, chance = 0, len(order), 1
        while left:
            allowed = min(limit, budget.left, _CHUNK)
            if allowed <= 0 or head < 0:
                return None
            since = budget.seconds
            head, left, chance, pairs = kernel(
                *arguments, head, left, chance, allowed // _PAIR_WORK
            )
            work = int(pairs) * _PAIR_WORK
            limit -= work
            budget.spend(work, since)
        return plain(found)


def _latest_ends(end: Sequence[int]) -> list[int]:
    """A balanced tree: the leaf of buffer i is in place i of the second half."""
    width = 1 << (len(end) - 1).bit_length()
    tree = [0] * width + list(end) + [0] * (width - len(end))
    for node in range(width - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])
    return tree


def _repair(
    first: Integers,
    end: Integers,
    size: Integers,
    tree: Integers,
    start_at: Integers,
    worth: Integers,
    weight: Integers,
    offsets: Integers,
    queue: Integers,
    near: Integers,
    stack: Integers,
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
        index = queue[head]
        head = (head + 1) % len(queue)
        left -= 1
        count = _neighbours(first, end, tree, start_at, offsets, near, stack, index)
        work += count + _STEP_WORK
        bottoms = [(offsets[j], worth[j] * weight[j]) for j in near[:count]]
        tops = [(offsets[j] + size[j], worth[j] * weight[j]) for j in near[:count]]
        bottoms.sort()
        tops.sort()
        least, offset, equals = LARGEST, WAITING, 0
        for upwards in (1, 0):  # onto another or the floor; below another or the lid
            reached, reached_weight = 0, 0  # those that start below the buffer's end
            passed, passed_weight = 0, 0  # those that end at or below its start
            for place in range(count + 1):
                if upwards:
                    at = tops[place - 1][0] if place else 0
                else:
                    at = (bottoms[place][0] if place < count else capacity) - size[
                        index
                    ]
                if at < 0:
                    continue
                if at + size[index] > capacity:
                    break
                while reached < count and bottoms[reached][0] < at + size[index]:
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
        if least == LARGEST:
            return -1, left + 1, chance, work
        if least:
            weight[index] += 1
            for j in near[:count]:
                if offsets[j] < offset + size[index] and offsets[j] + size[j] > offset:
                    offsets[j] = WAITING
                    queue[(head + left) % len(queue)] = j
                    left += 1
        offsets[index] = offset
    return head, left, chance, work


def _neighbours(
    first: Integers,
    end: Integers,
    tree: Integers,
    start_at: Integers,
    offsets: Integers,
    near: Integers,
    stack: Integers,
    index: int,
) -> int:
    """Writes the placed buffers that overlap this one to `near`; how many."""
    count = 0
    start = first[index]
    low = start_at[start]  # those from here on start in its first section or later
    width = len(tree) // 2
    stack[0] = 1
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        leftmost = node
        while leftmost < width:
            leftmost *= 2
        if tree[node] <= start or leftmost - width >= low:
            continue
        if node < width:
            stack[depth] = 2 * node + 1
            stack[depth + 1] = 2 * node
            depth += 2
        elif offsets[node - width] >= 0:
            near[count] = node - width
            count += 1
    for other in range(low, start_at[end[index]]):
        if offsets[other] >= 0:
            near[count] = other
            count += 1
    return count
