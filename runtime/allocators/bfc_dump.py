"""Dumps of `BFC`: its chunks, by bins of sizes, as TensorFlow's allocator has them."""

from dataclasses import dataclass, field

from .report import AllocatorBlock, Dump

GRAIN = 256
"""All sizes are multiples of this number of bytes."""

BINS = 21


def bin_of(size: int) -> int:
    """The bin of a size. Bin b has the sizes from 256 << b to below 256 << (b + 1); the
    last bin has all larger sizes."""
    return min((max(size, GRAIN) // GRAIN).bit_length() - 1, BINS - 1)


@dataclass(frozen=True)
class Bin:
    """The number and the bytes of the chunks whose size is in one bin."""

    chunks_in_bin: int = 0
    bytes_in_bin: int = 0
    chunks_in_use: int = 0
    bytes_in_use: int = 0
    requested_in_use: int = 0


@dataclass(frozen=True)
class BFCDump(Dump):
    next_region_bytes: int = 0
    """The minimum bytes of the next region, if the limit allows."""
    stamped: list[int] = field(default_factory=list[int])
    """The queue: addresses of chunks that were freed with a stamp. Some may be in use
    again."""

    def bins(self) -> dict[int, Bin]:
        """The bins that have chunks, by number."""
        found: dict[int, list[AllocatorBlock]] = {}
        for block in self.blocks:
            found.setdefault(bin_of(block.size), []).append(block)
        return {number: _bin(found[number]) for number in sorted(found)}


def _bin(blocks: list[AllocatorBlock]) -> Bin:
    used = [block for block in blocks if block.id]
    return Bin(
        len(blocks),
        sum(block.size for block in blocks),
        len(used),
        sum(block.size for block in used),
        sum(block.requested for block in used),
    )
