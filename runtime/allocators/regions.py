"""Regions: the memory that an allocator takes from its sub-allocator, up to a limit."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class SubAllocator(Protocol):
    """Where regions come from. Calls to it are never made by two threads at once."""

    @property
    def supports_coalescing(self) -> bool:
        """Whether regions that touch may be used, and freed, as one."""
        ...

    @property
    def max_alignment(self) -> int:
        """The largest power of two that addresses say the truth about."""
        ...

    def allocate(self, size: int, alignment: int) -> tuple[int, int] | None:
        """Address and size of a new region: at least `size` bytes, at a multiple of
        `alignment`. None if it cannot be had."""
        ...

    def free(self, address: int, size: int) -> None:
        """Takes a region back. Nobody uses it, not even a device's queued work."""
        ...


@dataclass(eq=False)
class Region:
    address: int
    size: int


class Regions:
    """The regions of one allocator (or of several with one limit), by address."""

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
        """Bytes up to the limit."""
        return self.limit - self.bytes

    def check_alignment(self, alignment: int, most: int | None = None) -> None:
        """Raises `ValueError` if the alignment is no power of two, or above `most`."""
        most = self.source.max_alignment if most is None else most
        if alignment.bit_count() != 1 or not 1 <= alignment <= most:
            raise ValueError(
                f"alignment is {alignment}, expected a power of two up to {most}"
            )

    def take(self, size: int, alignment: int, merge: bool = False) -> Region | None:
        """A new region, or None if that is over the limit or the source has none.

        With `merge`, one that begins where another ends becomes part of that, if the
        source allows it; what is returned is the new part all the same.
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
