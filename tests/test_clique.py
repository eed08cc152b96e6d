"""Tests the bound by buffers of which any two overlap, against all sets of buffers."""

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from tensorplan.planning import Buffer, Limits, Problem, solve
from tensorplan.planning.solver.budget import SearchBudget
from tensorplan.planning.solver.clique import heaviest_clique


def drawn(count: int, seed: int) -> list[Buffer]:
    """Most buffers have a gap."""
    chance = random.Random(seed)
    buffers: list[Buffer] = []
    for number in range(count):
        start, a, b, end = sorted(chance.sample(range(24), 4))
        gaps = ((a, b),) if number % 4 else ()
        size = chance.randint(1, 99)
        buffers.append(Buffer("", size, start, end, 1 + seed, gaps))
    return buffers


def needed(clique: Sequence[Buffer], unit: int) -> int:
    padded = [-(-b.size // unit) * unit for b in clique]
    return min(sum(padded) - p + b.size for p, b in zip(padded, clique, strict=True))


def bound_of(buffers: list[Buffer], least: int = 0) -> int:
    budget = SearchBudget(Limits(), 0)
    return heaviest_clique(buffers, least, budget)


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_heaviest_of_all_cliques(seed: int) -> None:
    buffers = drawn(12, seed)
    cliques = (
        chosen
        for count in range(1, len(buffers) + 1)
        for chosen in combinations(buffers, count)
        if all(one.overlaps(other) for one, other in combinations(chosen, 2))
    )
    heaviest = max(needed(chosen, 1 + seed) for chosen in cliques)
    assert bound_of(buffers) == bound_of(buffers, heaviest - 1) == heaviest
    assert bound_of(buffers, heaviest + 1) == heaviest + 1


def test_stops_with_a_sound_bound() -> None:
    buffers = drawn(300, 0)
    plan = solve(Problem(buffers), "greedy-by-size")
    assert plan.lower_bound < bound_of(buffers) <= plan.peak


def test_takes_cliques_of_any_length() -> None:
    buffers = [Buffer("", 1, 0, 3) for _ in range(700)]
    assert bound_of(buffers, 699) == 700


def test_auto_proves_plans_that_no_step_explains() -> None:
    """Of three buffers, any two overlap, but no step has all three."""
    spans = (0, 2, ()), (1, 3, ()), (0, 3, ((1, 2),))
    sizes = [100, *range(150, 1250, 100)]
    buffers = [Buffer("", 1000, a, b, 64, gaps) for a, b, gaps in spans]
    buffers += [Buffer("", size, 0, 3, 64) for size in sizes]
    plan = solve(Problem(buffers), limits=Limits(effort=0.1))
    assert plan.optimal
    assert plan.peak == needed(buffers, 64) > plan.lower_bound
