"""Best fit with coalescing: the allocator of TensorFlow (`tsl::BFCAllocator`).

Requests are rounded up to 256 bytes and get the smallest free chunk that is large
enough; among equal sizes, the one with the lowest address. The rest of a chunk is split
off if it is at least as large as the request or as a limit; otherwise it is wasted. A
freed chunk is merged with its free neighbors. The allocator takes regions as needed,
each twice as large as the last.

TensorFlow keeps 21 bins by size, each ordered by (size, address). They are consecutive
ranges of one order, so one sorted list finds the same chunks. Only reports have bins.

Frees can be stamped, for devices that execute a queue. With a `clock`, each free takes
a stamp from it, and the chunk is not merged before `set_safe_frontier` says that work
with that stamp is done. An allocation may take a stamped chunk, as its own work is
queued later; with `freed_before`, it takes only chunks with this stamp or an earlier
one.

If nothing else can serve a request, the allocator merges stamped chunks one by one
before they are safe, until one of them is large enough (a forced merge).

Three defects of the original are fixed here. Its queue of stamped chunks holds handles
that dangle when a region is given back; this queue holds addresses, which are looked up
when needed. The original does not queue a part that is split off a stamped chunk, nor a
chunk that a forced merge leaves at its address, and these never merge; here every free
stamped chunk is in the queue. When two neighbors become safe at once, the original
merges them with each other, but not with a free chunk after them.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from .base import Allocator
from .bfc_dump import GRAIN, BFCDump
from .regions import Region, Regions
from .report import AllocatorBlock

_FIRST_REGION = 2 << 20
_MOST_WASTE = 128 << 20
_SHIFT = 64
_ADDRESS = (1 << _SHIFT) - 1


@dataclass(eq=False, slots=True)
class Chunk(AllocatorBlock):
    previous: "Chunk | None" = None
    """The preceding neighbor in the same region."""
    next: "Chunk | None" = None

    @property
    def key(self) -> int:
        """Orders chunks by size, then by address."""
        return self.size << _SHIFT | self.address


class BFC(Allocator[Chunk]):
    """Best fit with coalescing.

    Args:
        allow_growth: start with 2 MiB and double; else take the whole limit at once.
        garbage_collection: return regions without a used chunk to make room.
        fragmentation_fraction: split off a rest of at least this part of the limit;
            with 0, a rest of at least 128 MiB.
        back_off_once: after the sub-allocator has refused a region, try smaller ones
            only the first time (as up to TensorFlow 2.15) instead of each time.
        clock: returns ascending stamps for frees, from 1.
    """

    name = "bfc"

    def __init__(
        self,
        regions: Regions,
        *,
        allow_growth: bool = True,
        garbage_collection: bool = False,
        fragmentation_fraction: float = 0.0,
        back_off_once: bool = False,
        clock: Callable[[], int] | None = None,
        retry_seconds: float = 0.0,
    ):
        super().__init__(regions, retry_seconds)
        limit = regions.limit
        self._garbage_collection = garbage_collection
        self._most_waste = _MOST_WASTE
        if fragmentation_fraction > 0:
            self._most_waste = max(1, int(fragmentation_fraction * limit))
        self._may_back_off = True
        self._back_off_once = back_off_once
        self._clock = clock
        self._next_region = _round(min(limit, _FIRST_REGION) if allow_growth else limit)
        self._chunks: dict[int, Chunk] = {}
        self._free: list[int] = []  # keys of free chunks, ascending
        self._stamped: deque[int] = deque()
        self._frontier = 0

    # Allocation

    def place(self, size: int, alignment: int, freed_before: int) -> Chunk | None:
        if self._stamped:
            self._merge_safe()
        rounded = (size + GRAIN - 1) & -GRAIN
        chunk = self._find(rounded, alignment, freed_before)
        if chunk:
            return chunk
        if self._extend(rounded, alignment):
            return self._find(rounded, alignment, freed_before)
        if not freed_before and self._stamped:
            self._merge_unsafe(rounded, alignment)
            chunk = self._find(rounded, alignment, 0)
            if chunk:
                return chunk
        if self._collect(rounded, freed_before) and self._extend(rounded, alignment):
            return self._find(rounded, alignment, freed_before)
        return None

    def _find(self, size: int, alignment: int, freed_before: int) -> Chunk | None:
        """Takes the best chunk, if any, from the free chunks, and splits it."""
        free = self._free
        place = bisect_left(free, size << _SHIFT)
        while place < len(free):
            chunk = self._chunks[free[place] & _ADDRESS]
            lead = _lead(chunk, alignment)
            if lead + size <= chunk.size and not 0 < freed_before < chunk.freed_at:
                break
            place += 1
        else:
            return None
        del free[place]
        if lead:
            before, chunk = chunk, self._split(chunk, lead)
            insort(free, before.key)
        rest = chunk.size - size
        if rest >= size or rest >= self._most_waste:
            insort(free, self._split(chunk, size).key)
        return chunk

    def _split(self, chunk: Chunk, size: int) -> Chunk:
        """Shortens the chunk; returns the rest of it, which is in no list yet."""
        rest = Chunk(chunk.address + size, chunk.size - size)
        rest.previous = chunk
        rest.next = chunk.next
        if chunk.next:
            chunk.next.previous = rest
        chunk.next = rest
        chunk.size = size
        self._chunks[rest.address] = rest
        if chunk.freed_at:
            rest.freed_at = chunk.freed_at
            self._stamped.append(rest.address)
        return rest

    # Freeing

    def release(self, block: Chunk) -> None:
        block.freed_at = self._clock() if self._clock else 0
        if block.freed_at:
            self._stamped.append(block.address)
        else:
            block = self._coalesce(block)
        insort(self._free, block.key)

    def _coalesce(self, chunk: Chunk, ignore_stamps: bool = False) -> Chunk:
        """Merges a chunk that is in no list with its free neighbors."""
        after, before = chunk.next, chunk.previous
        if after and not after.id and (ignore_stamps or not after.freed_at):
            self._unlist(after)
            self._absorb(chunk, after)
        if before and not before.id and (ignore_stamps or not before.freed_at):
            self._unlist(before)
            self._absorb(before, chunk)
            return before
        return chunk

    def _absorb(self, chunk: Chunk, after: Chunk) -> None:
        chunk.size += after.size
        chunk.next = after.next
        if after.next:
            after.next.previous = chunk
        if after.freed_at > chunk.freed_at:
            chunk.freed_at = after.freed_at
        del self._chunks[after.address]

    def _unlist(self, chunk: Chunk) -> None:
        del self._free[bisect_left(self._free, chunk.key)]

    # Stamps

    def set_safe_frontier(self, stamp: int) -> None:
        """Declares that all work on memory freed with an earlier stamp is done. A lower
        stamp than the last has no effect."""
        with self._lock:
            if stamp > self._frontier:
                self._frontier = stamp
                self._freed.notify_all()

    def _merge_safe(self) -> None:
        """Merges the queued chunks that are safe; drops chunks in use again."""
        safe: list[int] = []
        for _ in range(len(self._stamped)):
            address = self._stamped.popleft()
            chunk = self._chunks.get(address)
            if chunk is None or chunk.id:
                continue
            if chunk.freed_at < self._frontier:
                chunk.freed_at = 0
            if chunk.freed_at:
                self._stamped.append(address)
            else:
                safe.append(address)
        for address in safe:
            if chunk := self._chunks.get(address):
                self._unlist(chunk)
                size = 0
                while size != chunk.size:  # several neighbors may have become safe
                    size = chunk.size
                    chunk = self._coalesce(chunk)
                insort(self._free, chunk.key)

    def _merge_unsafe(self, size: int, alignment: int) -> None:
        """Merges queued chunks, one after the other, until one is large enough.

        A chunk that starts at another address after it was merged is queued again. A
        chunk that is large enough at its queued address is not: the caller takes it
        from there.
        """
        queue, self._stamped = self._stamped, deque()
        unmoved: dict[int, None] = {}
        is_done = False
        for address in queue:
            chunk = self._chunks.get(address)
            if chunk is None or chunk.id:
                continue
            if is_done:
                self._stamped.append(address)
                continue
            self._unlist(chunk)
            chunk = self._coalesce(chunk, ignore_stamps=True)
            insort(self._free, chunk.key)
            lead = _lead(chunk, alignment)
            is_done = lead + size <= chunk.size
            if chunk.address != address:
                self._stamped.append(chunk.address)
            elif lead or not is_done:
                unmoved[address] = None
        queued = set(self._stamped)
        self._stamped += [a for a in unmoved if a in self._chunks and a not in queued]

    # Regions

    def _extend(self, size: int, alignment: int) -> bool:
        """Takes a new region of at least `size` bytes."""
        available = self.regions.available // GRAIN * GRAIN
        if size > available:
            return False
        was_enough = size <= self._next_region
        while size > self._next_region:
            self._next_region *= 2
        alignment = max(alignment, GRAIN)
        wanted = min(self._next_region, available)
        region = self.regions.take(wanted, alignment, merge=True)
        if region is None and self._may_back_off:
            self._may_back_off = not self._back_off_once
            while region is None and (wanted := _nine_tenths(wanted)) >= size:
                region = self.regions.take(wanted, alignment, merge=True)
        if region is None:
            return False
        if was_enough:
            self._next_region *= 2
        self._add(region)
        return True

    def _add(self, new: Region) -> None:
        """Makes a new region, or a new part of a region, a free chunk."""
        chunk = self._chunks[new.address] = Chunk(new.address, new.size)
        whole = next(r for r in self.regions if r.address <= new.address < _end(r))
        if whole is not new:
            last = self._chunks[whole.address]
            while last.next:
                last = last.next
            last.next = chunk
            chunk.previous = last
        insort(self._free, self._coalesce(chunk).key)

    def _collect(self, size: int, freed_before: int) -> bool:
        """Returns all unused regions to the sub-allocator if that frees room for `size`
        bytes.

        Keeps regions that `freed_before` forbids to use.
        """
        if not self._garbage_collection:
            return False
        regions = [r for r in self.regions if self._is_unused(r, freed_before)]
        total = sum(region.size for region in regions)
        if not total or size > self.regions.available + total:
            return False
        for region in regions:
            chunk: Chunk | None = self._chunks[region.address]
            while chunk:
                self._unlist(chunk)
                del self._chunks[chunk.address]
                chunk = chunk.next
            self.regions.give_back(region)
        return True

    def _is_unused(self, region: Region, freed_before: int) -> bool:
        chunk: Chunk | None = self._chunks[region.address]
        while chunk:
            if chunk.id or 0 < freed_before < chunk.freed_at:
                return False
            chunk = chunk.next
        return True

    def collect(self, size: int = 0) -> bool:
        """Returns unused regions to the sub-allocator if `garbage_collection` is on and
        this frees room for `size` bytes. Returns whether it did."""
        with self._lock:
            return self._collect(size, 0)

    # Reports

    def largest_free(self) -> int:
        return self._free[-1] >> _SHIFT if self._free else 0

    def free_blocks(self) -> Iterable[AllocatorBlock]:
        for key in self._free:
            chunk = self._chunks[key & _ADDRESS]
            yield AllocatorBlock(chunk.address, chunk.size, freed_at=chunk.freed_at)

    def dump(self) -> BFCDump:
        with self._lock:
            return self._dump()

    def _dump(self) -> BFCDump:
        dump = super()._dump()
        return BFCDump(
            **vars(dump),
            next_region_bytes=self._next_region,
            stamped=list(self._stamped),
        )


def _end(region: Region) -> int:
    return region.address + region.size


def _lead(chunk: Chunk, alignment: int) -> int:
    """The bytes from the chunk's start to its first aligned address."""
    return -chunk.address & (alignment - 1)


def _round(size: int) -> int:
    return -(-size // GRAIN) * GRAIN


def _nine_tenths(size: int) -> int:
    """Nine tenths of `size`, rounded up to the grain, but less than `size`. Computed in
    single precision, as in TensorFlow, which does not terminate below ten grains."""
    return min(_round(int(np.float32(size) * np.float32(0.9))), size - GRAIN)
