"""Tests the choice of evictions: their cost is minimal, as other searches prove."""

from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from tensorplan.planning import Buffer
from tensorplan.planning.baselines.spilling import banked_greedy, furthest_next_use
from tensorplan.planning.scheduling.residency import (
    Choice,
    Gap,
    Residency,
    ResidencyProblem,
    cheapest,
)


def problem_of(
    values: list[tuple[int, list[int]]], capacity: int, direct: bool
) -> ResidencyProblem:
    """A problem of values, each given by its size and the steps of its uses."""
    steps = max((uses[-1] for _, uses in values), default=0) + 1
    live = [0] * steps
    for size, uses in values:
        for step in range(uses[0], uses[-1] + 1):
            live[step] += size
    sizes = [size for size, _ in values]
    gaps = [
        Gap(value, start + 1, end, size, value, (direct, direct))
        for value, (size, uses) in enumerate(values)
        for start, end in pairwise(uses)
    ]
    return ResidencyProblem(live, capacity, sizes, sizes, gaps)


@st.composite
def problems(draw: st.DrawFn) -> ResidencyProblem:
    random = draw(st.randoms(use_true_random=False))
    values: list[tuple[int, list[int]]] = []
    for _ in range(draw(st.integers(1, 4))):
        uses = sorted(random.sample(range(10), random.randint(1, 3)))
        uses = uses if len(uses) > 1 else uses * random.randint(1, 2)
        values.append((random.choice([1, 2, 2, 3, 8]), uses))
    total = sum(size for size, _ in values)
    problem = problem_of(values, random.randint(0, total), random.random() < 0.5)
    if random.random() < 0.3:
        problem = with_parts(problem, random)
    return written_again(problem, random) if random.random() < 0.5 else problem


def with_parts(problem: ResidencyProblem, random: Random) -> ResidencyProblem:
    """The problem with some uses that access, or copy, parts of an evicted value."""
    gaps = list(problem.gaps)
    copied = {
        (gap.value, step): random.randrange(problem.sizes[gap.value])
        for gap in gaps
        for step in (gap.start - 1, gap.end)
        if gap.direct[0] and random.random() < 0.5
    }
    for number, gap in enumerate(gaps):
        ends = (copied.get((gap.value, step), 0) for step in (gap.start - 1, gap.end))
        before, after = ends
        gaps[number] = replace(gap, staged=(before, after))
    for number, (gap, next) in enumerate(pairwise(gaps)):
        if gap.value == next.value and gap.direct[1]:
            gaps[number] = replace(gap, saving=random.randint(0, gap.cost))
    return replace(problem, gaps=gaps)


def written_again(problem: ResidencyProblem, random: Random) -> ResidencyProblem:
    """The problem, in which some uses write, and some cannot access evicted values."""
    gaps: list[Gap] = []
    first: list[int] = []
    for gap in problem.gaps:
        is_same = bool(gaps) and gaps[-1].value == gap.value
        is_direct = gaps[-1].direct[1] if is_same else random.random() < 0.5
        if not is_same or random.random() < 0.5:
            first.append(problem.first[gap.value])
        is_one_use = gap.end < gap.start
        direct = (is_direct, is_direct if is_one_use else random.random() < 0.5)
        gaps.append(replace(gap, contents=len(first) - 1, direct=direct))
    return replace(problem, gaps=gaps, first=first)


def freed(problem: ResidencyProblem, away: set[int], value: int, step: int) -> int:
    """The bytes of a value that are free in a step, by the definition."""
    size = problem.sizes[value]
    gaps = [(i, g) for i, g in enumerate(problem.gaps) if g.value == value]
    if any(g.start <= step < g.end and i in away for i, g in gaps):
        return size
    around = [i for i, g in gaps if step in (g.start - 1, g.end)]
    is_direct = {g.direct[step == g.end] for i, g in gaps if i in around}
    if is_direct != {True} or not all(index in away for index in around):
        return 0
    (staged,) = {g.staged[step == g.end] for i, g in gaps if i in around}
    return size - staged


def fits(problem: ResidencyProblem, away: set[int]) -> bool:
    values = range(len(problem.sizes))
    free = [
        sum(freed(problem, away, value, step) for value in values)
        for step in range(len(problem.live))
    ]
    pairs = zip(problem.live, free, strict=True)
    return all(bytes - free <= problem.capacity for bytes, free in pairs)


def cost(problem: ResidencyProblem, away: set[int]) -> int:
    contents = {problem.gaps[index].contents for index in away}
    gaps = sum(problem.gaps[index].cost for index in away)
    gaps -= sum(problem.gaps[index].saving for index in away if index + 1 in away)
    return gaps + sum(problem.first[what] for what in contents)


def has_all(problem: ResidencyProblem, away: set[int]) -> bool:
    """Whether `away` contains all gaps that its gaps need."""
    return all(away.issuperset(problem.gaps[index].needs) for index in away)


def least(problem: ResidencyProblem) -> int | None:
    """The minimum cost, found by exhaustive search. None if no choice fits."""
    every = range(len(problem.gaps))
    choices = (
        set(away) for n in range(len(every) + 1) for away in combinations(every, n)
    )
    possible = (c for c in choices if has_all(problem, c) and fits(problem, c))
    return min((cost(problem, choice) for choice in possible), default=None)


