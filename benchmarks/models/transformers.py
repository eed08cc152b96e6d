"""Models in JAX, as flat functions of arrays, to measure whole programs.

Each maker gives the function, its arguments, and how many of them, from the first on,
are state: the function's first results are their new contents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

jax: Any = import_module("jax")
jnp: Any = jax.numpy

Array = Any  # of NumPy, or traced by JAX


@dataclass(frozen=True)
class Model:
    function: Callable[..., Any]
    arguments: Sequence[Array]
    state: int = 0
    parameters: Sequence[int] = ()
    """The arguments that are the same in every run."""


class _Random:
    """Parameters, always the same ones."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        return scale * self._rng.standard_normal(shape, np.float32)

    def weights(self, *shape: int) -> Array:
        """Keep the magnitude of what they are multiplied with."""
        return self.normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5)

    def labels(self, count: int, classes: int) -> Array:
        return np.eye(classes, dtype=np.float32)[self._rng.integers(0, classes, count)]


def mlp_step(batch: int = 128, widths: Sequence[int] = (784, 1024, 1024, 10)) -> Model:
    """One step of SGD on a multi-layer perceptron."""
    random = _Random()
    layers = len(widths) - 1
    state: list[Array] = []
    for inputs, outputs in pairwise(widths):
        state += random.weights(inputs, outputs), np.zeros(outputs, np.float32)

    def loss(parameters: Sequence[Array], x: Array, y: Array) -> Array:
        for layer in range(layers):
            x = x @ parameters[2 * layer] + parameters[2 * layer + 1]
            x = jax.nn.relu(x) if layer < layers - 1 else x
        return -(y * jax.nn.log_softmax(x)).sum(-1).mean()

    def step(*arguments: Array) -> Any:
        parameters, (x, y) = list(arguments[:-2]), arguments[-2:]
        value, gradients = jax.value_and_grad(loss)(parameters, x, y)
        updated = [p - 1e-3 * g for p, g in zip(parameters, gradients, strict=True)]
        return (*updated, value)

    x, y = random.normal(batch, widths[0]), random.labels(batch, widths[-1])
    return Model(step, [*state, x, y], len(state))


