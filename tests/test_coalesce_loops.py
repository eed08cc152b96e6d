"""Tests `tgraph-coalesce-loops`: the values keep their bits, the plans need as few
bytes as those of one loop, and loops that cannot merge are not changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from levels import planned_bytes
from modules import run
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import WhileOp
from tensorplan.passes.tgraph.coalesce_loops import TGraphCoalesceLoops

jax = pytest.importorskip("jax")
jnp = jax.numpy
scan = jax.lax.scan

Forward = Callable[[Any, Any, Any], Any]


def layer(x: Any, row: Any) -> Any:
    w, b = row
    return jnp.tanh(x @ w + b), None


def nested(outside: bool, inside: bool) -> Forward:
    """Two nested loops over layers in blocks of 4, each possibly in reverse."""

    def forward(x: Any, w: Any, b: Any) -> Any:
        def block(x: Any, rows: Any) -> Any:
            return scan(layer, x, rows, reverse=inside)

        rows = w.reshape(-1, 4, 8, 8), b.reshape(-1, 4, 8)
        return scan(block, x, rows, reverse=outside)[0]

    return forward


def thrice(x: Any, w: Any, b: Any) -> Any:
    """Three nested loops: layers in blocks of blocks."""

    def block(x: Any, rows: Any) -> Any:
        return scan(layer, x, rows)

    def blocks(x: Any, rows: Any) -> Any:
        return scan(block, x, rows)

    return scan(blocks, x, (w.reshape(-1, 2, 2, 8, 8), b.reshape(-1, 2, 2, 8)))[0]


def stacked(x: Any, w: Any, b: Any) -> Any:
    """Stacks the input of each layer, multiplied by the index of the layer in its
    block."""

    def each(x: Any, row: Any) -> Any:
        n, w, b = row
        return jnp.tanh(x @ w + b), x * n

    def block(x: Any, rows: Any) -> Any:
        return scan(each, x, (jnp.arange(4.0), *rows))

    return scan(block, x, (w.reshape(-1, 4, 8, 8), b.reshape(-1, 4, 8)))[1]


def normalized(x: Any, w: Any, b: Any) -> Any:
    """Loops that cannot merge: another operation follows each block."""

    def block(x: Any, rows: Any) -> Any:
        x, _ = scan(layer, x, rows)
        return x / jnp.abs(x).max(), None

    return scan(block, x, (w.reshape(-1, 4, 8, 8), b.reshape(-1, 4, 8)))[0]


def restarted(x: Any, w: Any, b: Any) -> Any:
    """Each block starts from the same value, so only the last block matters."""

    def block(y: Any, rows: Any) -> Any:
        return scan(layer, x, rows)[0] + 0 * y[:, :1], None

    return scan(block, x, (w.reshape(-1, 4, 8, 8), b.reshape(-1, 4, 8)))[0]


def flat(x: Any, w: Any, b: Any) -> Any:
    return scan(layer, x, (w, b))[0]


def arrays(layers: int = 24) -> list[Any]:
    rng = np.random.default_rng(layers)
    shapes = (3, 8), (layers, 8, 8), (layers, 8)
    return [rng.standard_normal(shape, np.float32) / 4 for shape in shapes]


def step(forward: Forward) -> Any:
    loss = lambda x, w, b: (forward(x, w, b) ** 2).sum()  # noqa: E731
    return jax.value_and_grad(loss, (0, 1, 2))


def loops(module: ModuleOp) -> int:
    return sum(isinstance(op, WhileOp) for op in module.walk())


COUNTS = {
    "forwards": (nested(False, False), 2),
    "backwards": (nested(True, True), 2),
    "no place is linear": (nested(False, True), 4),
    "three loops": (thrice, 2),
    "stacked": (stacked, 2),
    "normalized": (normalized, 4),
    "begun anew": (restarted, 4),
}
"""Networks, and the numbers of loops of their forward and backward passes."""


@pytest.mark.thorough
@pytest.mark.parametrize(("forward", "count"), COUNTS.values(), ids=COUNTS)
def test_coalescing_preserves_bits(forward: Forward, count: int) -> None:
    module = tensorplan.from_jax(step(forward), *arrays()).module
    before = run(module, CanonicalizePass(), CommonSubexpressionElimination())
    after = run(before, TGraphCoalesceLoops())
    assert (loops(before) > 2, loops(after)) == (True, count)
    want = run_reference(module, arrays())
    for a, b in zip(run_reference(after, arrays()), want, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(tensorplan.compile(module)(*arrays()), want, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5 * float(np.abs(b).max()))


def needed_bytes(forward: Forward) -> list[int]:
    """Bytes for a forward pass, its gradients, and a step of gradient descent."""

    def update(w: Any, b: Any, x: Any) -> Any:
        loss, (_, gw, gb) = step(forward)(x, w, b)
        return loss, w - 0.1 * gw, b - 0.1 * gb

    x, w, b = arrays(96)
    models = [
        tensorplan.from_jax(forward, x, w, b),
        tensorplan.from_jax(step(forward), x, w, b),
        tensorplan.from_jax(update, w, b, x, donate_argnums=(0, 1)),
    ]
    return [planned_bytes(tensorplan.plan(model.module)) for model in models]


@pytest.mark.thorough
@pytest.mark.parametrize("forward", [nested(False, False), thrice])
def test_nested_loops_need_the_bytes_of_one_loop(forward: Forward) -> None:
    for bytes, want in zip(needed_bytes(forward), needed_bytes(flat), strict=True):
        assert bytes <= 1.1 * want
