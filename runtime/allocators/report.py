"""Reports of allocators: blocks, statistics, dumps, and errors when memory runs out."""

from collections.abc import Sequence
from dataclasses import dataclass

_HOLDERS = 5  # in messages


@dataclass(eq=False, slots=True)
class AllocatorBlock:
    """A part of a region: allocated, or free."""

    address: int
    size: int
    """The bytes that the block takes."""

    requested: int = 0
    """The bytes that were requested."""

    id: int = 0
    """The number of the allocation, from 1; 0 if the block is free."""

    label: str = ""
    """The purpose of the block, as the caller states it."""

    freed_at: int = 0
    """The stamp of a free whose pending work may not be done (see bfc.py), or 0."""


@dataclass(frozen=True)
class Statistics:
    """Counts and bytes, under TensorFlow's names (AllocatorStats)."""

    bytes_limit: int
    num_allocs: int
    bytes_in_use: int
    peak_bytes_in_use: int
    largest_alloc_size: int
    pool_bytes: int
    """The bytes in regions."""
    peak_pool_bytes: int
    largest_free_block_bytes: int

    @property
    def free_bytes(self) -> int:
        """The bytes that are in regions but in no allocated block."""
        return self.pool_bytes - self.bytes_in_use

    @property
    def fragmentation(self) -> float:
        """The fraction of the free bytes that is outside the largest free block."""
        if not self.free_bytes:
            return 0.0
        return (self.free_bytes - self.largest_free_block_bytes) / self.free_bytes


@dataclass(frozen=True)
class Dump:
    """Everything that an allocator holds; `dataclasses.asdict` prepares it for JSON."""

    allocator: str
    device: str
    statistics: Statistics
    regions: Sequence[tuple[int, int]]
    """The address and the size of each region, in ascending order."""
    blocks: Sequence[AllocatorBlock]
    """In ascending order of addresses."""

    def occupancy(self, width: int = 100) -> str:
        """The regions side by side, from left to right, as one line of characters.

        `*` is requested memory, `x` is waste in allocated blocks, `_` is free. Empty
        without regions.
        """
        total = sum(size for _, size in self.regions)
        picture = ["_"] * (width if total else 0)

        def draw(start: int, size: int, character: str) -> None:
            if size:
                first = start * width // total
                last = (start + size - 1) * width // total
                picture[first : last + 1] = character * (last + 1 - first)

        blocks = iter(self.blocks)
        block = next(blocks, None)
        left = 0
        for address, size in self.regions:
            while block and block.address < address + size:
                if block.id:
                    start = left + block.address - address
                    waste = block.size - block.requested
                    draw(start + block.requested, waste, "x")
                    draw(start, block.requested, "*")
                block = next(blocks, None)
            left += size
        return "".join(picture)


class OutOfMemoryError(MemoryError):
    """No block of the size is available. The message names device, sizes, holders."""

    def __init__(self, device: str, size: int, dump: Dump):
        statistics = dump.statistics
        held = sorted(
            (block for block in dump.blocks if block.id),
            key=lambda block: (-block.size, block.id),
        )
        holders = ", ".join(
            f"{block.label or f'allocation {block.id}'} {block.size}"
            for block in held[:_HOLDERS]
        )
        super().__init__(
            f"out of memory on {device}: {size} bytes requested, "
            f"{statistics.free_bytes} free in the pool of {statistics.pool_bytes} "
            f"(largest block {statistics.largest_free_block_bytes}, fragmentation "
            f"{statistics.fragmentation:.2f}), which may grow by "
            f"{statistics.bytes_limit - statistics.pool_bytes}; "
            f"{statistics.bytes_in_use} in use, the biggest: {holders or 'none'}"
        )
        self.device = device
        self.size = size
        self.dump = dump
