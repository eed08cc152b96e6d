"""A sub-allocator without memory, and the invariants of allocators that use it."""

from typing import Any

from tensorplan.runtime.allocators import Allocator, BFCDump


class FakeMemory:
    """Returns increasing addresses and records all calls."""

    def __init__(
        self,
        gap: int = 0,
        stride: int = 1,
        physical: int | None = None,
        extra: int = 0,
        supports_coalescing: bool = False,
        max_alignment: int = 1 << 60,
    ):
        """Regions start at multiples of `stride`, at least `gap` bytes apart, and have
        `extra` bytes more than requested. `physical` limits the bytes in use."""
        self.supports_coalescing = supports_coalescing
        self.max_alignment = max_alignment
        self.gap, self.stride = gap, stride
        self.physical, self.extra = physical, extra
        self.next = 0
        self.held = 0
        self.calls: list[dict[str, Any]] = []

    def allocate(self, size: int, alignment: int) -> tuple[int, int] | None:
        if self.physical is not None and self.held + size > self.physical:
            self.calls.append({"size": size, "ok": False})
            return None
        address, received = self.next, size + self.extra
        self.next += -(-(received + self.gap) // self.stride) * self.stride
        self.held += received
        self.calls.append(
            {"size": size, "ok": True, "addr": address, "received": received}
        )
        return address, received

    def free(self, address: int, size: int) -> None:
        self.held -= size
        self.calls.append({"free": size, "addr": address})

    def new_calls(self) -> list[dict[str, Any]]:
        calls, self.calls = self.calls, []
        return calls


def check_sound(allocator: Allocator[Any]) -> None:
    """Asserts that blocks tile the regions without gaps or overlaps, and that the
    statistics agree with them."""
    dump = allocator.dump()
    blocks = iter(dump.blocks)
    for address, size in dump.regions:
        end = address
        while end < address + size:
            block = next(blocks)
            assert block.address == end
            end += block.size
        assert end == address + size
    assert next(blocks, None) is None
    statistics = dump.statistics
    assert statistics.bytes_in_use == sum(b.size for b in dump.blocks if b.id)
    assert statistics.pool_bytes == sum(size for _, size in dump.regions)
    assert statistics.largest_free_block_bytes == max(
        (block.size for block in dump.blocks if not block.id), default=0
    )
    if isinstance(dump, BFCDump):
        waiting = {b.address for b in dump.blocks if b.freed_at and not b.id}
        assert waiting <= set(dump.stamped)
