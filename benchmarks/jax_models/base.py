"""The class of JAX models, random parameters, and optimizer steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

jax: Any = import_module("jax")
jnp: Any = jax.numpy

Array: TypeAlias = Any  # a NumPy array, or a JAX tracer
Arrays: TypeAlias = Sequence[Array]


@dataclass(frozen=True)
class Model:
    """A function and its arguments. The first `state` arguments are variables: the
    first `state` results are their new contents."""

    function: Callable[..., Any]
    arguments: Arrays
    state: int = 0
    parameters: Sequence[int] = ()
    """The indices of the arguments that are the same in every run."""

    @property
    def inputs(self) -> Sequence[int]:
        """The indices of the arguments that change in every run."""
        kept = {*range(self.state), *self.parameters}
        return [n for n in range(len(self.arguments)) if n not in kept]


class Random:
    """Random arrays from a fixed seed."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        return np.float32(scale) * self._rng.standard_normal(shape, np.float32)

    def weights(self, *shape: int) -> Array:
        """Weights scaled so that a product keeps the magnitude of the other operand."""
        return self.normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5)

    def integers(self, limit: int, *shape: int) -> Array:
        return self._rng.integers(0, limit, shape).astype(np.int32)

    def labels(self, count: int, classes: int) -> Array:
        return np.eye(classes, dtype=np.float32)[self._rng.integers(0, classes, count)]


Forward: TypeAlias = Callable[..., Array]
"""Takes the list of parameters, then the inputs."""


def inference(forward: Forward, parameters: Arrays, *inputs: Array) -> Model:
    count = len(parameters)
    return Model(
        lambda *arrays: forward(arrays[:count], *arrays[count:]),
        [*parameters, *inputs],
        parameters=range(count),
    )


def cross_entropy(scores: Array, labels: Array) -> Array:
    """The mean cross-entropy over all but the last dimension. Labels are one-hot."""
    return -(labels * jax.nn.log_softmax(scores)).sum(-1).mean()


def sgd(loss: Forward, parameters: Arrays, *inputs: Array) -> Model:
    """One step of gradient descent."""
    count = len(parameters)

    def step(*arrays: Array) -> Any:
        weights = arrays[:count]
        value, gradients = jax.value_and_grad(loss)(weights, *arrays[count:])
        new = [w - 1e-3 * g for w, g in zip(weights, gradients, strict=True)]
        return (*new, value)

    return Model(step, [*parameters, *inputs], count)


def adam(loss: Forward, parameters: Arrays, *inputs: Array) -> Model:
    """One step of Adam. The state is the parameters, their first and second moments,
    and the number of steps."""
    count = len(parameters)

    def step(*arrays: Array) -> Any:
        weights, means, squares = (
            list(arrays[n * count : (n + 1) * count]) for n in range(3)
        )
        time = arrays[3 * count] + 1
        value, gradients = jax.value_and_grad(loss)(weights, *arrays[3 * count + 1 :])
        for n, gradient in enumerate(gradients):
            means[n] = 0.9 * means[n] + 0.1 * gradient
            squares[n] = 0.999 * squares[n] + 0.001 * gradient**2
            scale = jnp.sqrt(squares[n] / (1 - 0.999**time)) + 1e-8
            weights[n] -= 1e-3 * means[n] / (1 - 0.9**time) / scale
        return (*weights, *means, *squares, time, value)

    # The state is that after some steps, as Adam's first step is sensitive to rounding:
    # its length does not depend on the magnitude of the gradient.
    means = [np.zeros_like(x) for x in parameters]
    squares = [np.full_like(x, 1e-4) for x in parameters]
    moments = [*means, *squares, np.float32(100)]
    return Model(step, [*parameters, *moments, *inputs], 3 * count + 1)
