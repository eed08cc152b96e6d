"""Tests the strategy `auto`: its plans are valid, never worse than those of greedy
planners, and optimal if it says so."""

import inspect
import itertools
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rectangles import rectangle, worn_rectangle
from sampling import examples

from tensorplan.planning import (
    Buffer,
    Limits,
    Problem,
    Progress,
    deadline,
    peak_of,
    solve,
    validate,
)
from tensorplan.planning import problem as problem_module
from tensorplan.planning.solver import greedy, kernels
from tensorplan.planning.solver.auto import auto
from tensorplan.planning.solver.backbone import backbone, longest
from tensorplan.planning.solver.gaps import WAITING, Gaps
from tensorplan.planning.solver.search import FEASIBLE, INFEASIBLE, ValleySearch
from tensorplan.planning.solver.sections import parts_of
from tensorplan.planning.solver.skyline import skyline_plans
from tensorplan.planning.solver.squeaky import SqueakyWheel

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")


@st.composite
def plain_buffers(draw: st.DrawFn, max_size: int = 7) -> list[Buffer]:
    """Buffers with one alignment, and without gaps or given offsets."""
    alignment = draw(st.sampled_from([1, 1, 4]))
    largest = draw(st.sampled_from([3, 12, 100]))
    return [
        Buffer(
            f"b{i}",
            draw(st.integers(0, largest)),
            start := draw(st.integers(0, 8)),
            start + draw(st.integers(1, 6)),
            alignment,
        )
        for i in range(draw(st.integers(0, max_size)))
    ]


@st.composite
def any_buffers(draw: st.DrawFn) -> list[Buffer]:
    """Buffers that may have gaps, several alignments and a given offset."""
    buffers = draw(plain_buffers())
    changed: list[Buffer] = []
    for b in buffers:
        gaps = (
            [(b.start + 1, b.end - 1)] if b.end - b.start > 2 and draw(st.booleans())
            else []
        )  # fmt: skip
        alignment = draw(st.sampled_from([1, 2, 8]))
        changed.append(Buffer(b.id, b.size, b.start, b.end, alignment, gaps))
    if changed and draw(st.booleans()):
        b = changed[0]
        offset = b.alignment * draw(st.integers(0, 5))
        changed[0] = Buffer(b.id, b.size, b.start, b.end, b.alignment, b.gaps, offset)
    return changed


def minimum(buffers: list[Buffer]) -> int:
    """The minimum peak, by brute force: first fit in at least one order gives an
    optimal plan."""
    orders = itertools.permutations(range(len(buffers)))
    gaps = Gaps(buffers)
    return min(peak_of(buffers, gaps.place(order)) for order in orders)


@given(plain_buffers(max_size=6))
@settings(max_examples=examples(150), deadline=None)
def test_finds_and_proves_the_minimum(buffers: list[Buffer]) -> None:
    plan = solve(Problem(buffers), "auto")
    least = minimum(buffers)
    if all(b.alignment == 1 for b in buffers):
        assert plan.peak == least
        assert plan.optimal
    if plan.optimal:
        assert plan.peak == least


@given(any_buffers())
@settings(max_examples=examples(300), deadline=None)
def test_never_worse_than_greedy_planners(buffers: list[Buffer]) -> None:
    problem = Problem(buffers)
    plan = solve(problem, "auto")  # validates the plan
    assert plan.peak <= solve(problem, "greedy-by-size").peak
    assert plan.peak <= solve(problem, "best-fit").peak
    assert solve(problem, "auto").offsets == plan.offsets
    if len(buffers) <= 5 and plan.optimal:
        assert plan.peak == minimum(buffers)


@given(plain_buffers(), st.randoms(use_true_random=False))
@settings(max_examples=examples(250), deadline=None)
def test_order_and_names_do_not_matter(
    buffers: list[Buffer], chance: random.Random
) -> None:
    if any(b.alignment != 1 for b in buffers):
        return
    shuffled = [
        Buffer(f"x{i}", b.size, b.start, b.end, b.alignment)
        for i, b in enumerate(chance.sample(buffers, len(buffers)))
    ]
    plan = solve(Problem(buffers), "auto")
    assert solve(Problem(shuffled), "auto").peak == plan.peak


