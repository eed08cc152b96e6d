"""Tests concatenations that become in-place updates: values and bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from modules import parse, run
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.shaping import ConcatenateOp
from tensorplan.passes.tgraph.split_concatenations import TGraphSplitConcatenations
from tensorplan.runtime.executor import Executable

jax: Any = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype("f4")


def planned(function: Callable[..., Any], *arrays: Any) -> ModuleOp:
    return tensorplan.plan(tensorplan.from_jax(function, *arrays).module)


def bytes_of(module: ModuleOp) -> int:
    return sum(pool["bytes"] for pool in tensorplan.report(module)["pools"])


def repeated(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.fori_loop(0, 5, lambda _, x: step(x), x)


def added(x: Any) -> Any:
    """Adds a stack of values computed from columns."""
    return x + 0.1 * jnp.stack([-x[:, 0], jnp.sin(x[:, 1]), x[:, 2]], -1)


def rotated(x: Any) -> Any:
    a, b = x[0], x[1]
    return jnp.stack([0.8 * a - 0.6 * b, 0.6 * a + 0.8 * b])


def kept(x: Any) -> Any:
    return jnp.concatenate([x[:2], jnp.tanh(x[2:5]), x[5:] * 2])


def shifted(x: Any) -> Any:
    return jnp.concatenate([x[1:], jnp.tanh(x[:1])])


def chained(x: Any) -> Any:
    """Each part reads the next part."""
    return jnp.concatenate([x[:3] + x[3:6], jnp.sin(x[3:6]) + x[6:], jnp.cos(x[6:])])


def transposed(x: Any) -> Any:
    """The second part reads the first part in transposed order."""
    return jnp.concatenate([x[:4] * 0.5, x[4:] + x[:4, :4].T.sum() + x[:4]])


def summed(x: Any) -> Any:
    """The second part needs the whole old value."""
    return jnp.concatenate([x[:4] * 0.5, x[4:] + x.sum(0)])


@pytest.mark.parametrize(
    ("step", "shape", "most"),
    [
        (added, (512, 3), 100),
        (rotated, (2, 512), 2_148),
        (kept, (8, 64), 100),
        (shifted, (8, 64), None),
        (chained, (9, 64), 100),
        (transposed, (8, 64), None),
        (summed, (8, 64), None),
    ],
)
def test_values_and_bytes(
    step: Callable[[Any], Any], shape: tuple[int, ...], most: int | None
) -> None:
    x, function = floats(*shape), repeated(step)
    module = planned(function, x)
    want = jax.jit(function)(x)
    for native in (True, False):
        (got,) = Executable(module, native=native)(x)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    if most is not None:
        assert bytes_of(module) <= most


@pytest.mark.parametrize("is_rolled", [True, False])
def test_fields(is_rolled: bool) -> None:
    """Stencils of each field are added to the other field, and no field is stored
    twice."""

    def rolled(_: Any, fields: Any) -> Any:
        e, h = fields
        h = h - 0.1 * (jnp.roll(e, -1, 0) - jnp.roll(e, -1, 1))
        return e + 0.1 * (jnp.roll(h, 1, 1) - jnp.roll(h, 1, 0)), h

    def sliced(_: Any, fields: Any) -> Any:
        e, h = fields
        h = h.at[:-1, :-1].add(-0.1 * (e[1:, :-1] - e[:-1, 1:]))
        return e.at[1:, 1:].add(0.1 * (h[1:, :-1] - h[:-1, 1:])), h

    def function(e: Any, h: Any) -> Any:
        return lax.fori_loop(0, 5, rolled if is_rolled else sliced, (e, h))

    e, h = floats(32, 32), floats(32, 32)
    module = planned(function, e, h)
    assert bytes_of(module) <= 100
    for native in (True, False):
        got = Executable(module, native=native)(e, h)
        for a, b in zip(got, jax.jit(function)(e, h), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_random_parts() -> None:
    """Parts that read their own, other, or all old contents, in any order."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        ends = [0, *sorted(rng.choice(np.arange(1, 12), 3, replace=False)), 12]
        axis, kinds = int(rng.integers(2)), rng.integers(5, size=4)
        others = rng.integers(4, size=4)

        def part(x: Any, n: int, axis: int = axis, ends: Any = ends) -> Any:
            return lax.slice_in_dim(x, int(ends[n]), int(ends[n + 1]), axis=axis)

        def step(x: Any, axis: int = axis, kinds: Any = kinds, of: Any = others) -> Any:
            made: list[Any] = []
            for n, kind in enumerate(kinds):
                own, other = part(x, n), part(x, of[n])
                total = other.sum(axis, keepdims=True)
                every = x.mean(axis, keepdims=True)
                made.append(
                    (own, own * 0.5 + 1, own - total, jnp.sin(total) + 0 * own, -every)[
                        kind
                    ]
                    + (0 * own if kind else 0)
                )
            return jnp.concatenate(made, axis)

        x, function = floats(12, 12), repeated(step)
        (got,) = Executable(planned(function, x))(x)
        np.testing.assert_allclose(got, jax.jit(function)(x), rtol=1e-4, atol=1e-5)


def test_readers_after_the_update_get_old_contents() -> None:
    """An operation after the concatenation reads old contents, and gets the right
    values."""

    def function(x: Any) -> Any:
        new = jnp.concatenate([x[:4] * 2, jnp.tanh(x[4:])])
        return new, x[2:6] - new[:4]

    x = floats(8, 64)
    model = tensorplan.from_jax(function, x, donate_argnums=0)
    got = tensorplan.compile(tensorplan.plan(model))(x.copy())
    for a, b in zip(got, function(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_unrelated_concatenation_is_not_split() -> None:
    """A concatenation of values that do not depend on the old contents is kept."""

    def function(x: Any, y: Any) -> Any:
        return jnp.concatenate([jnp.sin(y), jnp.cos(y)])

    x, y = floats(8, 64), floats(4, 64)
    model = tensorplan.from_jax(function, x, y, donate_argnums=0)
    module = tensorplan.plan(model.module)
    assert any(isinstance(op, ConcatenateOp) for op in module.walk())


OLD = """
func.func @main(%v: !tgraph.variable<tensor<8x4xf32>>) {
  %w = tgraph.read %v : tensor<8x4xf32>
  %0 = tgraph.slice %w {start_indices = array<i64: 0, 0>,
    limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>}
    : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = tgraph.negate %0 : tensor<2x4xf32>
  %2 = tgraph.slice %w {start_indices = array<i64: 2, 0>,
    limit_indices = array<i64: 8, 4>, strides = array<i64: 1, 1>}
    : (tensor<8x4xf32>) -> tensor<6x4xf32>
  %3 = tgraph.abs %2 : tensor<6x4xf32>
  READ
  %4 = tgraph.concatenate %1, %3 outs(%v) {dimension = 0 : i64}
    : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  func.return
}"""


def test_unused_read_does_not_delay_updates() -> None:
    read = "%unused = tgraph.read %v : tensor<8x4xf32>"
    without, with_read = (
        run(parse(OLD.replace("READ", text)), TGraphSplitConcatenations())
        for text in ("", read)
    )
    assert "tgraph.concatenate" not in str(without)
    assert str(with_read).replace(f"    {read}\n", "") == str(without)
