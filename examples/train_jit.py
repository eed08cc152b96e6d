"""Trains a small network in JAX with `tensorplan.jit`; updates its state in place.

python examples/train_jit.py
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tensorplan

RANDOM = np.random.default_rng(0)


def loss(params: Any, x: Any, y: Any) -> Any:
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x - y) ** 2)


@tensorplan.jit(donate_argnums=0)
def step(params: Any, x: Any, y: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, gradients), value


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape, np.float32)


if __name__ == "__main__":
    params = [{"w": normal(64, 64) / 8, "b": normal(64)} for _ in range(3)]
    first, x = params[0]["w"], normal(32, 64)
    for n in range(300):
        params, value = step(params, x, np.sin(x))
        if n % 100 == 0:
            print(f"step {n}: loss {value:.4f}")
    (pool,) = step.compiled(params, x, x).pools
    print(f"in place: {params[0]['w'] is first}; arena: {pool.bytes:,} bytes")
