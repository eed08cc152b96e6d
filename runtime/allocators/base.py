"""The interface of allocators, and the code that they share.

An allocator takes regions from a sub-allocator and gives parts of them, blocks, to
callers. Addresses are plain integers, whatever the sub-allocator uses; sizes are in
bytes. A policy (bfc.py, buddy.py, ...) decides only where blocks lie (`place`,
`release`). This file has locking, statistics, labels, retries, errors and reports.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from .regions import Regions
from .report import AllocatorBlock, Dump, OutOfMemoryError, Statistics

NULL = -1
"""The address of an allocation of 0 bytes; may be deallocated any number of times."""


class InvalidAddressError(ValueError):
    """An address that is not the start of an allocated block."""


B = TypeVar("B", bound=AllocatorBlock)


class Allocator(ABC, Generic[B]):
    """Allocates blocks of a device's memory. Thread-safe.

    With `retry_seconds`, an allocation that fails waits up to that long for others to
    free memory (TensorFlow's AllocatorRetry).
    """

    name: str

    def __init__(self, regions: Regions, retry_seconds: float = 0.0):
        self.regions = regions
        self._retry_seconds = retry_seconds
        self._allocated: dict[int, B] = {}
        self._last_id = 0
        self._in_use = self._peak = self._largest = 0  # bytes
        self._uncounted = 0  # the last id when statistics were cleared
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._waiting = 0

    # Methods of a policy. The caller holds the lock.

    @abstractmethod
    def place(self, size: int, alignment: int, freed_before: int) -> B | None:
        """Takes a block of at least `size` > 0 bytes from the free blocks; None if
        there is none. Raises `ValueError` for a request that this allocator can never
        serve."""

    @abstractmethod
    def release(self, block: B) -> None:
        """Frees a block that `place` returned."""

    @abstractmethod
    def free_blocks(self) -> Iterable[AllocatorBlock]:
        """The free parts of the regions, in any order."""

    def largest_free(self) -> int:
        """The bytes of the largest free block."""
        return max((block.size for block in self.free_blocks()), default=0)

    # Methods for callers

    def allocate(
        self, size: int, *, alignment: int = 1, label: str = "", freed_before: int = 0
    ) -> int:
        """Returns the address of a new block of `size` bytes, a multiple of
        `alignment`, a power of two.

        `label` names the holder in reports. With `freed_before`, the block takes only
        memory that was freed with this stamp or an earlier one (see bfc.py). Zero bytes
        are at `NULL`.

        Raises `OutOfMemoryError`; `ValueError` for a size or an alignment that this
        allocator can never serve.
        """
        if size <= 0:
            return self._nothing(size)
        if alignment != 1:
            self.regions.check_alignment(alignment)
        with self._lock:
            block = self.place(size, alignment, freed_before)
            if block is None:
                block = self._wait(size, alignment, freed_before)
            block.requested = size
            block.label = label
            self._last_id = block.id = self._last_id + 1
            taken = block.size
            self._in_use = in_use = self._in_use + taken
            if in_use > self._peak:
                self._peak = in_use
            if taken > self._largest:
                self._largest = taken
            address = block.address
            self._allocated[address] = block
            return address

    def deallocate(self, address: int) -> None:
        """Frees the block at `address`.

        Raises `InvalidAddressError` if no block starts there: it was freed already, or
        the address is inside a block or belongs to no region of this allocator.
        """
        with self._lock:
            block = self._allocated.pop(address, None)
            if block is None:
                if address != NULL:
                    raise self._refusal(address)
                return
            block.id = 0
            self._in_use -= block.size
            self.release(block)
            if self._waiting:
                self._freed.notify_all()

    def block(self, address: int) -> AllocatorBlock:
        """A copy of the allocated block that starts at `address`.

        Raises `InvalidAddressError` if there is none.
        """
        with self._lock:
            if address not in self._allocated:
                raise self._refusal(address)
            return _copy(self._allocated[address])

    def statistics(self) -> Statistics:
        with self._lock:
            return self._counted()

    def clear_statistics(self) -> None:
        """Resets counts and peaks. The numbering of allocations continues."""
        with self._lock:
            self._uncounted = self._last_id
            self._largest = 0
            self._peak = self._in_use

    def dump(self) -> Dump:
        with self._lock:
            return self._dump()

    def occupancy(self, width: int = 100) -> str:
        """A picture of the regions (see `Dump.occupancy`)."""
        return self.dump().occupancy(width)

    # Private

    def _nothing(self, size: int) -> int:
        if size < 0:
            raise ValueError(f"{size} bytes requested, expected 0 or more")
        return NULL

    def _wait(self, size: int, alignment: int, freed_before: int) -> B:
        """Retries until a block is free or `retry_seconds` have passed."""
        end = time.monotonic() + self._retry_seconds
        while (rest := end - time.monotonic()) > 0:
            self._waiting += 1
            try:
                self._freed.wait(rest)
            finally:
                self._waiting -= 1
            if block := self.place(size, alignment, freed_before):
                return block
        raise OutOfMemoryError(self.regions.device, size, self._dump())

    def _counted(self) -> Statistics:
        return Statistics(
            bytes_limit=self.regions.limit,
            num_allocs=self._last_id - self._uncounted,
            bytes_in_use=self._in_use,
            peak_bytes_in_use=self._peak,
            largest_alloc_size=self._largest,
            pool_bytes=self.regions.bytes,
            peak_pool_bytes=self.regions.peak_bytes,
            largest_free_block_bytes=self.largest_free(),
        )

    def _dump(self) -> Dump:
        blocks = [*map(_copy, self._allocated.values()), *self.free_blocks()]
        blocks.sort(key=lambda block: block.address)
        return Dump(
            self.name,
            self.regions.device,
            self._counted(),
            [(region.address, region.size) for region in self.regions],
            blocks,
        )

    def _refusal(self, address: int) -> InvalidAddressError:
        for block in self._allocated.values():
            if block.address < address < block.address + block.size:
                return InvalidAddressError(
                    f"address {address} is inside the block of {block.size} bytes at "
                    f"{block.address}, expected the start of a block"
                )
        if any(r.address <= address < r.address + r.size for r in self.regions):
            return InvalidAddressError(
                f"address {address} is free, expected that of an allocated block: was "
                "it freed twice?"
            )
        return InvalidAddressError(
            f"address {address} is in no region of {self.name} on "
            f"{self.regions.device}, expected that of an allocated block"
        )


def _copy(block: AllocatorBlock) -> AllocatorBlock:
    return AllocatorBlock(
        block.address,
        block.size,
        block.requested if block.id else 0,
        block.id,
        block.label if block.id else "",
        block.freed_at,
    )
