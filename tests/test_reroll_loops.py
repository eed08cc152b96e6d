"""Tests that an unrolled loop and its remainder iterations become one loop."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from levels import planned_bytes
from modules import parse, run

import tensorplan
from tensorplan.dialects.tgraph.base import shape_of, tensor_type_of
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import WhileOp
from tensorplan.passes.tgraph.reroll_loops import TGraphRerollLoops

TEXT = (
    Path(__file__).parent.parent / "lit_tests/tgraph-reroll-loops/remainder.mlir"
).read_text()

Program: TypeAlias = tuple[Callable[..., Any], Sequence[Sequence[int]]]
"""A function of arrays, and the shapes of the arrays."""


def rerolled(text: str) -> int:
    """Runs the pass, compares values, and returns the number of rows that the loop
    stacks."""
    module = parse(text)
    new = run(parse(text), TGraphRerollLoops())
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((11, 4), (1, 4))]
    for a, b in zip(
        run_reference(new, arrays), run_reference(module, arrays), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    (loop,) = (op for op in new.walk() if isinstance(op, WhileOp))
    return shape_of(tensor_type_of(loop.res[2].type))[0]


def test_one_loop_runs_all_iterations() -> None:
    assert rerolled(TEXT) == 11


def test_loop_condition_in_a_group() -> None:
    compare = (
        '%p = tgraph.compare %i, %five {direction = "LT"} : (!n, !n) -> tensor<i1>'
    )
    group = """%p = tgraph.fusion(%in = %i) : (!n) -> tensor<i1> {
      %limit = tgraph.constant<5 : i32> : !n
      %test = tgraph.compare %in, %limit {direction = "LT"} : (!n, !n) -> tensor<i1>
      tgraph.yield %test : tensor<i1>
    }"""
    assert compare in TEXT
    assert rerolled(TEXT.replace(compare, group)) == 11


@pytest.mark.parametrize(
    ("change", "to"),
    {
        "the second layer does something else": (
            "%next1 = tgraph.multiply %next0, %row1",
            "%next1 = tgraph.add %next0, %row1",
        ),
        "the second layer reads another row": (
            "dynamic_slice %ws, %odd",
            "dynamic_slice %ws, %even",
        ),
        "the second layer begins with something else": (
            "%next1 = tgraph.multiply %next0, %row1",
            "%next1 = tgraph.multiply %at, %row1",
        ),
        "the last layer does something else": (
            "%y = tgraph.multiply %0#1, %last",
            "%y = tgraph.subtract %0#1, %last",
        ),
        "the last layer reads another row": (
            "start_indices = array<i64: 10, 0>, limit_indices = array<i64: 11, 4>",
            "start_indices = array<i64: 9, 0>, limit_indices = array<i64: 10, 4>",
        ),
        "another row is stacked": (
            "tgraph.concatenate %0#2, %0#1",
            "tgraph.concatenate %0#2, %y",
        ),
        "rows come in another order": (
            "tgraph.concatenate %0#2, %0#1 {dimension = 0 : i64} : (!w, !x)",
            "tgraph.concatenate %0#1, %0#2 {dimension = 0 : i64} : (!x, !w)",
        ),
        "what the loop leaves is returned": (
            "func.return %y, %stacked",
            "func.return %0#1, %stacked",
        ),
    }.values(),
)
def test_loops_that_are_not_changed(change: str, to: str) -> None:
    assert change in TEXT
    assert rerolled(TEXT.replace(change, to, 1)) == 10


def layers(jax: Any, unroll: int, is_reversed: bool) -> Program:
    """A step of SGD on 23 layers."""

    def loss(w, x):
        layer = lambda h, w: (jax.numpy.tanh(h @ w), None)  # noqa: E731
        return jax.lax.scan(layer, x, w, unroll=unroll, reverse=is_reversed)[0].sum()

    return lambda w, x: w - 0.01 * jax.grad(loss)(w, x), ((23, 16, 16), (4, 16))


def network(jax: Any, unroll: int, is_reversed: bool) -> Program:
    """The gradients of a recurrent network with two states and a bias."""
    jnp = jax.numpy

    def loss(w, b, x):
        def cell(state, x):
            h, s = state
            gate, new = jnp.split(h @ w + x @ w + b, 2, axis=-1)
            s = jax.nn.sigmoid(gate) * s + jnp.tanh(new)
            return (jnp.tanh(s), s), jnp.tanh(s)

        state = jnp.zeros_like(x[0]), jnp.zeros_like(x[0])
        return jax.lax.scan(cell, state, x, unroll=unroll, reverse=is_reversed)[1].sum()

    return jax.grad(loss, (0, 1)), ((8, 16), (16,), (23, 4, 8))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "is_reversed", [True, pytest.param(False, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "program", [layers, pytest.param(network, marks=pytest.mark.slow)]
)
def test_remainder_needs_no_more_memory(program: Callable, is_reversed: bool) -> None:
    jax = pytest.importorskip("jax")

    def planned(unroll: int) -> int:
        step, shapes = program(jax, unroll, is_reversed)
        rng = np.random.default_rng(unroll)
        arrays = [rng.standard_normal(shape, np.float32) / 4 for shape in shapes]
        plan = tensorplan.plan(tensorplan.from_jax(step, *arrays, donate_argnums=0))
        results = tensorplan.compile(plan)(*(array.copy() for array in arrays))
        expected = jax.tree.leaves(jax.jit(step)(*arrays))
        for a, b in zip(results, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-4, 1e-5 * float(np.abs(b).max()))
        return planned_bytes(plan.module)

    once = planned(1)
    assert all(planned(unroll) <= once for unroll in (2, 3))
