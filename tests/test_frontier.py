"""Tests `tensorplan.frontier`: each point is the plan for its budget, and points with
fewer bytes take more time."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import process_time_ns

import numpy as np
import pytest
from modules import parse
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.model import Model
from tensorplan.passes.tgraph.fit import Fitted, Lowerings
from tensorplan.reporting import frontier as frontiers
from tensorplan.reporting.frontier import FrontierPoint
from tensorplan.runtime import measuring
from tensorplan.tools.plan_opt import main as plan_opt
from tensorplan.tools.plan_view import main as plan_view

EXAMPLES = Path(__file__).parents[1] / "examples"

DOT = "lhs_contracting_dimensions = array<i64: 1>, "
DOT += "rhs_contracting_dimensions = array<i64: 0>"


def chain(layers: int) -> str:
    """A loss and its gradient with respect to the input. The backward pass reads values
    of each layer."""
    matrix = "tensor<16x16xf32>"
    lines = [f"func.func @main(%x: {matrix}, %w: {matrix}) -> {matrix} {{"]
    lines += [f"  %h0 = tgraph.abs %x : {matrix}"]
    for i in range(layers):
        lines.append(f"  %p{i} = tgraph.dot_general %h{i}, %w {{{DOT}}}")
        lines.append(f"    : ({matrix}, {matrix}) -> {matrix}")
        lines.append(f"  %h{i + 1} = tgraph.tanh %p{i} : {matrix}")
    lines.append(f'  %s = tgraph.reduce %h{layers} {{kind = "add",')
    lines.append(f"    dimensions = array<i64: 0, 1>}} : ({matrix}) -> tensor<f32>")
    lines.append(f"  %g = tgraph.gradient %s wrt %x : tensor<f32> wrt {matrix}")
    return "\n".join([*lines, f"  func.return %g : {matrix}", "}"])


CHAIN = chain(1)


@cache
def curve(points: int) -> Sequence[FrontierPoint]:
    return tensorplan.frontier(parse(CHAIN), points=points)


def plan(program: str, options: dict[str, object], budget: int) -> ModuleOp:
    return tensorplan.plan(parse(program), budget=budget, **options)  # pyright: ignore[reportArgumentType]


def arena(planned: ModuleOp) -> int:
    return max(pool["bytes"] for pool in tensorplan.report(planned)["pools"])


def is_decreasing(points: Sequence[FrontierPoint]) -> bool:
    return all(a.bytes > b.bytes and a.time < b.time for a, b in pairwise(points))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "options"),
    [
        (chain(2), {}),
        (CHAIN, {"workspaces": "native", "alignment": 256, "reuse_outputs": False}),
        (CHAIN, {"strategy": "linear-scan"}),
    ],
)
def test_each_point_is_the_plan_for_its_budget(
    program: str, options: dict[str, object]
) -> None:
    points = tensorplan.frontier(parse(program), points=3, **options)  # pyright: ignore[reportArgumentType]
    assert 2 <= len(points) <= 3
    assert is_decreasing(points)
    for point in points:
        planned = plan(program, options, point.budget)
        assert arena(planned) == point.bytes <= point.budget
        assert str(planned) == str(point.planned)


@pytest.mark.thorough
def test_first_and_last_point() -> None:
    """The first point is the plan without a limit, and the last point has the fewest
    bytes, which the error for a smaller budget states."""
    few, some = curve(2), curve(4)
    assert [few[0], few[-1]] == [some[0], some[-1]]
    assert len(few) == 2 < len(some)
    assert some[0].bytes == arena(plan(CHAIN, {}, sys.maxsize))
    with pytest.raises(LocatedError, match=f"takes {some[-1].bytes} bytes"):
        plan(CHAIN, {}, 1)


@pytest.mark.thorough
def test_program_with_one_plan_has_one_point() -> None:
    step = tensorplan.read(EXAMPLES / "mlp_train_two_devices.mlir")
    (point,) = tensorplan.frontier(step)
    pools = tensorplan.report(tensorplan.plan(step))["pools"]
    assert point.bytes == point.budget == max(pool["bytes"] for pool in pools)


@pytest.mark.slow
def test_the_fastest_plan_comes_first() -> None:
    """The first point is faster than the default plan, which computes the batch in
    tiles to save bytes."""
    step = tensorplan.read(EXAMPLES / "lenet_train.mlir")
    first, last = tensorplan.frontier(step, points=2)
    (pool,) = tensorplan.report(tensorplan.plan(step))["pools"]
    assert first.bytes > pool["bytes"] > last.bytes


def test_points_have_their_plans() -> None:
    """The program stays as it is, and each point's plan runs without a search."""
    model = Model(parse(CHAIN), {})
    before = str(model.module)
    x = np.linspace(-1, 1, 16 * 16, dtype=np.float32).reshape(16, 16)
    results = []
    for point in tensorplan.frontier(model, points=2):
        assert isinstance(point.planned, Model)
        assert arena(point.planned.module) == point.bytes
        results.append(tensorplan.compile(point.planned)(x, x))
    assert str(model.module) == before
    first, last = results
    np.testing.assert_allclose(first, last, rtol=1e-5, atol=1e-5)


