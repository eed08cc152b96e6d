"""BFC against TensorFlow's, and buddy, slab and slab-buddy against XDL's.

Where the original's state is unsound, or it lets pass what we refuse, the rest of the
vector is only checked for soundness: `differs` names such vectors.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import pytest
from fake_memory import FakeMemory, check_sound

from tensorplan.runtime.allocators import (
    BFC,
    NULL,
    Allocator,
    Buddy,
    InvalidAddressError,
    OutOfMemoryError,
    Regions,
    Slab,
    SlabBuddy,
)

Json = Mapping[str, Any]


def bfc_of(vector: Json, **changes: Any) -> tuple[BFC, FakeMemory]:
    config = vector["config"]
    source = {**config["sub_allocator"], **changes}
    memory = FakeMemory(
        gap=source["address_gap"],
        physical=source["physical_bytes"],
        extra=source["extra_bytes_received"],
        supports_coalescing=source["supports_coalescing"],
    )
    allocator = BFC(
        Regions(memory, config["total_memory"]),
        allow_growth=config["allow_growth"],
        garbage_collection=config["garbage_collection"],
        fragmentation_fraction=config["fragmentation_fraction"],
        back_off_once=True,
        clock=itertools.count(1).__next__ if config["timing_counter"] else None,
    )
    return allocator, memory


def address_of(allocator: Allocator[Any], size: int, **options: Any) -> int | None:
    """None, as in the vectors, for nothing and for out of memory."""
    try:
        address = allocator.allocate(size, **options)
    except OutOfMemoryError:
        return None
    return None if address == NULL else address


def statistics_of(allocator: Allocator[Any], like: Json) -> Json:
    statistics = asdict(allocator.statistics())
    return {name: statistics[name] for name in like}


def sub_calls_of(memory: FakeMemory) -> list[dict[str, Any]]:
    names = {"size": "sub_alloc", "free": "sub_free"}
    return [
        {names.get(name, name): value for name, value in call.items()}
        for call in memory.new_calls()
    ]


def dump_of(allocator: BFC) -> Json:
    """As the vectors have it."""
    dump = allocator.dump()
    statistics = dump.statistics
    chunks: list[Json] = []
    for block in dump.blocks:
        chunk: dict[str, Any] = {"offset": block.address, "size": block.size}
        chunk["in_use"] = bool(block.id)
        if block.id:
            chunk |= {"requested": block.requested, "id": block.id}
        else:
            chunk["bin"] = bin_of(block.size)
            if block.freed_at:
                chunk["freed_at"] = block.freed_at
        chunks.append(chunk)
    bins: dict[str, list[int]] = {}
    free = [block for block in dump.blocks if not block.id]
    for block in sorted(free, key=lambda block: (block.size, block.address)):
        bins.setdefault(str(bin_of(block.size)), []).append(block.address)
    return {
        "stats": asdict(statistics),
        "curr_region_allocation_bytes": dump.next_region_bytes,
        "regions": [list(region) for region in dump.regions],
        "chunks": chunks,
        "timestamped_queue": dump.stamped,
        "bins": bins,
        "free_bins": bins,
        "fragmentation": statistics.fragmentation,
        "largest_free_chunk": statistics.largest_free_block_bytes,
        "occupancy": dump.occupancy(),
    }


def bin_of(size: int) -> int:
    return next(b for b in range(21) if size < 512 << b or b == 20)


def check_dump(allocator: BFC, expected: Json) -> None:
    ours = dict(dump_of(allocator))
    ours["stats"] = statistics_of(allocator, expected["stats"])
    for name in ours.keys() & expected.keys():
        want = expected[name]
        if name == "occupancy" and not expected["regions"]:
            continue  # the original has words in place of a picture
        if name == "fragmentation":
            want = pytest.approx(want, rel=1e-5)
        assert ours[name] == want, name


def is_defective(dump: Json) -> bool:
    """Whether the original has left free chunks behind that never merge: one that
    waits to become safe and is not in the queue, or neighbours that both are safe."""
    free = [chunk for chunk in dump["chunks"] if not chunk["in_use"]]
    waiting = {chunk["offset"] for chunk in free if chunk.get("freed_at")}
    safe = [chunk for chunk in free if chunk["offset"] not in waiting]
    starts = {chunk["offset"] for chunk in safe} - {r[0] for r in dump["regions"]}
    ends = {chunk["offset"] + chunk["size"] for chunk in safe}
    return bool(starts & ends) or not waiting <= set(dump["timestamped_queue"])


FORGOTTEN = "the original never merges what it split off a chunk freed with a stamp"
BFC_THAT_DIFFER = {"timestamped_free_not_coalesced": FORGOTTEN}


@pytest.mark.vectors("tf_bfc", BFC_THAT_DIFFER)
def test_bfc(vector: Json, differs: str | None) -> None:
    """Where we do not do as the original, a later dump must show it to be wrong."""
    if "steps" not in vector:
        run_program(vector)
        return
    allocator, memory = bfc_of(vector)
    addresses: dict[str, int | None] = {}
    is_same = True
    for number, step in enumerate(vector["steps"]):
        do_bfc(allocator, step, addresses)
        check_sound(allocator)
        if not is_same:
            continue
        try:
            check_bfc(allocator, memory, step, addresses)
        except AssertionError:
            rest = vector["steps"][number:]
            if not any(is_defective(s) for s in rest if s["op"] == "dump"):
                raise
            is_same = False
    assert not differs or not is_same


def do_bfc(allocator: BFC, step: Json, addresses: dict[str, int | None]) -> None:
    match step["op"]:
        case "alloc":
            addresses[step["name"]] = address_of(
                allocator, step["bytes"], freed_before=step.get("freed_before", 0)
            )
        case "free":
            address = addresses[step["name"]]
            allocator.deallocate(NULL if address is None else address)
        case "set_safe_frontier":
            allocator.set_safe_frontier(step["count"])
        case "clear_stats":
            allocator.clear_statistics()
        case "deallocate_free_regions":
            assert allocator.collect(step["rounded_bytes"]) == step["result"]
        case "dump" | "bin_debug_info":
            pass
        case other:
            pytest.fail(f"unknown operation {other}")


def check_bfc(
    allocator: BFC,
    memory: FakeMemory,
    step: Json,
    addresses: Mapping[str, int | None],
) -> None:
    if "offset" in step:
        assert addresses[step["name"]] == step["offset"]
    if step.get("offset") is not None:
        block = allocator.block(step["offset"])
        assert block.size == step["allocated"]
        assert block.requested == step["requested"]
        assert block.id == step["allocation_id"]
    if "sub" in step:
        assert sub_calls_of(memory) == step["sub"]
    if "stats" in step:
        assert statistics_of(allocator, step["stats"]) == step["stats"]
        region_bytes = allocator.dump().next_region_bytes
        assert region_bytes == step["curr_region_allocation_bytes"]
    if step["op"] == "dump":
        check_dump(allocator, step)
    if step["op"] == "bin_debug_info":
        assert step["bins"] == [
            {"bin": number, **asdict(found)}
            for number, found in allocator.dump().bins().items()
        ]


# Vectors whose steps are in words.


def run_program(vector: Json) -> None:
    runs: dict[str, Callable[[Json], None]] = {
        "no_dups_stats": no_dups,
        "exercise_coalescing": exercise_coalescing,
        "virtual_vs_physical_suballocator": virtual_and_physical,
        "region_deallocation": region_deallocation,
    }
    for name, run in runs.items():
        if vector["name"].startswith(name):
            return run(vector)
    pytest.skip(f"nobody has written the steps of {vector['program']!r}")


def no_dups(vector: Json) -> None:
    allocator, _ = bfc_of(vector)
    addresses = [allocator.allocate(size) for size in range(1, 1024)]
    assert len(set(addresses)) == len(addresses)
    assert addresses[-1] == vector["expected"]["A"]["offset_of_last"]
    check_dump(allocator, vector["expected"]["A"])
    for address in addresses:
        allocator.deallocate(address)
    check_dump(allocator, vector["expected"]["B"])


def exercise_coalescing(vector: Json) -> None:
    allocator, _ = bfc_of(vector)
    expected = vector["expected"]
    first = allocator.allocate(4096)
    allocator.deallocate(first)
    for _ in range(1024):
        sizes = 4096, 8388608, 16384, 41943040
        for address in [allocator.allocate(size) for size in sizes]:
            allocator.deallocate(address)
    assert first == expected["first_offset"]
    check_dump(allocator, expected)
    assert allocator.allocate(4096) == expected["offset_after"]


def many(vector: Json, **changes: Any) -> tuple[BFC, FakeMemory, list[int]]:
    """128 blocks of 4 MiB."""
    allocator, memory = bfc_of(vector, **changes)
    return allocator, memory, [allocator.allocate(4 << 20) for _ in range(128)]


def virtual_and_physical(vector: Json) -> None:
    for name, coalesces in (("coalescing", True), ("non_coalescing", False)):
        expected = vector["expected"][name]
        allocator, _, addresses = many(vector, supports_coalescing=coalesces)
        assert dump_of(allocator)["regions"] == expected["regions_before"]
        for address in addresses[:-1]:
            allocator.deallocate(address)
        assert address_of(allocator, 508 << 20) == expected["big"]["offset"]
        assert addresses[-1] == expected["last_small_offset"]


def region_deallocation(vector: Json) -> None:
    expected = vector["expected"]
    allocator, memory, addresses = many(vector)
    assert dump_of(allocator)["regions"] == expected["regions_before"]
    for address in addresses[:-1]:
        allocator.deallocate(address)
    memory.new_calls()
    call = expected["call"]
    assert allocator.collect(call["rounded_bytes"]) == call["result"]
    assert sub_calls_of(memory) == call["sub"]
    check_dump(allocator, expected["after"])


# XDL


REFUSED = "the original does not see that the address is not that of a block"
XDL_THAT_DIFFER = {
    "buddy_double_free_ignored": REFUSED,
    "buddy_interior_free": REFUSED,
}


@pytest.mark.vectors("xdl_buddy", XDL_THAT_DIFFER)
def test_buddy(vector: Json, differs: str | None) -> None:
    run_xdl(vector, differs)


@pytest.mark.vectors("xdl_slab", XDL_THAT_DIFFER)
def test_slab(vector: Json, differs: str | None) -> None:
    run_xdl(vector, differs)


@pytest.mark.vectors("xdl_slab_buddy", XDL_THAT_DIFFER)
def test_slab_buddy(vector: Json, differs: str | None) -> None:
    run_xdl(vector, differs)


def xdl_of(config: Json) -> tuple[Allocator[Any], FakeMemory]:
    memory = FakeMemory(stride=config["internal_stride"])
    regions = Regions(memory, 1 << 60)
    size, block = config["allocate_size"], config["block_size"]
    match config["kind"]:
        case "buddy":
            return Buddy(regions, allocate_size=size, block_size=block), memory
        case "slab":
            segments = config["segment_count"]
            return Slab(
                regions, allocate_size=size, block_size=block, segments=segments
            ), memory
        case kind:
            assert kind == "slab_buddy"
            segments = config["slab_segment_count"]
            return SlabBuddy(
                regions, allocate_size=size, block_size=block, segments=segments
            ), memory


def run_xdl(vector: Json, differs: str | None) -> None:
    """Up to a step that the original should have refused; it is refused here."""
    if "fatal" in vector:  # the set-up itself
        with pytest.raises(ValueError, match="expected"):
            xdl_of(vector["config"])
        return
    allocator, memory = xdl_of(vector["config"])
    addresses: dict[str, int] = {}
    live: set[int] = set()
    is_refused = False
    for step in vector["steps"]:
        if "fatal" in step:
            with pytest.raises(ValueError, match="expected"):
                allocator.allocate(int(step["args"][1]))
            continue
        if step["op"] == "alloc":
            address = addresses[step["name"]] = allocator.allocate(step["bytes"])
            live.add(address)
            if not is_refused:
                assert (None if address == NULL else address) == step["offset"]
        else:
            name = step.get("name")
            address = addresses[name] if name else step["offset"]
            if address != NULL and address not in live:
                with pytest.raises(InvalidAddressError):
                    allocator.deallocate(address)
                is_refused = True
                continue
            allocator.deallocate(address)
            live.discard(address)
        if not is_refused:
            assert internal_calls_of(memory) == step["internal"]
    check_sound(allocator)
    assert not differs or is_refused


def internal_calls_of(memory: FakeMemory) -> list[Json]:
    return [
        {"internal_free": call["addr"]}
        if "free" in call
        else {"internal_alloc": call["size"], "addr": call["addr"]}
        for call in memory.new_calls()
    ]
