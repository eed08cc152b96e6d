"""tgraph-fuse-into-loops: values, bytes, and what is left alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from levels import inputs
from modules import parse, run
from numpy.testing import assert_allclose
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.fuse_into_loops import TGraphFuseIntoLoops
from tensorplan.runtime.executor import Executable

jax = pytest.importorskip("jax")
jnp = jax.numpy

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "lit_tests/tgraph-fuse-into-loops/scan.mlir").read_text()
TEXT = TEXT[TEXT.index("!n = ") :]
STACK = "tensor<6x4x8xf32>"
END = "%scaled = tgraph.multiply %0"
ROW = """
  %row0 = tgraph.slice %0#2 {
    start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 1, 4, 8>,
    strides = array<i64: 1, 1, 1>
  } : (!s) -> tensor<1x4x8xf32>
  %last = tgraph.reshape %row0 : (tensor<1x4x8xf32>) -> !x
"""
READ = TEXT.replace(f"  {END}", f"{ROW}  {END}").replace(
    "%0#1, %0#1 :", "%0#1, %last :"
)


def after(text: str) -> ModuleOp:
    """The module after the pass, with its values compared."""
    module = parse(text)
    changed = run(module, TGraphFuseIntoLoops())
    arrays = inputs(module)
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        assert_allclose(a, b, rtol=1e-6)
    return changed


@pytest.mark.parametrize("place", ["subtract %c5, %i", "add %c0, %i"])
def test_the_stack_is_gone(place: str) -> None:
    changed = after(TEXT.replace("subtract %c5, %i", place))
    assert STACK not in str(changed)
    planned = tensorplan.plan(changed)
    arrays = inputs(changed)
    want = run_reference(changed, arrays)
    for a, b in zip(Executable(planned, sanitize=True)(*arrays), want, strict=True):
        assert_allclose(a, b, rtol=1e-5)


def test_the_last_row_is_the_state_that_is_carried() -> None:
    assert STACK not in str(after(READ))


def test_a_stack_of_which_the_last_row_alone_is_read_is_gone() -> None:
    def last(x: Any, w: Any) -> Any:
        def step(h: Any, _: None) -> Any:
            return 2 * (jnp.tanh(h @ w),)

        return jax.lax.scan(step, x, None, length=6)[1][-1] @ w

    model = tensorplan.from_jax(last, np.ones((4, 8), "f4"), np.ones((8, 8), "f4"))
    assert "6x4x8xf32" not in str(tensorplan.plan(model))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "i64: 0, 0, 0>, limit_indices = array<i64: 1,",
            "i64: 1, 0, 0>, limit_indices = array<i64: 2,",
        ),
        ("assign %vx, %next", "assign %vx, %h"),  # carries another value
        ("x2xf32>", "x16xf32>"),  # would carry more
    ],
)
def test_left_alone(old: str, new: str) -> None:
    assert STACK in str(after(READ.replace(old, new)))


@pytest.mark.thorough
def test_a_loop_that_fills_an_array_is_a_scan() -> None:
    def step(h: Any, x: Any) -> Any:
        return jnp.tanh(h * 0.9 + x)

    def scanned(x: Any, w: Any) -> Any:
        _, rows = jax.lax.scan(lambda h, x: 2 * (step(h, x),), jnp.zeros(8), x)
        return (jax.nn.softmax(rows) @ w).sum(0) + rows[-1] @ w

    def filled(x: Any, w: Any) -> Any:
        def body(i: Any, carried: Any) -> Any:
            h, rows = carried
            h = step(h, x[i])
            return h, rows.at[i].set(h)

        start = jnp.zeros(8), jnp.zeros(x.shape)
        _, rows = jax.lax.fori_loop(0, len(x), body, start)
        return (jax.nn.softmax(rows) @ w).sum(0) + rows[-1] @ w

    x, w = (np.linspace(-1, 1, n, dtype="f4").reshape(-1, 8) for n in (3200, 64))
    for function in (scanned, filled):
        planned = tensorplan.plan(tensorplan.from_jax(function, x, w))
        (got,) = tensorplan.compile(planned)(x, w)
        assert_allclose(got, jax.jit(function)(x, w), rtol=1e-4)
        (pool,) = tensorplan.report(planned)["pools"]
        assert pool["bytes"] < x.nbytes / 16
