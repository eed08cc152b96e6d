"""Skyline placement: always fill the lowest valley. Nearly linear in the buffers.

The skyline is the height that is taken so far, per section of time; a plateau is a run
of sections of the same height. The lowest plateau takes the best-ranked buffer that
fits into it; one that takes none is raised to its lower wall. So each buffer comes to
lie at the lowest offset that is left, as in best-fit packing (Burke, Kendall and
Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting Problem", 2004),
with lifespans for fixed horizontal positions.

The best-ranked buffer within a plateau is found in a k-d tree over (first, end), as in
Bentley, "Multidimensional Binary Search Trees Used for Associative Searching", 1975.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from . import orders
from .kernels import LARGEST, Integers, compiled, integers, pays, plain, zeros
from .sections import Part

_WORK = 600  # steps of plain Python, per buffer
_GONE = -1  # height of what is no plateau any more


class _Tree(NamedTuple):
    """A k-d tree: node n has the nodes 2n and 2n + 1 below it."""

    rank: Integers  # the best of its buffers
    low_first: Integers  # the range of their first sections
    high_first: Integers
    low_end: Integers  # and of the sections after their last
    high_end: Integers


class _Plateaus(NamedTuple):
    """The skyline, per first section of a plateau."""

    height: Integers
    stop: Integers  # the section after its last
    before: Integers  # the plateau on its left


class Skyline:
    """Places the buffers of one part in whatever order of rank."""

    def __init__(self, part: Part, orders: int) -> None:
        """`orders` is how many orders will be tried: whether to compile for them."""
        self._part = part
        self._fast = pays(_WORK * len(part.size) * orders, part.size, _place)
        leaves = _leaves(part)
        self._leaf = integers(leaves, self._fast)
        self._first = integers(part.first, self._fast)
        self._end = integers(part.end, self._fast)
        self._size = integers(part.size, self._fast)

    def place(self, order: Sequence[int]) -> list[int]:
        """Offsets, in units; buffers that come early in `order` go first."""
        count = len(order)
        width = 1 << (count - 1).bit_length()
        tree = _Tree(*(zeros(2 * width, self._fast) for _ in range(5)))
        sections = self._part.sections
        plateaus = _Plateaus(*(zeros(sections + 1, self._fast) for _ in range(3)))
        offsets = zeros(count, self._fast)
        kernel = compiled(_place, _find, _remove, _pull) if self._fast else _place
        kernel(
            self._first,
            self._end,
            self._size,
            integers(order, self._fast),
            self._leaf,
            tree,
            plateaus,
            zeros(2 * width.bit_length() + 2, self._fast),
            offsets,
        )
        return plain(offsets)


def skyline_plans(part: Part) -> Iterator[list[int]]:
    """The offsets, in units, that each of several orders gives."""
    skyline = Skyline(part, orders.SKYLINE_ORDERS)
    yield from map(skyline.place, orders.for_skyline(part))


def _leaves(part: Part) -> list[int]:
    """The leaf of each buffer in a balanced k-d tree: halves by first, by end, ..."""
    count = len(part.size)
    width = 1 << (count - 1).bit_length()
    order = list(range(count))
    span, depth = width, 0
    while span > 2:
        key = (part.end if depth % 2 else part.first).__getitem__
        for low in range(0, count, span):
            order[low : low + span] = sorted(order[low : low + span], key=key)
        span //= 2
        depth += 1
    leaf = [0] * count
    for place, index in enumerate(order):
        leaf[index] = width + place
    return leaf


def _place(
    first: Integers,
    end: Integers,
    size: Integers,
    order: Integers,
    leaf: Integers,
    tree: _Tree,
    plateaus: _Plateaus,
    stack: Integers,
    offsets: Integers,
) -> None:
    """The kernel. A plateau is known by its first section."""
    rank, low_first, high_first, low_end, high_end = tree
    height, stop, before = plateaus
    sections = len(height) - 1
    for node in range(len(rank)):
        _remove(tree, node)
    for place in range(len(order)):
        index = order[place]
        node = leaf[index]
        rank[node] = place
        low_first[node] = high_first[node] = first[index]
        low_end[node] = high_end[node] = end[index]
    for node in range(len(rank) // 2 - 1, 0, -1):
        _pull(tree, node)
    for section in range(sections + 1):
        height[section] = _GONE
    height[0] = 0
    stop[0] = sections
    heap = [(0, 0)]
    left = len(order)
    while left:
        level, start = heapq.heappop(heap)
        if height[start] != level:
            continue  # raised, split or merged since
        until = stop[start]
        place = _find(tree, stack, start, until)
        if place == LARGEST:
            left_wall = height[before[start]] if start > 0 else LARGEST
            right_wall = height[until] if until < sections else LARGEST
            level = min(left_wall, right_wall)
            if right_wall == level:
                height[until] = _GONE
                until = stop[until]
            if left_wall == level:
                height[start] = _GONE
                start = before[start]
        else:
            index = order[place]
            offsets[index] = level
            left -= 1
            node = leaf[index]
            _remove(tree, node)
            while node > 1:
                node //= 2
                _pull(tree, node)
            if end[index] < until:  # what is left of the plateau on its right
                height[end[index]] = level
                stop[end[index]] = until
                if until < sections:
                    before[until] = end[index]
                until = end[index]
                heapq.heappush(heap, (level, until))
            if first[index] > start:  # and on its left
                stop[start] = first[index]
                before[first[index]] = start
                heapq.heappush(heap, (level, start))
                start = first[index]
            level += size[index]
            if until < sections and height[until] == level:
                height[until] = _GONE
                until = stop[until]
            if start > 0 and height[before[start]] == level:
                height[start] = _GONE
                start = before[start]
        height[start] = level
        stop[start] = until
        if until < sections:
            before[until] = start
        heapq.heappush(heap, (level, start))


def _find(tree: _Tree, stack: Integers, start: int, stop: int) -> int:
    """The best rank of the buffers within these sections, or `LARGEST`."""
    rank, low_first, high_first, low_end, high_end = tree
    best = LARGEST
    stack[0] = 1
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if rank[node] >= best or high_first[node] < start or low_end[node] > stop:
            continue
        if low_first[node] >= start and high_end[node] <= stop:
            best = rank[node]
            continue
        better = 2 * node if rank[2 * node] < rank[2 * node + 1] else 2 * node + 1
        stack[depth] = better ^ 1
        stack[depth + 1] = better
        depth += 2
    return best


def _remove(tree: _Tree, node: int) -> None:
    """Makes a leaf empty."""
    rank, low_first, high_first, low_end, high_end = tree
    rank[node] = LARGEST
    low_first[node] = low_end[node] = LARGEST
    high_first[node] = high_end[node] = -1


def _pull(tree: _Tree, node: int) -> None:
    """Derives an inner node from its children."""
    rank, low_first, high_first, low_end, high_end = tree
    left, right = 2 * node, 2 * node + 1
    rank[node] = min(rank[left], rank[right])
    low_first[node] = min(low_first[left], low_first[right])
    high_first[node] = max(high_first[left], high_first[right])
    low_end[node] = min(low_end[left], low_end[right])
    high_end[node] = max(high_end[left], high_end[right])
