"""BFC compared with TensorFlow's, and buddy, slab and slab-buddy with XDL's.

Where the original's state is unsound, or where it accepts what tensorplan refuses, the
test checks only soundness for the rest of the vector.
"""

import itertools
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
from bfc_programs import read
from fake_memory import FakeMemory, check_sound
from tensorflow_bfc import MOST_WASTE, TensorFlowBFC

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


def address_of(allocator: Allocator[Any], size: int, **options: Any) -> int | None:
    """The address of a block; None, as in the vectors, for 0 bytes or out of memory."""
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
    """The state of the allocator in the format of the vectors."""
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
    ours["stats"] = statistics_of(allocator, expected.get("stats", {}))
    for name in ours.keys() & expected.keys():
        want = expected[name]
        if name == "occupancy" and not expected.get("regions"):
            continue  # the original has words instead of a picture
        if name == "fragmentation":
            want = pytest.approx(want, rel=1e-5)
        assert ours[name] == want, name


@pytest.mark.vectors("tf_bfc")
def test_bfc(vector: Json) -> None:
    """tensorplan's BFC must behave like the original until the original has a defect.

    The reimplementation of the original detects the defect. It must always behave like
    the original.
    """
    coalescing = {"coalescing": True, "non_coalescing": False}
    if "steps" not in vector:
        expected = vector["expected"]
        cases = [name for name in coalescing if name in expected]
        for name in cases:
            is_on = coalescing[name]
            check_program(vector, expected[name], supports_coalescing=is_on)
        if not cases:
            check_program(vector, expected)
        return
    pair = Pair(vector)
    for step in vector["steps"]:
        pair.do(step)
        if "offset" in step:
            assert pair.addresses[step["name"]][1] == step["offset"]
        if not pair.theirs.is_defective:
            check_bfc(pair, step)


class Pair:
    """tensorplan's allocator and a reimplementation of the original, on fake memory."""

    def __init__(self, vector: Json, **changes: Any) -> None:
        config = vector["config"]
        source = {**config["sub_allocator"], **changes}
        self.memory, other = (
            FakeMemory(
                gap=source["address_gap"],
                physical=source["physical_bytes"],
                extra=source["extra_bytes_received"],
                supports_coalescing=source["supports_coalescing"],
            )
            for _ in range(2)
        )
        limit, fraction = config["total_memory"], config["fragmentation_fraction"]
        clock = itertools.count(1).__next__ if config["timing_counter"] else None
        self.ours = BFC(
            Regions(self.memory, limit),
            allow_growth=config["allow_growth"],
            garbage_collection=config["garbage_collection"],
            fragmentation_fraction=fraction,
            back_off_once=True,
            clock=clock,
        )
        self.theirs = TensorFlowBFC(
            other,
            limit,
            grows=config["allow_growth"],
            collects=config["garbage_collection"],
            is_timed=config["timing_counter"],
            most_waste=int(fraction * limit) or MOST_WASTE,
        )
        self.addresses: dict[str, tuple[int | None, int | None]] = {}  # ours, theirs

    def do(self, step: Json) -> None:
        """Runs one step, and checks that it is refused if the vector says so."""
        if is_refused(step):
            with pytest.raises(ValueError, match="expected"):
                self._do(step)
        else:
            self._do(step)
        check_sound(self.ours)

    def _do(self, step: Json) -> None:
        match step["op"]:
            case "alloc":
                size, before = step["bytes"], step.get("freed_before", 0)
                ours = address_of(self.ours, size, freed_before=before)
                theirs = self.theirs.allocate(size, before)
                self.addresses[step["name"]] = ours, theirs
            case "free":
                ours, theirs = self.addresses[step["name"]]
                self.ours.deallocate(NULL if ours is None else ours)
                if theirs is not None:
                    self.theirs.free(theirs)
            case "set_safe_frontier":
                self.ours.set_safe_frontier(step["count"])
                self.theirs.set_safe_frontier(step["count"])
            case "clear_stats":
                self.ours.clear_statistics()
            case "deallocate_free_regions":
                result = self.ours.collect(step["rounded_bytes"])
                assert result == step.get("result", result)
                assert self.theirs.collect(step["rounded_bytes"]) == result
            case "dump" | "bin_debug_info":
                pass
            case other:
                pytest.fail(f"unknown operation {other}")


