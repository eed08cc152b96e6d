"""Buddies: blocks of powers of two, as in XDL (`xdl/core/framework`, Buddy).

A region of `allocate_size` bytes is halved as often as needed. A freed block merges
with the other half, its buddy, when that is free, too. A request is rounded up to a
power of two and gets the first place, by region in order of creation and then by
address, where a block of at least that size is free. XDL finds this place in a tree of
bit masks over the region. The sorted lists of free blocks by size, which this file
uses, give the same place.

Unlike XDL's, it refuses to free a block twice, or at an address inside a block.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

from .base import Allocator
from .regions import Region, Regions
from .report import AllocatorBlock

_NOWHERE = 1 << 80
"""A sentinel at the end of each list of places."""


@dataclass(eq=False, slots=True)
class BuddyBlock(AllocatorBlock):
    place: int = 0
    """The address if the regions lay one after the other, in order of creation."""
    level: int = 0
    """The binary logarithm of the size in units of `block_size`."""


class Buddy(Allocator[BuddyBlock]):
    """Allocates powers of two. Regions are kept until `Regions` itself is deleted.

    Args:
        allocate_size: bytes of a region, a power of two; no request may be larger.
        block_size: bytes of the smallest block, a smaller power of two.
    """

    name = "buddy"

    def __init__(
        self,
        regions: Regions,
        *,
        allocate_size: int = 1 << 30,
        block_size: int = 16 << 10,
        retry_seconds: float = 0.0,
    ):
        super().__init__(regions, retry_seconds)
        if allocate_size.bit_count() != 1 or block_size.bit_count() != 1:
            raise ValueError(
                f"allocate_size is {allocate_size} and block_size {block_size}, "
                "expected powers of two"
            )
        if not 0 < block_size < allocate_size:
            raise ValueError(
                f"block_size is {block_size}, expected 1 to {allocate_size - 1}: less "
                "than allocate_size"
            )
        self._allocate_size = allocate_size
        self._block_size = block_size
        self._alignment = min(allocate_size, regions.source.max_alignment)
        self._top = (allocate_size // block_size).bit_length() - 1
        # The places of free blocks by level, ascending.
        self._free = [[_NOWHERE] for _ in range(self._top + 1)]
        self._firsts = [_NOWHERE] * (self._top + 1)
        self._own: list[Region] = []  # in order of creation

    def place(self, size: int, alignment: int, freed_before: int) -> BuddyBlock | None:
        if alignment > self._block_size:
            self.regions.check_alignment(alignment, self._alignment)
        blocks = -(-max(size, alignment) // self._block_size)
        wanted = (blocks - 1).bit_length()
        if wanted > self._top:
            raise ValueError(
                f"{size} bytes requested, expected at most {self._allocate_size}: the "
                "allocate_size of the allocator"
            )
        firsts = self._firsts[wanted:]
        place = min(firsts)
        if place == _NOWHERE:
            return self.place(size, alignment, 0) if self._extend() else None
        level = wanted + firsts.index(place)
        self._remove(level, 0)
        while level > wanted:
            level -= 1
            self._insert(level, place + (self._block_size << level))
        block = BuddyBlock(self._address(place), self._block_size << wanted)
        block.place = place
        block.level = wanted
        return block

    def _extend(self) -> bool:
        region = self.regions.take(self._allocate_size, self._alignment)
        if region is None:
            return False
        self._insert(self._top, len(self._own) * self._allocate_size)
        self._own.append(region)
        return True

    def _insert(self, level: int, place: int) -> None:
        insort(self._free[level], place)
        if place < self._firsts[level]:
            self._firsts[level] = place

    def _remove(self, level: int, index: int) -> None:
        places = self._free[level]
        del places[index]
        self._firsts[level] = places[0]

    def _address(self, place: int) -> int:
        number, offset = divmod(place, self._allocate_size)
        return self._own[number].address + offset

    def release(self, block: BuddyBlock) -> None:
        place, level = block.place, block.level
        while level < self._top:
            places = self._free[level]
            buddy = place ^ (self._block_size << level)
            index = bisect_left(places, buddy)
            if places[index] != buddy:
                break
            self._remove(level, index)
            place = min(place, buddy)
            level += 1
        self._insert(level, place)

    def free_blocks(self) -> Iterable[AllocatorBlock]:
        for level, places in enumerate(self._free):
            for place in places[:-1]:
                yield AllocatorBlock(self._address(place), self._block_size << level)
