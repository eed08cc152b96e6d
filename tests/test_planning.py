"""Tests that planning strategies are sound and deterministic, and that bounds are
correct."""

import itertools
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplan.planning import (
    STRATEGIES,
    Buffer,
    Limits,
    Placement,
    Problem,
    UnsoundPlanError,
    names,
    registry,
    round_up,
    solve,
    strategy,
    validate,
)


@st.composite
def buffers(draw: st.DrawFn, max_size: int = 12) -> list[Buffer]:
    alignments = draw(st.sampled_from([(1,), (64,), (1, 4, 64), (16, 24)]))
    return [
        Buffer(
            f"b{i}",
            draw(st.integers(0, 200)),
            start := draw(st.integers(0, 10)),
            end := start + draw(st.integers(1, 6)),
            draw(st.sampled_from(alignments)),
            draw(gaps(start, end)),
        )
        for i in range(draw(st.integers(0, max_size)))
    ]


@st.composite
def gaps(draw: st.DrawFn, start: int, end: int) -> list[tuple[int, int]]:
    """At most one gap, and mostly none."""
    if end - start < 3 or draw(st.integers(0, 3)):
        return []
    first = draw(st.integers(start + 1, end - 2))
    return [(first, draw(st.integers(first + 1, end - 1)))]


@pytest.mark.thorough
@pytest.mark.parametrize("name", STRATEGIES)
@given(buffers())
def test_plans_are_sound_and_within_bounds(name: str, problem: list[Buffer]) -> None:
    plan = solve(Problem(problem), name)
    assert validate(Problem(problem), plan.offsets) is None
    most = sum(b.size + b.alignment - 1 for b in problem)
    assert Problem(problem).lower_bound <= plan.peak <= most
    assert solve(Problem(problem), name).offsets == plan.offsets


@given(buffers())
def test_naive_strategy_shares_nothing(problem: list[Buffer]) -> None:
    plan = solve(Problem(problem), "naive")
    ranges = sorted((o, o + b.size) for o, b in zip(plan.offsets, problem, strict=True))
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))


@given(buffers(max_size=8))
def test_lower_bound_is_the_largest_sum_of_live_bytes(problem: list[Buffer]) -> None:
    sums = [
        sum(b.size for b in problem for start, end in b.live if start <= t < end)
        for t in range(20)
    ]
    assert Problem(problem).lower_bound >= max(sums)
    unaligned = [Buffer(b.id, b.size, b.start, b.end, 1, b.gaps) for b in problem]
    assert Problem(unaligned).lower_bound == max(sums)


@given(buffers(max_size=5))
def test_lower_bound_never_exceeds_the_optimum(problem: list[Buffer]) -> None:
    # Some order of first-fit placement gives an optimal plan, so all orders are tried.
    best = min(_first_fit_peak(order) for order in itertools.permutations(problem))
    assert Problem(problem).lower_bound <= best


def _first_fit_peak(order: tuple[Buffer, ...]) -> int:
    placed: list[tuple[int, Buffer]] = []
    for buffer in order:
        offset = 0
        for start, other in sorted(placed, key=lambda p: p[0]):
            if other.overlaps(buffer) and start < offset + buffer.size:
                offset = max(offset, round_up(start + other.size, buffer.alignment))
        placed.append((offset, buffer))
    return max((offset + b.size for offset, b in placed), default=0)


def test_reuse_reaches_the_lower_bound() -> None:
    chain = [Buffer(f"b{i}", 64, i, i + 2, 64) for i in range(10)]
    for name in ("greedy-by-size", "best-fit"):
        plan = solve(Problem(chain), name)
        assert plan.peak == 128
        assert plan.optimal


def test_best_fit_chooses_the_smallest_gap() -> None:
    problem = [
        Buffer("large gap", 100, 0, 2),
        Buffer("wall", 10, 0, 9),
        Buffer("small gap", 50, 0, 2),
        Buffer("end", 10, 0, 9),
        Buffer("wanted", 50, 3, 9),
    ]
    # By start, the larger first: "large gap" at [0, 100), "wall", "small gap", ...
    plan = solve(Problem(problem), "best-fit")
    by_id = dict(zip((b.id for b in problem), plan.offsets, strict=True))
    assert by_id == {
        "large gap": 0,
        "small gap": 100,
        "wall": 150,
        "end": 160,
        "wanted": 0,
    }


