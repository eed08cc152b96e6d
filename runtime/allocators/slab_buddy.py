"""Slabs for small requests, buddies for larger ones, and regions for the largest.

XDL has this allocator (`xdl/core/framework`, SlabBuddy), and its GPU device uses it
with these defaults.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .base import Allocator
from .buddy import Buddy, BuddyBlock
from .regions import Region, Regions
from .report import AllocatorBlock
from .slab import MOST_GRAINS, Slab, SlabBlock


@dataclass(eq=False, slots=True)
class RegionBlock(AllocatorBlock):
    """A block that is a whole region."""

    region: Region | None = None


class SlabBuddy(Allocator[AllocatorBlock]):
    """Chooses by size: `Slab` below `block_size`, `Buddy` below `allocate_size`, and
    otherwise a separate region, which is returned to the sub-allocator when it is
    freed.

    Where the alignment exceeds the size, the choice depends on the alignment instead.
    """

    name = "slab-buddy"

    def __init__(
        self,
        regions: Regions,
        *,
        allocate_size: int = 1 << 30,
        block_size: int = 16 << 10,
        segments: int = 32,
        retry_seconds: float = 0.0,
    ):
        super().__init__(regions, retry_seconds)
        if block_size % MOST_GRAINS:
            raise ValueError(
                f"block_size is {block_size}, expected a multiple of {MOST_GRAINS}"
            )
        grain = block_size // MOST_GRAINS
        self._allocate_size = allocate_size
        self._block_size = block_size
        self._buddy = Buddy(regions, allocate_size=allocate_size, block_size=block_size)
        self._slab = Slab(
            regions, allocate_size=allocate_size, segments=segments, block_size=grain
        )

    def place(
        self, size: int, alignment: int, freed_before: int
    ) -> AllocatorBlock | None:
        reach = size if size > alignment else alignment
        if reach < self._block_size:
            return self._slab.place(size, alignment, freed_before)
        if reach < self._allocate_size:
            return self._buddy.place(size, alignment, freed_before)
        region = self.regions.take(size, alignment)
        return region and RegionBlock(region.address, region.size, region=region)

    def release(self, block: AllocatorBlock) -> None:
        if isinstance(block, SlabBlock):
            self._slab.release(block)
        elif isinstance(block, BuddyBlock):
            self._buddy.release(block)
        elif isinstance(block, RegionBlock) and block.region:
            self.regions.give_back(block.region)

    def free_blocks(self) -> Iterable[AllocatorBlock]:
        yield from self._slab.free_blocks()
        yield from self._buddy.free_blocks()
