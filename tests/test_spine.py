"""Tests problems that few buffers connect, which are split and solved in pieces."""

import random
from itertools import accumulate, pairwise

import pytest
from rectangles import rectangle

from tensorplan.planning import Buffer, Limits, Problem, solve, validate
from tensorplan.planning.solver.search import FEASIBLE, INFEASIBLE, ValleySearch
from tensorplan.planning.solver.sections import Part, parts_of
from tensorplan.planning.solver.spine import split

LANES = (128, 96, 64)


def chain(pieces: int) -> list[Buffer]:
    """Rectangles in sequence above long buffers. An optimal plan has no holes."""
    buffers = [
        Buffer(f"{n}.{b.id}", b.size, b.start + 60 * n, b.end + 60 * n)
        for n in range(pieces)
        for b in rectangle(n, 110, 60, 1000)
    ]
    for lane, size in enumerate(LANES):
        steps = [0, *accumulate(range(37 + 20 * lane, 200)), 60 * pieces]
        bounds = sorted({min(step, 60 * pieces) for step in steps})
        buffers += [Buffer(f"{lane}.{a}", size, a, b) for a, b in pairwise(bounds)]
    return buffers


def part_of(buffers: list[Buffer]) -> Part:
    [part] = parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers])
    return part


def test_chain_of_hard_pieces_is_planned_without_holes() -> None:
    plan = solve(Problem(chain(10)), "auto", Limits(effort=0.03))
    assert plan.peak == 1000 + sum(LANES)
    assert plan.optimal


def test_pieces_are_placed_above_the_spine() -> None:
    part = part_of(chain(10))
    offsets, pieces = split(part)
    assert len(pieces) >= 10
    inside = {i for piece in pieces for i in piece.part.indices}
    spine = [i for i in range(len(part.size)) if i not in inside]
    assert len(spine) < 100
    for piece in pieces:
        base = min(part.first[i] for i in piece.part.indices)
        for section, floor in enumerate(piece.floor):
            tops = [
                offsets[i] + part.size[i]
                for i in spine
                if part.first[i] <= base + section < part.end[i]
            ]
            assert floor == max(tops, default=0)
        assert max(piece.needed) <= max(part.load)


def test_problems_connected_by_many_buffers_are_not_split() -> None:
    assert split(part_of(rectangle(1, 60, 60, 1000))) == ([], [])
    crossing = [Buffer(str(n), 10 + n % 7, n, n + 200) for n in range(900)]
    assert split(part_of(crossing)) == ([], [])


@pytest.mark.parametrize("seed", range(6))
def test_search_above_a_floor_is_exact(seed: int) -> None:
    chance = random.Random(seed)
    starts = [chance.randrange(6) for _ in range(7)]
    buffers = [
        Buffer(str(n), chance.randint(1, 9), start, start + chance.randint(1, 4))
        for n, start in enumerate(starts)
    ]
    for part in parts_of(
        [(b.start, b.end) for b in buffers], [b.size for b in buffers]
    ):
        floor = [chance.randrange(8) for _ in range(part.sections)]
        below = [Buffer("", f, s, s + 1, offset=0) for s, f in enumerate(floor)]
        columns = zip(part.size, part.first, part.end, strict=True)
        above = [Buffer("", *column) for column in columns]
        least = solve(Problem([*below, *above]), "auto")
        assert least.optimal
        search, order = ValleySearch(part, floor), range(len(part.size))
        found = search.fit(0, least.peak, order, 100_000)
        assert found.status == FEASIBLE
        offsets = [*(0 for _ in floor), *found.offsets]
        assert validate(Problem([*below, *above]), offsets) is None
        if least.peak > max(floor):
            found = search.fit(0, least.peak - 1, order, 100_000)
            assert found.status == INFEASIBLE


def test_pieces_do_not_depend_on_the_order_of_buffers() -> None:
    buffers, limits = chain(6), Limits(effort=0.02)
    peak = solve(Problem(buffers), "auto", limits).peak
    assert solve(Problem(buffers[::-1]), "auto", limits).peak == peak
