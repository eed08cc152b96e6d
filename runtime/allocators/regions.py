"""Regions: the memory that an allocator takes from its sub-allocator, up to a limit."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class SubAllocator(Protocol):
    """The source of regions. Two threads never call it at the same time."""

    @property
    def supports_coalescing(self) -> bool:
        """Whether adjacent regions may be used, and freed, as one."""
        ...

    @property
    def max_alignment(self) -> int:
        """The largest power of two to which regions are truly aligned."""
        ...

    def allocate(self, size: int, alignment: int) -> tuple[int, int] | None:
        """The address and size of a new region of at least `size` bytes, at a multiple
        of `alignment`. None if there is no such memory."""
        ...

    def free(self, address: int, size: int) -> None:
        """Frees a region. Nothing uses it any longer, not even work that a device has
        queued."""
        ...


@dataclass(eq=False)
class Region:
    address: int
    size: int


class Regions:
    """The regions of one allocator, or of several with a common limit, by address."""

    def __init__(self, source: SubAllocator, limit: int, device: str = "cpu:0"):
        """`limit` is in bytes."""
        self.source = source
        self.limit = limit
        self.device = device
        self.bytes = 0
        self.peak_bytes = 0
        self._regions: list[Region] = []

    def __iter__(self) -> Iterator[Region]:
        return iter(self._regions)

    @property
    def available(self) -> int:
        """The bytes that may still be taken within the limit."""
        return self.limit - self.bytes

    def check_alignment(self, alignment: int, most: int | None = None) -> None:
        """Raises `ValueError` if `alignment` is no power of two, or above `most`."""
        most = self.source.max_alignment if most is None else most
        if alignment.bit_count() != 1 or not 1 <= alignment <= most:
            raise ValueError(
                f"alignment is {alignment}, expected a power of two up to {most}"
            )

    def take(self, size: int, alignment: int, merge: bool = False) -> Region | None:
        """Takes a new region; None if it would exceed the limit or the source has none.

        With `merge`, a region that begins where another ends becomes a part of that
        region, if the source allows it. The return value is the new part in this case,
        too.
        """
        if size > self.available:
            return None
        found = self.source.allocate(size, alignment)
        if found is None:
            return None
        region = Region(*found)
        self.bytes += region.size
        self.peak_bytes = max(self.peak_bytes, self.bytes)
        place = bisect_left(self._regions, region.address, key=lambda r: r.address)
        before = self._regions[place - 1] if place else None
        if (
            merge
            and self.source.supports_coalescing
            and before
            and before.address + before.size == region.address
        ):
            before.size += region.size
        else:
            self._regions.insert(place, region)
        return region

    def give_back(self, region: Region) -> None:
        self._regions.remove(region)
        self.bytes -= region.size
        self.source.free(region.address, region.size)
