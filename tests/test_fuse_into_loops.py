"""Tests `tgraph-fuse-into-loops`: values, bytes, and loops that the pass does not
change."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import REST, inputs, planned_bytes
from modules import parse, run
from numpy.testing import assert_allclose
from sampling import examples
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.plan.pipeline import PlanPipeline
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
    """Runs the pass, compares values, and returns the module."""
    module = parse(text)
    changed = run(module, TGraphFuseIntoLoops())
    arrays = inputs(module)
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        assert_allclose(a, b, rtol=1e-6)
    return changed


@pytest.mark.parametrize("place", ["subtract %c5, %i", "add %c0, %i"])
def test_stack_is_not_stored(place: str) -> None:
    changed = after(TEXT.replace("subtract %c5, %i", place))
    assert STACK not in str(changed)
    planned = tensorplan.plan(changed)
    arrays = inputs(changed)
    want = run_reference(changed, arrays)
    for a, b in zip(Executable(planned, sanitize=True)(*arrays), want, strict=True):
        assert_allclose(a, b, rtol=1e-5)


def test_last_row_is_read_from_the_carried_state() -> None:
    assert STACK not in str(after(READ))


def test_stack_with_only_its_last_row_read_is_not_stored() -> None:
    def last(x: Any, w: Any) -> Any:
        def step(h: Any, _: None) -> Any:
            return 2 * (jnp.tanh(h @ w),)

        return jax.lax.scan(step, x, None, length=6)[1][-1] @ w

    model = tensorplan.from_jax(last, np.ones((4, 8), "f4"), np.ones((8, 8), "f4"))
    assert "6x4x8xf32" not in str(tensorplan.plan(model))


def test_values_from_before_the_loop_are_not_stored_for_it() -> None:
    """The readers of the stack also read differences of 24 KiB, which they compute. In
    the loop, they could read only rows of the stored differences."""

    def distances(x: Any, y: Any) -> Any:
        apart = x[:, None] - y[None]
        rows = jnp.sum(apart**2, -1)
        sums = jax.lax.scan(lambda h, row: 2 * (h * 0.9 + row,), rows[0], rows)[1]
        return jnp.sum(sums[..., None] * apart, 1)

    x, y = np.ones((6, 8), "f4"), np.ones((128, 8), "f4")
    model = tensorplan.from_jax(distances, x, y)
    assert planned_bytes(tensorplan.plan(model).module) < 8192


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "i64: 0, 0, 0>, limit_indices = array<i64: 1,",
            "i64: 1, 0, 0>, limit_indices = array<i64: 2,",
        ),
        ("assign %vx, %next", "assign %vx, %h"),  # the loop carries another value
        ("x2xf32>", "x16xf32>"),  # the loop would carry more bytes
    ],
)
def test_loops_that_keep_their_stack(old: str, new: str) -> None:
    assert STACK in str(after(READ.replace(old, new)))


def rows_of_a_scan(
    rows: Sequence[Any], length: int, unroll: int, reverse: bool
) -> tuple[ModuleOp, ModuleOp]:
    """A scan over `length` steps whose stack is read at `rows`, before and after the
    pass."""

    def read(x: Any, w: Any) -> Any:
        def step(h: Any, _: None) -> Any:
            h = jnp.tanh(h @ w)
            return h, (h > 0, 3 * h)

        options = {"length": length, "unroll": unroll, "reverse": reverse}
        signs, stack = jax.lax.scan(step, x, None, **options)[1]
        return signs[0], *(stack[row] for row in rows)

    model = tensorplan.from_jax(read, np.ones((4, 8), "f4"), np.ones((8, 8), "f4"))
    passes = PlanPipeline().passes()
    names = [pass_.name for pass_ in passes]
    ready = run(model.module, *passes[: names.index(TGraphFuseIntoLoops.name)])
    return ready, run(ready, TGraphFuseIntoLoops())


ROWS = [
    ([-1], 6, 2, False),  # the last row, with two rows in an iteration
    ([-1], 6, 1, True),  # the row of the first iteration
    ([2], 6, 1, False),
    ([0, -1, 3], 6, 3, True),
    ([(2, slice(1, 3)), (2, slice(2, 4), 5)], 6, 1, False),  # parts of a row
    ([slice(-3, None)], 6, 1, False),  # the last rows
    ([slice(-3, None)], 8, 2, True),
    ([slice(0, 3), 2], 6, 2, False),  # the first rows
    ([slice(2, 4), slice(3, 5)], 12, 2, False),  # rows in the middle
    ([slice(2, 4), slice(3, 5)], 12, 2, True),
]


@pytest.mark.parametrize(("rows", "length", "unroll", "reverse"), ROWS)
def test_few_rows_are_carried(
    rows: Sequence[Any], length: int, unroll: int, reverse: bool
) -> None:
    """The loop carries rows of floats and of bits instead of stacking all rows."""
    ready, changed = rows_of_a_scan(rows, length, unroll, reverse)
    assert f"{length}x4x8x" in str(ready)
    assert f"{length}x4x8x" not in str(changed)
    arrays = inputs(ready)
    want = run_reference(ready, arrays)
    same = run_reference(changed, arrays)
    computed = Executable(tensorplan.plan(changed), sanitize=True)(*arrays)
    for a, b, c in zip(same, want, computed, strict=True):
        assert_allclose(a, b, rtol=0, atol=0)
        assert_allclose(c, b, atol=1e-3)


@pytest.mark.parametrize(
    "rows", [[slice(None)], [slice(1, 5)], list(range(6)), [slice(None, None, 2)]]
)
def test_many_rows_are_stacked(rows: Sequence[Any]) -> None:
    assert "6x4x8xf32" in str(rows_of_a_scan(rows, 6, 1, False)[1])


@pytest.mark.thorough
@settings(max_examples=examples(100))
@given(
    st.integers(2, 12).flatmap(
        lambda length: st.tuples(
            st.lists(
                st.integers(0, length - 1)
                | st.builds(slice, st.integers(0, length - 1), st.just(length))
                | st.builds(slice, st.just(0), st.integers(1, length)),
                min_size=1,
                max_size=3,
            ),
            st.just(length),
            st.integers(1, 4),
            st.booleans(),
        )
    )
)
def test_values_and_bytes_of_random_readers(
    case: tuple[Sequence[Any], int, int, bool],
) -> None:
    ready, changed = rows_of_a_scan(*case)
    arrays = inputs(ready)
    want = run_reference(ready, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        assert_allclose(a, b, rtol=0, atol=0)
    assert planned_bytes(run(changed, *REST)) <= planned_bytes(run(ready, *REST))


@pytest.mark.thorough
def test_loop_that_fills_an_array_is_treated_as_a_scan() -> None:
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