@pytest.mark.parametrize("seed", range(4))
def test_packs_a_rectangle_without_waste(seed: int) -> None:
    problem = Problem(rectangle(seed, 40, 60, 1000))
    plan = solve(problem, "auto")
    assert plan.peak == 1000
    assert plan.optimal
    assert solve(problem, "greedy-by-size").peak > 1000


@pytest.mark.parametrize("seed", range(4))
def test_padding_after_the_topmost_buffer_takes_no_memory(seed: int) -> None:
    """Only with the smallest buffer on top, the peak is the lower bound."""
    whole = [
        replace(b, size=64 * b.size, alignment=64)
        for b in rectangle(seed, 40, 60, 1000)
    ]
    problem = Problem([*whole, Buffer("small", 4, 0, 60, 64)])
    assert solve(problem, "auto").peak == problem.lower_bound == 64 * 1000 + 4


@pytest.mark.slow
def test_work_is_shared_between_parts() -> None:
    """Two equal parts that do not reach the lower bound get equal shares of the work,
    so their peaks are nearly equal."""
    first = rectangle(5, 800, 120, 5000)
    later = [Buffer(b.id, b.size, b.start + 120, b.end + 120) for b in first]
    both = solve(Problem([*first, *later]), "auto", Limits(effort=0.05))
    assert not both.optimal
    halves = both.offsets[: len(first)], both.offsets[len(first) :]
    peaks = [peak_of(first, half) for half in halves]
    assert max(peaks) < 1.03 * min(peaks)


@pytest.mark.parametrize("seed", [0, 13, 31])
def test_cores_come_before_other_searches(seed: int) -> None:
    """Where few sections have nearly the highest load, little work is enough."""
    chance = random.Random(seed)
    buffers: list[Buffer] = []
    for step in range(300):
        is_long = chance.random() < 0.03
        length = chance.randint(4, 75) if is_long else chance.randint(2, 3)
        buffers.append(Buffer("", chance.randint(1, 32), step, step + length))
    problem = Problem(buffers)
    assert not solve(problem, "auto", Limits(effort=0)).optimal
    assert solve(problem, "auto", Limits(effort=0.0003)).optimal


def test_descent_is_better_than_any_order() -> None:
    problem = Problem(rectangle(5, 1000, 300, 20_000))
    [part] = parts_of(
        [(b.start, b.end) for b in problem.buffers], [b.size for b in problem.buffers]
    )
    ordered = min(map(part.peak, skyline_plans(part)))
    plan = solve(problem, "auto", Limits(effort=0.05))
    assert plan.peak < 0.98 * ordered


def test_squeaky_wheel_is_better_than_the_first_orders() -> None:
    buffers = rectangle(3, 300, 200, 5000)
    del buffers[::5]  # so that the load varies
    [part] = parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers])
    wheel = SqueakyWheel(part)
    offsets, peaks = [], list[int]()
    while not wheel.is_over:
        offsets = wheel.step()
        peaks.append(part.peak(offsets))
    assert validate(Problem(part.buffers), offsets) is None
    assert min(peaks) < 0.96 * min(map(part.peak, skyline_plans(part)))
    assert peaks.index(min(peaks)) < len(peaks) - 100  # it ends without improvement


def test_squeaky_wheel_ends_at_the_lower_bound() -> None:
    [part] = parts_of([(0, 2), (1, 3)], [5, 3])
    wheel = SqueakyWheel(part)
    assert part.peak(wheel.step()) == 8
    assert wheel.is_over


