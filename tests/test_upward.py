"""Tests that upward branch and bound decides exactly which capacities suffice."""

import itertools
import random
from collections.abc import Sequence
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from tensorplan.planning import Buffer, Limits, Problem, peak_of, solve, validate
from tensorplan.planning.solver.budget import SearchBudget
from tensorplan.planning.solver.gaps import Gaps
from tensorplan.planning.solver.search import FEASIBLE, INFEASIBLE, SearchOutcome
from tensorplan.planning.solver.upward import UpwardSearch


@st.composite
def any_buffers(draw: st.DrawFn) -> list[Buffer]:
    """Buffers with gaps and alignments, of which the first may have a given offset."""
    buffers: list[Buffer] = []
    largest = draw(st.sampled_from([3, 12, 40]))
    for i in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 7))
        end = start + draw(st.integers(1, 6))
        gaps = [(start + 1, end - 1)] if end - start > 2 and draw(st.booleans()) else []
        alignment = draw(st.sampled_from([1, 2, 3, 8]))
        is_given = i == 0 and draw(st.booleans())
        offset = alignment * draw(st.integers(0, largest)) if is_given else None
        size = draw(st.integers(1, largest))
        buffers.append(Buffer(str(i), size, start, end, alignment, gaps, offset))
    return buffers


def minimum(buffers: list[Buffer]) -> int:
    """The minimum peak, by brute force: first fit in some order is optimal."""
    gaps = Gaps(buffers)
    orders = itertools.permutations(range(len(buffers)))
    return min(peak_of(buffers, gaps.place(order)) for order in orders)


@given(any_buffers(), st.randoms(use_true_random=False))
@settings(max_examples=examples(500), deadline=None)
def test_plan_is_found_exactly_if_one_exists(
    buffers: list[Buffer], chance: random.Random
) -> None:
    least = minimum(buffers)
    search = UpwardSearch(buffers)
    order = chance.sample(range(len(buffers)), len(buffers))
    assert search.fit(least - 1, order, 10**6).status == INFEASIBLE
    found = search.fit(least, order, 10**6)
    assert found.status == FEASIBLE
    assert validate(Problem(buffers), found.offsets) is None
    assert peak_of(buffers, found.offsets) == least


@given(any_buffers())
@settings(max_examples=examples(200), deadline=None)
def test_auto_proves_plans_of_any_kind(buffers: list[Buffer]) -> None:
    plan = solve(Problem(buffers))
    assert plan.optimal
    assert plan.peak == minimum(buffers)


def test_padding_counts_while_it_searches() -> None:
    """Six buffers fill their blocks of 64 bytes in part, and one of them fits nowhere
    in two live ranges: this is proved after some thousand sections, not 26,000."""
    rows = (4, 2, 40), (68, 8, 40), (1, 11, 13), (8, 19, 26), (8, 21, 26)
    rows = *rows, (16, 25, 38), (4, 32, 35)
    buffers = [Buffer("", *row, 64) for row in rows]
    buffers.append(Buffer("", 8, 6, 40, 64, [(22, 37)]))
    search = UpwardSearch(buffers)
    assert search.fit(387, range(8), 10_000).status == INFEASIBLE
    assert search.fit(388, range(8), 10_000).status == FEASIBLE


def test_proof_takes_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that the lower bound is too low is followed by one for the best peak."""
    rows = (4, 7, 9), (8, 8, 9), (4, 2, 8), (16, 4, 6), (4, 6, 7)
    buffers = [Buffer("", *row, 64) for row in rows]
    buffers.append(Buffer("", 8, 3, 14, 64, [(11, 13)]))
    tried: list[int] = []
    fit = UpwardSearch.fit

    def noted(
        self: UpwardSearch, capacity: int, order: Sequence[int], limit: int
    ) -> SearchOutcome:
        tried.append(capacity)
        return fit(self, capacity, order, limit)

    monkeypatch.setattr(UpwardSearch, "fit", noted)
    plan = solve(Problem(buffers))
    assert plan.optimal
    assert tried == [plan.lower_bound, plan.peak - 1]


def test_irregular_problems_spend_little_of_the_budget() -> None:
    """Without numba, an unproved problem takes seconds, not minutes."""
    chance = random.Random(2)
    starts = [chance.randrange(20) for _ in range(20)]
    buffers = [
        Buffer("", chance.randint(1, 200), start, start + chance.randint(1, 8), align)
        for start, align in zip(starts, itertools.cycle((1, 4, 64)), strict=False)
    ]
    spent: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        spend = SearchBudget.spend

        def note(self: SearchBudget, work: int, since: float) -> None:
            spent.append(work)
            spend(self, work, since)

        patch.setattr(SearchBudget, "spend", note)
        solve(Problem(buffers), "auto", Limits(effort=0.1))
    assert 0 < sum(spent) < 17_000_000


@pytest.mark.parametrize("size", [2**62, 10**30])
def test_sizes_beyond_64_bits(size: int) -> None:
    buffers = [Buffer(str(n), size - n, n % 3, n % 3 + 2, 1 + n % 2) for n in range(5)]
    plan = solve(Problem(buffers), "auto", Limits(effort=0.01))
    assert plan.peak == minimum(buffers)


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
def test_compiled_search_takes_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    starts = [chance.randrange(30) for _ in range(40)]
    buffers = [
        Buffer("", chance.randint(1, 50), start, start + chance.randint(1, 9), align)
        for start, align in zip(starts, itertools.cycle((1, 4)), strict=False)
    ]
    order = chance.sample(range(40), 40)
    bound = Problem(buffers).lower_bound
    outcomes = []
    for fast in (False, True):
        monkeypatch.setattr(
            "tensorplan.planning.solver.search.pays", lambda *_, f=fast: f
        )
        search = UpwardSearch(buffers)
        outcomes.append(
            [search.fit(bound + more, order, 20_000) for more in (0, 9, 99)]
        )
    assert [(o.status, o.work) for o in outcomes[0]] == [
        (o.status, o.work) for o in outcomes[1]
    ]
    assert outcomes[0][-1] == outcomes[1][-1]
