"""Tests `tgraph-fit`: it chooses the fastest version that fits the budget, and earlier
budgets do not influence the choice."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from modules import parse, run
from sampling import examples

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.passes import driver
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fit import Lowerings, TGraphFit
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.passes.tgraph.shared.candidates import Candidate, Candidates

ROOT = Path(__file__).parent.parent

DOT = "lhs_contracting_dimensions = array<i64: 1>, "
DOT += "rhs_contracting_dimensions = array<i64: 0>"

KEPT = f"""
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64xf32> {{
  %a = tgraph.exponential %x : tensor<64x64xf32>
  %b = tgraph.dot_general %a, %w {{{DOT}}} : tensor<64x64xf32>
  %c = tgraph.dot_general %b, %w {{{DOT}}} : tensor<64x64xf32>
  %d = tgraph.dot_general %c, %w {{{DOT}}} : tensor<64x64xf32>
  %e = tgraph.multiply %d, %a : tensor<64x64xf32>
  %f = tgraph.reduce %e {{kind = "add", dimensions = array<i64: 1>}}
    : (tensor<64x64xf32>) -> tensor<64xf32>
  func.return %f : tensor<64xf32>
}}"""

BUDGETS = (49152, 20000, 4096, 1)


@pytest.fixture(scope="module")
def lowerings() -> Lowerings:
    return made()


def made() -> Lowerings:
    placed = run(parse(KEPT), TGraphPlaceDevices(default="cpu:0"))
    return Lowerings(TGraphFit(1), tensorplan.context(), placed)


def test_fastest_version_that_fits(lowerings: Lowerings) -> None:
    for budget in BUDGETS:
        fitted = lowerings.fitted(budget)
        fitting = [found for found in fitted.tried if found.bytes <= budget]
        if budget > 1:
            assert fitted.best.time == min(found.time for found in fitting)
        else:
            assert fitted.best.bytes == min(found.bytes for found in fitted.tried)


@pytest.mark.thorough
def test_other_budgets_do_not_change_the_choice(lowerings: Lowerings) -> None:
    for budget in BUDGETS:
        shared, alone = lowerings.fitted(budget), made().fitted(budget)
        assert shared.described(budget) == alone.described(budget)


def test_slow_tiles_are_used_if_nothing_else_fits() -> None:
    """Tiles by rows read all of %w for each row. The pass takes this time if nothing
    else fits."""
    planned = tensorplan.plan(parse(KEPT), budget=2048)
    assert tensorplan.report(planned)["pools"][0]["bytes"] <= 2048


def test_budgets_share_tiles_that_do_not_meet_them(
    lowerings: Lowerings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices reach 3072 bytes, and fewer after other tiles."""
    lowerings.fitted(1)
    made: list[str] = []
    run = Candidates.run

    def noted(self: Candidates, what: str, *args: Any) -> Candidate | None:
        made.append(what)
        return run(self, what, *args)

    monkeypatch.setattr(Candidates, "run", noted)
    fitted = lowerings.fitted(3000)
    slices = [each.what for each in fitted.tried if each.what.startswith("slices")]
    assert slices == ["slices", "slices after more tiles", "slices after many tiles"]
    assert [what for what in made if what in slices] == slices[1:]
    assert "few slices" not in made


def test_no_more_slices_than_a_budget_needs(lowerings: Lowerings) -> None:
    """Rows of %b, %c and %d need 768 bytes each."""
    for budget in (13000, 7000):
        tried = lowerings.fitted(budget).tried
        (few,) = (found for found in tried if found.what == "few slices")
        assert budget // 2 < few.bytes <= budget


@pytest.mark.thorough
def test_loops_have_large_tiles_if_the_budget_allows() -> None:
    """Tiles of 256 KiB take less time than tiles of a fourth of the budget."""
    step = tensorplan.read(ROOT / "examples/lenet_train.mlir")
    planned = tensorplan.plan(step, budget=437_572)
    assert tensorplan.report(planned)["pools"][0]["bytes"] > 400_000


def network(random: Random) -> str:
    """A program of random layers on rows, each of which reads a recent value. It
    returns the last value, its sum, or the gradient of the sum."""
    rows, first = random.choice([4, 16, 32]), random.choice([8, 32])
    values, weights, lines = [("%x", first)], list[str](), list[str]()

    def tensor(size: int) -> str:
        return f"tensor<{rows}x{size}xf32>"

    for n in range(random.randint(3, 8)):
        x, size = random.choice(values[-3:])
        kind = random.choice(["dot", "tanh", "*"])
        width = random.choice([8, 16, 64]) if kind == "dot" else size
        if kind == "dot":
            weights.append(f"%w{n}: tensor<{size}x{width}xf32>")
            types = f"({tensor(size)}, tensor<{size}x{width}xf32>) -> {tensor(width)}"
            lines.append(f"%{n} = tgraph.dot_general {x}, %w{n} {{{DOT}}} : {types}")
        elif kind == "tanh":
            lines.append(f"%{n} = tgraph.tanh {x} : {tensor(size)}")
        else:
            y = random.choice([value for value, other in values if other == size])
            lines.append(f"%{n} = tgraph.multiply {x}, {y} : {tensor(size)}")
        values.append((f"%{n}", width))
    value, size = values[-1]
    result = tensor(size)
    if random.random() < 0.6:
        how = '{kind = "add", dimensions = array<i64: 0, 1>}'
        lines.append(f"%s = tgraph.reduce {value} {how} : ({result}) -> tensor<f32>")
        value, result = "%s", "tensor<f32>"
    if value == "%s" and random.random() < 0.6:
        value, result = "%g", tensor(first)
        lines.append(f"%g = tgraph.gradient %s wrt %x : tensor<f32> wrt {result}")
    inputs = ", ".join([f"%x: {tensor(first)}", *weights])
    lines.append(f"func.return {value} : {result}")
    return f"func.func @main({inputs}) -> {result} {{\n" + "\n".join(lines) + "\n}"


def assert_same_minimum(text: str) -> None:
    """Asserts that every budget of at least the minimum is met, and that every smaller
    budget leads to the minimum."""
    passes, context = PlanPipeline(budget=1).passes(), tensorplan.context()
    at, fit = next((i, p) for i, p in enumerate(passes) if isinstance(p, TGraphFit))
    module = parse(text)
    driver.run(context, module, passes[:at])
    lowerings = Lowerings(fit, context, module)
    first = lowerings.fitted(1 << 40).best.bytes
    least = lowerings.fitted(1).best.bytes
    shares = (first * part // 16 for part in range(1, 16))
    for budget in {least, *range(least - 2, least), least // 2, *shares}:
        if budget > 0:
            reached = lowerings.fitted(budget).best.bytes
            assert reached <= budget if budget >= least else reached == least


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(examples(40)))
def test_minimum_is_the_same_for_all_budgets(seed: int) -> None:
    assert_same_minimum(network(Random(seed)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["classifier", "train_step"])
def test_minimum_of_examples(name: str) -> None:
    assert_same_minimum((ROOT / f"examples/{name}.mlir").read_text())


def test_error_names_the_smallest_possible_budget() -> None:
    """The error for a budget that is too small states the smallest budget that can be
    met."""
    text = (ROOT / "examples/classifier.mlir").read_text()
    with pytest.raises(LocatedError) as refused:
        tensorplan.plan(parse(text), budget=100)
    takes = re.search(r"takes (\d+) bytes", str(refused.value))
    assert takes
    least = int(takes[1])
    assert least < 400
    planned = tensorplan.plan(parse(text), budget=least)
    assert tensorplan.report(planned)["pools"][0]["bytes"] == least
