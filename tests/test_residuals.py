"""Tests the values that `tgraph-fuse` keeps for the backward pass: their bytes are
minimal, and the choice changes no values."""

from collections.abc import Sequence
from itertools import chain, combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from modules import parse, run
from xdsl.dialects.builtin import TensorType

import tensorplan
from tensorplan.analysis.cost import duration
from tensorplan.analysis.functions import tensor_functions
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.gradient import TGraphGradient
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.planning.scheduling.residuals import NEVER, Choice, Residual


def cost(values: Sequence[Residual], needed: Sequence[int], again: set[int]) -> int:
    read = chain(needed, *(values[value].operands for value in again))
    kept = sum(values[value].keep for value in set(read) - again)
    return kept + sum(values[value].compute for value in again)


@pytest.mark.parametrize("seed", range(200))
def test_choice_has_minimal_cost(seed: int) -> None:
    random = Random(seed)
    values = [
        Residual(
            random.randint(0, 6),
            random.choice((NEVER, 0, 1, 2, 3)) if value else NEVER,
            [other for other in range(value) if random.random() < 0.4],
        )
        for value in range(random.randint(1, 8))
    ]
    numbers = range(len(values))
    needed = [value for value in numbers if random.random() < 0.4]
    again = Choice(values, needed).recomputed
    subsets = chain(*(combinations(numbers, n) for n in range(len(values) + 1)))
    least = min((cost(values, needed, set(s)), len(s)) for s in subsets)
    assert (cost(values, needed, again), len(again)) == least
    lower = Choice(values, needed, 0.4)
    assert lower.at_higher(0.7).at_higher(1).recomputed == again


def test_long_chains() -> None:
    values = [Residual(1)] + [Residual(2, 0, [n]) for n in range(20_000)]
    assert Choice(values, [20_000]).recomputed == set(range(1, 20_001))


ACTIVATIONS = {
    "relu": "%y{0} = tgraph.maximum %n{0}, %zero : {1}",
    "relu6": """
  %m{0} = tgraph.maximum %n{0}, %zero : {1}
  %y{0} = tgraph.minimum %m{0}, %six : {1}""",
    "leaky relu": """
  %s{0} = tgraph.multiply %n{0}, %slope : {1}
  %y{0} = tgraph.maximum %n{0}, %s{0} : {1}""",
    "swish": """
  %s{0} = tgraph.logistic %n{0} : {1}
  %y{0} = tgraph.multiply %n{0}, %s{0} : {1}""",
    "gelu": """
  %a{0} = tgraph.multiply %n{0}, %half : {1}
  %b{0} = tgraph.multiply %n{0}, %slope : {1}
  %c{0} = tgraph.tanh %b{0} : {1}
  %d{0} = tgraph.add %c{0}, %one : {1}
  %y{0} = tgraph.multiply %a{0}, %d{0} : {1}""",
}
LAYERS = 5
CONSTANTS = {"zero": 0.0, "six": 6.0, "slope": 0.1, "half": 0.5, "one": 1.0}


