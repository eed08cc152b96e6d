"""Networks for microcontrollers as LiteRT models, with random weights.

    python tests/support/tflite_networks.py FOLDER

Writes all of them as `NAME.KIND.tflite`, with floats and with 8-bit integers.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tflite_models import Network

ACTIVATED: tuple[Any, ...] = (0.0235, -128)
"""The scale and the zero point of values from 0 to 6."""


class Layers:
    """Layers on images, with floats or 8-bit integers. Values are tensor indices."""

    def __init__(self, kind: str):
        self.net = Network()
        self._is_int = kind == "int8"
        self._shapes: dict[int, Sequence[int]] = {}

    def tensor(self, shape: Sequence[int], scale: float = 0.05, zero: int = 4) -> int:
        quantized: tuple[Any, ...] = (
            ("int8", scale, zero) if self._is_int else ("float32",)
        )
        number = self.net.tensor(shape, *quantized)
        self._shapes[number] = shape
        return number

    def input(self, *shape: int, scale: float = 1 / 64, zero: int = -1) -> int:
        quantized: tuple[Any, ...] = (
            ("int8", scale, zero) if self._is_int else ("float32",)
        )
        number = self.net.input(shape, *quantized)
        self._shapes[number] = shape
        return number

    def _weights(self, shape: Sequence[int], axis: int, inputs: int) -> list[int]:
        """The kernel and the bias of a layer, as constants."""
        channels, rng = shape[axis], self.net.rng
        spread = 2 / inputs**0.5
        if not self._is_int:
            kernel = rng.standard_normal(shape) * spread / 2
            bias = rng.standard_normal(channels) / 9
            return [self.net.constant(array.astype("f4")) for array in (kernel, bias)]
        scales = rng.uniform(0.5, 1, channels) * spread / 64
        kernel = self.net.random(*shape, scale=scales, axis=axis)
        bias = rng.integers(-500, 500, channels).astype("i4")
        return [kernel, self.net.constant(bias, scales / 50)]

    def conv(
        self, x: int, outputs: int, size: Sequence[int], stride: int = 1, *, relu: bool
    ) -> int:
        batch, height, width, inputs = self._shapes[x]
        weights = self._weights([outputs, *size, inputs], 0, size[0] * size[1] * inputs)
        places = [-(-height // stride), -(-width // stride)]
        y = self.tensor([batch, *places, outputs], *(ACTIVATED if relu else ()))
        options = {"strideH": stride, "strideW": stride}
        options["fusedActivationFunction"] = 3 * relu
        return self.net.op(
            "CONV_2D", [x, *weights], y, table="Conv2DOptions", **options
        )

    def depthwise(self, x: int, stride: int = 1) -> int:
        batch, height, width, channels = self._shapes[x]
        weights = self._weights([1, 3, 3, channels], 3, 9)
        places = [-(-height // stride), -(-width // stride)]
        y = self.tensor([batch, *places, channels], *ACTIVATED)
        options = {"strideH": stride, "strideW": stride, "depthMultiplier": 1}
        options["fusedActivationFunction"] = 3
        table = "DepthwiseConv2DOptions"
        return self.net.op(
            "DEPTHWISE_CONV_2D", [x, *weights], y, table=table, **options
        )

    def dense(self, x: int, outputs: int, *, relu: bool = False) -> int:
        *rest, inputs = self._shapes[x]
        weights = self._weights([outputs, inputs], 0, inputs)
        y = self.tensor([*rest, outputs], *(ACTIVATED if relu else ()))
        options = {"fusedActivationFunction": int(relu), "keepNumDims": True}
        table = "FullyConnectedOptions"
        return self.net.op("FULLY_CONNECTED", [x, *weights], y, table=table, **options)

    def elementwise(self, kind: str, a: int, b: int) -> int:
        y = self.tensor(self._shapes[a], 0.06, -3)
        table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}.get(
            kind
        )
        return self.net.op(kind, [a, b], y, table=table or "")

    def mean(self, x: int, axes: Sequence[int], *, keep: bool = False) -> int:
        shape = self._shapes[x]
        kept = [1 if d in axes else s for d, s in enumerate(shape)]
        if not keep:
            kept = [s for d, s in enumerate(shape) if d not in axes]
        y = self.tensor(kept, 0.03, -100)
        numbers = self.net.constant(np.array(axes, "i4"))
        options = {"table": "ReducerOptions", "keepDims": keep}
        return self.net.op("MEAN", [x, numbers], y, **options)

    def pool(self, x: int, size: int) -> int:
        """Average pooling. LiteRT requires that the result has the input's scale."""
        batch, height, width, channels = self._shapes[x]
        y = self.tensor([batch, height // size, width // size, channels], *ACTIVATED)
        sizes = ("filterHeight", "filterWidth", "strideH", "strideW")
        options = {"table": "Pool2DOptions", "padding": 1, **dict.fromkeys(sizes, size)}
        return self.net.op("AVERAGE_POOL_2D", [x], y, **options)

    def reshape(self, x: int, *shape: int, like: tuple[Any, ...] = (0.05, 4)) -> int:
        y = self.tensor(shape, *like)
        return self.net.op("RESHAPE", [x, self.net.constant(np.array(shape, "i4"))], y)

    def softmax(self, x: int) -> int:
        y = self.tensor(self._shapes[x], 1 / 256, -128)
        return self.net.op("SOFTMAX", [x], y, table="SoftmaxOptions", beta=1.0)

    def classes(self, x: int, count: int) -> bytes:
        return self.net.model(self.softmax(self.dense(x, count)))

    # Layers for text

    def transposed(self, x: int, *order: int, like: tuple[Any, ...] = (0.05, 4)) -> int:
        y = self.tensor([self._shapes[x][d] for d in order], *like)
        return self.net.op(
            "TRANSPOSE", [x, self.net.constant(np.array(order, "i4"))], y
        )

    def matmul(self, a: int, b: int, *, turned: bool = False) -> int:
        *batch, rows, _ = self._shapes[a]
        columns = self._shapes[b][-2 if turned else -1]
        y = self.tensor([*batch, rows, columns], 0.1, 0)
        options = {"table": "BatchMatMulOptions", "adjX": False, "adjY": turned}
        return self.net.op("BATCH_MATMUL", [a, b], y, **options)

    def normalized(self, x: int) -> int:
        """Layer normalization, in the form that converters write."""
        average = self.mean(x, [len(self._shapes[x]) - 1], keep=True)
        square = self.tensor(self._shapes[x], 0.2, -128)
        self.net.op("SQUARED_DIFFERENCE", [x, average], square)
        self._shapes[square] = self._shapes[x]
        variance = self.mean(square, [len(self._shapes[x]) - 1], keep=True)
        inverse = self.tensor(self._shapes[variance], 0.02, -128)
        self.net.op("RSQRT", [self._positive(variance)], inverse)
        return self.elementwise("MUL", self.elementwise("SUB", x, average), inverse)

    def _positive(self, x: int) -> int:
        y = self.tensor(self._shapes[x], 0.05, -128)
        epsilon = np.full([1], -120 if self._is_int else 1e-3)
        quantized: tuple[Any, ...] = ("i1", 0.05, -128) if self._is_int else ("f4",)
        kind, *scale = quantized
        constant = self.net.constant(epsilon.astype(kind), *scale)
        return self.net.op("ADD", [x, constant], y, table="AddOptions")


def hello(kind: str) -> bytes:
    """TensorFlow Lite Micro's first example: three layers approximate a sine."""
    n = Layers(kind)
    y = n.dense(n.input(1, 1, scale=0.024, zero=-128), 16, relu=True)
    return n.net.model(n.dense(n.dense(y, 16, relu=True), 1))


def keywords(kind: str) -> bytes:
    """A DS-CNN that spots keywords in 49 frames of 10 numbers."""
    n = Layers(kind)
    y = n.conv(n.input(1, 49, 10, 1), 24, [10, 4], 2, relu=True)
    for _ in range(4):
        y = n.conv(n.depthwise(y), 24, [1, 1], relu=True)
    return n.classes(n.mean(y, [1, 2]), 12)


def speech(kind: str) -> bytes:
    """TensorFlow Lite Micro's speech example: one convolution of a spectrogram."""
    n = Layers(kind)
    x = n.reshape(n.input(1, 1960), 1, 49, 40, 1, like=(1 / 64, -1))
    y = n.conv(x, 8, [10, 8], 2, relu=True)
    return n.classes(n.reshape(y, 1, 25 * 20 * 8, like=ACTIVATED), 4)


def person(kind: str) -> bytes:
    """A MobileNetV1, as in TensorFlow Lite Micro's person detection example."""
    n = Layers(kind)
    y = n.conv(n.input(1, 48, 48, 1), 8, [3, 3], 2, relu=True)
    for outputs, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)):
        y = n.conv(n.depthwise(y, stride), outputs, [1, 1], relu=True)
    return n.classes(n.reshape(n.pool(y, 3), 1, 128, like=ACTIVATED), 2)


