"""Tests the memory that other allocators need for a trace of PyTorch's allocator."""

import json
import pickle
from pathlib import Path
from random import Random

import pytest

from tensorplan.reporting.foreign import LiveValue
from tensorplan.reporting.segments import PAGES, Segment, expandable, offline
from tensorplan.support.foreign_plan import Region, Value
from tensorplan.tools import plan_audit

MIB = 1 << 20
DEVICES = {"s": "device 0", "t": "device 1"}


def values(*rows: tuple[float, int, int], memory: str = "s") -> list[LiveValue]:
    """Live values, given by sizes in MiB, first steps and last steps."""
    regions = [Region(memory, 0, int(size * MIB)) for size, *_ in rows]
    return [
        LiveValue(Value(f"v{n}", region), lower, upper)
        for n, (region, (_, lower, upper)) in enumerate(zip(regions, rows, strict=True))
    ]


def test_segment_grows_by_pages_and_fills_holes() -> None:
    # The last block fits into the rest of the second block's last page.
    rows = values((12, 0, 2), (12, 1, 4), (16, 2, 4))
    assert expandable(rows, DEVICES) == 40 * MIB
    assert offline(rows, DEVICES) == 28 * MIB


def test_range_that_can_grow_counts_as_the_largest() -> None:
    # 18 MiB are free at the start, and 10 MiB at the end. The block of 9 MiB takes a
    # part of the former, so the last block does not fit there. An H200 behaves in the
    # same way.
    rows = values((18, 0, 2), (12, 1, 5), (9, 2, 5), (18, 3, 5))
    assert expandable(rows, DEVICES) == 60 * MIB


def test_small_blocks_and_devices_have_separate_segments() -> None:
    assert expandable(values((1, 0, 2), (2, 0, 2)), DEVICES) == 22 * MIB
    rows = [*values((1, 0, 2)), *values((1, 0, 2), memory="t")]
    assert expandable(rows, DEVICES) == 4 * MIB
    assert offline(rows, DEVICES) == 2 * MIB


def test_empty_trace() -> None:
    assert expandable([], DEVICES) == offline([], DEVICES) == 0


@pytest.mark.parametrize("is_small", [False, True])
def test_blocks_of_a_segment_are_disjoint(is_small: bool) -> None:
    random, segment = Random(3), Segment(PAGES[is_small])
    live: dict[int, int] = {}
    for _ in range(500):
        if live and random.random() < 0.45:
            at = random.choice(sorted(live))
            segment.release(at, live.pop(at))
        else:
            size = 512 * random.randint(1, 20_000)
            live[segment.allocate(size)] = size
        ranges = sorted([*live.items(), *((at, n) for n, at in segment.free)])
        assert [at for at, _ in ranges[1:]] == [at + size for at, size in ranges[:-1]]
        assert sum(size for _, size in ranges) == segment.mapped


def test_plan_audit_prints_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        {"action": action, "addr": address * MIB, "size": size * MIB, "frames": []}
        for action, address, size in (
            *(("alloc", 0, 12), ("alloc", 20, 12), ("free_completed", 0, 12)),
            ("alloc", 40, 16),
        )
    ]
    segments = [
        {"device": 0, "address": at * MIB, "total_size": 20 * MIB, "blocks": []}
        for at in (0, 20, 40)
    ]
    path, out = tmp_path / "a b.pickle", tmp_path / "out.json"
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [events]}))
    assert plan_audit.main([str(path), "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "with expandable segments, simulated: 40 MiB\n" in text
    assert "with offsets planned for this trace: 28 MiB\n" in text
    [plan] = json.loads(out.read_text())["plans"]
    assert plan["expandable_segments_bytes"] == 40 * MIB
    assert plan["offline_plan_bytes"] == 28 * MIB


def test_sarif_locations_are_uris(tmp_path: Path) -> None:
    event = {"action": "alloc", "size": 64, "frames": []}
    events = [event | {"addr": at, "time_us": at} for at in (1024, 1056)]
    segment = {"device": 0, "address": 1024, "total_size": 256, "blocks": []}
    path, out = tmp_path / "a b.pickle", tmp_path / "out.sarif"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [events]}))
    assert plan_audit.main([str(path), "--sarif", str(out)]) == 1
    [result] = json.loads(out.read_text())["runs"][0]["results"]
    [place] = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.pickle"
