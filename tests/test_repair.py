"""Tests core-first planning and repair: sound plans within a capacity, also in compiled
code."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain as chain_of
from itertools import repeat
from math import inf

import pytest

from tensorplan.planning import (
    Buffer,
    Limits,
    Problem,
    deadline,
    peak_of,
    solve,
    validate,
)
from tensorplan.planning.solver import kernels
from tensorplan.planning.solver.budget import SearchBudget
from tensorplan.planning.solver.core import SLACKS, CoreFirst
from tensorplan.planning.solver.gaps import Gaps
from tensorplan.planning.solver.repair import WAITING, Repair
from tensorplan.planning.solver.sections import Part, parts_of
from tensorplan.planning.solver.skyline import skyline_plans


def chain(count: int, seed: int = 0) -> Part:
    """Short live ranges, of which one in twenty is long, and a peak in the middle."""
    chance = random.Random(seed)
    lives: list[tuple[int, int]] = []
    sizes: list[int] = []
    for step in range(count):
        long = chance.random() < 0.05
        lives.append((step, step + chance.randrange(2, count // 4 if long else 6)))
        sizes.append(chance.randrange(1, 33))
    lives.append((count // 2, count // 2 + 2))
    sizes.append(100)
    [part] = parts_of(lives, sizes)
    return part


def buffers_of(part: Part) -> list[Buffer]:
    columns = zip(part.size, part.first, part.end, strict=True)
    return [Buffer("", *column) for column in columns]


def unsound(part: Part, offsets: list[int]) -> str | None:
    return validate(Problem(buffers_of(part)), offsets)


def budget() -> SearchBudget:
    return SearchBudget(Limits(), 0)


def from_nothing(
    buffers: Sequence[Buffer], capacity: int, limit: int
) -> Sequence[int] | None:
    """Places the buffers in the order of their live ranges, which needs repairs."""
    given = [WAITING if b.offset is None else b.offset for b in buffers]
    weights = [1] * len(buffers)
    order = range(len(buffers))
    return Repair(buffers).fit(capacity, given, weights, order, limit, budget())


def test_both_forms_of_ascend_sort() -> None:
    chance = random.Random(0)
    for count in range(60):
        indices = list(range(count))
        chance.shuffle(indices)
        keys = [chance.randrange(1 << 59) for _ in indices]
        by_shell = list(indices)
        used = count - count // 5  # the others stay where they are
        kernels.ascend(indices, used, keys)
        kernels._ascend(by_shell, used, keys)
        assert indices == by_shell
        found = [keys[i] for i in indices[:used]]
        assert found == sorted(found)


def test_buffer_is_placed_by_ejecting_another() -> None:
    # The small buffer lies in the middle, and leaves no room for both large ones.
    [part] = parts_of([(0, 2), (0, 3), (1, 3)], [4, 2, 4])
    offsets = [WAITING, WAITING, WAITING]
    small = part.size.index(2)
    offsets[small] = 2
    rest = [i for i in range(3) if i != small]
    found = Repair(buffers_of(part)).fit(10, offsets, [1, 1, 1], rest, 10_000, budget())
    assert found is not None
    assert unsound(part, list(found)) is None
    assert part.peak(found) == 10


def test_gives_up_where_nothing_fits() -> None:
    part = chain(100)
    count = len(part.size)
    spent = budget()
    found = Repair(buffers_of(part)).fit(
        max(part.load) - 1,
        [WAITING] * count,
        [1] * count,
        range(count),
        100_000,
        spent,
    )
    assert found is None
    assert 100_000 <= budget().left - spent.left < 150_000


def test_gives_up_on_a_buffer_that_is_too_large() -> None:
    [part] = parts_of([(0, 2)], [4])
    assert from_nothing(buffers_of(part), 3, 1000) is None


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
def test_compiled_repair_returns_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    load = max(chain(400).load)
    for buffers in (buffers_of(chain(400)), of_any_kind()):
        for capacity in (load, load * 101 // 100, load * 2):
            plain = from_nothing(buffers, capacity, 1_000_000)
            with monkeypatch.context() as patch:
                patch.setattr("tensorplan.planning.solver.repair.pays", lambda *_: True)
                assert from_nothing(buffers, capacity, 1_000_000) == plain


def of_any_kind() -> list[Buffer]:
    """Buffers with alignments and gaps. One has a given offset in the middle."""
    buffers = [
        replace(
            b,
            alignment=(1, 4, 16)[i % 3],
            gaps=((b.start + 1, b.end - 1),) if i % 2 and b.end - b.start > 2 else (),
        )
        for i, b in enumerate(buffers_of(chain(400)))
    ]
    return [replace(buffers[0], offset=160, alignment=1), *buffers[1:]]


def test_buffers_of_any_kind_are_placed_by_ejection() -> None:
    problem = Problem(of_any_kind())
    capacity = problem.lower_bound * 103 // 100
    order = range(len(problem.buffers))
    given = [WAITING if b.offset is None else b.offset for b in problem.buffers]
    first_fit = Gaps(problem.buffers).place_around(given, order, capacity=capacity)
    assert WAITING in first_fit
    found = from_nothing(problem.buffers, capacity, 10_000_000)
    assert found is not None
    assert validate(problem, found) is None
    assert peak_of(problem.buffers, found) <= capacity


def test_given_offset_is_kept() -> None:
    """A buffer that needs the bytes of the given one cannot be placed there."""
    given = Buffer("given", 2, 0, 2, offset=4)
    assert from_nothing([given, Buffer("large", 8, 0, 2)], 10, 10_000) is None
    assert from_nothing([given, Buffer("large", 8, 0, 2)], 14, 10_000) == [4, 6]


@pytest.mark.parametrize("seed", range(3))
def test_core_first_is_near_the_lower_bound(seed: int) -> None:
    part = chain(2000, seed)
    capacity = max(part.load) * 101 // 100
    core = CoreFirst(part)
    tries = (core.fit(capacity, slack, 4, budget()) for slack in SLACKS)
    offsets = next(found for found in tries if found is not None)
    assert part.peak(offsets) <= capacity
    assert unsound(part, list(offsets)) is None


def test_each_call_packs_the_core_in_the_next_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []  # the number of buffers of each plan

    def counted(part: Part) -> Iterator[list[int]]:
        for plan in skyline_plans(part):
            tried.append(len(plan))
            yield plan

    monkeypatch.setattr("tensorplan.planning.solver.core.skyline_plans", counted)
    part = chain(400)
    monkeypatch.setattr(CoreFirst, "WORK", 2 * len(part.size))
    core = CoreFirst(part)
    for calls in (1, 2):
        assert core.fit(max(part.load), 0.12, 1, budget()) is None
        assert tried.count(max(tried)) == calls


def test_size_of_a_core_is_estimated_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CoreFirst, "_core", None)
    lifespans = [(step, step + 3) for step in range(100)]
    for top, is_small in ((64, False), (640, True)):
        sizes = [top if step == 50 else 64 for step in range(100)]
        [part] = parts_of(lifespans, sizes)
        assert CoreFirst(part).is_small(SLACKS[0]) == is_small


def test_core_first_respects_its_budget() -> None:
    part = chain(2000)
    spent = SearchBudget(Limits(effort=0.00005), 0)
    assert CoreFirst(part).fit(max(part.load), 0.06, 4, spent) is None
    assert spent.left > -10_000


def test_deadline_may_pass_between_two_reads_of_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = chain_of([1.0], repeat(-inf))
    monkeypatch.setattr(deadline, "left", lambda: next(left))
    assert SearchBudget(Limits(time_limit=600), 0).left > 0
    assert SearchBudget(Limits(time_limit=600), 0).left == 0


def test_tallest_is_the_highest_load_of_a_live_range() -> None:
    part = chain(300)
    spans = zip(part.first, part.end, strict=True)
    assert part.tallest == [max(part.load[first:end]) for first, end in spans]


@pytest.mark.parametrize("given", [0, 40])
def test_cores_of_buffers_with_gaps(given: int) -> None:
    """Searches among all of these buffers end above the bound."""
    chance = random.Random(10)
    buffers: list[Buffer] = []
    for start in range(500):
        end = start + min(int(chance.paretovariate(0.8)) + 2, 150)
        gaps: list[tuple[int, int]] = []
        if end - start > 6:
            gap = chance.randrange(start + 1, end - 3)
            gaps.append((gap, chance.randrange(gap + 1, end - 1)))
        size = 64 * chance.randint(1, 2000)
        buffers.append(Buffer("", size, start, end, 64, gaps))
    if given:
        found = solve(Problem(buffers)).offsets[:given]
        first = [replace(b, offset=at) for b, at in zip(buffers, found, strict=False)]
        buffers[:given] = first
    assert solve(Problem(buffers), limits=Limits(effort=0.5)).optimal