def test_short_live_ranges_around_a_backbone_of_long_ones() -> None:
    chance = random.Random(1)
    buffers = [
        Buffer("", chance.randint(1, 32), step, step + length)
        for step in range(16_000)
        for length in [chance.randint(2, 4000 if chance.random() < 0.02 else 3)]
    ]
    problem, limits = Problem(buffers), Limits(effort=0)
    [part] = parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers])
    plan = solve(problem, "auto", limits)
    assert plan.peak < min(map(part.peak, skyline_plans(part)))
    assert plan.peak < min(map(partial(peak_of, buffers), greedy.plans(buffers)))
    long = [at for at in backbone(part, longest(part)) if at != WAITING]
    assert len(long) == len(buffers) // 50
    assert not longest(part.among(range(1000)))
    short = [32 if steps < 4 else 1 for steps in part.steps]
    assert not longest(replace(part, size=short))


def test_most_heavily_loaded_sections_of_a_large_part_come_first() -> None:
    chance = random.Random(7)
    buffers = [
        Buffer("", chance.randint(1, 32), step, step + length)
        for step in range(6_000)
        for length in [chance.randint(2, 1500 if chance.random() < 0.02 else 3)]
    ]
    problem = Problem(buffers)
    around_backbone = solve(problem, "auto", Limits(effort=0))
    assert around_backbone.peak > 1.01 * problem.lower_bound
    assert solve(problem, "auto", Limits(effort=0.01)).optimal


def training(steps: int) -> Iterator[Buffer]:
    """Activations that live until the mirrored step, and temporaries."""
    chance = random.Random(7)
    for step in range(steps):
        size = 64 * chance.randrange(1, 2000)
        yield Buffer(f"a{step}", size, step, 2 * steps - step, 64)
        yield Buffer(f"f{step}", size, step, step + 2, 64)
        yield Buffer(f"g{step}", size, 2 * steps - step - 1, 2 * steps - step + 1, 64)


@pytest.mark.thorough
def test_ten_thousand_buffers() -> None:
    plan = solve(Problem(list(training(3333))), "auto", Limits(time_limit=5))
    assert plan.peak <= 1.001 * plan.lower_bound
    assert plan.seconds < 10


@pytest.mark.parametrize("is_fast", [False, pytest.param(True, marks=needs_numba)])
def test_skylines_with_a_tree_and_with_sets_are_equal(
    monkeypatch: pytest.MonkeyPatch, is_fast: bool
) -> None:
    buffers = [*training(100), *rectangle(3, 60, 60, 1000)]
    [part] = parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers])
    with_sets = list(skyline_plans(part))
    skyline = "tensorplan.planning.solver.skyline"
    monkeypatch.setattr(f"{skyline}._SETS", 0)
    monkeypatch.setattr(f"{skyline}.pays", lambda *_: is_fast)
    assert list(skyline_plans(part)) == with_sets


@needs_numba
def test_compiled_search_takes_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers = rectangle(3, 60, 60, 1000)
    [part] = parts_of([(b.start, b.end) for b in buffers], [b.size for b in buffers])
    order = sorted(range(len(part.size)), key=lambda i: (-part.size[i], i))
    seen: list[list[tuple[int, int, list[int]]]] = []
    for fast in (False, True):
        monkeypatch.setattr(
            "tensorplan.planning.solver.search.pays", lambda *_, f=fast: f
        )
        search = ValleySearch(part)
        runs: list[tuple[int, int, list[int]]] = []
        for rule in range(4):
            for capacity in (999, 1000, 1050):
                found = search.fit(rule, capacity, order, 50_000)
                offsets = list(found.offsets) if found.status == FEASIBLE else []
                runs.append((found.status, found.work, offsets))
        seen.append(runs)
    assert seen[0] == seen[1]
    assert {status for status, _, _ in seen[0]} >= {FEASIBLE, INFEASIBLE}


def test_plan_is_the_same_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(rectangle(5, 60, 60, 1000))
    plan = solve(problem, "auto")
    monkeypatch.setattr(kernels, "available", lambda: False)
    assert solve(problem, "auto").offsets == plan.offsets


def refused(*_: object) -> NoReturn:
    raise AssertionError("this is not to be called")


