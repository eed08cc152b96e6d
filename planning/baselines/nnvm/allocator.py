"""NNVM's `GraphAllocator`: which free storage a request gets."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ... import deadline


@dataclass(slots=True)
class _Storage:
    size: int  # bytes, of the largest request that it has served
    device: int
    released_by: int = -1  # the node that released it last


class Allocator:
    """Storages that may grow, and the free ones among them.

    A request takes a free storage of its device: the smallest one that is large enough,
    but at most `match_range` times as large; else the largest one that is too small by
    at most this factor, which then grows. With `match_range` 0, nothing is reused. Of
    equal storages, the request takes the one released first if they are large enough,
    and the one released last if they are too small.

    With colors, one for each node, only a node with the color of the node that released
    a storage may take it.
    """

    def __init__(self, match_range: int, colors: Sequence[int] | None = None) -> None:
        self._match_range = match_range
        self._colors = colors
        self._storages: list[_Storage] = []
        self._free: list[tuple[int, int, int]] = []  # size, number of release, storage
        self._releases = 0

    @property
    def allocated_bytes(self) -> int:
        """The sum of all storages."""
        return sum(s.size for s in self._storages)

    def request(self, size: int, device: int, node: int) -> int:
        """Returns a storage for `size` bytes that `node` writes: a new one after a
        deadline."""
        for place in self._candidates(size):
            if deadline.passed():
                break
            storage = self._free[place][2]
            if self._may_take(storage, device, node):
                del self._free[place]
                self._storages[storage].size = max(self._storages[storage].size, size)
                return storage
        self._storages.append(_Storage(size, device))
        return len(self._storages) - 1

    def release(self, storage: int, node: int) -> None:
        """Frees a storage that no node after `node` reads."""
        if deadline.passed():
            return
        self._storages[storage].released_by = node
        self._releases += 1
        insort(self._free, (self._storages[storage].size, self._releases, storage))

    def _candidates(self, size: int) -> Iterator[int]:
        """Positions in `_free`, the best first."""
        if not self._match_range:
            return
        large_enough = bisect_left(self._free, (size,))
        too_large = bisect_left(self._free, (size * self._match_range + 1,))
        yield from range(large_enough, too_large)
        not_too_small = bisect_left(self._free, (size // self._match_range,))
        yield from reversed(range(not_too_small, large_enough))

    def _may_take(self, storage: int, device: int, node: int) -> bool:
        candidate = self._storages[storage]
        if candidate.device != device:
            return False
        if self._colors is None:
            return True
        return self._colors[candidate.released_by] == self._colors[node]
