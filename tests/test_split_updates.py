"""Tests `tgraph-split-updates`: equal bits, and updates that must not change."""

from pathlib import Path

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import parse, run

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import AssignOp
from tensorplan.passes.tgraph.split_updates import TGraphSplitUpdates

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "lit_tests/tgraph-split-updates/parts.mlir").read_text()
TEXT = TEXT[TEXT.index("!row") :].replace("@sgd", "@main")

STEP = "%step = tgraph.multiply %rate, %g : !w"
END = "  func.return\n"


def updates(text: str) -> int:
    """Runs the pass, compares values, and returns the number of assigns."""
    module = parse(text)
    changed = run(module, TGraphSplitUpdates())
    arrays = inputs(module)
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        np.testing.assert_array_equal(a, b)
    return sum(isinstance(op, AssignOp) for op in changed.walk())


def total(value: str) -> str:
    return (
        f"%sum = tgraph.reduce {value} "
        '{kind = "add", dimensions = array<i64: 0, 1>} : (!w) -> tensor<f32>\n'
        "%sums = tgraph.broadcast_in_dim %sum {broadcast_dimensions = array<i64>} "
        ": (tensor<f32>) -> !w\n%step = tgraph.multiply %sums, %g : !w"
    )


def test_each_row_is_updated_separately() -> None:
    assert updates(TEXT) == 5


def test_row_is_updated_after_its_last_reader() -> None:
    """The update of row 0 reads row 3, so row 3 is updated afterwards."""
    late = TEXT.replace("multiply %g1, %w0", "multiply %g1, %w3")
    assert updates(late) == 5
    text = str(run(parse(late), TGraphSplitUpdates()))
    assert "multiply %g4" in text.split("%g0 =")[0]


@pytest.mark.parametrize(
    ("change", "to"),
    {
        "all of the gradient is looked at": (STEP, total("%g")),
        "all of the old contents is": (STEP, total("%w")),
        "the result is not assigned alone": (
            END,
            f"  tgraph.assign %v, %step : !w\n{END}",
        ),
        "columns are put together": (
            STEP,
            "%turned = tgraph.reverse %g {dimensions = array<i64: 0>} : !w\n"
            "%step = tgraph.multiply %rate, %turned : !w",
        ),
    }.values(),
)
def test_updates_that_are_not_changed(change: str, to: str) -> None:
    assert change in TEXT
    changed = TEXT.replace(change, to, 1)
    assert updates(changed) == changed.count("\n  tgraph.assign")


def planned(unroll: int) -> int:
    """The bytes of a training step with momentum for 12 layers in a scan. Compares
    values."""
    jax = pytest.importorskip("jax")

    def loss(w, x):
        def layer(h, w):
            return h + jax.numpy.tanh(h @ w), None

        return jax.lax.scan(layer, x, w, unroll=unroll)[0].sum()

    def step(w, m, x):
        m = 0.9 * m + jax.grad(loss)(w, x)
        return w - 0.01 * m, m

    rng = np.random.default_rng(unroll)
    w = rng.standard_normal((12, 64, 64), np.float32) / 8
    arrays = w, w / 2, rng.standard_normal((8, 64), np.float32)
    module = tensorplan.from_jax(step, *arrays, donate_argnums=(0, 1)).module
    plan = tensorplan.plan(module)
    for a, b in zip(
        tensorplan.compile(plan)(*(array.copy() for array in arrays)),
        run_reference(module, arrays),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5 * float(np.abs(b).max()))
    return planned_bytes(plan)


@pytest.mark.thorough
def test_unrolled_loop_needs_no_more_memory() -> None:
    """Unrolling by 5 leaves two layers, by 7 a loop of one iteration, and by 12 no
    loop."""
    once = planned(1)
    assert all(planned(unroll) <= once for unroll in (5, 7, 12))