def test_no_greedy_plan_begins_after_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tensorplan.planning.solver.greedy.Gaps", refused)
    with deadline.within(0):
        plan = solve(Problem(worn_rectangle()), "auto")
    assert plan.was_ended
    assert plan.peak > plan.lower_bound


def test_effort_of_zero_computes_the_bound_once_and_does_not_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound, asked = problem_module._lower_bound, list[int]()

    def counted(buffers: Sequence[Buffer]) -> int:
        asked.append(len(buffers))
        return bound(buffers)

    monkeypatch.setattr(problem_module, "_lower_bound", counted)
    monkeypatch.setattr("tensorplan.planning.solver.auto.ValleySearch", refused)
    plan = solve(Problem(worn_rectangle()), "auto", Limits(effort=0))
    assert plan.peak > plan.lower_bound
    assert len(asked) == 1


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates a new process on a machine that has compiled all kernels."""
    monkeypatch.setattr(kernels, "_is_on_disk", lambda _: True)
    monkeypatch.setattr(kernels, "_asked", Counter())
    monkeypatch.setattr(kernels, "_loaded", set())


@needs_numba
@pytest.mark.usefixtures("on_disk")
def test_numba_is_loaded_once_for_all_kernels() -> None:
    third = 3 * 10**6  # steps that take 0.3 s; numba pays off after 0.5 s
    assert not kernels.pays(third, [1], sum)
    assert kernels.pays(third, [1], max)
    assert kernels.pays(third, [1], min)
    assert not kernels.pays(10**5, [1], any)  # takes less time than reading the file
    assert kernels.pays(0, [1], sum)


@needs_numba
@pytest.mark.usefixtures("on_disk")
def test_compiled_kernels_under_a_deadline() -> None:
    with deadline.within(0.5):
        assert not kernels.pays(10**7, [1], sum)
        assert kernels.pays(10**8, [1], max)  # plain Python would take far too long
    assert kernels.pays(0, [1], sum)
    with deadline.within(0.5):
        assert kernels.pays(0, [1], sum)
        assert not kernels.pays(0, [kernels.LARGEST], sum)


@needs_numba
def test_short_search_does_not_load_numba() -> None:
    script = """
import sys
from rectangles import worn_rectangle
from tensorplan.planning import Limits, Problem, solve
plan = solve(Problem(worn_rectangle()), "auto", Limits(time_limit=0.1))
print(plan.was_ended, "numba" in sys.modules)
"""
    command = [sys.executable, "-c", script]
    folder = Path(inspect.getfile(worn_rectangle)).parent
    environment = os.environ | {"PYTHONPATH": str(folder)}
    output = subprocess.check_output(command, env=environment, text=True)
    assert output.split() == ["True", "False"]


def test_given_offsets_and_gaps_are_kept() -> None:
    problem = Problem(
        [
            Buffer("fixed", 64, 0, 9, 64, offset=128),
            Buffer("gap", 128, 0, 9, 64, gaps=[(3, 6)]),
            Buffer("in the gap", 128, 3, 6, 32),
            Buffer("other", 8, 0, 9),
        ]
    )
    placement = auto(problem, Limits())
    assert validate(problem, placement.offsets) is None
    assert placement.offsets[0] == 128
    assert peak_of(problem.buffers, placement.offsets) == 200


def test_separate_parts_are_solved_separately() -> None:
    shifted = [
        Buffer(f"{n}.{b.id}", b.size, b.start + 100 * n, b.end + 100 * n)
        for n in range(3)
        for b in rectangle(n, 30, 60, 1000)
    ]
    plan = solve(Problem(shifted), "auto")
    assert plan.peak == 1000
    assert plan.optimal


def test_reports_progress_and_keeps_the_time_limit() -> None:
    seen: list[Progress] = []
    plan = solve(
        Problem(worn_rectangle()), "auto", Limits(time_limit=1, progress=seen.append)
    )
    assert plan.seconds < 3
    assert [p.peak for p in seen] == sorted((p.peak for p in seen), reverse=True)
    assert seen[-1].peak == plan.peak
    assert all(p.lower_bound == plan.lower_bound for p in seen)
