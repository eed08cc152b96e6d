"""Tests the search for gaps between placed buffers against an exhaustive search."""

import random
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from tensorplan.planning import Buffer, Limits, Problem, peak_of, round_up, solve
from tensorplan.planning.solver.gaps import LOWEST, SMALLEST, TOPMOST, WAITING, Gaps
from tensorplan.planning.solver.greedy import plans, plans_below

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")

CHOICES = (LOWEST, SMALLEST, TOPMOST)


@st.composite
def any_buffers(draw: st.DrawFn) -> list[Buffer]:
    """Buffers with gaps and alignments, in the order of placement."""
    buffers: list[Buffer] = []
    for i in range(draw(st.integers(1, 25))):
        start = draw(st.integers(0, 20))
        end = start + draw(st.integers(1, 12))
        gaps = [(start + 1, end - 1)] if end - start > 2 and draw(st.booleans()) else []
        alignment = draw(st.sampled_from([1, 2, 3, 8]))
        size = draw(st.integers(1, 20))
        buffers.append(Buffer(str(i), size, start, end, alignment, gaps))
    return buffers


def one_by_one(buffers: Sequence[Buffer], choice: int) -> list[int]:
    """The expected result of `Gaps.place`, from comparing all pairs of buffers."""
    offsets: list[int] = []
    for buffer in buffers:
        taken = sorted(
            (offset, offset + other.size)
            for offset, other in zip(offsets, buffers, strict=False)
            if other.overlaps(buffer)
        )
        found = list(_gaps(taken, buffer))
        smallest = min(found, key=lambda gap: gap[1])
        offsets.append((found[0], smallest, found[-1])[choice][0])
    return offsets


def _gaps(
    taken: Sequence[tuple[int, int]], buffer: Buffer
) -> Iterator[tuple[int, float]]:
    """The offsets where the buffer fits, and the free bytes from there on."""
    offset = 0
    for low, high in taken:
        if low - offset >= buffer.size:
            yield offset, low - offset
        offset = max(offset, round_up(high, buffer.alignment))
    yield offset, float("inf")


@pytest.mark.parametrize("few", [0, 2000])
@pytest.mark.parametrize("choice", CHOICES)
@given(buffers=any_buffers())
@settings(max_examples=examples(300), deadline=None)
def test_gaps_agree_with_exhaustive_search(
    choice: int, few: int, buffers: list[Buffer]
) -> None:
    order = range(len(buffers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tensorplan.planning.solver.gaps._FEW", few)
        found = Gaps(buffers).place(order, choice)
    assert found == one_by_one(buffers, choice)


@needs_numba
@pytest.mark.parametrize("choice", CHOICES)
def test_compiled_search_gives_the_same_offsets(
    choice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(choice)
    starts = [chance.randrange(200) for _ in range(400)]
    buffers = [
        Buffer("", chance.randint(1, 99), start, start + chance.randint(1, 60))
        for start in starts
    ]
    order = chance.sample(range(400), 400)
    plain = Gaps(buffers).place(order, choice)
    monkeypatch.setattr("tensorplan.planning.solver.gaps.pays", lambda *_: True)
    assert Gaps(buffers).place(order, choice) == plain


@given(any_buffers(), st.integers(1, 40))
@settings(max_examples=examples(200), deadline=None)
def test_greedy_plans_below_a_peak(buffers: list[Buffer], peak: int) -> None:
    low = [plan for plan in plans(buffers) if peak_of(buffers, plan) < peak]
    assert list(plans_below(buffers, lambda: peak)) == low


@pytest.mark.parametrize("is_fast", [False, pytest.param(True, marks=needs_numba)])
def test_placement_without_patience_stops_at_the_first_waiting_buffer(
    is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorplan.planning.solver.gaps.pays", lambda *_: is_fast)
    buffers = [Buffer("", size, 0, 1) for size in (4, 8, 2)]
    around = partial(Gaps(buffers).place_around, [WAITING] * 3, range(3), capacity=10)
    assert around() == [0, WAITING, 4]
    assert around(is_patient=False) == [0, WAITING, WAITING]


def test_auto_is_never_worse_than_greedy_on_many_buffers() -> None:
    """`auto` is as good as greedy planners for short live ranges around long ones,
    where the skyline alone is worse than greedy-by-size."""
    chance = random.Random(11)
    buffers = [Buffer("long", 1, 0, 6000)]
    for step in range(6000):
        end = step + (chance.randrange(2, 900) if chance.random() < 0.1 else 2)
        buffers.append(Buffer("", chance.choice((1, 2, 3, 500)), step, end))
    problem, limits = Problem(buffers), Limits(effort=0.0001)
    found = solve(problem, "auto", limits).peak
    assert found <= solve(problem, "greedy-by-size").peak
    assert found <= solve(problem, "best-fit").peak
