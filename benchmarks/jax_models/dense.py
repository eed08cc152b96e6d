"""Multi-layer perceptrons, a chain of norms and GELUs, and an optimizer alone."""

from collections.abc import Sequence
from itertools import pairwise

from .base import (
    Array,
    Arrays,
    Model,
    Random,
    adam,
    cross_entropy,
    inference,
    jax,
    jnp,
    np,
    sgd,
)

WIDTHS = (784, 512, 512, 10)


def _layers(random: Random, widths: Sequence[int]) -> Arrays:
    parameters: list[Array] = []
    for inputs, outputs in pairwise(widths):
        parameters += random.weights(inputs, outputs), np.zeros(outputs, np.float32)
    return parameters


def _forward(parameters: Arrays, x: Array) -> Array:
    for layer in range(0, len(parameters), 2):
        x = jax.nn.relu(x) if layer else x
        x = x @ parameters[layer] + parameters[layer + 1]
    return x


def _loss(parameters: Arrays, x: Array, labels: Array) -> Array:
    return cross_entropy(_forward(parameters, x), labels)


def mlp(batch: int = 16, widths: Sequence[int] = WIDTHS) -> Model:
    """A multi-layer perceptron, forward."""
    random = Random()
    return inference(_forward, _layers(random, widths), random.normal(batch, widths[0]))


def mlp_step(batch: int = 128, widths: Sequence[int] = (784, 1024, 1024, 10)) -> Model:
    """One step of SGD on a multi-layer perceptron."""
    random = Random()
    x, y = random.normal(batch, widths[0]), random.labels(batch, widths[-1])
    return sgd(_loss, _layers(random, widths), x, y)


def mlp_adam(batch: int = 128, widths: Sequence[int] = WIDTHS) -> Model:
    """One step of Adam on a multi-layer perceptron."""
    random = Random()
    x, y = random.normal(batch, widths[0]), random.labels(batch, widths[-1])
    return adam(_loss, _layers(random, widths), x, y)


def norm_gelu(batch: int = 64, width: int = 256, blocks: int = 10) -> Model:
    """A chain of alternating layer norms and GELUs."""

    def forward(x: Array) -> Array:
        for _ in range(blocks):
            x = x - x.mean(-1, keepdims=True)
            x = jax.nn.gelu(x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5))
        return x

    return Model(forward, [Random().normal(batch, width)])


def adam_alone(size: int = 512, count: int = 4) -> Model:
    """Adam's update of matrices, with gradients as inputs."""
    random = Random()
    matrices = [random.normal(size, size) for _ in range(2 * count)]

    def loss(parameters: Arrays, *gradients: Array) -> Array:
        pairs = zip(parameters, gradients, strict=True)
        return sum((p * g).sum() for p, g in pairs)

    return adam(loss, matrices[:count], *matrices[count:])
