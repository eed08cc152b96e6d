"""Tests `tgraph-rematerialize-scan-residuals`: bits, memory, and loops that must not
change."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import parse, run
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import WhileOp
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse_updates_into_scan import TGraphFuseUpdatesIntoScan
from tensorplan.passes.tgraph.rematerialize_scan_residuals import (
    TGraphRematerializeScanResiduals,
)
from tensorplan.passes.tgraph.scatter_into import TGraphScatterInto
from tensorplan.runtime.executor import Executable

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "lit_tests/tgraph-rematerialize-scan-residuals/stacked.mlir").read_text()
TEXT = TEXT.replace("@derived", "@main")


START = "%0:3 = tgraph.while %two"
FEWER = "%rows = tgraph.constant<3"


def loops(module: ModuleOp) -> list[WhileOp]:
    return [op for op in module.walk() if isinstance(op, WhileOp)]


def after(text: str) -> ModuleOp:
    """Runs the pass, compares values, and returns the new module."""
    module = parse(text)
    changed = run(module, TGraphRematerializeScanResiduals())
    want = run_reference(module, inputs(module))
    for a, b in zip(run_reference(changed, inputs(module)), want, strict=True):
        np.testing.assert_array_equal(a, b)
    return changed


def test_derived_residuals_are_not_stacked() -> None:
    first, second = loops(after(TEXT))
    assert (len(first.res), len(second.inputs)) == (2, 3)


@pytest.mark.parametrize(
    ("change", "to"),
    {
        "it does not start at 0": ("%0:3 = tgraph.while %zero", START),
        "not all rows are written": ("%rows = tgraph.constant<4", FEWER),
        "it counts by 2": ("%c1 = tgraph.constant<1", "%c1 = tgraph.constant<2"),
        "it is read as a whole": ("func.return %1#1", "func.return %whole"),
        "it is no operation element by element": (
            "%z = tgraph.subtract %ones, %y",
            "%z = tgraph.reverse %y {dimensions = array<i64: 0>}",
        ),
        "rows are written elsewhere": ("%zr, %n, %c0", "%zr, %next, %c0"),
    }.values(),
)  # fmt: skip
def test_loops_that_are_not_changed(change: str, to: str) -> None:
    text = TEXT.replace(
        "%empty =", "%two = tgraph.constant<2 : i32> : tensor<i32>\n  %empty =", 1
    )
    text = text.replace(
        "  func.return",
        """  %sum = tgraph.reduce %0#2 {kind = "add", dimensions = array<i64: 0>}
        : (tensor<4x8xf32>) -> tensor<8xf32>
  %whole = tgraph.add %sum, %1#1 : tensor<8xf32>
  func.return""",
    )
    if "whole" not in to:
        text = text.replace("%whole = tgraph.add %sum", "%whole = tgraph.add %1#1")
        text = text.replace("tgraph.reduce %0#2", "tgraph.reduce %0#1")
    if "next" in to:
        line = "    %next = tgraph.add %n, %c1 : tensor<i32>\n"
        head, rest = text.split("    %yr =", 1)
        text = head + line + "    %yr =" + rest.replace(line, "", 1)
    assert change in text
    first, second = loops(after(text.replace(change, to, 1)))
    assert (len(first.res), len(second.inputs)) == (3, 4)


def test_gates_of_a_recurrent_network() -> None:
    module = tensorplan.from_stablehlo(
        ROOT / "tests/models/lstm_scan_train.mlir"
    ).module
    passes = PlanPipeline().passes()
    others = [p for p in passes if not isinstance(p, TGraphRematerializeScanResiduals)]
    planned, without = run(module, *passes), run(module, *others)
    assert planned_bytes(planned) * 10 < planned_bytes(without) * 9
    arguments = [np.abs(array) for array in inputs(planned)]
    got, want = (
        Executable(each, native=False)(*[array.copy() for array in arguments])
        for each in (planned, without)
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def network(cell: str, form: str, trips: int, first: int) -> Any:
    """The loss of a network with `trips` equal layers, from layer `first` on, and its
    gradients."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def plain(x, w, b):
        return jnp.tanh(x @ w + b)

    def residual(x, w, b):
        return x + jax.nn.relu(x @ w + b) * jnp.sin(x)

    def gated(x, w, b):
        h, c = x[:, :4], x[:, 4:]
        z = jnp.tile(h, 2) @ w + b
        c = jax.nn.sigmoid(z[:, 4:]) * c + jnp.tanh(z[:, :4])
        return jnp.concatenate([jnp.tanh(c), c], 1)

    layer = {"plain": plain, "residual": residual, "gated": gated}[cell]

    def forward(x, w, b):
        if form == "fori":
            body = lambda i, x: layer(x, w[i], b[i])  # noqa: E731
            return jax.lax.fori_loop(first, trips, body, x)
        if form == "down":
            body = lambda i, x: layer(x, w[trips - 1 - i], b[trips - 1 - i])  # noqa: E731
            return jax.lax.fori_loop(0, trips - first, body, x)
        if form == "pairs":
            row = lambda i, x: layer(x, w[i], b[i])  # noqa: E731
            body = lambda i, x: row(2 * i + 1, row(2 * i, x))  # noqa: E731
            return jax.lax.fori_loop(first // 2, trips // 2, body, x)
        unroll, is_reversed = int(form[0]), "reversed" in form
        y, _ = jax.lax.scan(
            lambda x, row: (layer(x, *row), None),
            *(x, (w[first:], b[first:])),
            **{"unroll": unroll, "reverse": is_reversed},
        )
        return y

    rng = np.random.default_rng(trips)
    shapes = (3, 8), (trips, 8, 8), (trips, 8)
    arrays = [rng.standard_normal(shape, np.float32) / 4 for shape in shapes]
    loss = lambda x, w, b: (forward(x, w, b) ** 2).sum()  # noqa: E731
    return jax.value_and_grad(loss, (0, 1, 2)), arrays


CELLS = ("plain", "residual", "gated")
FORMS = ("1", "4", "fori", "1 reversed", "down", "pairs")
MORE_FORMS = ("2", "2 reversed")

LOOPS: Sequence[ModulePass] = (
    CanonicalizePass(),
    CommonSubexpressionElimination(),
    TGraphRematerializeScanResiduals(),
    TGraphScatterInto(),
    TGraphFuseUpdatesIntoScan(),
)


def markov(rows: Any, table: Any) -> Any:
    """A scan whose scores of all pairs depend on the previous state, a table, and
    maxima."""
    jax = pytest.importorskip("jax")

    def step(state: Any, row: Any) -> Any:
        scores = state[:, :, None] + table
        return jax.nn.logsumexp(scores, 1) + row, None

    return jax.lax.scan(step, rows[0], rows[1:])[0].sum()


def selective(rows: Any, table: Any) -> Any:
    """A scan in which the decay of each state depends on an input row and a table."""
    jax = pytest.importorskip("jax")

    def step(state: Any, row: Any) -> Any:
        state = state * jax.numpy.exp(row[:, :, None] * table) + row[:, :, None]
        return state, state.sum(2)

    begun = jax.numpy.zeros((*rows.shape[1:], table.shape[1]), "float32")
    return (jax.lax.scan(step, begun, rows)[1] ** 2).sum()


@pytest.mark.parametrize(("function", "stacks"), [(markov, 0), (selective, 1)])
def test_wide_residuals_are_recomputed_from_narrow_ones(
    function: Any, stacks: int
) -> None:
    """Each step has a state for each pair of 32. The plan stacks at most `stacks` of
    them per step."""
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    rows, table = (
        rng.standard_normal(shape).astype("float32") / 2
        for shape in ((24, 4, 32), (32, 32))
    )
    gradient = jax.grad(function, (0, 1))
    planned = tensorplan.plan(tensorplan.from_jax(gradient, rows, table))
    pools = tensorplan.report(planned)["pools"]
    a_stack = 24 * 4 * 32 * 32 * 4
    assert sum(pool["bytes"] for pool in pools) < (stacks + 0.5) * a_stack
    want = gradient(rows, table)
    for a, b in zip(tensorplan.compile(planned)(rows, table), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("trips", "first"), [(7, 2), pytest.param(8, 0, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("cell", "form"),
    [
        pytest.param(cell, form, marks=pytest.mark.slow if n % 2 else ())
        for n, (form, cell) in enumerate(product(FORMS + MORE_FORMS, CELLS))
    ],
)
def test_values_for_all_forms_of_a_network(
    cell: str, form: str, trips: int, first: int
) -> None:
    step, arrays = network(cell, form, trips, first)
    module = tensorplan.from_jax(step, *arrays).module
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(run(module, *LOOPS), arrays), want, strict=True):
        np.testing.assert_array_equal(a, b)
    got = tensorplan.compile(module)(*arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5 * float(np.abs(b).max()))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "cell",
    [
        "plain",
        *(pytest.param(c, marks=pytest.mark.slow) for c in ("residual", "gated")),
    ],
)
def test_memory_is_equal_for_all_forms_of_a_network(cell: str) -> None:
    sizes: list[int] = []
    for form in FORMS:
        step, arrays = network(cell, form, trips=96, first=0)
        module = tensorplan.from_jax(step, *arrays).module
        sizes.append(planned_bytes(tensorplan.plan(module)))
    assert max(sizes) <= 1.1 * sizes[0]
    if cell == "plain":  # only the initial state of each iteration is stacked
        assert max(sizes) < 96 * 3 * 8 * 4 * 1.2


@pytest.mark.thorough
@pytest.mark.parametrize(
    "cell", ["plain", pytest.param("gated", marks=pytest.mark.slow)]
)
def test_memory_is_equal_for_all_forms_with_momentum(cell: str) -> None:
    """With momentum, the loop of the backward pass consumes gradients row by row."""
    sizes: list[int] = []
    for form in FORMS:
        both, (x, w, b) = network(cell, form, trips=48, first=0)

        def step(w, b, m, x, both=both):
            loss, (_, gw, gb) = both(x, w, b)
            m = 0.9 * m + gw
            return loss, w - 0.1 * m, b - 0.1 * gb, m

        arrays = [w, b, w * 0, x]
        module = tensorplan.from_jax(step, *arrays, donate_argnums=(0, 1, 2)).module
        want = run_reference(module, arrays)
        changed = run(module, *LOOPS)
        for a, c in zip(run_reference(changed, arrays), want, strict=True):
            np.testing.assert_array_equal(a, c)
        plan = tensorplan.plan(module)
        got = tensorplan.compile(plan)(*(array.copy() for array in arrays))
        for a, c in zip(got, want, strict=True):
            np.testing.assert_allclose(a, c, 1e-3, 1e-4 * float(np.abs(c).max()))
        sizes.append(planned_bytes(plan))
    assert max(sizes) <= 1.1 * sizes[0]


@pytest.mark.thorough
def test_unrolled_loop_needs_the_memory_of_one_layer() -> None:
    """Each row of the weights is updated before the next one is read."""
    jax = pytest.importorskip("jax")
    sizes: list[int] = []
    for unroll in (1, 4, 12):

        def loss(w, x, unroll=unroll):
            def layer(x, w):
                return jax.numpy.tanh(x @ w), None

            return jax.lax.scan(layer, x, w, unroll=unroll)[0].sum()

        def step(w, x, loss=loss):
            return w - 0.01 * jax.grad(loss)(w, x)

        rng = np.random.default_rng(unroll)
        arrays = [
            rng.standard_normal((24, 64, 64), np.float32) / 8,
            rng.standard_normal((32, 64), np.float32),
        ]
        module = tensorplan.from_jax(step, *arrays, donate_argnums=0).module
        # BLAS adds in another order if canonicalization transposed an operand.
        want = run_reference(run(module, CanonicalizePass()), arrays)
        (got,) = run_reference(run(module, *LOOPS), arrays)
        np.testing.assert_array_equal(got, want[0])
        sizes.append(planned_bytes(tensorplan.plan(module)))
    assert max(sizes) <= 1.1 * sizes[0]
