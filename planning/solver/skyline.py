"""Skyline placement: always fills the lowest valley, in nearly linear time.

The skyline is the height up to which memory is occupied, per section of time; a plateau
is a run of sections of equal height. Each step places the best-ranked buffer that fits
into the lowest plateau. If no buffer fits, the step raises the plateau to its lower
wall. Offsets are therefore assigned in ascending order, as in the best-fit packing of
Burke, Kendall and Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting
Problem", 2004. Here, the lifespans fix the horizontal positions.

Two structures find the best-ranked buffer within a plateau. In plain Python, these are
sets of ranks, one bit per buffer: those that begin in or after a section, and those
that end by then. Compiled code, and plain Python where the sets would take too much
memory, use a k-d tree over (first, end), as in Bentley, "Multidimensional Binary Search
Trees Used for Associative Searching", 1975.
"""

import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
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

_TREE_WORK = 150  # steps of plain Python, per buffer and order
_SETS_WORK, _SET = 20, 300  # the same with sets: at least, and the buffers per step
_SETS = 1 << 29  # the most bits of all sets
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
        self._fast = False
        count = len(part.size)
        self._has_sets = count * part.sections <= _SETS
        each = _SETS_WORK + count // _SET if self._has_sets else _TREE_WORK
        self._work = each * count

    def place(self, order: Sequence[int]) -> list[int]:
        """Returns the offsets in units. The first buffer in `order` ranks best."""
        part = self._part
        self._fast = self._fast or pays(self._work, part.size, _place)
        fast, count = self._fast, len(order)
        plateaus = _Plateaus(*(zeros(part.sections + 1, fast) for _ in range(3)))
        if self._has_sets and not fast:
            return _place_by_sets(part, order, plateaus)
        width = 1 << (count - 1).bit_length()
        tree = _Tree(*(zeros(2 * width, fast) for _ in range(5)))
        stack = zeros(2 * width.bit_length() + 2, fast)
        offsets = zeros(count, fast)
        lives, ranked = self._arrays if fast else self._lists, integers(order, fast)
        kernel = _place
        if fast:
            helpers = _find, _remove, _pull, _begin, _split, _raised, _lift
            kernel = compiled(_place, *helpers)
        kernel(lives, ranked, tree, plateaus, stack, offsets)
        return plain(offsets)

    @cached_property
    def _lists(self) -> _Lives:
        part = self._part
        return _Lives(part.first, part.end, part.size, _leaves(part))

    @cached_property
    def _arrays(self) -> _Lives:
        return as_arrays(self._lists)


def skyline_plans(part: Part) -> Iterator[list[int]]:
    """The plans (offsets in units) in the orders of `orders.for_skyline`."""
    skyline, seen = Skyline(part), list[Sequence[int]]()
    for order in orders.for_skyline(part):
        if order not in seen:
            seen.append(order)
            yield skyline.place(order)


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


def _place_by_sets(part: Part, order: Sequence[int], plateaus: _Plateaus) -> list[int]:
    """The same as the kernel `_place`, for plain Python."""
    first, end = part.first, part.end
    starting, ending = ([0] * (part.sections + 1) for _ in range(2))
    for rank, index in enumerate(order):
        starting[first[index]] |= 1 << rank
        ending[end[index]] |= 1 << rank
    # The ranks of the buffers that begin in or after a section, and that end by then.
    since = list(accumulate(reversed(starting), int.__or__))[::-1]
    by = list(accumulate(ending, int.__or__))
    offsets = [0] * len(order)
    left = since[0]
    _begin(plateaus)
    heap = [(0, 0)]
    height, stop, _ = plateaus
    while left:
        level, start = heapq.heappop(heap)
        if height[start] != level:
            continue  # raised, split or merged since
        until: int = stop[start]
        fitting = left & since[start] & by[until]
        if not fitting:
            _lift(plateaus, heap, start, _raised(plateaus, start))
            continue
        best = fitting & -fitting
        left ^= best
        index = order[best.bit_length() - 1]
        offsets[index] = level
        _split(plateaus, heap, start, first[index], end[index])
        _lift(plateaus, heap, first[index], level + part.size[index])
    return offsets


def _place(
    lives: _Lives,
    order: Integers,
    tree: _Tree,
    plateaus: _Plateaus,
    stack: Integers,
    offsets: Integers,
) -> None:
    """The kernel: writes `offsets`."""
    first, end, size, leaf = lives
    rank, low_first, high_first, low_end, high_end = tree
    height, stop, _ = plateaus
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
    _begin(plateaus)
    heap = [(0, 0)]
    left = len(order)
    while left:
        level, start = heapq.heappop(heap)
        if height[start] != level:
            continue  # raised, split or merged since
        place = _find(tree, stack, start, stop[start])
        if place == LARGEST:
            _lift(plateaus, heap, start, _raised(plateaus, start))
            continue
        index = order[place]
        offsets[index] = level
        left -= 1
        node = leaf[index]
        _remove(tree, node)
        while node > 1:
            node //= 2
            _pull(tree, node)
        _split(plateaus, heap, start, first[index], end[index])
        _lift(plateaus, heap, first[index], level + size[index])


def _begin(plateaus: _Plateaus) -> None:
    """Makes all sections one plateau. The first section of a plateau identifies it."""
    height, stop, _ = plateaus
    sections = len(height) - 1
    for section in range(sections + 1):
        height[section] = _GONE
    height[0] = 0
    stop[0] = sections


def _raised(plateaus: _Plateaus, start: int) -> int:
    """The height of the lower wall of a plateau."""
    height, stop, before = plateaus
    until = stop[start]
    left_wall = height[before[start]] if start > 0 else LARGEST
    right_wall = height[until] if until < len(height) - 1 else LARGEST
    return min(left_wall, right_wall)


def _split(
    plateaus: _Plateaus, heap: list[tuple[int, int]], start: int, first: int, end: int
) -> None:
    """Makes sections `[first, end)` of a plateau a plateau of their own, and adds what
    is left of it on either side to the heap."""
    height, stop, before = plateaus
    level, until = height[start], stop[start]
    if end < until:
        heapq.heappush(heap, (level, end))
        height[end] = level
        stop[end] = until
        if until < len(height) - 1:
            before[until] = end
    if first > start:
        heapq.heappush(heap, (level, start))
        stop[start] = first
        before[first] = start
    height[first] = level
    stop[first] = end


def _lift(
    plateaus: _Plateaus, heap: list[tuple[int, int]], start: int, level: int
) -> None:
    """Lifts a plateau, joins it with neighbors of this height, and adds it to the
    heap."""
    height, stop, before = plateaus
    sections = len(height) - 1
    until = stop[start]
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
