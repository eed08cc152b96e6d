"""Tests `tgraph-search`: equal values, and no more bytes than the default sequence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from levels import inputs, planned_bytes
from numpy.testing import assert_allclose
from programs import Program, programs
from sampling import examples

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.shared.candidates import Candidates
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.runtime.executor import Executable


@settings(max_examples=examples(75))
@given(programs(max_ops=30))
def test_never_more_bytes_and_equal_values(program: Program) -> None:
    planned = tensorplan.plan(program.module, effort="high")
    assert planned_bytes(planned) <= planned_bytes(tensorplan.plan(program.module))
    assert str(planned) == str(tensorplan.plan(program.module, effort="high"))
    want = run_reference(program.module, inputs(program.module))
    got = Executable(planned, sanitize=True, native=False)(*inputs(program.module))
    for a, b in zip(got, want, strict=True):
        assert_allclose(a, b, rtol=1e-5, equal_nan=True)


def test_known_programs_are_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the same as if they were planned again."""
    text = (Path(__file__).parent.parent / "examples/classifier.mlir").read_text()
    tiled: list[int] = []
    apply, run = TGraphTile.apply, Candidates.run

    def counted(self: TGraphTile, *given: Any) -> None:
        tiled[-1] += 1
        apply(self, *given)

    def forgetful(self: Candidates, *given: Any) -> Any:
        return run(self, *given[:4])

    monkeypatch.setattr(TGraphTile, "apply", counted)
    plans: list[str] = []
    for way in (run, forgetful):
        monkeypatch.setattr(Candidates, "run", way)
        tiled.append(0)
        plans.append(str(tensorplan.plan(tensorplan.read(text), effort="high")))
    assert plans[0] == plans[1]
    assert tiled[0] < tiled[1]


@pytest.mark.slow
def test_small_tiles_are_tried() -> None:
    """Half of a core's cache is most of the memory that LeNet's training step needs."""
    step = tensorplan.read(Path(__file__).parent.parent / "examples/lenet_train.mlir")
    assert planned_bytes(tensorplan.plan(step, effort="high")) < 400_000


@pytest.mark.thorough
def test_nested_tiles() -> None:
    """A loop over the batch contains, for each image, a loop over its rows."""
    jax = pytest.importorskip("jax")

    def convolved(image: object, kernel: object) -> object:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            image, kernel, (1, 1), "SAME", dimension_numbers=layout
        )

    def network(x: object, w: object, v: object) -> object:
        hidden = jax.numpy.tanh(convolved(x, w))
        return jax.numpy.sum(jax.numpy.tanh(convolved(hidden, v)), (1, 2))

    shapes = (4, 32, 64, 8), (3, 3, 8, 16), (3, 3, 16, 16)
    model = tensorplan.from_jax(network, *(np.ones(s, np.float32) for s in shapes))
    low, high = (tensorplan.plan(model, effort=effort) for effort in ("low", "high"))
    assert planned_bytes(high.module) < 0.7 * planned_bytes(low.module)
