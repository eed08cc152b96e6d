"""Tests that `tgraph-sink-invariants` preserves values, and that masks and complex
constants that loops read take no memory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from modules import run

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.sink_invariants import TGraphSinkInvariants

LENGTH, WIDTH = 128, 16


def attention(x: Any, weights: Any) -> Any:
    bias = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), 0.0, -1e9)

    def layer(h: Any, w: Any) -> Any:
        scores = jax.nn.softmax(h @ w @ h.T + bias)
        return h + scores @ h, None

    return lax.scan(layer, x, weights)[0]


def filtered(x: Any) -> Any:
    frequencies = 1j * np.linspace(0, 1, LENGTH, dtype=np.float32)

    def step(x: Any, _: Any) -> Any:
        y = jnp.fft.ifft(x * frequencies)
        return jnp.fft.fft(y * y), None

    return lax.scan(step, x, length=3)[0]


def _inputs(function: Any) -> list[Any]:
    r = np.random.default_rng(0)
    x = r.standard_normal((LENGTH, WIDTH)).astype(np.float32)
    if function is attention:
        return [x, r.standard_normal((2, WIDTH, WIDTH)).astype(np.float32)]
    return [x[:, 0].astype(np.complex64)]


@pytest.mark.parametrize("function", [attention, filtered])
def test_values_are_preserved(function: Any) -> None:
    inputs = _inputs(function)
    model = tensorplan.from_jax(function, *inputs)
    before = model.module
    after = run(before, TGraphSinkInvariants())
    for got, want in zip(
        run_reference(after, inputs), run_reference(before, inputs), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("function", "without"), [(attention, 4 * LENGTH**2), (filtered, 8 * LENGTH)]
)
def test_invariants_take_no_memory(
    function: Any, without: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tensorplan.from_jax(function, *_inputs(function))

    def planned() -> int:
        (pool,) = tensorplan.report(tensorplan.plan(model))["pools"]
        return pool["bytes"]

    now = planned()
    monkeypatch.setattr(TGraphSinkInvariants, "apply", lambda *_: None)
    assert planned() >= now + without / 2
