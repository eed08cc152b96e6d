"""`tgraph-concatenate-in-place` computes operands where they are concatenated."""

from typing import Any

import numpy as np
import pytest
from levels import planned_bytes

import tensorplan


def test_an_encoding_is_stored_once() -> None:
    """The positional encoding of a radiance field: sines and cosines of its input."""
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