def is_refused(step: Json) -> bool:
    return "fatal" in step or "error" in step


def check_bfc(pair: Pair, step: Json) -> None:
    allocator = pair.ours
    if step.get("offset") is not None:
        assert pair.addresses[step["name"]][0] == step["offset"]
        block = allocator.block(step["offset"])
        assert block.size == step["allocated"]
        assert block.requested == step["requested"]
        assert block.id == step["allocation_id"]
    if "sub" in step:
        assert sub_calls_of(pair.memory) == step["sub"]
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


def check_program(vector: Json, expected: Json, **changes: Any) -> None:
    """Checks the offsets and intermediate states of a program that is described in
    words."""
    pair = Pair(vector, **changes)
    statements = read(vector)
    asked = dict(expected)
    records = {key: asked.pop(key) for key in list(asked) if key.isupper()}
    call, after = asked.pop("call", None), asked.pop("after", None)
    for number, statement in enumerate(statements):
        is_last = number == len(statements) - 1
        if is_last and "offset_after" in asked:  # the state is that before it
            check_dump(pair.ours, asked)
        pair.memory.new_calls()
        for step in statement:
            pair.do({**step, "result": call["result"]} if call and is_last else step)
            if "record" in step:
                check_dump(pair.ours, record := records.pop(step["record"]))
                check_offsets(pair, record)
        if number == 0 and "regions_before" in asked:
            assert dump_of(pair.ours)["regions"] == asked.pop("regions_before")
            assert last_offset(pair) == asked.get(
                "last_small_offset", last_offset(pair)
            )
        if is_last and call:
            assert sub_calls_of(pair.memory) == call["sub"]
            check_dump(pair.ours, {**call, **after} if after else call)
    check_offsets(pair, asked)
    if "offset_after" not in asked:
        check_dump(pair.ours, asked)
    assert not records


def check_offsets(pair: Pair, expected: Json) -> None:
    found = {
        "first_offset": next(iter(pair.addresses.values()))[0],
        "offset_of_last": last_offset(pair),
        "offset_after": last_offset(pair),
        "big": {"offset": last_offset(pair)},
    }
    for name in found.keys() & expected.keys():
        assert found[name] == expected[name], name


def last_offset(pair: Pair) -> int | None:
    return list(pair.addresses.values())[-1][0]


# XDL


@pytest.mark.vectors("xdl_buddy")
def test_buddy(vector: Json) -> None:
    run_xdl(vector)


@pytest.mark.vectors("xdl_slab")
def test_slab(vector: Json) -> None:
    run_xdl(vector)


@pytest.mark.vectors("xdl_slab_buddy")
def test_slab_buddy(vector: Json) -> None:
    run_xdl(vector)


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


def run_xdl(vector: Json) -> None:
    """Runs a vector. Once tensorplan refuses a step that the original accepts, only
    soundness is checked."""
    if "fatal" in vector:  # the original refuses the configuration
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
                refused_xdl(allocator, step, addresses)
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


def refused_xdl(
    allocator: Allocator[Any], step: Json, addresses: Mapping[str, int]
) -> None:
    name, *rest = step.get("args") or [step["name"], step.get("bytes")]
    if step["op"] == "alloc":
        allocator.allocate(int(rest[0]))
    else:
        allocator.deallocate(addresses[name] if name in addresses else int(name))


def internal_calls_of(memory: FakeMemory) -> list[Json]:
    return [
        {"internal_free": call["addr"]}
        if "free" in call
        else {"internal_alloc": call["size"], "addr": call["addr"]}
        for call in memory.new_calls()
    ]
