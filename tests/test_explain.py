"""Tests `tensorplan.explain`: its statements about programs with known peaks are right,
and its suggestions lower the peak.
"""

import json
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest
from modules import parse
from xdsl.dialects.func import FuncOp
from xdsl.universe import Universe

import tensorplan
from tensorplan.passes import driver, get_all_passes
from tensorplan.reporting.donation import donate
from tensorplan.reporting.explanation import Explanation
from tensorplan.reporting.explanation_text import tables
from tensorplan.reporting.trials import MemoryNeeds
from tensorplan.tools import pipelines

EXAMPLES = Path(__file__).parents[1] / "examples"

# The last operation reads %a, which is live across the peak.
KEPT = """
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x256xf32>, %v: tensor<256x64xf32>)
    -> tensor<64x64xf32> {
  %a = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = tgraph.dot_general %a, %w {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x64xf32>, tensor<64x256xf32>) -> tensor<64x256xf32>
  %c = tgraph.sine %b : tensor<64x256xf32>
  %d = tgraph.dot_general %c, %v {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %e = tgraph.dot_general %d, %a {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %e : tensor<64x64xf32>
}
"""

BUFFERIZED = """
func.func @f(%a: memref<64xf32>, %r: memref<64xf32> {tgraph.result = 0 : i32}) {
  %x = memref.alloc() : memref<64xf32>
  tgraph.negate %a outs(%x) : memref<64xf32>
  %y = memref.alloc() : memref<64xf32>
  tgraph.exponential %x outs(%y) : memref<64xf32>
  memref.dealloc %x : memref<64xf32>
  tgraph.tanh %y outs(%r) : memref<64xf32>
  memref.dealloc %y : memref<64xf32>
  func.return
}
"""


def gains(explanation: Explanation) -> dict[str, int]:
    return {
        trial.alternative.change: explanation.outcome.total - trial.outcome.total
        for trial in explanation.trials
        if isinstance(trial.outcome, MemoryNeeds)
    }


def test_buffers_at_the_peak():
    (peak,) = tensorplan.explain(parse(KEPT)).peaks
    largest, kept, *_ = peak.buffers
    assert (largest.size, kept.size) == (64 * 256 * 4, 64 * 64 * 4)
    assert peak.live == sum(buffer.size for buffer in peak.buffers) <= peak.size
    assert kept.maker.op == "tgraph.dot_general"
    assert kept.maker.step < peak.site.step
    assert kept.lower <= peak.site.step < kept.upper


def test_reasons_for_not_being_in_place():
    (peak,) = tensorplan.explain(parse(BUFFERIZED), reuse_outputs=False).peaks
    first, second = peak.buffers
    assert first.not_in_place_reason == "%a is an argument that is not donated"
    assert (
        second.not_in_place_reason
        == f"{first.name} is not considered: see plan-in-place"
    )


def test_suggestions_for_programs_on_memrefs():
    explanation = tensorplan.explain(parse(BUFFERIZED), reuse_outputs=False)
    # Either one of two buffers overwrites the other, or one lies in the result.
    assert gains(explanation) == {"plan-in-place": 256, "reuse-outputs=true": 256}


def test_suggested_options_give_the_stated_bytes():
    """Each suggested option, passed to plan-opt's `-p`, gives the stated bytes."""
    module = parse(KEPT)
    explanation = tensorplan.explain(module, reuse_outputs=False)
    known = get_all_passes() | Universe.get_multiverse().all_passes
    found = 0
    for trial in explanation.trials:
        if not isinstance(trial.outcome, MemoryNeeds) or trial.alternative.donated:
            continue
        planned = module.clone()
        ctx = tensorplan.context()
        passes = pipelines.parse(trial.alternative.option, known)
        driver.run(ctx, planned, passes)
        pools = tensorplan.report(planned)["pools"]
        assert sum(pool["bytes"] for pool in pools) == trial.outcome.arenas
        found += trial.outcome.arenas < explanation.outcome.arenas
    assert found


def test_each_row_of_the_table_has_an_option():
    explanation = tensorplan.explain(parse(KEPT), reuse_outputs=False)
    (_, rows), *_ = tables(explanation.outcome, explanation.trials)
    text = str(explanation)
    pasted = [line for line in text.splitlines() if ": -p " in line]
    changes = [row[-1] for row in rows if not row[-1].startswith("donate")]
    assert [line.split(": -p ")[0] for line in pasted] == changes != []
    options = {t.change: quote(t.alternative.option) for t in explanation.trials}
    assert pasted == [f"{change}: -p {options[change]}" for change in changes]


def test_bytes_saved_by_a_donation():
    """The result lies in the memory of the donated argument, so it no longer counts."""
    module = parse(KEPT)
    explanation = tensorplan.explain(module, reuse_outputs=False)
    name = next(n for n in gains(explanation) if n.startswith("donate argument 0"))
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    donate(func, 0, 0)
    module.verify()
    planned = tensorplan.plan(module, reuse_outputs=False)
    arena = sum(pool["bytes"] for pool in tensorplan.report(planned)["pools"])
    saved = explanation.outcome.arenas + 64 * 64 * 4 - arena
    assert gains(explanation)[name] == saved


def test_module_is_not_changed():
    module = parse(KEPT)
    before = str(module)
    tensorplan.explain(module)
    assert str(module) == before


def test_time_limit_of_zero():
    explanation = tensorplan.explain(parse(KEPT), limit=0.0)
    assert {trial.outcome for trial in explanation.trials} == {None}
    assert "not tried for lack of time: " in str(explanation)


def test_program_without_an_arena():
    text = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    text += "  func.return %a : tensor<4xf32>\n}"
    assert str(tensorplan.explain(parse(text))).startswith("there is no arena")


def test_planned_module_has_peaks_but_no_trials():
    explanation = tensorplan.explain(tensorplan.plan(parse(KEPT)))
    assert explanation.peaks
    assert explanation.trials == []


BOTH = """
from tensorplan.tools.plan_opt import main
for option, file in ("--explain", "text"), ("--explain=json", "json"):
    main(["kept.mlir", option, "-o", file])
"""


@pytest.mark.thorough
def test_explanation_is_reproducible(tmp_path: Path):
    """Except for times, the output does not depend on hashes."""
    (tmp_path / "kept.mlir").write_text(KEPT)
    texts: set[str] = set()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", BOTH],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        assert run.stderr == ""
        head, _, _ = (tmp_path / "text").read_text().partition("\nwhat")
        figures = json.loads((tmp_path / "json").read_text())
        for trial in figures["trials"]:
            trial.pop("seconds", None)
        texts.add(head + json.dumps(figures))
    assert len(texts) == 1


@pytest.mark.slow
def test_only_effective_rewrites_are_left_out() -> None:
    """Leaving out a rewrite is tried only if it has changed this program, which adds
    numbers to gradients and has no loops."""
    step = tensorplan.read(EXAMPLES / "mlp_train_sgd.mlir")
    left = {t.change: t.worth for t in tensorplan.explain(step).trials}
    assert "without tgraph-scatter-into" in left
    assert "without tgraph-fuse-updates-into-scan" not in left
