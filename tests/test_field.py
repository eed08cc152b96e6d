"""Tests the planners of other systems: on small problems, they return the offsets that
follow from their rules."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplan.planning import Buffer, Limits, Problem, Progress, solve


def offsets(strategy: str, *buffers: Buffer) -> dict[str, int]:
    plan = solve(Problem(buffers), strategy)
    return dict(zip((b.id for b in buffers), plan.offsets, strict=True))


def test_breadth_starts_at_the_step_with_most_live_bytes():
    # Step 5 has 70 bytes, step 0 has 60, and `long` is in both.
    buffers = [
        Buffer("large", 50, 0, 1),
        Buffer("long", 10, 0, 6),
        Buffer("wide", 40, 5, 6),
        Buffer("small", 20, 5, 6),
    ]
    assert offsets("greedy-by-breadth", *buffers) == {
        "wide": 0,
        "small": 40,
        "long": 60,
        "large": 0,
    }


def test_breadth_does_not_count_gaps():
    # If the gap counted, step 3 would be the widest.
    buffers = [
        Buffer("paused", 30, 0, 9, gaps=[(2, 6)]),
        Buffer("guest", 20, 3, 4),
        Buffer("other", 5, 8, 9),
    ]
    assert offsets("greedy-by-breadth", *buffers) == {
        "paused": 0,
        "other": 30,
        "guest": 0,
    }


def test_duration_places_the_longest_first():
    buffers = [
        Buffer("large", 100, 2, 3),
        Buffer("long", 1, 0, 9),
        Buffer("longer", 2, 0, 10),
    ]
    assert offsets("greedy-by-duration", *buffers) == {
        "longer": 0,
        "long": 2,
        "large": 3,
    }


def test_linear_scan_decides_without_later_buffers():
    buffers = [
        Buffer("small", 10, 0, 1),
        Buffer("wall", 10, 0, 9),
        Buffer("late", 20, 1, 9),
        Buffer("later", 10, 2, 9),
    ]
    # `later` fits into the bytes that `small` leaves, but `late` does not.
    assert offsets("linear-scan", *buffers) == {
        "small": 0,
        "wall": 10,
        "late": 20,
        "later": 0,
    }


def test_tflite_places_the_longest_live_range_first_and_into_the_smallest_gap():
    buffers = [
        Buffer("first", 8, 0, 4),
        Buffer("large gap", 60, 0, 2),
        Buffer("whole", 9, 0, 9),
        Buffer("small gap", 40, 0, 2),
        Buffer("wall", 50, 0, 8),
        Buffer("last", 30, 2, 5),
    ]
    # The order is: whole, large gap, wall, small gap, last, first.
    assert offsets("tflite", *buffers) == {
        "whole": 0,
        "large gap": 9,
        "wall": 69,
        "small gap": 119,
        "last": 9,
        "first": 159,
    }


def test_xla_takes_the_better_of_two_orders():
    largest_first = [  # the other order needs 130 bytes
        Buffer("a", 50, 3, 5),
        Buffer("b", 50, 4, 5),
        Buffer("c", 30, 0, 4),
    ]
    assert offsets("xla", *largest_first) == {"a": 0, "b": 50, "c": 50}
    longest_first = [  # the other order needs 90 bytes
        Buffer("a", 20, 2, 5),
        Buffer("b", 30, 1, 4),
        Buffer("c", 40, 4, 8),
        Buffer("d", 40, 1, 2),
    ]
    assert offsets("xla", *longest_first) == {"a": 40, "b": 0, "c": 0, "d": 30}


def test_usmp_stacks_and_leaves_gaps():
    buffers = [
        Buffer("low", 30, 0, 2),
        Buffer("middle", 20, 1, 4),
        Buffer("guest", 10, 3, 5),
    ]
    # `guest` would fit below `middle`.
    assert offsets("usmp-size", *buffers) == {"low": 0, "middle": 30, "guest": 50}
    assert offsets("usmp-conflicts", *buffers) == {"middle": 0, "low": 20, "guest": 20}


def test_iree_keeps_the_order_of_buffers_that_start_together():
    buffers = [Buffer("small", 1, 0, 2), Buffer("large", 9, 0, 2)]
    assert offsets("iree", *buffers) == {"small": 0, "large": 1}
    assert offsets("best-fit", *buffers) == {"large": 0, "small": 9}


def test_hill_climb_accepts_worse_orders_by_whole_percents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TVM computes in integers: after 25 tries, twice the bytes are never accepted."""
    asked: list[int] = []
    monkeypatch.setattr(
        Random, "random", lambda _: pytest.fail("a fraction is no whole percent")
    )
    drawn = Random.randrange

    def draw(self: Random, stop: int) -> int:
        asked.append(stop)
        return drawn(self, stop)

    monkeypatch.setattr(Random, "randrange", draw)
    solve(HARD, "usmp-hill-climb")
    assert asked.count(100) > 400


