"""Tests that elementwise loops are unrolled, so that they can be fused."""

from typing import Any

import numpy as np
import pytest
from levels import planned_bytes

import tensorplan


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_random_bits_are_not_stored(rate: float) -> None:
    """Dropout draws one number for each element of the activation."""
    jax = pytest.importorskip("jax")

    def dropped(x: Any, key: Any) -> Any:
        return jax.numpy.where(jax.random.bernoulli(key, rate, x.shape), x / rate, 0)

    x = np.ones((64, 64), np.float32)
    key = np.array([0, 42], np.uint32)
    planned = tensorplan.plan(tensorplan.from_jax(dropped, x, key))
    assert planned_bytes(planned.module) <= 64
    (result,) = tensorplan.compile(planned)(x, key)
    np.testing.assert_array_equal(result, dropped(x, key))
