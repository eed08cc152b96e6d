"""Tests `tgraph-pack-masks`: equal bits, bytes, and masks that must not change."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import run
from numpy.testing import assert_array_equal
from sampling import examples
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.pack_masks import TGraphPackMasks
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.runtime.executor import Executable

jax = pytest.importorskip("jax")
jnp = jax.numpy

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "leaky relu": jax.nn.leaky_relu,
    "where": lambda x: jnp.where(x * x > 0.5, x, 0.25 * x),
}


def layers(shape: Sequence[int], count: int, activation: Any) -> ModuleOp:
    """The gradient with respect to the input of layers with constant weights, which
    saves masks."""

    def gradient(x: Any, *weights: Any) -> Any:
        def loss(x: Any) -> Any:
            for w in weights:
                x = activation(x @ w)
            return jnp.sum(x)

        return jax.grad(loss)(x)

    weights = [np.ones((shape[-1], shape[-1]), "f4")] * count
    return tensorplan.from_jax(gradient, np.ones(shape, "f4"), *weights).module


def split(*without: type[ModulePass]) -> tuple[Sequence[ModulePass], ...]:
    """The passes of the default sequence before `tgraph-pack-masks`, and after it."""
    passes = [p for p in PlanPipeline().passes() if not isinstance(p, without)]
    at = next(n for n, p in enumerate(passes) if isinstance(p, TGraphPackMasks))
    return passes[:at], passes[at + 1 :]


def both(module: ModuleOp, *without: type[ModulePass]) -> Sequence[ModuleOp]:
    """Plans a module without and with packed masks, and compares values."""
    ahead, rest = split(*without)
    ready = run(module, *ahead)
    packed = run(ready, TGraphPackMasks())
    arrays = inputs(ready)
    want = run_reference(ready, arrays)
    for a, b in zip(run_reference(packed, arrays), want, strict=True):
        assert_array_equal(a, b)
    planned = [run(ready, *rest), run(packed, *rest)]
    for native in (True, False):
        got = [Executable(p, native=native, sanitize=True)(*arrays) for p in planned]
        for a, b in zip(*got, strict=True):
            assert_array_equal(a, b)
    return planned


@pytest.mark.parametrize("shape", [(8, 16, 64), (64, 256)])
def test_masks_are_stored_as_bits(shape: Sequence[int]) -> None:
    before, after = both(layers(shape, 8, jax.nn.relu), TGraphTile)
    assert "xi1" in str(before)
    assert "xui8" not in str(before)
    assert "xui8" in str(after)
    assert planned_bytes(after) < planned_bytes(before)
    run(after, ConvertTGraphToLinalg())  # the packed program can be converted, too


@pytest.mark.parametrize(
    ("shape", "count"),
    [((7, 9, 33), 8), ((16, 64), 1)],  # size not divisible; no mask across the peak
)
def test_masks_that_are_not_packed(shape: Sequence[int], count: int) -> None:
    ahead, _ = split()
    ready = run(layers(shape, count, jax.nn.relu), *ahead)
    assert str(run(ready, TGraphPackMasks())) == str(ready)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(examples(80)))
def test_values_and_bytes(seed: int) -> None:
    random = Random(seed)
    shape = random.choice([(8, 40), (4, 8, 24), (24, 16), (3, 5, 8), (6, 10)])
    activation = ACTIVATIONS[random.choice(sorted(ACTIVATIONS))]
    without = random.choice([(), (TGraphTile,)])
    before, after = both(layers(shape, random.randint(1, 10), activation), *without)
    assert planned_bytes(after) <= planned_bytes(before)