def _norm(x: Array, scale: Array, shift: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _block_parameters(random: _Random, width: int) -> list[Array]:
    parameters: list[Array] = []
    for inputs, outputs in ((1, 3), (1, 1), (1, 4), (4, 1)):
        if outputs > inputs:  # what a norm is before
            parameters += np.ones(width, np.float32), np.zeros(width, np.float32)
        parameters.append(random.weights(inputs * width, outputs * width))
        parameters.append(np.zeros(outputs * width, np.float32))
    return parameters


def _block(p: Sequence[Array], x: Array, heads: int, is_causal: bool) -> Array:
    batch, length, width = x.shape
    qkv = (_norm(x, p[0], p[1]) @ p[2] + p[3]).reshape(batch, length, 3, heads, -1)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (heads / width) ** 0.5
    if is_causal:
        seen = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(seen, scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    x = x + mixed.reshape(x.shape) @ p[4] + p[5]
    hidden = jax.nn.gelu(_norm(x, p[6], p[7]) @ p[8] + p[9])
    return x + hidden @ p[10] + p[11]


def transformer_block(
    batch: int = 4, length: int = 128, width: int = 256, heads: int = 8
) -> Model:
    """A transformer block, forward and backward: the gradients by all parameters."""
    random = _Random()
    parameters = _block_parameters(random, width)

    def loss(arguments: Sequence[Array]) -> Array:
        *parameters, x = arguments
        return (_block(parameters, x, heads, is_causal=False) ** 2).mean()

    def gradients(*arguments: Array) -> Any:
        value, gradients = jax.value_and_grad(loss)(list(arguments))
        return (value, *gradients)

    return Model(gradients, [*parameters, random.normal(batch, length, width)])


def adam_step(
    layers: int, batch: int = 4, length: int = 32, width: int = 64, heads: int = 4
) -> Model:
    """One step of Adam on transformer blocks, none in a loop: some 790 operations of
    StableHLO each."""
    random = _Random()
    state: list[Array] = []
    for _ in range(layers):
        state += _block_parameters(random, width)
    size, count = len(state) // layers, len(state)
    moments = [np.zeros_like(parameter) for parameter in state]

    def loss(parameters: Sequence[Array], x: Array, y: Array) -> Array:
        for first in range(0, count, size):
            x = _block(parameters[first : first + size], x, heads, is_causal=False)
        return ((x - y) ** 2).mean()

    def step(*arguments: Array) -> Any:
        parts = (arguments[n * count : (n + 1) * count] for n in range(3))
        parameters, means, squares = map(list, parts)
        time, x, y = arguments[3 * count :]
        time = time + 1
        value, gradients = jax.value_and_grad(loss)(parameters, x, y)
        for n, gradient in enumerate(gradients):
            means[n] = 0.9 * means[n] + 0.1 * gradient
            squares[n] = 0.999 * squares[n] + 0.001 * gradient**2
            scale = jnp.sqrt(squares[n] / (1 - 0.999**time)) + 1e-8
            parameters[n] -= 1e-3 * means[n] / (1 - 0.9**time) / scale
        return (*parameters, *means, *squares, time, value)

    x, y = random.normal(batch, length, width), random.normal(batch, length, width)
    arguments = [*state, *moments, *moments, np.float32(0), x, y]
    return Model(step, arguments, 3 * count + 1)


def gpt2(
    length: int = 64, layers: int = 12, width: int = 768, vocabulary: int = 50257
) -> Model:
    """GPT-2, the small one unless told otherwise: the last token's logits."""
    random = _Random()
    tokens = random.normal(vocabulary, width, scale=0.02)
    places = random.normal(length, width, scale=0.02)
    blocks = [_block_parameters(random, width) for _ in range(layers)]
    size = len(blocks[0])
    norm = np.ones(width, np.float32), np.zeros(width, np.float32)

    def forward(*arguments: Array) -> Array:
        tokens, places, scale, shift, *rest, ids = arguments
        x = tokens[ids] + places
        for layer in range(layers):
            parameters = rest[size * layer : size * (layer + 1)]
            x = _block(parameters, x, width // 64, is_causal=True)
        return _norm(x[:, -1], scale, shift) @ tokens.T

    ids = np.arange(length, dtype=np.int32)[None]
    flat = [p for parameters in blocks for p in parameters]
    arguments = [tokens, places, *norm, *flat, ids]
    return Model(forward, arguments, parameters=range(len(arguments) - 1))


def resnet18(batch: int = 1, size: int = 224) -> Model:
    """ResNet-18, forward, NHWC, with the batch norms folded into the weights."""
    random = _Random()
    parameters: list[Array] = []

    def convolution(kernel: int, inputs: int, outputs: int) -> None:
        parameters.append(random.weights(kernel, kernel, inputs, outputs))
        parameters.append(random.normal(outputs, scale=0.1))

    widths = (64, 64, 128, 256, 512)
    convolution(7, 3, 64)
    for inputs, outputs in pairwise(widths):
        for block in range(2):
            convolution(3, outputs if block else inputs, outputs)
            convolution(3, outputs, outputs)
            if block == 0 and inputs != outputs:
                convolution(1, inputs, outputs)
    parameters += random.weights(512, 1000), np.zeros(1000, np.float32)

    def forward(*arguments: Array) -> Array:
        x, rest = arguments[0], iter(arguments[1:])

        def convolve(x: Array, stride: int) -> Array:
            weights, bias = next(rest), next(rest)
            pad = weights.shape[0] // 2
            numbers = "NHWC", "HWIO", "NHWC"
            return bias + jax.lax.conv_general_dilated(
                x, weights, (stride,) * 2, ((pad, pad),) * 2, dimension_numbers=numbers
            )

        x = jax.nn.relu(convolve(x, 2))
        window, pads = (1, 3, 3, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, (1, 2, 2, 1), pads)
        for inputs, outputs in pairwise(widths):
            for block in range(2):
                stride = 2 if block == 0 and inputs != outputs else 1
                y = convolve(jax.nn.relu(convolve(x, stride)), 1)
                x = jax.nn.relu(y + (x if stride == 1 else convolve(x, stride)))
        return x.mean((1, 2)) @ next(rest) + next(rest)

    arguments = [random.normal(batch, size, size, 3), *parameters]
    return Model(forward, arguments, parameters=range(1, len(arguments)))


MODELS: dict[str, Callable[[], Model]] = {
    "mlp_step": mlp_step,
    "transformer_block": transformer_block,
    "resnet18": resnet18,
    "gpt2": gpt2,
}
