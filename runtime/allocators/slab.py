"""Slabs: blocks of up to four grains in bitmaps; XDL's (`xdl/core/framework`, Slab).

A region is divided into equal segments, which take requests in turn, and a segment into
chunks of 64 grains of `block_size` bytes. Each segment lists its chunks by their
longest run of free grains (4 stands for more), most recently used first. A request
takes the lowest run in the first chunk that has one, searching from the list of the
shortest sufficient runs upwards.

Unlike XDL's, it refuses to free a block twice, or at an address inside a block.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from .base import Allocator
from .regions import Region, Regions
from .report import AllocatorBlock

MOST_GRAINS = 4
_GRAINS = 64
_ALL = (1 << _GRAINS) - 1
_RUNS = [(1 << grains) - 1 for grains in range(MOST_GRAINS + 1)]


@dataclass(eq=False, slots=True)
class SlabChunk:
    address: int
    lists: "list[OrderedDict[SlabChunk, None]]"
    """The lists of its segment, by longest run; the last key of each is its head."""
    free: int = _ALL
    """Bit i says whether grain i is free."""
    run: int = MOST_GRAINS
    """The index of the list that the chunk is in."""

    def relist(self) -> None:
        """Moves the chunk to the head of the list that it belongs to."""
        one = self.free
        two = one & one >> 1
        if two & two >> 2:
            run = 4
        elif two:
            run = 3 if two & two >> 1 else 2
        else:
            run = 1 if one else 0
        if run != self.run:
            del self.lists[self.run][self]
            self.run = run
            self.lists[run][self] = None
        else:
            self.lists[run].move_to_end(self)


@dataclass(eq=False, slots=True)
class SlabBlock(AllocatorBlock):
    chunk: SlabChunk | None = None
    mask: int = 0
    """The grains of the block in the chunk."""


class Slab(Allocator[SlabBlock]):
    """Allocates from slabs. Regions are kept until `Regions` itself is deleted.

    Args:
        allocate_size: bytes of a region, a multiple of `segments * block_size * 64`.
        segments: the number of parts that take requests in turn.
        block_size: bytes of a grain; no request may be larger than four grains.
    """

    name = "slab"

    def __init__(
        self,
        regions: Regions,
        *,
        allocate_size: int = 1 << 30,
        segments: int = 32,
        block_size: int = 4 << 10,
        retry_seconds: float = 0.0,
    ):
        super().__init__(regions, retry_seconds)
        if segments < 1 or block_size < 1:
            raise ValueError(
                f"segments is {segments} and block_size {block_size}, expected 1 or "
                "more"
            )
        if allocate_size < 1 or allocate_size % (segments * block_size * _GRAINS):
            raise ValueError(
                f"allocate_size is {allocate_size}, expected a multiple of "
                f"{segments * block_size * _GRAINS}: segments * block_size * {_GRAINS}"
            )
        self._allocate_size = allocate_size
        self._segment_size = allocate_size // segments
        self._block_size = block_size
        self._own: list[Region] = []
        # Not `dict`, which finds its last key slowly after deletions.
        self._lists: list[list[OrderedDict[SlabChunk, None]]] = [
            [OrderedDict() for _ in range(MOST_GRAINS + 1)] for _ in range(segments)
        ]
        self._opened = [0] * segments  # regions that have been opened for each
        self._turn = 0
        # The alignments of grains and of chunks.
        self._grain_alignment = block_size & -block_size
        self._alignment = min(
            self._grain_alignment * _GRAINS, regions.source.max_alignment
        )

    def place(self, size: int, alignment: int, freed_before: int) -> SlabBlock | None:
        grains = -(-size // self._block_size)
        if grains > MOST_GRAINS:
            raise ValueError(
                f"{size} bytes requested, expected at most "
                f"{MOST_GRAINS * self._block_size}: {MOST_GRAINS} times the block_size "
                "of the allocator"
            )
        places = _ALL
        if alignment > self._grain_alignment:
            self.regions.check_alignment(alignment, self._alignment)
            places = _multiples(alignment // self._grain_alignment)
        segment = self._turn
        self._turn = (segment + 1) % len(self._lists)
        block = self._take(segment, grains, places)
        if block:
            return block
        for other in (segment, *range(len(self._lists))):
            if block := self._take(other, grains, places):
                return block
            if self._open(other):
                return self._take(other, grains, places)
        return None

    def _take(self, segment: int, grains: int, places: int) -> SlabBlock | None:
        for chunks in self._lists[segment][grains:]:
            for chunk in reversed(chunks):
                starts = free = chunk.free
                if grains > 1:
                    starts &= free >> 1
                    if grains > 2:
                        starts &= starts >> 1 if grains == 3 else starts >> 2
                starts &= places
                if not starts:
                    continue
                start = starts & -starts
                mask = start * _RUNS[grains]
                chunk.free = free ^ mask
                chunk.relist()
                size = self._block_size
                address = chunk.address + (start.bit_length() - 1) * size
                block = SlabBlock(address, grains * size)
                block.chunk = chunk
                block.mask = mask
                return block
        return None

    def _open(self, segment: int) -> bool:
        """Adds the segment's part of the next region to the segment."""
        if self._opened[segment] == len(self._own):
            region = self.regions.take(self._allocate_size, self._alignment)
            if region is None:
                return False
            self._own.append(region)
        region = self._own[self._opened[segment]]
        self._opened[segment] += 1
        start = region.address + segment * self._segment_size
        lists = self._lists[segment]
        stride = _GRAINS * self._block_size
        for address in reversed(range(start, start + self._segment_size, stride)):
            lists[MOST_GRAINS][SlabChunk(address, lists)] = None
        return True

    def release(self, block: SlabBlock) -> None:
        chunk = block.chunk
        assert chunk
        chunk.free |= block.mask
        if chunk.run == MOST_GRAINS:
            chunk.lists[MOST_GRAINS].move_to_end(chunk)
        else:
            chunk.relist()

    def free_blocks(self) -> Iterable[AllocatorBlock]:
        for chunk in (c for s in self._lists for chunks in s for c in chunks):
            free, start = chunk.free, 0
            while free:
                start += (gap := (free & -free).bit_length() - 1)
                free >>= gap
                grains = (free + 1 & ~free).bit_length() - 1
                yield AllocatorBlock(
                    chunk.address + start * self._block_size,
                    grains * self._block_size,
                )
                free >>= grains
                start += grains
        for segment, opened in enumerate(self._opened):
            for region in self._own[opened:]:
                start = region.address + segment * self._segment_size
                yield AllocatorBlock(start, self._segment_size)


def _multiples(step: int) -> int:
    """A bit for every grain whose number is a multiple of `step`."""
    return sum(1 << place for place in range(0, _GRAINS, step))