@st.composite
def problems_with_needs(draw: st.DrawFn) -> ResidencyProblem:
    """Problems in which some gaps need other gaps, transitively."""
    problem = draw(problems())
    random = draw(st.randoms(use_true_random=False))
    needs: list[set[int]] = [set() for _ in problem.gaps]
    for _ in range(random.randint(1, 4) if len(needs) > 1 else 0):
        gap, other = random.sample(range(len(needs)), 2)
        needs[gap].add(other)
    for _ in needs:
        for mine in needs:
            mine.update(*(needs[other] for other in list(mine)))
    gaps = [
        replace(gap, needs=sorted(others - {index}))
        for index, (gap, others) in enumerate(zip(problem.gaps, needs, strict=True))
    ]
    return replace(problem, gaps=gaps)


def check(problem: ResidencyProblem, found: Residency) -> None:
    away = set(found.gaps)
    assert has_all(problem, away)
    assert found.cost == cost(problem, away) == Choice(problem, found.gaps).cost
    assert found.fits == fits(problem, away)


@settings(max_examples=examples(200))
@given(problems())
def test_small_problems_are_solved(problem: ResidencyProblem) -> None:
    found = cheapest(problem)
    check(problem, found)
    wanted = least(problem)
    assert found.fits == (wanted is not None) == (problem.lowest <= problem.capacity)
    if wanted is not None:
        assert found.bound <= wanted == found.cost
    assert found == cheapest(problem)


@settings(max_examples=examples(50))
@given(problems())
def test_uses_may_last_several_steps(problem: ResidencyProblem) -> None:
    """Two steps for each one have the same optimum."""
    gaps = [
        replace(
            gap,
            start=2 * gap.start,
            end=2 * gap.end,
            direct=(2 * gap.direct[0], 2 * gap.direct[1]),
        )
        for gap in problem.gaps
    ]
    live = [bytes for bytes in problem.live for _ in range(2)]
    found = cheapest(replace(problem, live=live, gaps=gaps))
    wanted = least(problem)
    assert found.fits == (wanted is not None)
    if wanted is not None:
        assert found.bound <= wanted == found.cost


@settings(max_examples=examples(200))
@given(problems_with_needs())
def test_needed_gaps_are_chosen_together(problem: ResidencyProblem) -> None:
    found = cheapest(problem)
    check(problem, found)
    wanted = least(problem)
    assert found.fits == (wanted is not None)
    if wanted is not None:
        assert found.bound <= wanted <= found.cost


@settings(max_examples=examples(100))
@given(st.one_of(problems(), problems_with_needs()))
def test_exact_search_proves_the_optimum(problem: ResidencyProblem) -> None:
    pytest.importorskip("ortools")
    from tensorplan.planning.scheduling.exact_residency import proved

    found = proved(problem)
    check(problem, found)
    if found.fits:
        assert found.optimal
        assert found.cost == least(problem)


def test_value_of_a_single_step_is_freed_once() -> None:
    """The heuristic search alone does not prove that this is the optimum."""
    pytest.importorskip("ortools")
    from tensorplan.planning.scheduling.exact_residency import proved

    values = [(3, [0, 4]), (5, [3, 3]), (5, [3, 3]), (4, [0, 4])]
    found = proved(problem_of(values, 4, direct=True))
    assert (found.cost, found.bound) == (26, 26)


@settings(max_examples=examples(100))
@given(problems())
def test_beladys_rule_is_never_better(problem: ResidencyProblem) -> None:
    found = cheapest(problem)
    for all_uses in (False, True):
        rule = furthest_next_use(problem, all_uses)
        if found.fits:
            assert fits(problem, set(rule.gaps))
            assert found.cost <= rule.cost


def test_beladys_rule_evicts_a_large_value() -> None:
    """The value with the furthest next use is large, but a small one suffices."""
    values = [(8, [0, 9]), (1, [1, 8]), (8, [2, 3])]
    problem = problem_of(values, 16, direct=False)
    assert furthest_next_use(problem).cost == 16
    assert cheapest(problem).cost == 2


def test_gaps_that_free_bytes_only_together() -> None:
    """Operations can access evicted values, so a use is free only with the gaps on both
    sides."""
    values = [
        (16, [8, 12, 15]),
        (16, [4, 5, 7]),
        (32, [9, 17]),
        (4, [14, 16]),
        (1, [5, 8]),
        (1, [8, 13, 14, 15]),
        (16, [0, 3, 7, 8]),
    ]
    found = cheapest(problem_of(values, 32, direct=True))
    assert (found.cost, found.fits) == (62, True)


def test_banked_greedy_takes_the_largest_first() -> None:
    buffers = [Buffer("a", 4, 0, 2), Buffer("b", 8, 1, 3), Buffer("c", 4, 2, 4)]
    assert banked_greedy(buffers, [8, 8]) == [1, 0, 1]
    assert banked_greedy(buffers, [8]) == [1, 0, 1]
    assert banked_greedy(buffers, [12]) == [0, 0, 0]
    assert banked_greedy(buffers, [12], [[0, 1], [1, 2], [2, 3]]) == [0, 0, 0]
    assert banked_greedy(buffers, [11], [[0, 1], [1, 2], [2, 3]]) == [1, 0, 1]