def network(activation: str, rows: int, width: int) -> str:
    """The gradient of layers that each consist of a product, a batch norm and an
    activation."""
    full, row = f"tensor<{rows}x{width}xf32>", f"tensor<{width}xf32>"
    matrix = f"tensor<{width}x{width}xf32>"
    lines = [f"func.func @main(%y0: {full}, %w: {matrix}) -> {matrix} {{"]
    lines += [
        f"  %{name} = tgraph.constant<{number} : f32> : {full}"
        for name, number in CONSTANTS.items()
    ]
    for i in range(1, LAYERS + 1):
        lines += [
            f"  %x{i} = tgraph.dot_general %y{i - 1}, %w",
            "    {lhs_contracting_dimensions = array<i64: 1>,",
            "     rhs_contracting_dimensions = array<i64: 0>}",
            f"    : ({full}, {matrix}) -> {full}",
            f'  %t{i} = tgraph.reduce %x{i} {{kind = "add",',
            f"    dimensions = array<i64: 0>}} : ({full}) -> {row}",
            f"  %u{i} = tgraph.broadcast_in_dim %t{i}",
            f"    {{broadcast_dimensions = array<i64: 1>}} : ({row}) -> {full}",
            f"  %v{i} = tgraph.multiply %u{i}, %slope : {full}",
            f"  %n{i} = tgraph.subtract %x{i}, %v{i} : {full}",
            f"  {ACTIVATIONS[activation].format(i, full)}",
        ]
    lines += [
        f"  %q = tgraph.multiply %y{LAYERS}, %y{LAYERS} : {full}",
        '  %l = tgraph.reduce %q {kind = "add", dimensions = array<i64: 0, 1>}',
        f"    : ({full}) -> tensor<f32>",
        f"  %g = tgraph.gradient %l wrt %w : tensor<f32> wrt {matrix}",
        f"  func.return %g : {matrix}",
        "}",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_one_value_per_layer_is_kept(activation: str) -> None:
    """The norm, the input of the activation, and masks are recomputed from the product.
    No pass after `tgraph-fuse` recomputes anything here."""
    passes = [
        each
        for each in PlanPipeline().passes()
        if not isinstance(each, TGraphRematerialize)
    ]
    planned = run(parse(network(activation, 2048, 1024)), *passes)
    (pool,) = tensorplan.report(planned)["pools"]
    one = 4 * 2048 * 1024
    assert pool["bytes"] < (LAYERS + 4) * one  # plus a layer's gradient


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_copies_are_cheap_and_change_no_values(activation: str) -> None:
    before = run(parse(network(activation, 64, 64)), TGraphGradient())
    kept = run(before, TGraphFuse(duplicate=False))
    after = run(before, TGraphFuse())
    assert duration(after) <= 1.02 * duration(kept)
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=(2, 64, 64)).astype("f4") / 8
    (want,), (got,) = (run_reference(module, [y, w]) for module in (kept, after))
    np.testing.assert_array_equal(got, want)


def test_expensive_masks_are_kept() -> None:
    """A mask is computed in the shape of its readers only if that is cheap. ALiBi has 8
    slopes, whose powers are not computed for each score."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def alibi(q: object, k: object, v: object) -> object:
        slopes = 2.0 ** -jnp.arange(1, 9)
        at = jnp.arange(256)
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / 8
        scores += slopes[:, None, None] * (at[None] - at[:, None])
        scores = jnp.where(at[None, :] <= at[:, None], scores, -1e30)
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, -1), v)

    q = np.zeros((8, 256, 64), np.float32)
    times: list[int] = []
    for fuse in (TGraphFuse(), TGraphFuse(duplicate=False)):
        module = tensorplan.from_jax(alibi, q, q, q).module
        passes = PlanPipeline().passes()
        names = [each.name for each in passes]
        before = passes[: names.index("tgraph-fuse")]
        times.append(duration(run(module, *before, fuse)))
    assert times[0] <= 1.02 * times[1]


def test_value_at_the_peak_is_computed_by_each_reader() -> None:
    """The weighted differences of all rows are summed over each of two dimensions. They
    are made at the peak, so each reader computes them instead of storing them."""
    jax = pytest.importorskip("jax")

    def similarity(x: Any, y: Any) -> Any:
        return jax.numpy.exp(-((x[:, None] - y[None]) ** 2).sum(-1)).mean()

    def discrepancy(x: Any, y: Any) -> Any:
        return similarity(x, x) + similarity(y, y) - 2 * similarity(x, y)

    x = np.zeros((128, 8), np.float32)
    module = tensorplan.from_jax(jax.value_and_grad(discrepancy), x, x).module
    passes = PlanPipeline().passes()
    names = [each.name for each in passes]
    fused = run(module, *passes[: names.index("tgraph-fuse") + 1])
    ((func, _),) = tensor_functions(fused)
    stored = [value.type for op in func.body.block.ops for value in op.results]
    assert not [t for t in stored if isinstance(t, TensorType) and len(t.shape) == 3]
