"""Host memory as a sub-allocator: each region is a separate block.

Addresses count from 0 in the order of the calls. They are therefore the same in every
run, and so are decisions that allocators base on them.
"""

import os
from bisect import bisect_right

import numpy as np

from ...support.arrays import Array

_LARGE_PAGE = 2 << 20


def aligned_bytes(size: int, alignment: int) -> Array:
    """New memory at a multiple of `alignment`, a power of two.

    Pages that are never touched take no memory. Raises a `MemoryError` that states the
    memory of this machine.
    """
    try:
        block = np.empty(size + alignment, np.uint8)
    except (MemoryError, ValueError):  # ValueError for more than 2^63 bytes
        raise MemoryError(
            f"{size} bytes of memory cannot be allocated: this machine has "
            f"{machine_bytes()}"
        ) from None
    start = -block.ctypes.data % alignment
    return block[start : start + size]


def machine_bytes() -> str:
    """The memory of this machine, for messages."""
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return "less"
    return f"{size} bytes"


class HostMemory:
    """Regions of host memory, and their bytes."""

    supports_coalescing = False
    max_alignment = _LARGE_PAGE

    def __init__(self) -> None:
        self._regions: dict[int, Array] = {}
        self._starts: list[int] = []
        self._end = 0

    def allocate(self, size: int, alignment: int) -> tuple[int, int] | None:
        """See `SubAllocator`. Every region is aligned to `max_alignment`."""
        try:
            memory = aligned_bytes(size, _LARGE_PAGE)
        except MemoryError:
            return None
        start = self._end
        self._end += -(-size // _LARGE_PAGE) * _LARGE_PAGE
        self._regions[start] = memory
        self._starts.append(start)
        return start, size

    def free(self, address: int, size: int) -> None:
        """See `SubAllocator`. Arrays in the region stay valid."""
        del self._regions[address]
        self._starts.remove(address)

    def region(self, address: int) -> tuple[int, Array]:
        """The start of the region that contains `address`, and the region's bytes."""
        start = self._starts[bisect_right(self._starts, address) - 1]
        return start, self._regions[start]
