"""Tests `runtime/allocators/`: errors, alignment, reports, threads, and random
histories."""

import contextlib
import dataclasses
import itertools
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_memory import FakeMemory, check_sound
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tensorplan.runtime.allocators import (
    ALLOCATORS,
    BFC,
    NULL,
    Allocator,
    Buddy,
    HostMemory,
    InvalidAddressError,
    OutOfMemoryError,
    Regions,
    Slab,
    SlabBuddy,
)

MIB = 1 << 20


def small_bfc(clock: Callable[[], int] | None = None, **options: Any) -> BFC:
    """A BFC allocator with 16 MiB in separate regions."""
    return BFC(Regions(FakeMemory(), 16 * MIB), clock=clock, **options)


def small_buddy() -> Buddy:
    memory = FakeMemory(stride=1 << 16)
    return Buddy(Regions(memory, 1 << 18), allocate_size=1 << 16, block_size=64)


def small_slab() -> Slab:
    memory = FakeMemory(stride=1 << 16)
    return Slab(
        Regions(memory, 1 << 18), allocate_size=1 << 16, segments=4, block_size=64
    )


def small_slab_buddy() -> SlabBuddy:
    memory = FakeMemory(stride=1 << 16)
    return SlabBuddy(
        Regions(memory, 1 << 18), allocate_size=1 << 15, block_size=256, segments=2
    )


SMALL: dict[str, Callable[[], Allocator[Any]]] = {
    "bfc": small_bfc,
    "buddy": small_buddy,
    "slab": small_slab,
    "slab-buddy": small_slab_buddy,
}
every_allocator = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)


def test_all_allocators_are_tested() -> None:
    assert SMALL.keys() == ALLOCATORS.keys()


# Errors


@every_allocator
def test_wrong_addresses_are_refused(make: Callable[[], Allocator[Any]]) -> None:
    allocator = make()
    a, b = allocator.allocate(200), allocator.allocate(200)
    for address, reason in (
        (a + 8, f"address {a + 8} is inside the block of 256 bytes at {a}"),
        (1 << 40, f"address {1 << 40} is in no region of {allocator.name} on cpu:0"),
        (-8, "address -8 is in no region"),
    ):
        with pytest.raises(InvalidAddressError, match=reason):
            allocator.deallocate(address)
        with pytest.raises(InvalidAddressError, match=reason):
            allocator.block(address)
    allocator.deallocate(a)
    with pytest.raises(InvalidAddressError, match=f"address {a} is free.*twice"):
        allocator.deallocate(a)
    check_sound(allocator)
    assert allocator.block(b).requested == 200
    assert allocator.statistics().bytes_in_use == 256


@every_allocator
def test_empty_requests_take_no_memory(make: Callable[[], Allocator[Any]]) -> None:
    allocator = make()
    assert allocator.allocate(0) == NULL
    allocator.deallocate(NULL)
    allocator.deallocate(NULL)
    assert allocator.statistics().num_allocs == 0
    assert allocator.statistics().pool_bytes == 0
    assert allocator.occupancy() == ""
    with pytest.raises(ValueError, match="-1 bytes requested, expected 0 or more"):
        allocator.allocate(-1)


