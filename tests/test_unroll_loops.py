"""Loops that compute element by element are unrolled, so that groups compute them."""

from typing import Any

import numpy as np
import pytest
from levels import planned_bytes

import tensorplan


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_random_bits_are_computed_where_they_are_read(rate: float) -> None:
    """Dropout draws as many bits as the activation has; none of them are stored."""
    jax = pytest.importorskip("jax")

    def dropped(x: Any, key: Any) -> Any:
        return jax.numpy.where(jax.random.bernoulli(key, rate, x.shape), x / rate, 0)

    x = np.ones((64, 64), np.float32)
    key = np.array([0, 42], np.uint32)
    planned = tensorplan.plan(tensorplan.from_jax(dropped, x, key))
    assert planned_bytes(planned.module) <= 64
    (result,) = tensorplan.compile(planned)(x, key)
    np.testing.assert_array_equal(result, dropped(x, key))