def mobilenet(kind: str, size: int = 64) -> bytes:
    """A MobileNetV2: inverted residuals with narrow ends and wide inner layers."""
    n = Layers(kind)
    y = n.depthwise(n.conv(n.input(1, size, size, 3), 16, [3, 3], 2, relu=True))
    y, channels = n.conv(y, 8, [1, 1], relu=False), 8
    for outputs, count, stride in ((8, 2, 2), (16, 2, 2), (24, 2, 2), (32, 1, 1)):
        for number in range(count):
            wide = n.conv(y, 6 * channels, [1, 1], relu=True)
            wide = n.depthwise(wide, stride if number == 0 else 1)
            narrow = n.conv(wide, outputs, [1, 1], relu=False)
            y = n.elementwise("ADD", y, narrow) if number else narrow
            channels = outputs
    return n.classes(n.mean(n.conv(y, 64, [1, 1], relu=True), [1, 2]), 10)


def transformer(kind: str) -> bytes:
    """A transformer block with 4 heads on 16 tokens of width 32."""
    n = Layers(kind)
    x = n.input(1, 16, 32)
    rows = n.normalized(x)
    heads = [
        n.transposed(n.reshape(n.dense(rows, 32), 1, 16, 4, 8), 0, 2, 1, 3)
        for _ in range(3)
    ]
    shares = n.softmax(n.matmul(heads[0], heads[1], turned=True))
    mixed = n.transposed(n.matmul(shares, heads[2]), 0, 2, 1, 3, like=(0.1, 0))
    mixed = n.dense(n.reshape(mixed, 1, 16, 32, like=(0.1, 0)), 32)
    y = n.elementwise("ADD", x, mixed)
    y = n.elementwise("ADD", y, n.dense(n.dense(n.normalized(y), 64, relu=True), 32))
    return n.net.model(y)


NETWORKS: Mapping[str, Callable[[str], bytes]] = {
    f.__name__: f for f in (hello, keywords, speech, person, mobilenet, transformer)
}
KINDS = ("float32", "int8")


def images(data: bytes, seed: int) -> list[Any]:
    """Random inputs of a serialized network, from a seed."""
    from ai_edge_litert.interpreter import Interpreter

    rng = np.random.default_rng(seed)
    return [
        rng.integers(-128, 128, details["shape"], "i1")
        if details["dtype"] == np.int8
        else rng.standard_normal(details["shape"]).astype("f4")
        for details in Interpreter(model_content=data).get_input_details()
    ]


if __name__ == "__main__":
    for name, network in NETWORKS.items():
        for kind in KINDS:
            Path(sys.argv[1], f"{name}.{kind}.tflite").write_bytes(network(kind))
