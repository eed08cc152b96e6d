"""`tgraph-fit`: what fits in the least time is kept, whatever was asked before."""

from pathlib import Path

import pytest
from modules import parse, run

import tensorplan
from tensorplan.passes.tgraph.fit import Lowerings, TGraphFit
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices

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

BUDGETS = (49152, 40000, 20000, 8192, 4096, 1)


@pytest.fixture
def lowerings() -> Lowerings:
    return made()


def made() -> Lowerings:
    placed = run(parse(KEPT), TGraphPlaceDevices(default="cpu:0"))
    return Lowerings(TGraphFit(1), tensorplan.context(), placed)


def test_the_least_time_of_what_fits(lowerings: Lowerings) -> None:
    for budget in BUDGETS:
        fitted = lowerings.fitted(budget)
        fitting = [found for found in fitted.tried if found.bytes <= budget]
        if budget > 1:
            assert fitted.best.time == min(found.time for found in fitting)
        else:
            assert fitted.best.bytes == min(found.bytes for found in fitted.tried)


@pytest.mark.thorough
def test_other_budgets_change_nothing(lowerings: Lowerings) -> None:
    for budget in BUDGETS:
        shared, alone = lowerings.fitted(budget), made().fitted(budget)
        assert shared.described(budget) == alone.described(budget)


def test_slow_tiles_are_better_than_none() -> None:
    """Each row of tiles needs all of %w: that is paid where nothing else fits."""
    planned = tensorplan.plan(parse(KEPT), budget=2048)
    assert tensorplan.report(planned)["pools"][0]["bytes"] <= 2048


@pytest.mark.thorough
def test_loops_have_the_largest_tiles_that_the_budget_allows() -> None:
    """Tiles of 256 KiB take less time than those of a fourth of the budget."""
    step = tensorplan.read(ROOT / "examples/lenet_train.mlir")
    planned = tensorplan.plan(step, budget=437_572)
    assert tensorplan.report(planned)["pools"][0]["bytes"] > 400_000