def test_hill_climb_improves_on_the_first_order():
    first = solve(HARD, "usmp-hill-climb", Limits(time_limit=0)).peak
    assert first == solve(HARD, "greedy-by-size").peak > HARD.lower_bound
    assert solve(HARD, "usmp-hill-climb").peak < first


def test_hill_climb_depends_on_the_seed_only():
    runs = [
        solve(HARD, "usmp-hill-climb", Limits(seed=seed)).offsets
        for seed in (1, 1, 2, 3)
    ]
    assert runs[0] == runs[1]
    assert any(run != runs[0] for run in runs[2:])


def test_hill_climb_reports_progress():
    seen: list[Progress] = []
    plan = solve(HARD, "usmp-hill-climb", Limits(progress=seen.append))
    peaks = [progress.peak for progress in seen]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] > plan.peak >= HARD.lower_bound == seen[0].lower_bound


@pytest.mark.parametrize(
    ("wanted", "offset"),
    [
        (96, 0),  # the freed 100 bytes are in the class of 100 and 101 bytes
        (99, 0),
        (100, 0),
        (101, 116),
    ],
)
def test_tlsf_reuses_a_block_of_a_class_that_surely_fits(wanted: int, offset: int):
    freed = Buffer("freed", 100, 0, 1)
    wall = Buffer("wall", 16, 0, 9)
    later = Buffer("later", wanted, 1, 2)
    assert offsets("tlsf", freed, wall, later)["later"] == offset


def test_tlsf_skips_a_block_of_a_class_that_may_be_too_small():
    # 1000 bytes are in the class from 992 to 1007. A request for 1000 bytes searches
    # only the classes above it.
    freed, wall = Buffer("freed", 1000, 0, 1), Buffer("wall", 16, 0, 9)
    later = [Buffer("too near", 1000, 1, 2), Buffer("fits", 992, 1, 2)]
    assert offsets("tlsf", freed, wall, later[0])["too near"] == 1016
    assert offsets("tlsf", freed, wall, later[1])["fits"] == 0


def test_tlsf_merges_and_takes_the_oldest_block():
    merged = [
        Buffer("a", 32, 0, 1),
        Buffer("b", 32, 0, 2),
        Buffer("wall", 32, 0, 9),
        Buffer("both", 64, 2, 3),
    ]
    assert offsets("tlsf", *merged)["both"] == 0
    oldest = [
        Buffer("freed later", 32, 0, 2),
        Buffer("wall", 32, 0, 9),
        Buffer("freed first", 32, 0, 1),
        Buffer("end", 32, 0, 9),
        Buffer("wanted", 32, 2, 3),
    ]
    assert offsets("tlsf", *oldest)["wanted"] == 64


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30), st.randoms())
def test_tlsf_is_optimal_for_nested_live_ranges(powers: list[int], random: Random):
    """Nested live ranges end in reverse order, so the memory is never fragmented."""
    n = len(powers)
    nested = [
        Buffer(f"b{i}", 1 << power, i, 2 * n - i + 1) for i, power in enumerate(powers)
    ]
    random.shuffle(nested)
    assert solve(Problem(nested), "tlsf").optimal


HARD = Problem(
    [
        Buffer(f"b{i}", size, start, start + length)
        for i, (size, start, length) in enumerate(
            (1 + i * 37 % 61, i * 7 % 40, 2 + i * 5 % 11) for i in range(40)
        )
    ]
)
"""A problem on which largest-first misses the lower bound."""
