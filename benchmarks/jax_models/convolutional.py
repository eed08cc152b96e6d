"""Convolutional networks, with channels last."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from .base import (
    Array,
    Arrays,
    Model,
    Random,
    cross_entropy,
    inference,
    jax,
    jnp,
    np,
    sgd,
)

NUMBERS = "NHWC", "HWIO", "NHWC"


def _convolve(x: Array, weights: Array, stride: int = 1, groups: int = 1) -> Array:
    """A convolution whose padding preserves the size."""
    pad = weights.shape[0] // 2
    return jax.lax.conv_general_dilated(
        *(x, weights, (stride,) * 2, ((pad, pad),) * 2),
        dimension_numbers=NUMBERS,
        feature_group_count=groups,
    )


def _largest(x: Array, size: int, stride: int, pad: int = 0) -> Array:
    window, steps = (1, size, size, 1), (1, stride, stride, 1)
    pads = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    return jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, steps, pads)


class _Parameters(list[Array]):
    """Collects the weights and biases of layers, in order."""

    def __init__(self, random: Random):
        super().__init__()
        self._random = random

    def convolution(self, kernel: int, inputs: int, outputs: int) -> None:
        self.append(self._random.weights(kernel, kernel, inputs, outputs))
        self.append(self._random.normal(outputs, scale=0.1))

    def dense(self, inputs: int, outputs: int) -> None:
        self.append(self._random.weights(inputs, outputs))
        self.append(np.zeros(outputs, np.float32))

    def norm(self, width: int) -> None:
        self.append(np.ones(width, np.float32))
        self.append(np.zeros(width, np.float32))


# LeNet


def _lenet_parameters(random: Random) -> Arrays:
    parameters = _Parameters(random)
    parameters.convolution(5, 1, 6)
    parameters.convolution(5, 6, 16)
    for inputs, outputs in pairwise((784, 120, 84, 10)):
        parameters.dense(inputs, outputs)
    return parameters


def _lenet(parameters: Arrays, x: Array) -> Array:
    for n in (0, 2):
        x = jax.nn.relu(_convolve(x, parameters[n]) + parameters[n + 1])
        x = _largest(x, 2, 2)
    x = x.reshape(len(x), -1)
    for n in (4, 6, 8):
        x = x @ parameters[n] + parameters[n + 1]
        x = jax.nn.relu(x) if n < 8 else x
    return x


def lenet(batch: int = 8) -> Model:
    """LeNet, forward."""
    random = Random()
    return inference(_lenet, _lenet_parameters(random), random.normal(batch, 28, 28, 1))


def lenet_step(batch: int = 32) -> Model:
    """One step of SGD on LeNet."""
    random = Random()

    def loss(parameters: Arrays, x: Array, labels: Array) -> Array:
        return cross_entropy(_lenet(parameters, x), labels)

    x, labels = random.normal(batch, 28, 28, 1), random.labels(batch, 10)
    return sgd(loss, _lenet_parameters(random), x, labels)


# ResNet


def resnet18(batch: int = 1, size: int = 224) -> Model:
    """ResNet-18, forward, with the batch norms folded into the weights."""
    random = Random()
    parameters = _Parameters(random)
    widths = (64, 64, 128, 256, 512)
    parameters.convolution(7, 3, 64)
    for inputs, outputs in pairwise(widths):
        for block in range(2):
            parameters.convolution(3, outputs if block else inputs, outputs)
            parameters.convolution(3, outputs, outputs)
            if block == 0 and inputs != outputs:
                parameters.convolution(1, inputs, outputs)
    parameters.dense(512, 1000)

    def forward(x: Array, *arguments: Array) -> Array:
        rest = iter(arguments)

        def convolve(x: Array, stride: int) -> Array:
            return _convolve(x, next(rest), stride) + next(rest)

        x = _largest(jax.nn.relu(convolve(x, 2)), 3, 2, 1)
        for inputs, outputs in pairwise(widths):
            for block in range(2):
                stride = 2 if block == 0 and inputs != outputs else 1
                y = convolve(jax.nn.relu(convolve(x, stride)), 1)
                x = jax.nn.relu(y + (x if stride == 1 else convolve(x, stride)))
        return x.mean((1, 2)) @ next(rest) + next(rest)

    arguments = [random.normal(batch, size, size, 3), *parameters]
    return Model(forward, arguments, parameters=range(1, len(arguments)))


def _batch_norm(x: Array, scale: Array, shift: Array) -> Array:
    mean = x.mean((0, 1, 2))
    variance = ((x - mean) ** 2).mean((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def resnet_step(
    batch: int = 8, size: int = 32, widths: Sequence[int] = (16, 16, 32, 64)
) -> Model:
    """One step of SGD on a small ResNet for images of 32x32, with batch norms."""
    random = Random()
    parameters = _Parameters(random)
    parameters.convolution(3, 3, widths[0])
    for inputs, outputs in pairwise(widths):
        for kernel, width in ((3, inputs), (3, outputs), (1, inputs)):
            parameters.convolution(kernel, width, outputs)
            parameters.norm(outputs)
    parameters.dense(widths[-1], 10)

    def loss(parameters: Arrays, x: Array, labels: Array) -> Array:
        rest = iter(parameters)

        def normed(x: Array, stride: int) -> Array:
            y = _convolve(x, next(rest), stride) + next(rest)
            return _batch_norm(y, next(rest), next(rest))

        x = _convolve(x, next(rest)) + next(rest)
        for inputs, outputs in pairwise(widths):
            stride = 1 if inputs == outputs else 2
            y = normed(jax.nn.relu(normed(x, stride)), 1)
            x = jax.nn.relu(y + normed(x, stride))
        return cross_entropy(x.mean((1, 2)) @ next(rest) + next(rest), labels)

    x, labels = random.normal(batch, size, size, 3), random.labels(batch, 10)
    return sgd(loss, parameters, x, labels)


RESNET_50 = [
    (width, 2 if number == 0 and width > 64 else 1, number == 0)
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3))
    for number in range(count)
]
"""For each block: inner width, stride, and whether its shortcut is a convolution."""


def resnet50_step(batch: int = 8, size: int = 64) -> Model:
    """One step of SGD on ResNet-50, with batch norms."""
    random = Random()
    parameters = _Parameters(random)
    parameters.convolution(7, 3, 64)
    parameters.norm(64)
    channels = 64
    for width, _, is_first in RESNET_50:
        shapes = (1, channels, width), (3, width, width), (1, width, 4 * width)
        for shape in (*shapes, *([(1, channels, 4 * width)] if is_first else [])):
            parameters.convolution(*shape)
            parameters.norm(shape[-1])
        channels = 4 * width
    parameters.dense(channels, 1000)

    def loss(parameters: Arrays, x: Array, labels: Array) -> Array:
        rest = iter(parameters)

        def normed(x: Array, stride: int = 1) -> Array:
            y = _convolve(x, next(rest), stride) + next(rest)
            return _batch_norm(y, next(rest), next(rest))

        x = _largest(jax.nn.relu(normed(x, 2)), 3, 2, 1)
        for _, stride, is_first in RESNET_50:
            y = jax.nn.relu(normed(jax.nn.relu(normed(x)), stride))
            y = normed(y)
            x = jax.nn.relu(y + (normed(x, stride) if is_first else x))
        return cross_entropy(x.mean((1, 2)) @ next(rest) + next(rest), labels)

    x, labels = random.normal(batch, size, size, 3), random.labels(batch, 1000)
    return sgd(loss, parameters, x, labels)


# MobileNetV2


MOBILENET = [
    (factor, outputs, stride if number == 0 else 1)
    for factor, outputs, count, stride in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    )
    for number in range(count)
]
"""For each block: the expansion factor, the width of its result, and its stride."""


def _mobilenet_parameters(random: Random) -> Arrays:
    parameters = _Parameters(random)
    parameters.convolution(3, 3, 32)
    width = 32
    for factor, outputs, _ in MOBILENET:
        parameters.convolution(1, width, factor * width)
        parameters.convolution(3, 1, factor * width)
        parameters.convolution(1, factor * width, outputs)
        width = outputs
    parameters.convolution(1, width, 1280)
    parameters.dense(1280, 1000)
    return parameters


def _mobilenet(parameters: Arrays, x: Array) -> Array:
    rest = iter(parameters)

    def convolve(x: Array, stride: int = 1, groups: int = 1) -> Array:
        return _convolve(x, next(rest), stride, groups) + next(rest)

    x = jax.nn.relu6(convolve(x, 2))
    for _, outputs, stride in MOBILENET:
        y = jax.nn.relu6(convolve(x))
        y = convolve(jax.nn.relu6(convolve(y, stride, y.shape[-1])))
        x = x + y if stride == 1 and x.shape[-1] == outputs else y
    x = jax.nn.relu6(convolve(x))
    return x.mean((1, 2)) @ next(rest) + next(rest)


def mobilenetv2(batch: int = 1, size: int = 96) -> Model:
    """MobileNetV2, forward, with the batch norms folded into the weights."""
    random = Random()
    parameters = _mobilenet_parameters(random)
    return inference(_mobilenet, parameters, random.normal(batch, size, size, 3))


def mobilenetv2_step(batch: int = 8, size: int = 96) -> Model:
    """One step of SGD on MobileNetV2, with the batch norms folded into the weights."""
    random = Random()

    def loss(parameters: Arrays, x: Array, labels: Array) -> Array:
        return cross_entropy(_mobilenet(parameters, x), labels)

    parameters = _mobilenet_parameters(random)
    x, labels = random.normal(batch, size, size, 3), random.labels(batch, 1000)
    return sgd(loss, parameters, x, labels)


# U-Net


def _unet_parameters(random: Random, widths: Sequence[int]) -> Arrays:
    parameters = _Parameters(random)
    for inputs, outputs in pairwise((3, *widths)):
        parameters.convolution(3, inputs, outputs)
        parameters.convolution(3, outputs, outputs)
    for outputs, inputs in reversed(list(pairwise(widths))):
        parameters.convolution(3, inputs + outputs, outputs)
        parameters.convolution(3, outputs, outputs)
    parameters.convolution(1, widths[0], 1)
    return parameters


def _unet(parameters: Arrays, x: Array, depth: int) -> Array:
    rest = iter(parameters)

    def twice(x: Array) -> Array:
        for _ in range(2):
            x = jax.nn.relu(_convolve(x, next(rest)) + next(rest))
        return x

    kept: list[Array] = []
    for _ in range(depth):
        kept.append(twice(x))
        x = _largest(kept[-1], 2, 2)
    x = twice(x)
    for skipped in reversed(kept):
        x = x.repeat(2, 1).repeat(2, 2)
        x = twice(jnp.concatenate([x, skipped], -1))
    return _last(rest, x)


def _last(rest: Iterator[Array], x: Array) -> Array:
    return _convolve(x, next(rest)) + next(rest)


def unet(
    batch: int = 1, size: int = 64, widths: Sequence[int] = (16, 32, 64, 128)
) -> Model:
    """A U-Net, forward."""
    random = Random()
    forward = partial(_unet, depth=len(widths) - 1)
    x = random.normal(batch, size, size, 3)
    return inference(forward, _unet_parameters(random, widths), x)


def unet_step(
    batch: int = 2, size: int = 64, widths: Sequence[int] = (16, 32, 64)
) -> Model:
    """One step of SGD on a U-Net."""
    random = Random()

    def loss(parameters: Arrays, x: Array, y: Array) -> Array:
        return ((_unet(parameters, x, len(widths) - 1) - y) ** 2).mean()

    x, y = random.normal(batch, size, size, 3), random.normal(batch, size, size, 1)
    return sgd(loss, _unet_parameters(random, widths), x, y)
