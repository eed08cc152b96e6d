"""A second implementation of TensorFlow's BFC allocator, with TensorFlow's defects.

Tests compare `tensorplan.runtime.allocators.BFC` with it, step by step. It searches for
chunks in lists, as it need not be fast. The queue of chunks that were freed with a
stamp also holds dead chunks, as TensorFlow's queue holds stale handles.
"""

from dataclasses import dataclass, field

import numpy as np
from fake_memory import FakeMemory

GRAIN = 256
MOST_WASTE = 128 << 20


@dataclass(eq=False)
class Chunk:
    address: int
    size: int
    id: int = 0  # 0: free
    stamp: int = 0
    is_dead: bool = False


@dataclass(eq=False)
class Region:
    address: int
    size: int
    chunks: list[Chunk] = field(default_factory=list[Chunk])


class TensorFlowBFC:
    """Best fit with coalescing. If `is_timed`, each free gets a stamp.

    `is_defective` is set when the allocator drops a stamped chunk from the queue,
    leaves free neighbors unmerged, or releases a region with a queued chunk (TensorFlow
    crashes then). From then on, other allocators need not behave the same.
    """

    def __init__(
        self,
        memory: FakeMemory,
        limit: int,
        *,
        grows: bool = True,
        collects: bool = False,
        is_timed: bool = False,
        most_waste: int = MOST_WASTE,
    ):
        self.memory, self.limit = memory, limit
        self.collects, self.is_timed = collects, is_timed
        self.most_waste = most_waste
        self.regions: list[Region] = []
        self.queue: list[Chunk] = []
        self.next_region = _round(min(limit, 2 << 20) if grows else limit)
        self.last_id = self.stamp = self.frontier = 0
        self.has_backed_off = False
        self.forced_merges = 0
        self.is_defective = False

    # For callers

    def allocate(self, size: int, freed_before: int = 0) -> int | None:
        if size == 0:
            return None
        rounded = _round(size)
        self._merge_queued(0)
        self._look_for_defects()
        found = self._take(rounded, freed_before)
        if found is None and self._extend(rounded):
            found = self._take(rounded, freed_before)
        if found is None and not freed_before and self.queue:
            self.forced_merges += 1
            if self._merge_queued(rounded):
                found = self._take(rounded, freed_before)
        if found is None and self.collect(rounded) and self._extend(rounded):
            found = self._take(rounded, freed_before)
        self._look_for_defects()
        return found

    def free(self, address: int) -> None:
        region, place = self._at(address)
        chunk = region.chunks[place]
        chunk.id = 0
        if not self.is_timed:
            self._coalesce(chunk, ignore_stamps=False)
            return
        self.stamp += 1
        chunk.stamp = self.stamp
        self.queue.append(chunk)

    def collect(self, size: int) -> bool:
        """Frees regions without used chunks if `size` bytes become available by it."""
        unused = [r for r in self.regions if not any(c.id for c in r.chunks)]
        total = sum(region.size for region in unused)
        available = self.limit - sum(region.size for region in self.regions)
        if not self.collects or not total or size > available + total:
            return False
        for region in unused:
            self.regions.remove(region)
            self.memory.free(region.address, region.size)
            for chunk in region.chunks:
                chunk.is_dead = True
                self.is_defective |= chunk in self.queue
        return True

    def set_safe_frontier(self, stamp: int) -> None:
        self.frontier = max(self.frontier, stamp)

    # State

    def chunks(self) -> list[Chunk]:
        return [chunk for region in self.regions for chunk in region.chunks]

    # Private

    def _look_for_defects(self) -> None:
        queued = {id(chunk) for chunk in self.queue}
        for region in self.regions:
            for chunk, after in zip(region.chunks, region.chunks[1:], strict=False):
                if not (chunk.id or after.id or chunk.stamp or after.stamp):
                    self.is_defective = True
            for chunk in region.chunks:
                if chunk.stamp and not chunk.id and id(chunk) not in queued:
                    self.is_defective = True

    def _at(self, address: int) -> tuple[Region, int]:
        for region in self.regions:
            for place, chunk in enumerate(region.chunks):
                if chunk.address == address:
                    return region, place
        raise AssertionError(f"no chunk at {address}")

    def _take(self, size: int, freed_before: int) -> int | None:
        free = [
            chunk
            for chunk in self.chunks()
            if not chunk.id
            and chunk.size >= size
            and not 0 < freed_before < chunk.stamp
        ]
        if not free:
            return None
        chunk = min(free, key=lambda chunk: (chunk.size, chunk.address))
        if chunk.size >= 2 * size or chunk.size - size >= self.most_waste:
            region, place = self._at(chunk.address)
            rest = Chunk(chunk.address + size, chunk.size - size, stamp=chunk.stamp)
            region.chunks.insert(place + 1, rest)
            chunk.size = size
        self.last_id = chunk.id = self.last_id + 1
        return chunk.address

    def _coalesce(self, chunk: Chunk, ignore_stamps: bool) -> Chunk:
        """Merges `chunk` with its free successor, then into its free predecessor."""
        region, place = self._at(chunk.address)

        def is_free(place: int) -> bool:
            if not 0 <= place < len(region.chunks):
                return False
            other = region.chunks[place]
            return not other.id and (ignore_stamps or not other.stamp)

        if is_free(place + 1):
            self._merge(region, place)
        if is_free(place - 1):
            self._merge(region, place - 1)
            return region.chunks[place - 1]
        return chunk

    def _merge(self, region: Region, place: int) -> None:
        after = region.chunks.pop(place + 1)
        chunk = region.chunks[place]
        chunk.size += after.size
        chunk.stamp = max(chunk.stamp, after.stamp)
        after.is_dead = True

    def _merge_queued(self, needed: int) -> bool:
        """Merges queued chunks that are safe, or if `needed`, any queued chunks until
        one has `needed` bytes. Returns whether one has."""
        to_merge: list[int] = []
        waiting: list[Chunk] = []
        for chunk in self.queue:
            if chunk.is_dead or chunk.id:
                continue
            if chunk.stamp < self.frontier:
                chunk.stamp = 0
            if needed or not chunk.stamp:
                to_merge.append(chunk.address)
            else:
                waiting.append(chunk)
        self.queue = waiting
        is_done = False
        for address in to_merge:
            found = [chunk for chunk in self.chunks() if chunk.address == address]
            if not found:
                continue
            (chunk,) = found
            if is_done:
                self.queue.append(chunk)
                continue
            merged = self._coalesce(chunk, ignore_stamps=needed > 0)
            if needed and merged is not chunk and merged.stamp:
                self.queue.append(merged)
            is_done = needed > 0 and merged.size >= needed
        return is_done

    def _extend(self, size: int) -> bool:
        available = self.limit - sum(region.size for region in self.regions)
        available = available // GRAIN * GRAIN
        if size > available:
            return False
        was_enough = size <= self.next_region
        while size > self.next_region:
            self.next_region *= 2
        wanted = min(self.next_region, available)
        found = self.memory.allocate(wanted, GRAIN)
        if found is None and not self.has_backed_off:
            self.has_backed_off = True
            while not found and (wanted := _nine_tenths(wanted)) >= size:
                found = self.memory.allocate(wanted, GRAIN)
        if found is None:
            return False
        if was_enough:
            self.next_region *= 2
        address, received = found
        self._add(Region(address, received, [Chunk(address, received)]))
        return True

    def _add(self, new: Region) -> None:
        (chunk,) = new.chunks
        ends = {region.address + region.size: region for region in self.regions}
        before = ends.get(new.address)
        if before and self.memory.supports_coalescing:
            before.size += new.size
            before.chunks.append(chunk)
        else:
            self.regions.append(new)
            self.regions.sort(key=lambda region: region.address)
        self._coalesce(chunk, ignore_stamps=False)


def _round(size: int) -> int:
    return -(-size // GRAIN) * GRAIN


def _nine_tenths(size: int) -> int:
    return _round(int(np.float32(size) * np.float32(0.9)))
