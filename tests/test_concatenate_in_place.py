"""Tests that `tgraph-concatenate-in-place` computes operands of concatenations in the
memory of the result."""

from typing import Any

import numpy as np
import pytest
from levels import planned_bytes

import tensorplan


def test_positional_encoding_is_stored_once() -> None:
    """The positional encoding of a radiance field, sines and cosines of its input,
    takes the bytes of one concatenation."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def field(x: Any, w: Any) -> Any:
        return jnp.concatenate([jnp.sin(x), jnp.cos(x)], -1) @ w

    rng = np.random.default_rng(0)
    shapes = (64, 32), (64, 1)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    planned = tensorplan.plan(tensorplan.from_jax(field, *arrays))
    assert planned_bytes(planned.module) == 4 * 64 * 64
    (result,) = tensorplan.compile(planned)(*arrays)
    np.testing.assert_allclose(result, field(*arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(512, 512), (33, 7), (1, 5), (0, 4)])
def test_operands_of_a_stack_are_not_stored(axis: int, shape: tuple[int, int]) -> None:
    """Operands of a stack are reshaped to have a dimension of size 1, and are still
    computed in the result."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def stack(x: Any) -> Any:
        return jnp.stack([jnp.sin(x), jnp.cos(x)], axis)

    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    planned = tensorplan.plan(tensorplan.from_jax(stack, x))
    assert planned_bytes(planned.module) == 0
    (result,) = tensorplan.compile(planned)(x)
    np.testing.assert_allclose(result, stack(x), rtol=1e-5, atol=1e-5)


def test_detections_of_several_scales_are_written_in_place() -> None:
    """Operands are computed in the result through reshapes that merge and split
    dimensions, here of anchors from features to places."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def heads(x: Any, y: Any, v: Any, w: Any) -> Any:
        boxes = [(x @ v).reshape(-1, 4), jnp.tanh(y @ w).reshape(-1, 4)]
        return jnp.concatenate(boxes, 0)

    rng = np.random.default_rng(0)
    shapes = (64, 8), (16, 8), (8, 12), (8, 24)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    planned = tensorplan.plan(tensorplan.from_jax(heads, *arrays))
    assert planned_bytes(planned.module) == 0
    (result,) = tensorplan.compile(planned)(*arrays)
    np.testing.assert_allclose(result, heads(*arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [9, 32])
def test_concatenation_of_a_curl_is_in_place_rather_than_tiled(size: int) -> None:
    """Tiles need fewer bytes than the original program, but more than the concatenation
    in place."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def curl(x: Any) -> Any:
        def d(component: int, axis: int) -> Any:
            return jnp.roll(x[component], -1, axis) - x[component]

        return jnp.stack([d(2, 1) - d(1, 2), d(0, 2) - d(2, 0), d(1, 0) - d(0, 1)])

    x = np.random.default_rng(0).standard_normal((3, size, size, size))
    x = x.astype(np.float32)
    planned = tensorplan.plan(tensorplan.from_jax(curl, x))
    assert planned_bytes(planned.module) == 0
    (result,) = tensorplan.compile(planned)(x)
    np.testing.assert_allclose(result, curl(x), rtol=1e-5, atol=1e-5)


def test_products_are_in_place_only_in_rows() -> None:
    """Products are computed in a stack of rows, but not in a stack along the last
    dimension, where adjacent elements of a product would lie apart."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    for axis, bytes in (0, 0), (-1, 2 * 4 * 32 * 32):
        planned = tensorplan.plan(
            tensorplan.from_jax(lambda x, at=axis: jnp.stack([x @ x, x @ x.T], at), x)
        )
        assert planned_bytes(planned.module) == bytes


def test_concatenations_in_branches_are_in_place() -> None:
    """Each branch writes the whole result, in rows or in columns."""
    jax = pytest.importorskip("jax")
    jnp, lax = jax.numpy, jax.lax

    def either(x: Any, w: Any, number: Any) -> Any:
        branches = [
            lambda x: jnp.concatenate([jnp.sin(x), jnp.cos(x)]),
            lambda x: jnp.stack([jnp.tanh(x), jnp.cos(x)], 1).reshape(128, 64),
            lambda x: jnp.concatenate([x[:40] * 2, jnp.exp(x), x[40:]]),
        ]
        return jnp.cumsum(lax.switch(number, branches, x) @ w, 0)

    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    w = x[:, :8].copy()
    run = tensorplan.compile(tensorplan.plan(tensorplan.from_jax(either, x, w, 0)))
    for number in range(3):
        (result,) = run(x, w, np.int32(number))
        np.testing.assert_allclose(result, either(x, w, number), rtol=1e-4, atol=1e-4)
