"""A training step of a residual network in JAX, with momentum; the README shows it.

python examples/train_deep.py plan.html
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp

import tensorplan

WIDTH, LAYERS, BATCH, CLASSES = 256, 8, 256, 10


def network(params: Any, x: Any) -> Any:
    for layer in params:
        hidden = jnp.tanh(x @ layer["w"] + layer["b"])
        x = x + hidden * 0.5
    return x


def loss(params: Any, images: Any, labels: Any) -> Any:
    logits = network(params[:-1], images) @ params[-1]["w"]
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), axis=1))


def step(params: Any, momentum: Any, images: Any, labels: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(params, images, labels)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    params = jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum)
    return params, momentum, value


def model() -> tensorplan.Model:
    """The program of `step`; callers pass arrays to each run."""

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    layer = {"w": array(WIDTH, WIDTH), "b": array(WIDTH)}
    params = [*[layer] * LAYERS, {"w": array(WIDTH, CLASSES)}]
    inputs = params, params, array(BATCH, WIDTH), array(BATCH, CLASSES)
    return tensorplan.from_jax(step, *inputs, donate_argnums=(0, 1))


if __name__ == "__main__":
    tensorplan.view(model()).save(sys.argv[1])