def test_large_problems_are_planned_quickly() -> None:
    many = [Buffer(f"b{i}", 64 + i % 97, i, i + 20, 64) for i in range(2000)]
    assert solve(Problem(many)).seconds < 5


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ([0, 64, 0], None),
        ([64, 0, 0], None),  # c is in another pool
        ([0], "there are 1 offsets, expected 3"),
        ([-64, 64, 0], "buffer a has offset -64, expected 0 or more"),
        ([0, 32, 0], "buffer b has offset 32, expected a multiple of 64"),
        ([0, 0, 0], "buffers a and b are both live in step 1 and share byte 0"),
        ([0, 64, 64], "buffer c has offset 64, expected 0"),
    ],
)
def test_validate(offsets: list[int], reason: str | None) -> None:
    problem = Problem(
        [
            Buffer("a", 64, 0, 2, 64),
            Buffer("b", 64, 1, 3, 64),
            Buffer("c", 64, 0, 9, offset=0, pool="other"),
        ]
    )
    assert validate(problem, offsets) == reason


def test_validate_sees_through_gaps() -> None:
    a = Buffer("a", 64, 0, 10, gaps=[(2, 4), (5, 7)])
    for start, end, sound in ((2, 4, True), (4, 5, False), (3, 6, False), (6, 7, True)):
        reason = validate(Problem([a, Buffer("b", 64, start, end)]), [0, 0])
        assert (reason is None) == sound


def test_given_offsets_and_pools() -> None:
    problem = Problem(
        [
            Buffer("fixed", 64, 0, 4, offset=128),
            Buffer("low", 128, 1, 3),
            Buffer("high", 64, 1, 3),
            Buffer("elsewhere", 100, 0, 4, pool="gpu:0"),
        ]
    )
    for name in STRATEGIES:
        plan = solve(problem, name)
        assert plan.offsets[0] == 128
        assert plan.lower_bound == 256 + 100 <= plan.peak
    assert solve(problem).offsets == [128, 0, 192, 0]
    assert solve(problem).optimal


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="problem has type int, expected Problem"):
        solve(cast(Any, 3))


def test_unsound_strategy_is_refused() -> None:
    @strategy("test-all-at-zero")
    def all_at_zero(problem: Problem, limits: Limits) -> Placement:
        return Placement([0] * len(problem.buffers))

    try:
        with pytest.raises(UnsoundPlanError, match="both live in step 1"):
            solve(
                Problem([Buffer("a", 1, 0, 2), Buffer("b", 1, 1, 3)]),
                "test-all-at-zero",
            )
    finally:
        del STRATEGIES["test-all-at-zero"]


def test_bad_values_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"strategy is 'nope', expected one of .*naive"
    ):
        solve(Problem([]), "nope")
    with pytest.raises(ValueError, match="size is -1, expected 0 or more"):
        Buffer("a", -1, 0, 1)
    with pytest.raises(ValueError, match=r"live range is \[2, 2\)"):
        Buffer("a", 1, 2, 2)
    with pytest.raises(ValueError, match="alignment is 0, expected 1 or more"):
        Buffer("a", 1, 0, 1, 0)
    with pytest.raises(ValueError, match="offset is 8, expected a multiple of 64"):
        Buffer("a", 1, 0, 1, 64, offset=8)
    with pytest.raises(ValueError, match=r"gap is \[1, 4\), expected within \[0, 4\)"):
        Buffer("a", 1, 0, 4, gaps=[(1, 4)])
    with pytest.raises(ValueError, match="strategy 'naive' already exists"):
        strategy("naive")(lambda problem, limits: Placement([]))


def test_installed_packages_add_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    def upwards(problem: Problem, limits: Limits) -> Placement:
        return Placement([64 * i for i in range(len(problem.buffers))])

    monkeypatch.setattr(registry, "_installed", lambda: {"upwards": lambda: upwards})
    assert "upwards" in names()
    problem = Problem([Buffer("a", 64, 0, 2), Buffer("b", 64, 1, 3)])
    assert solve(problem, "upwards").offsets == [0, 64]
