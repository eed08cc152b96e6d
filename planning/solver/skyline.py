"""Skyline placement: always fills the lowest valley, in nearly linear time.

The skyline is the height up to which memory is occupied, per section of time; a plateau
is a run of sections of equal height. Each step places the best-ranked buffer that fits
into the lowest plateau. If no buffer fits, the step raises the plateau to its lower
wall. Offsets are therefore assigned in ascending order, as in the best-fit packing of
Burke, Kendall and Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting
Problem", 2004. Here, the lifespans fix the horizontal positions.

A k-d tree over (first, end) finds the best-ranked buffer within a plateau, as in
Bentley, "Multidimensional Binary Search Trees Used for Associative Searching", 1975.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from . import orders
from .kernels import (
    LARGEST,
    Integers,
    as_arrays,
    compiled,
    integers,
    pays,
    plain,
    zeros,
)
from .sections import Part

_WORK = 150  # steps of plain Python, per buffer and order
_GONE = -1  # the height of a section at which no plateau begins


class _Tree(NamedTuple):
    """A k-d tree of the unplaced buffers: node n has the children 2n and 2n + 1."""

    rank: Integers  # the best rank of the buffers in the subtree
    low_first: Integers  # the least and the greatest first section of these buffers
    high_first: Integers
    low_end: Integers  # the least and the greatest section after their last
    high_end: Integers


class _Plateaus(NamedTuple):
    """The skyline, as lists that are indexed by the first section of a plateau."""

    height: Integers
    stop: Integers  # the section after the plateau's last
    before: Integers  # the first section of the plateau on the left


class _Lives(NamedTuple):
    """The buffers, as the kernel reads them."""

    first: Integers  # section
    end: Integers  # section after its last
    size: Integers
    leaf: Integers  # node of the tree


class Skyline:
    """Places the buffers of one part, in any number of orders."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._lives = _Lives(part.first, part.end, part.size, _leaves(part))
        self._fast = False

    def place(self, order: Sequence[int]) -> list[int]:
        """Returns the offsets in units. The first buffer in `order` ranks best."""
        count, sections = len(order), self._part.sections
        if not self._fast and pays(_WORK * count, self._part.size, _place):
            self._lives, self._fast = as_arrays(self._lives), True
        fast = self._fast
        width = 1 << (count - 1).bit_length()
        tree = _Tree(*(zeros(2 * width, fast) for _ in range(5)))
        plateaus = _Plateaus(*(zeros(sections + 1, fast) for _ in range(3)))
        stack = zeros(2 * width.bit_length() + 2, fast)
        offsets = zeros(count, fast)
        kernel = compiled(_place, _find, _remove, _pull) if fast else _place
        kernel(self._lives, integers(order, fast), tree, plateaus, stack, offsets)
        return plain(offsets)


def skyline_plans(part: Part) -> Iterator[list[int]]:
    """The plans (offsets in units) in the orders of `orders.for_skyline`."""
    return map(Skyline(part).place, orders.for_skyline(part))


def _leaves(part: Part) -> list[int]:
    """The leaf of each buffer in a balanced k-d tree: split by first, by end, ..."""
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
    lives: _Lives,
    order: Integers,
    tree: _Tree,
    plateaus: _Plateaus,
    stack: Integers,
    offsets: Integers,
) -> None:
    """The kernel: writes `offsets`. The first section of a plateau identifies it."""
    first, end, size, leaf = lives
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
            if end[index] < until:  # the rest of the plateau on the buffer's right
                height[end[index]] = level
                stop[end[index]] = until
                if until < sections:
                    before[until] = end[index]
                until = end[index]
                heapq.heappush(heap, (level, until))
            if first[index] > start:  # and on the buffer's left
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
    """The best rank of a buffer within sections `[start, stop)`, or `LARGEST`."""
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
    """Empties a node."""
    rank, low_first, high_first, low_end, high_end = tree
    rank[node] = LARGEST
    low_first[node] = low_end[node] = LARGEST
    high_first[node] = high_end[node] = -1


def _pull(tree: _Tree, node: int) -> None:
    """Computes an inner node from its children."""
    rank, low_first, high_first, low_end, high_end = tree
    left, right = 2 * node, 2 * node + 1
    rank[node] = min(rank[left], rank[right])
    low_first[node] = min(low_first[left], low_first[right])
    high_first[node] = max(high_first[left], high_first[right])
    low_end[node] = min(low_end[left], low_end[right])
    high_end[node] = max(high_end[left], high_end[right])