@every_allocator
@pytest.mark.parametrize("alignment", [0, -4, 3, 1 << 61])
def test_wrong_alignments(make: Callable[[], Allocator[Any]], alignment: int) -> None:
    with pytest.raises(ValueError, match=f"alignment is {alignment}, expected a power"):
        make().allocate(8, alignment=alignment)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: Buddy(r, allocate_size=100, block_size=8), "expected powers of two"),
        (lambda r: Buddy(r, allocate_size=64, block_size=64), "expected 1 to 63"),
        (lambda r: Slab(r, segments=0), "segments is 0 .* expected 1 or more"),
        (lambda r: Slab(r, allocate_size=1000), "expected a multiple of 8388608"),
        (lambda r: SlabBuddy(r, block_size=2), "expected a multiple of 4"),
    ],
)
def test_wrong_sizes_of_blocks_and_segments(
    make: Callable[[Regions], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(Regions(FakeMemory(), MIB))


# Alignment


@every_allocator
def test_alignment(make: Callable[[], Allocator[Any]]) -> None:
    allocator = make()
    for turn in range(6):
        for alignment in (1, 64, 256, 1024, 4096):
            address = allocator.allocate(40 + turn, alignment=alignment)
            assert address % alignment == 0
            check_sound(allocator)


def test_bfc_uses_the_gap_before_an_aligned_block() -> None:
    allocator = small_bfc()
    first = allocator.allocate(256)
    aligned = allocator.allocate(512, alignment=4096)
    assert (first, aligned) == (0, 4096)
    assert allocator.allocate(4096 - 256) == 256
    check_sound(allocator)


def test_alignment_of_host_memory() -> None:
    memory = HostMemory()
    allocator = BFC(Regions(memory, 1 << 30))
    for size in (100, 5000, 3 * MIB, 9 * MIB):
        address = allocator.allocate(size, alignment=4096)
        start, region = memory.region(address)
        assert (region.ctypes.data + address - start) % 4096 == 0
        assert address + size <= start + region.nbytes
    with pytest.raises(ValueError, match="expected a power of two up to 2097152"):
        allocator.allocate(1, alignment=4 * MIB)


# Out of memory


def test_out_of_memory_error_lists_the_largest_blocks() -> None:
    allocator = BFC(Regions(FakeMemory(), 4 * MIB, "gpu:1"))
    addresses = [
        allocator.allocate(MIB, label=label) for label in ("%w", "%x", "", "%y")
    ]
    allocator.deallocate(addresses[0])
    allocator.allocate(MIB // 2, label="%half")
    allocator.deallocate(addresses[3])
    with pytest.raises(OutOfMemoryError) as caught:
        allocator.allocate(3 * MIB)
    assert str(caught.value) == (
        "out of memory on gpu:1: 3145728 bytes requested, 1572864 free in the pool of "
        "4194304 (largest block 1048576, fragmentation 0.33), which may grow by 0; "
        "2621440 in use, the biggest: %x 1048576, allocation 3 1048576, %half 524288"
    )
    error = caught.value
    assert (error.device, error.size) == ("gpu:1", 3145728)
    assert json.loads(json.dumps(dataclasses.asdict(error.dump)))["device"] == "gpu:1"
    check_sound(allocator)
    assert allocator.allocate(MIB) == addresses[3]


def fill(allocate: Callable[[], object]) -> None:
    with contextlib.suppress(OutOfMemoryError):
        for _ in range(1 << 20):
            allocate()
        pytest.fail("it never ends")


@every_allocator
def test_failed_request_changes_nothing(make: Callable[[], Allocator[Any]]) -> None:
    allocator = make()
    fill(lambda: allocator.allocate(200))
    full = allocator.statistics()
    assert full.free_bytes == 0
    for block in allocator.dump().blocks:
        allocator.deallocate(block.address)
    assert allocator.statistics().bytes_in_use == 0
    again = [allocator.allocate(200) for _ in range(full.num_allocs)]
    assert len(set(again)) == full.num_allocs


def test_memory_of_all_segments_is_used() -> None:
    """A slab allocator uses all segments in turn, also if every second block is freed
    at once."""
    allocator = small_slab()
    fill(lambda: (allocator.allocate(64), allocator.deallocate(allocator.allocate(64))))
    assert allocator.statistics().free_bytes <= 64


def test_back_off_terminates() -> None:
    """TensorFlow's BFC tries 2304 bytes forever: 90 % of 2304, rounded up, is 2304."""
    memory = FakeMemory(physical=2000)
    allocator = BFC(Regions(memory, 4096))
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(2048)
    assert allocator.allocate(1792) == 0


def test_allocation_waits_for_other_threads() -> None:
    allocator = small_bfc(retry_seconds=10)
    address = allocator.allocate(16 * MIB)
    threading.Timer(0.05, allocator.deallocate, [address]).start()
    start = time.monotonic()
    assert allocator.allocate(16 * MIB) == address
    assert time.monotonic() - start < 5
    impatient = small_bfc(retry_seconds=0.05)
    impatient.allocate(16 * MIB)
    with pytest.raises(OutOfMemoryError):
        impatient.allocate(1)


# Reports


def test_occupancy() -> None:
    allocator = BFC(Regions(FakeMemory(), 2560), allow_growth=False)
    allocator.allocate(256)
    second = allocator.allocate(512)
    allocator.allocate(300)
    allocator.deallocate(second)
    assert allocator.occupancy(20) == "**____***x__________"
    assert allocator.occupancy(10) == "*__**_____"


def test_statistics_of_buddy() -> None:
    allocator = small_buddy()
    addresses = [allocator.allocate(size) for size in (65, 1, 1000)]
    allocator.deallocate(addresses[0])
    statistics = allocator.statistics()
    assert statistics.num_allocs == 3
    assert statistics.bytes_in_use == 64 + 1024
    assert statistics.peak_bytes_in_use == 128 + 64 + 1024
    assert statistics.largest_alloc_size == 1024
    assert statistics.pool_bytes == statistics.peak_pool_bytes == 1 << 16
    assert statistics.largest_free_block_bytes == 1 << 15
    allocator.clear_statistics()
    assert allocator.statistics().peak_bytes_in_use == 64 + 1024
    assert allocator.statistics().num_allocs == 0


def test_buddy_takes_the_first_free_place() -> None:
    """A block is at the first free multiple of its size, which this test finds by
    trying all of them, as a descent of XDL's tree does."""
    memory = Regions(FakeMemory(), 1 << 12)
    allocator = Buddy(memory, allocate_size=1 << 12, block_size=16)
    chance = random.Random(0)
    used: dict[int, int] = {}
    for _ in range(2000):
        if used and chance.random() < 0.45:
            address = chance.choice(list(used))
            allocator.deallocate(address)
            del used[address]
            continue
        size = 16 << chance.randrange(7)
        places = (
            place
            for place in range(0, 1 << 12, size)
            if all(place + size <= a or a + n <= place for a, n in used.items())
        )
        first = next(places, None)
        if first is None:
            with pytest.raises(OutOfMemoryError):
                allocator.allocate(size)
        else:
            assert allocator.allocate(chance.randint(size // 2 + 1, size)) == first
            used[first] = size


# Defects of TensorFlow's BFC with time stamps


def test_regions_with_stamped_chunks_are_collected_safely() -> None:
    """TensorFlow's BFC crashes here, because it uses erased chunks."""
    allocator = small_bfc(itertools.count(1).__next__, garbage_collection=True)
    a, b, c, _ = (allocator.allocate(4 * MIB) for _ in range(4))
    allocator.deallocate(a)
    allocator.deallocate(b)
    allocator.allocate(8 * MIB, freed_before=2)
    assert [size for _, size in allocator.dump().regions] == [8 * MIB, 8 * MIB]
    allocator.deallocate(c)
    allocator.allocate(256)
    check_sound(allocator)


def test_regions_that_are_freed_too_late_are_not_collected() -> None:
    allocator = small_bfc(itertools.count(1).__next__, garbage_collection=True)
    a, b, *_ = (allocator.allocate(4 * MIB) for _ in range(4))
    allocator.deallocate(a)
    allocator.deallocate(b)
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(8 * MIB, freed_before=1)
    allocator.allocate(8 * MIB, freed_before=2)


def test_remainder_of_a_stamped_chunk_merges() -> None:
    """TensorFlow's BFC does not queue the remainder, so it never merges."""
    allocator = small_bfc(itertools.count(1).__next__)
    whole = allocator.allocate(1024)
    allocator.allocate(256)
    allocator.deallocate(whole)
    part = allocator.allocate(256)  # of the stamped chunk
    assert part == whole
    allocator.deallocate(part)
    allocator.set_safe_frontier(3)
    assert allocator.allocate(1024) == whole
    assert not allocator.dump().stamped


def test_chunks_merge_after_a_forced_merge() -> None:
    memory = Regions(FakeMemory(), 4096)
    allocator = BFC(memory, allow_growth=False, clock=itertools.count(1).__next__)
    addresses = [allocator.allocate(512) for _ in range(8)]
    for address in addresses[:6]:
        allocator.deallocate(address)
    large = allocator.allocate(1024)  # by a forced merge of chunks that are not safe
    assert large == 0
    check_sound(allocator)
    allocator.deallocate(large)
    allocator.set_safe_frontier(100)
    assert allocator.allocate(3072) == 0


def test_neighbors_that_become_safe_together_merge() -> None:
    """TensorFlow's BFC merges them with each other, but not with the next chunk."""
    allocator = small_bfc(itertools.count(1).__next__)
    for address in [allocator.allocate(256) for _ in range(2)]:
        allocator.deallocate(address)
    allocator.set_safe_frontier(3)
    assert allocator.allocate(2 * MIB) == 0
    assert allocator.statistics().pool_bytes == 2 * MIB


# Threads


@every_allocator
def test_concurrent_threads(make: Callable[[], Allocator[Any]]) -> None:
    allocator = make()
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        mine: list[int] = []
        try:
            for _ in range(500):
                if len(mine) < 8 and chance.random() < 0.6:
                    size = chance.randint(1, 256)
                    mine.append(allocator.allocate(size, label=str(seed)))
                elif mine:
                    address = mine.pop(chance.randrange(len(mine)))
                    assert allocator.block(address).label == str(seed)
                    allocator.deallocate(address)
            for address in mine:
                allocator.deallocate(address)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    check_sound(allocator)
    assert allocator.statistics().bytes_in_use == 0


# Random histories


class Histories(RuleBasedStateMachine):
    """Random allocations and frees. Blocks never overlap, statistics are exact, and all
    blocks coalesce at the end."""

    most = 0
    """The largest request, in bytes."""

    @staticmethod
    def make() -> Allocator[Any]:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.allocator = type(self).make()
        self.blocks: dict[int, int] = {}
        self.late: list[tuple[int, int, int]] = []  # freed: start, end, stamp
        self.stamp = self.frontier = 0
        self.count = 0

    @rule(data=st.data(), alignment=st.sampled_from([1, 1, 1, 64, 256, 1024]))
    def allocate(self, data: st.DataObject, alignment: int) -> None:
        size = data.draw(st.integers(1, self.most))
        before = data.draw(st.integers(0, self.stamp))
        try:
            address = self.allocator.allocate(
                size, alignment=alignment, freed_before=before
            )
        except OutOfMemoryError:
            return
        block = self.allocator.block(address)
        assert address % alignment == 0
        assert block.requested == size <= block.size
        self.count += 1
        assert block.id == self.count
        end = address + block.size
        assert all(
            end <= start or start + length <= address
            for start, length in self.blocks.items()
        )
        if before:
            assert all(
                end <= start or stop <= address or stamp <= before
                for start, stop, stamp in self.late
                if stamp >= self.frontier
            )
        self.late = [x for x in self.late if end <= x[0] or x[1] <= address]
        self.blocks[address] = block.size

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def deallocate(self, data: st.DataObject) -> None:
        self.free(data.draw(st.sampled_from(list(self.blocks))))

    def free(self, address: int) -> None:
        self.allocator.deallocate(address)
        size = self.blocks.pop(address)
        if isinstance(self, StampedHistories):
            self.stamp += 1
            self.late.append((address, address + size, self.stamp))

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def wrong_address(self, data: st.DataObject) -> None:
        address = data.draw(st.sampled_from(list(self.blocks)))
        with pytest.raises(InvalidAddressError):
            self.allocator.deallocate(address + data.draw(st.integers(1, 63)))

    @precondition(lambda self: self.stamp > self.frontier)
    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        self.frontier = data.draw(st.integers(self.frontier, self.stamp + 1))
        assert isinstance(self.allocator, BFC)
        self.allocator.set_safe_frontier(self.frontier)

    @invariant()
    def is_sound(self) -> None:
        check_sound(self.allocator)
        statistics = self.allocator.statistics()
        assert statistics.num_allocs == self.count
        assert statistics.bytes_in_use == sum(self.blocks.values())

    def teardown(self) -> None:
        for address in list(self.blocks):
            self.free(address)
        if isinstance(self.allocator, BFC):
            self.allocator.set_safe_frontier(self.stamp + 1)
        check_sound(self.allocator)
        dump = self.allocator.dump()
        assert dump.statistics.bytes_in_use == 0
        if isinstance(self.allocator, Slab):
            assert all(block.size % (64 * 64) == 0 for block in dump.blocks)
        elif not isinstance(self.allocator, SlabBuddy):
            for size in sorted((size for _, size in dump.regions), reverse=True):
                self.allocator.allocate(size)
            assert self.allocator.statistics().free_bytes == 0
            assert list(self.allocator.dump().regions) == list(dump.regions)


class BFCHistories(Histories):
    most = 40_000

    @staticmethod
    def make() -> BFC:
        memory = FakeMemory(gap=512, physical=1 << 19)
        return BFC(
            Regions(memory, 1 << 20), garbage_collection=True, fragmentation_fraction=0
        )


class StampedHistories(Histories):
    most = 40_000

    @staticmethod
    def make() -> BFC:
        memory = FakeMemory(physical=1 << 19)
        clock = itertools.count(1).__next__
        return BFC(Regions(memory, 1 << 20), garbage_collection=True, clock=clock)


class BuddyHistories(Histories):
    most = 20_000

    @staticmethod
    def make() -> Buddy:
        return small_buddy()


class SlabHistories(Histories):
    most = 256

    @staticmethod
    def make() -> Slab:
        return small_slab()


class SlabBuddyHistories(Histories):
    most = 40_000

    @staticmethod
    def make() -> SlabBuddy:
        return small_slab_buddy()


HISTORIES = BFCHistories, StampedHistories, BuddyHistories, SlabHistories
machines = pytest.mark.parametrize("machine", [*HISTORIES, SlabBuddyHistories])


@machines
def test_histories(machine: type[Histories]) -> None:
    run_state_machine_as_test(  # pyright: ignore
        machine, settings=settings(max_examples=10, stateful_step_count=60)
    )


@pytest.mark.slow
@machines
def test_long_histories(machine: type[Histories]) -> None:
    run_state_machine_as_test(  # pyright: ignore
        machine, settings=settings(max_examples=50, stateful_step_count=200)
    )


# Speed


@pytest.mark.slow
def test_allocation_is_fast() -> None:
    """With 2,000 live blocks. The limits are at least twice the time that an idle
    machine takes."""
    for name, limit in (("bfc", 4), ("buddy", 5), ("slab", 6), ("slab-buddy", 7)):
        allocator = ALLOCATORS[name](Regions(HostMemory(), 1 << 36))
        chance = random.Random(0)
        most = 16384 if name == "slab" else 1 << 20
        sizes = [min(most, int(chance.lognormvariate(9, 2)) + 1) for _ in range(20_000)]
        live = [allocator.allocate(size) for size in sizes[:2000]]
        start = time.process_time()
        for size in sizes:
            place = size * 7919 % 2000
            allocator.deallocate(live[place])
            live[place] = allocator.allocate(size)
        assert (time.process_time() - start) / len(sizes) < limit * 1e-6, name