@pytest.mark.thorough
def test_frontier_is_reproducible(tmp_path: Path) -> None:
    (tmp_path / "chain.mlir").write_text(CHAIN)
    command = [sys.executable, "-m", "tensorplan.tools.plan_opt", "chain.mlir"]
    command += ["--frontier=json", "--frontier-points", "3"]
    texts = {
        subprocess.run(
            command,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@pytest.mark.thorough
def test_measured_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `measure`, the points have the same plans with the shortest measured
    times."""
    times = iter((1, 9, 5, 2))
    monkeypatch.setattr(frontiers, "ROUNDS", 2)
    monkeypatch.setattr(measuring, "measured_time", lambda *_: next(times))
    measured = tensorplan.frontier(parse(CHAIN), points=2, measure=True)
    pairs = zip(curve(2), (1, 2), strict=True)
    assert measured == [replace(point, time=time) for point, time in pairs]


def test_measured_time_is_plausible() -> None:
    planned = tensorplan.plan(parse(CHAIN))
    assert 100 < measuring.measured_time(planned, threads=1) < 10_000_000


def test_a_coarse_clock_measures_short_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def coarse() -> int:
        return process_time_ns() // 10_000_000 * 10_000_000

    planned = tensorplan.plan(parse(CHAIN))
    monkeypatch.setattr(measuring, "process_time_ns", coarse)
    monkeypatch.setattr(measuring, "MEASUREMENTS", 1)
    assert 100 < measuring.measured_time(planned, threads=1) < 10_000_000


def test_plans_for_missing_devices_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error comes before the search for the plan with the fewest bytes."""
    budgets: list[int] = []
    fitted = Lowerings.fitted

    def noted(self: Lowerings, budget: int) -> Fitted:
        budgets.append(budget)
        return fitted(self, budget)

    monkeypatch.setattr(Lowerings, "fitted", noted)
    with pytest.raises(LocatedError, match="gpu"):
        tensorplan.frontier(parse(CHAIN), points=2, measure=True, device="gpu:0")
    assert budgets == [sys.maxsize]


def test_programs_without_a_frontier() -> None:
    planned = tensorplan.plan(parse(CHAIN))
    with pytest.raises(LocatedError, match="a frontier requires a program on tensors"):
        tensorplan.frontier(planned)
    type = "tensor<?xf32, #tgraph.dims<n>>"
    text = f"func.func @main(%x: {type}) -> {type} {{\n"
    text += f"  %y = tgraph.tanh %x : {type}\n  %z = tgraph.sine %y : {type}\n"
    symbolic = parse(text + f"  func.return %z : {type}\n}}")
    with pytest.raises(
        LocatedError, match="a frontier for symbolic sizes requires bounds"
    ):
        tensorplan.frontier(symbolic)
    assert tensorplan.frontier(symbolic, bounds="n<=64")
    with pytest.raises(LocatedError, match="times of symbolic sizes"):
        tensorplan.frontier(symbolic, bounds="n<=64", measure=True)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget": 4096}, ValueError, "budget is 4096, expected none"),
        ({"points": 1}, ValueError, "points is 1, expected 2 or more"),
        ({"points": "2"}, TypeError, "points is '2', expected int"),
    ],
)
def test_bad_options(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tensorplan.frontier(parse(CHAIN), **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--frontier-points", "1"], "points is 1, expected 2 or more"),
        (["-p", "plan-pipeline{budget=4KiB}"], "budget is 4KiB, expected none"),
        (["-p", "canonicalize"], "--frontier: the last pass is canonicalize, expected"),
        (["--explain"], "--explain prints no IR, so --frontier has no effect"),
        (["--timing"], "--frontier prints no IR, so --timing has no effect"),
        (["--split-input-file"], "--frontier takes one program"),
    ],
)
def test_bad_command_lines(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "chain.mlir").touch()  # paths are checked first
    assert plan_opt([str(tmp_path / "chain.mlir"), "--frontier", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.thorough
def test_frontier_as_table_json_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("chain.mlir").write_text(CHAIN)
    options = ["chain.mlir", "--frontier-points", "4"]
    assert plan_opt([*options, "--frontier"]) == 0
    table = capsys.readouterr().out
    assert plan_opt([*options, "--frontier=json", "-o", "chain.json"]) == 0
    points = json.loads(Path("chain.json").read_text())["frontier"]
    shown = ("bytes", "time", "budget", "change")
    assert points == [{n: getattr(point, n) for n in shown} for point in curve(4)]
    for line, point in zip(table.splitlines()[1:], points, strict=True):
        assert line.lstrip().startswith(str(point["bytes"]))
        assert line.endswith(f"{point['budget']}: {point['change']}")
    assert plan_view(["chain.json", "--svg", "chain.svg", "--ascii"]) == 0
    picture = capsys.readouterr().out
    assert picture.startswith(f"chain.json: {len(points)} plans, from 1 KiB to ")
    assert picture.endswith(table)
    drawn = Path("chain.svg").read_text()
    for point in points:
        assert f"{point['bytes']} bytes, " in drawn
    assert drawn.count("<title>") == len(points)


POINT = {"bytes": 64, "time": 100, "budget": 64, "change": "more tiles"}


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (
            [POINT],
            ["-o", "page.html"],
            "this is a frontier, but --html requires a plan",
        ),
        ([POINT], ["--compare", "naive"], "this is a frontier, but --compare requires"),
        (
            [POINT],
            ["--explain"],
            "this is a frontier, but --explain requires a program",
        ),
        ([], [], "the frontier has no points"),
        ([POINT | {"bytes": "x"}], [], "'bytes' is \"x\", expected"),
        ([POINT, POINT], [], "a point has 64 bytes and 100 ns, after one with 64 and"),
        ({}, [], "'frontier' is {}, expected"),
    ],
)
def test_invalid_frontiers_are_not_drawn(
    points: object,
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("curve.json").write_text(json.dumps({"frontier": points}))
    assert plan_view(["curve.json", *options]) == 1
    assert capsys.readouterr().err.startswith(f"curve.json: error: {message}")
