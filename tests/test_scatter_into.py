"""Tests `tgraph-scatter-into`: equal values in fewer bytes."""

from pathlib import Path

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import parse, run

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.scatter_into import TGraphScatterInto
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.runtime.executor import Executable

ROOT = Path(__file__).parent.parent
LIT = (ROOT / "lit_tests/tgraph-scatter-into/scatter.mlir").read_text()
FUNCTIONS = [
    f"func.func @main({text.partition('(')[2]}"
    for text in LIT.split("\nfunc.func @")[1:]
]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_equal_values(text: str) -> None:
    module = parse(text)
    changed = run(module, TGraphScatterInto())
    arrays = inputs(module)
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_gradient_of_cross_entropy_needs_fewer_bytes() -> None:
    jax = pytest.importorskip("jax")

    def loss(w, x, y):
        scores = jax.nn.log_softmax(x @ w)
        return -jax.numpy.take_along_axis(scores, y[:, None], axis=1).mean()

    rng = np.random.default_rng(0)
    w = rng.standard_normal((32, 4000), np.float32)
    x = rng.standard_normal((64, 32), np.float32)
    y = rng.integers(0, 4000, 64).astype(np.int32)
    module = tensorplan.from_jax(jax.grad(loss, argnums=(0, 1)), w, x, y).module
    passes = [p for p in PlanPipeline().passes() if not isinstance(p, TGraphTile)]
    planned = run(module, *passes)
    plain = run(module, *(p for p in passes if not isinstance(p, TGraphScatterInto)))
    assert planned_bytes(planned) < 0.6 * planned_bytes(plain)
    got, want = (Executable(m, native=False)(w, x, y) for m in (planned, plain))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
