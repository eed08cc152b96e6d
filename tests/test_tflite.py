"""Tests the LiteRT frontend: integer results equal LiteRT's reference kernels bit for
bit."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.frontends.tflite.control import CONTROL
from tensorplan.frontends.tflite.graph import CONVERSIONS, STATE

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
from tflite_models import Network, litert
from tflite_networks import KINDS, NETWORKS, images


def inputs_of(n: Network, *kinds: Any) -> list[Any]:
    """Random inputs: integers of the whole range of their type, or normally distributed
    floats."""
    return [
        n.rng.standard_normal(shape).astype(dtype)
        if dtype == "float32"
        else n.rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape, dtype)
        for shape, dtype in kinds
    ]


def check(data: bytes, arrays: Sequence[Any], resolver: str = "reference") -> None:
    """Asserts that the reference interpreter and the compiled program compute LiteRT's
    values."""
    want = litert(data, arrays, resolver)
    model = tensorplan.from_tflite(data)
    given = [*arrays, *model.parameters.values()]
    for got in (run_reference(model.module, given), tensorplan.compile(model)(*arrays)):
        for own, peer in zip(got, want, strict=True):
            assert own.dtype == peer.dtype
            assert own.shape == peer.shape
            if own.dtype.kind == "f":
                np.testing.assert_allclose(own, peer, 2e-5, 1e-5)
            else:
                np.testing.assert_array_equal(own, peer)


def run_one(
    kind: str,
    shapes: Sequence[Sequence[int]],
    result: Sequence[int],
    *constants: Any,
    dtype: str = "int8",
    scales: Sequence[float] = (0.03, 0.017),
    zeros: Sequence[int] = (-3, 11),
    out: tuple[float, int] | None = (0.05, 7),
    first: bool = True,
    outputs: int = 1,
    resolver: str = "reference",
    **options: Any,
) -> None:
    """Checks one operator on random inputs of the given shapes. The constants follow
    the inputs if `first` is true, and precede them otherwise."""
    n = Network()
    quantized = dtype != "float32"
    given = [
        n.input(shape, dtype, *((scale, zero) if quantized else ()))
        for shape, scale, zero in zip(shapes, scales, zeros, strict=False)
    ]
    scale, zero = out or (scales[0], zeros[0])
    others = [n.constant(array) for array in constants]
    results = [
        n.tensor(result, dtype, *((scale, zero) if quantized else ()))
        for _ in range(outputs)
    ]
    n.op(kind, [*given, *others] if first else [*others, *given], *results, **options)
    arrays = inputs_of(n, *((shape, dtype) for shape in shapes))
    check(n.model(*results), arrays, resolver)


def i32(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


DTYPES = pytest.mark.parametrize("dtype", ["int8", "float32"])


@pytest.mark.parametrize(
    ("padding", "stride", "dilation", "activation", "zero"),
    [(0, 1, 1, 3, -5), (0, 2, 1, 1, -128), (1, 1, 2, 0, 9), (0, 1, 2, 2, 0)],
)
@pytest.mark.parametrize("channels", [True, False])
def test_convolutions(
    padding: int, stride: int, dilation: int, activation: int, zero: int, channels: bool
) -> None:
    n = Network()
    x = n.input([2, 9, 8, 4], "int8", 0.02, zero)
    scales = n.rng.uniform(0.001, 0.02, 6 if channels else 1)
    w = n.random(6, 3, 3, 4, scale=scales)
    b = n.constant(n.rng.integers(-500, 500, 6).astype("i4"), 0.02 * scales)
    size = (
        9 if not padding else 9 - 2 * dilation,
        8 if not padding else 8 - 2 * dilation,
    )
    places = [-(-s // stride) for s in size]
    y = n.tensor([2, *places, 6], "int8", 0.05, 3)
    n.op(
        *("CONV_2D", [x, w, b], y),
        table="Conv2DOptions",
        padding=padding,
        **{"strideH": stride, "strideW": stride, "fusedActivationFunction": activation},
        **{"dilationHFactor": dilation, "dilationWFactor": dilation},
    )
    check(n.model(y), inputs_of(n, ([2, 9, 8, 4], "int8")))


@pytest.mark.parametrize(("multiplier", "zero"), [(1, -128), (2, 4)])
def test_depthwise_convolutions(multiplier: int, zero: int) -> None:
    n = Network()
    x = n.input([1, 7, 8, 4], "int8", 0.02, zero)
    count = 4 * multiplier
    scales = n.rng.uniform(0.001, 0.02, count)
    w = n.random(1, 3, 3, count, scale=scales, axis=3)
    b = n.constant(n.rng.integers(-500, 500, count).astype("i4"), 0.02 * scales)
    y = n.tensor([1, 4, 4, count], "int8", 0.03, -128)
    n.op(
        *("DEPTHWISE_CONV_2D", [x, w, b], y),
        table="DepthwiseConv2DOptions",
        **{"strideH": 2, "strideW": 2, "depthMultiplier": multiplier},
        fusedActivationFunction=3,
    )
    check(n.model(y), inputs_of(n, ([1, 7, 8, 4], "int8")))


def test_convolutions_of_floats() -> None:
    n = Network()
    x = n.input([1, 7, 8, 4], "float32")
    y, z = n.tensor([1, 4, 4, 6], "float32"), n.tensor([1, 4, 4, 6], "float32")
    options = {"strideH": 2, "strideW": 2, "fusedActivationFunction": 1}
    weights = [n.random(6, 3, 3, 4), n.random(6)]
    n.op("CONV_2D", [x, *weights], y, table="Conv2DOptions", **options)
    own = {"strideH": 1, "strideW": 1, "depthMultiplier": 1}
    kernel = [n.random(1, 3, 3, 6), n.random(6)]
    n.op("DEPTHWISE_CONV_2D", [y, *kernel], z, table="DepthwiseConv2DOptions", **own)
    check(n.model(z), inputs_of(n, ([1, 7, 8, 4], "float32")))


@pytest.mark.parametrize("scales", [[0.01], [0.01, 0.002, 0.03, 0.001, 0.02]], ids=len)
@pytest.mark.parametrize("keep", [True, False])
def test_fully_connected(scales: list[float], keep: bool) -> None:
    n = Network()
    x = n.input([2, 3, 8], "int8", 0.02, -9)
    w = n.random(5, 8, scale=scales)
    b = n.constant(n.rng.integers(-500, 500, 5).astype("i4"), 0.02 * np.array(scales))
    y = n.tensor([2, 3, 5] if keep else [6, 5], "int8", 0.04, 3)
    n.op(
        *("FULLY_CONNECTED", [x, w, b], y),
        table="FullyConnectedOptions",
        keepNumDims=keep,
        fusedActivationFunction=1,
    )
    check(n.model(y), inputs_of(n, ([2, 3, 8], "int8")))


def test_4_bit_weights() -> None:
    """Two 4-bit weights share a byte, the first in the low bits. The last byte may hold
    only one."""
    n = Network()
    x = n.input([1, 5, 5, 3], "int8", 0.02, -9)
    scales = n.rng.uniform(0.01, 0.1, 5)
    w = n.packed(5, 3, 3, 3, scale=scales)
    b = n.constant(np.arange(5, dtype="i4"), 0.02 * scales)
    y = n.tensor([1, 5, 5, 5], "int8", 0.1, 3)
    strides = {"strideH": 1, "strideW": 1}
    n.op("CONV_2D", [x, w, b], y, table="Conv2DOptions", **strides)
    w = n.packed(1, 3, 3, 5, scale=scales, axis=3)
    b = n.constant(np.arange(5, dtype="i4"), 0.1 * scales)
    z = n.tensor([1, 5, 5, 5], "int8", 0.2, 1)
    options = {"table": "DepthwiseConv2DOptions", "depthMultiplier": 1, **strides}
    n.op("DEPTHWISE_CONV_2D", [y, w, b], z, **options)
    w, b = n.packed(7, 125, scale=0.03), n.constant(np.arange(7, dtype="i4"), 0.006)
    result = n.tensor([1, 7], "int8", 0.5, -4)
    n.op("FULLY_CONNECTED", [z, w, b], result, table="FullyConnectedOptions")
    check(n.model(result), inputs_of(n, ([1, 5, 5, 3], "int8")))


def test_16_bit_contractions() -> None:
    """Weights have 8 or 4 bits, and a bias has 64 bits or is absent."""
    n = Network()
    x = n.input([1, 6, 6, 300], "int16", 0.001)
    scales = n.rng.uniform(0.001, 0.02, 4)
    w = n.random(4, 3, 3, 300, scale=scales)
    b = n.constant(n.rng.integers(-(1 << 40), 1 << 40, 4), 0.001 * scales)
    y = n.tensor([1, 6, 6, 4], "int16", 0.05)
    strides = {"strideH": 1, "strideW": 1}
    n.op("CONV_2D", [x, w, b], y, table="Conv2DOptions", **strides)
    w = n.random(1, 3, 3, 4, scale=scales, axis=3)
    b = n.constant(n.rng.integers(-50000, 50000, 4), 0.05 * scales)
    z = n.tensor([1, 6, 6, 4], "int16", 0.07)
    options = {"table": "DepthwiseConv2DOptions", "depthMultiplier": 1, **strides}
    n.op("DEPTHWISE_CONV_2D", [y, w, b], z, fusedActivationFunction=1, **options)
    result = n.tensor([1, 7], "int16", 0.3)
    inputs = [z, n.packed(7, 144, scale=0.01), -1]
    n.op("FULLY_CONNECTED", inputs, result, table="FullyConnectedOptions")
    check(n.model(result), inputs_of(n, ([1, 6, 6, 300], "int16")))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("channels", [True, False])
def test_16_bit_fully_connected(channels: bool, bias: bool) -> None:
    """LiteRT scales these sums in double precision."""
    n = Network()
    x, y = n.input([99, 40], "int16", 0.001), n.tensor([99, 7], "int16", 0.04)
    scales = n.rng.uniform(0.001, 0.02, 7 if channels else 1)
    inputs = [x, n.random(7, 40, scale=scales), -1]
    if bias:
        numbers = n.rng.integers(-50000, 50000, 7)
        inputs[2] = n.constant(numbers, np.broadcast_to(0.001 * scales, 7))
    n.op("FULLY_CONNECTED", inputs, y, table="FullyConnectedOptions")
    check(n.model(y), inputs_of(n, ([99, 40], "int16")))


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
@pytest.mark.parametrize(
    ("padding", "stride", "kernel", "size"),
    [
        (0, 2, 3, 10),
        (0, 2, 3, 9),
        (0, 2, 4, 10),
        (0, 3, 2, 15),
        (1, 2, 3, 11),
        (1, 3, 2, 14),
        (0, 1, 1, 5),
    ],
)
def test_transposed_convolutions(
    padding: int, stride: int, kernel: int, size: int, dtype: str
) -> None:
    """Covers result elements that the kernel does not reach, and an activation."""
    n = Network()
    quantized, scales = dtype != "float32", n.rng.uniform(0.001, 0.02, 4)
    zeros = (-5, 7) if dtype == "int8" else (0, 0)
    x = n.input([2, 5, 5, 6], dtype, *((0.02, zeros[0]) if quantized else ()))
    w = n.random(4, kernel, kernel, 6, scale=scales if quantized else None)
    inputs = [n.constant(i32(2, size, size, 4)), w, x]
    numbers = n.rng.integers(-5000, 5000, 4)
    if quantized:
        wide = numbers.astype("i4" if dtype == "int8" else "i8")
        inputs.append(n.constant(wide, 0.02 * scales))
    else:
        inputs.append(n.constant((numbers / 5000).astype("f4")))
    y = n.tensor([2, size, size, 4], dtype, *((0.1, zeros[1]) if quantized else ()))
    strides = {"strideH": stride, "strideW": stride, "fusedActivationFunction": 1}
    options = {"table": "TransposeConvOptions", "padding": padding, **strides}
    n.op("TRANSPOSE_CONV", inputs, y, **options)
    check(n.model(y), inputs_of(n, ([2, 5, 5, 6], dtype)))


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
def test_16_bit_binary_operators(kind: str) -> None:
    n = Network()
    a, b = n.input([5, 40], "int16", 0.0011), n.input([40], "int16", 0.0007)
    y = n.tensor([5, 40], "int16", 0.03 if kind == "MUL" else 0.0023)
    n.op(kind, [a, b], y)
    check(n.model(y), inputs_of(n, ([5, 40], "int16"), ([40], "int16")))


@pytest.mark.parametrize("scale", [1 / 4096, 1 / 2048, 1 / 8192, 1 / 3000, 7e-6])
@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
def test_16_bit_logistic_and_tanh_for_all_inputs(kind: str, scale: float) -> None:
    """LiteRT has a separate formula for scales that are powers of two."""
    n = Network()
    x, y = n.input([1 << 16], "int16", scale), n.tensor([1 << 16], "int16", 2**-15)
    n.op(kind, [x], y)
    check(n.model(y), [np.arange(-(1 << 15), 1 << 15).astype("i2")])


@pytest.mark.parametrize(
    ("scale", "out"),
    [(0.01, 0.0003), (0.0002, 0.02), (1 / 2048, 0.0003), (7e-6, 0.02)],
)
@pytest.mark.parametrize("kind", ["EXP", "LOG", "RSQRT", "SQRT"])
def test_16_bit_lookup_tables(kind: str, out: float, scale: float) -> None:
    """The table of the exponential has infinities. Square roots get no negative
    numbers, for which LiteRT computes nothing."""
    n, least = Network(), 0 if kind in ("RSQRT", "SQRT") else -(1 << 15)
    numbers = np.arange(least, 1 << 15).astype("i2")
    x, y = (
        n.input(numbers.shape, "int16", scale),
        n.tensor(numbers.shape, "int16", out),
    )
    n.op(kind, [x], y)
    check(n.model(y), [numbers])


@pytest.mark.parametrize("length", [1, 2, 12, 1000])
def test_16_bit_softmax(length: int) -> None:
    n = Network()
    shape = [80, length]
    x, y = n.input(shape, "int16", 0.0003), n.tensor(shape, "int16", 2**-15)
    n.op("SOFTMAX", [x], y, table="SoftmaxOptions", beta=0.7)
    check(n.model(y), inputs_of(n, (shape, "int16")))


@pytest.mark.parametrize("shape", [[3, 7, 5, 4], [2, 1, 1, 3]])
def test_16_bit_means(shape: list[int]) -> None:
    n = Network()
    x = n.input(shape, "int16", 0.001)
    y = n.tensor([shape[0], shape[3]], "int16", 0.0004)
    n.op("MEAN", [x, n.constant(i32(1, 2))], y, table="ReducerOptions")
    check(n.model(y), inputs_of(n, (shape, "int16")))


def test_16_bit_unary_operators() -> None:
    n = Network()
    x, y = n.input([1, 6, 6, 4], "float32"), n.tensor([1, 6, 6, 4], "int16", 0.0001)
    n.op("QUANTIZE", [x], y)
    z, pooled = (n.tensor(s, "int16", 0.0002) for s in ([1, 6, 6, 4], [1, 3, 3, 4]))
    n.op("RELU6", [y], z)
    window = {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2}
    n.op("AVERAGE_POOL_2D", [z], pooled, table="Pool2DOptions", **window)
    most = n.tensor([1, 2, 2, 4], "int16", 0.0002)
    n.op("MAX_POOL_2D", [pooled], most, table="Pool2DOptions", **window)
    narrow = n.tensor([1, 2, 2, 4], "int8", 0.03, -5)
    n.op("QUANTIZE", [most], narrow)
    real = n.tensor([1, 2, 2, 4], "float32")
    n.op("DEQUANTIZE", [most], real)
    check(n.model(narrow, real, z), inputs_of(n, ([1, 6, 6, 4], "float32")))


def test_fully_connected_without_bias() -> None:
    n = Network()
    x, y = n.input([4, 8], "int8", 0.02, -9), n.tensor([4, 5], "int8", 0.04, 3)
    n.op("FULLY_CONNECTED", [x, n.random(5, 8, scale=0.01), -1], y)
    check(n.model(y), inputs_of(n, ([4, 8], "int8")))


def test_unsigned_convolutions() -> None:
    """Older models have unsigned elements, and a kernel with a zero point."""
    n = Network()
    x = n.input([1, 7, 8, 4], "uint8", 0.02, 17)
    bytes_ = [n.rng.integers(0, 256, s, "u1") for s in ([6, 3, 3, 4], [1, 3, 3, 6])]
    b = n.constant(n.rng.integers(-500, 500, 6).astype("i4"), 0.0002)
    y, z = (n.tensor([1, 7, 8, 6], "uint8", s, 3) for s in (0.2, 0.3))
    w = [n.constant(b, s, 120) for b, s in zip(bytes_, (0.01, 0.02), strict=True)]
    options = {"strideH": 1, "strideW": 1}
    n.op("CONV_2D", [x, w[0], b], y, table="Conv2DOptions", **options)
    b = n.constant(n.rng.integers(-500, 500, 6).astype("i4"), 0.004)
    options["depthMultiplier"] = 1
    n.op(
        "DEPTHWISE_CONV_2D", [y, w[1], b], z, table="DepthwiseConv2DOptions", **options
    )
    check(n.model(z), inputs_of(n, ([1, 7, 8, 4], "uint8")))


@pytest.mark.thorough
@DTYPES
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1)])
def test_batch_matmul(dtype: str, turned: tuple[int, int]) -> None:
    shapes = [[2, 4, 5] if not turned[0] else [2, 5, 4]]
    shapes.append([2, 5, 6] if not turned[1] else [2, 6, 5])
    run_one(
        *("BATCH_MATMUL", shapes, [2, 4, 6]),
        dtype=dtype,
        table="BatchMatMulOptions",
        adjX=bool(turned[0]),
        adjY=bool(turned[1]),
    )


@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1)])
def test_16_bit_batch_matmul(turned: tuple[int, int]) -> None:
    """The sums need more than 32 bits."""
    shapes = [[2, 4, 300] if not turned[0] else [2, 300, 4]]
    shapes.append([2, 300, 6] if not turned[1] else [2, 6, 300])
    n = Network()
    a, b = (n.input(shape, "int16", 0.001) for shape in shapes)
    y = n.tensor([2, 4, 6], "int16", 0.7)
    flags = {"adjX": bool(turned[0]), "adjY": bool(turned[1])}
    n.op("BATCH_MATMUL", [a, b], y, table="BatchMatMulOptions", **flags)
    check(n.model(y), inputs_of(n, *((shape, "int16") for shape in shapes)))


@pytest.mark.thorough
@DTYPES
@pytest.mark.parametrize(
    "kind", ["ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"]
)
@pytest.mark.parametrize("second", [[4, 33], [33], [1, 1]], ids=str)
def test_binary_operators(kind: str, dtype: str, second: list[int]) -> None:
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}.get(kind)
    options = {"table": table, "fusedActivationFunction": 1} if table else {}
    kept: dict[str, Any] = {"out": (0.03, -3), "scales": (0.03, 0.03)}
    kept["zeros"] = (-3, -3)
    if kind not in ("MAXIMUM", "MINIMUM"):
        kept = {}
    run_one(kind, [[4, 33], second], [4, 33], dtype=dtype, **kept, **options)


@DTYPES
@pytest.mark.parametrize("alpha", [[5], [3, 4, 5]], ids=str)
def test_prelu(alpha: list[int], dtype: str) -> None:
    run_one("PRELU", [[2, 3, 4, 5], alpha], [2, 3, 4, 5], dtype=dtype)


ALL = np.arange(-128, 128).astype("i1")


@pytest.mark.parametrize(
    ("kind", "out", "options"),
    [
        ("LOGISTIC", (1 / 256, -128), {}),
        ("TANH", (1 / 128, 0), {}),
        ("RELU", (0.02, -128), {}),
        ("RELU6", (6 / 255, -128), {}),
        ("RELU_N1_TO_1", (0.01, 3), {}),
        ("LEAKY_RELU", (0.02, -20), {"table": "LeakyReluOptions", "alpha": 0.3}),
        ("GELU", (0.02, -20), {"table": "GeluOptions", "approximate": True}),
        ("GELU", (0.02, -20), {"table": "GeluOptions", "approximate": False}),
        ("EXP", (0.3, -128), {}),
        ("QUANTIZE", (0.05, 3), {}),
        ("QUANTIZE", (0.01, 3), {}),
    ],
    ids=str,
)
def test_8_bit_unary_operators_for_all_inputs(
    kind: str, out: tuple[float, int], options: dict[str, Any]
) -> None:
    n = Network()
    x, y = n.input([256], "int8", 0.03, 5), n.tensor([256], "int8", *out)
    n.op(kind, [x], y, **options)
    check(n.model(y), [ALL])


@pytest.mark.parametrize("scales", [(0.125, 1.0), (0.02, 0.07), (0.1, 0.1), (0.5, 0.3)])
@pytest.mark.parametrize(("dtype", "zeros"), [("int8", (4, -9)), ("int16", (0, 0))])
def test_absolute_values(
    dtype: str, zeros: tuple[int, int], scales: tuple[float, float]
) -> None:
    """Ties are rounded as in LiteRT's multiplication by a quantized factor."""
    n, info = Network(), np.iinfo(dtype)
    numbers = np.arange(info.min, info.max + 1).astype(dtype)
    x = n.input(numbers.shape, dtype, scales[0], zeros[0])
    y = n.tensor(numbers.shape, dtype, scales[1], zeros[1])
    n.op("ABS", [x], y)
    check(n.model(y), [numbers])


@pytest.mark.parametrize("scale", [0.03, 0.004, 0.4])
@pytest.mark.parametrize("out", [(0.02, -110), (0.3, 5)])
def test_hard_swish(scale: float, out: tuple[float, int]) -> None:
    n = Network()
    x, y = n.input([256], "int8", scale, 5), n.tensor([256], "int8", *out)
    n.op("HARD_SWISH", [x], y)
    check(n.model(y), [ALL])


@pytest.mark.parametrize("scale", [0.05, 0.002, 0.9])
@pytest.mark.parametrize("zero", [-128, -100])
def test_reciprocal_square_roots(scale: float, zero: int) -> None:
    """The inputs contain no negative numbers, which have no root."""
    n = Network()
    numbers = ALL[ALL >= zero]
    x, y = (
        n.input(numbers.shape, "int8", scale, zero),
        n.tensor(numbers.shape, "int8", 0.02, -9),
    )
    n.op("RSQRT", [x], y)
    check(n.model(y), [numbers])


@pytest.mark.parametrize(
    ("kind", "zeros"),
    [("SQRT", (-128, -128)), ("SQRT", (-128, 5)), ("LOG", (-128, -9)), ("LOG", (0, 4))],
)
@pytest.mark.parametrize("scale", [0.03, 0.001])
def test_square_roots_and_logarithms_for_all_inputs(
    kind: str, zeros: tuple[int, int], scale: float
) -> None:
    """Roots are rounded down, and some are exact. Logarithms may be -inf or NaN."""
    n = Network()
    x = n.input([256], "int8", scale, zeros[0])
    y = n.tensor([256], "int8", scale * (5 / 3 if scale > 0.01 else 2), zeros[1])
    n.op(kind, [x], y)
    check(n.model(y), [np.arange(-128, 128).astype("i1")])


QUOTIENTS = [(0.5, 5), (0.005, -128), (0.03, -7)], [(0.25, -3), (0.02, 3), (0.05, 7)]


@pytest.mark.parametrize("quantized", QUOTIENTS, ids=str)
def test_quotients(quantized: Sequence[tuple[float, int]]) -> None:
    """Covers all pairs of 8-bit numbers, with scales for which LiteRT shifts by at most
    31 bits."""
    n, numbers = Network(), np.arange(-128, 128).astype("i1")
    first, second, result = quantized
    others = numbers[numbers != second[1]]
    a, b = n.input([256, 1], "int8", *first), n.input([1, 255], "int8", *second)
    y = n.tensor([256, 255], "int8", *result)
    n.op("DIV", [a, b], y, table="DivOptions", fusedActivationFunction=1)
    check(n.model(y), [numbers.reshape(-1, 1), others.reshape(1, -1)])


def test_small_quotients() -> None:
    """Quotients that LiteRT shifts by more than 31 bits are rounded, too."""
    n, numbers = Network(), np.arange(-128, 128).astype("i1")
    others = numbers[numbers != 5]
    a, b = n.input([256, 1], "int8", 0.001), n.input([1, 255], "int8", 0.05, 5)
    y = n.tensor([256, 255], "int8", 0.03, -7)
    n.op("DIV", [a, b], y, table="DivOptions")
    arrays = numbers.reshape(-1, 1), others.reshape(1, -1)
    (got,) = tensorplan.compile(tensorplan.from_tflite(n.model(y)))(*arrays)
    ratios = np.divide(arrays[0], arrays[1] - 5.0) * (0.001 / (0.05 * 0.03)) - 7
    assert np.abs(got - np.clip(ratios, -128, 127)).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("kind", ["LESS", "EQUAL", "GREATER_EQUAL"])
@pytest.mark.parametrize("scales", [(0.03, 0.05), (0.5, 0.25), (0.001, 0.9)])
def test_comparisons_of_two_scales(kind: str, scales: tuple[float, float]) -> None:
    """Covers all pairs of 8-bit numbers."""
    n = Network()
    shapes, numbers = ([256, 1], [1, 256]), np.arange(-128, 128).astype("i1")
    a = n.input(shapes[0], "int8", scales[0], -5)
    b = n.input(shapes[1], "int8", scales[1], 7)
    y = n.tensor([256, 256], "bool")
    n.op(kind, [a, b], y)
    check(n.model(y), [numbers.reshape(shape) for shape in shapes])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind",
    """ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC NEG RELU RELU6 ROUND SIN SQUARE
    TANH RELU_N1_TO_1""".split(),
)
def test_float_unary_operators(kind: str) -> None:
    resolver = "optimized" if kind in ("CEIL", "ELU", "ROUND") else "reference"
    run_one(kind, [[5, 7]], [5, 7], dtype="float32", resolver=resolver)


def test_float_roots_and_logarithms() -> None:
    n = Network()
    x = n.input([64], "float32")
    results = [n.tensor([64], "float32") for _ in range(3)]
    for kind, y in zip(("RSQRT", "SQRT", "LOG"), results, strict=True):
        n.op(kind, [x], y)
    check(n.model(*results), [n.rng.uniform(0.1, 9, 64).astype("f4")])


def test_quantize_and_dequantize() -> None:
    """Ties are rounded away from 0."""
    n = Network()
    x = n.input([64], "float32")
    y, z = n.tensor([64], "int8", 0.5, 3), n.tensor([64], "float32")
    n.op("QUANTIZE", [x], y)
    n.op("DEQUANTIZE", [y], z)
    check(n.model(y, z), [(np.arange(64) * 0.25 - 8).astype("f4")])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@DTYPES
@pytest.mark.parametrize("padding", [0, 1])
def test_pooling(kind: str, dtype: str, padding: int) -> None:
    places = [1, 3, 4, 3] if padding else [1, 4, 4, 3]
    run_one(
        *(kind, [[1, 7, 8, 3]], places),
        dtype=dtype,
        out=None,
        table="Pool2DOptions",
        padding=padding,
        filterHeight=3,
        filterWidth=2,
        strideH=2,
        strideW=2,
        fusedActivationFunction=1,
    )


@pytest.mark.thorough
@DTYPES
@pytest.mark.parametrize("axes", [[1, 2], [2], [0, -1]], ids=str)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("kind", ["MEAN", "REDUCE_MAX", "REDUCE_MIN"])
def test_reductions(kind: str, dtype: str, axes: list[int], keep: bool) -> None:
    shape = [2, 3, 5, 4]
    kept = [1 if d in axes or d - 4 in axes else s for d, s in enumerate(shape)]
    if not keep:
        kept = [s for d, s in enumerate(shape) if d not in axes and d - 4 not in axes]
    run_one(
        *(kind, [shape], kept, np.array(axes, "i4")),
        dtype=dtype,
        out=None if "_" in kind else (0.02, 7),
        table="ReducerOptions",
        keepDims=keep,
    )


def test_sums() -> None:
    """Integer sums differ by at most one step from LiteRT's optimized kernel, which
    computes in floats. LiteRT's reference kernel does not scale integer sums."""
    n = Network()
    axes = n.constant(i32(1))
    x, y = n.input([50, 4], "int8", 0.03, -3), n.tensor([50], "int8", 0.07, 7)
    n.op("SUM", [x, axes], y, table="ReducerOptions")
    data, arrays = n.model(y), inputs_of(n, ([50, 4], "int8"))
    (got,) = tensorplan.compile(tensorplan.from_tflite(data))(*arrays)
    (want,) = litert(data, arrays, "optimized")
    assert np.abs(got.astype(int) - want).max() <= 1
    run_one("SUM", [[2, 9]], [2], i32(1), dtype="float32", table="ReducerOptions")


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("axes", [[0], [1], [0, -1], [0, 1, 2]], ids=str)
def test_product_reductions(axes: list[int], dtype: str) -> None:
    """Each partial product is scaled, so the order of the elements matters."""
    shape, zero = [5, 3, 4], 0 if dtype == "int16" else 2
    kept = [s for d, s in enumerate(shape) if d not in axes and d - 3 not in axes]
    run_one(
        *("REDUCE_PROD", [shape], kept, np.array(axes, "i4")),
        dtype=dtype,
        scales=[1.5 / 128 if zero else 1.5 / (1 << 15)],
        zeros=[zero],
        out=(0.002, 3 * zero),
        table="ReducerOptions",
    )


@pytest.mark.parametrize("length", [1, 3, 64, 9000])
def test_l2_normalization(length: int) -> None:
    """The vectors have small and large norms, and one consists of zeros."""
    n = Network()
    x = n.input([40, length], "int8", 0.03, -3)
    y = n.tensor([40, length], "int8", 1 / 128, 0)
    n.op("L2_NORMALIZATION", [x], y, table="L2NormOptions")
    reach = np.arange(40)[:, None]
    steps = n.rng.integers(-reach, reach + 1, (40, length))
    steps[30:] = n.rng.integers(-125, 131, (10, length))
    check(n.model(y), [(steps - 3).astype(np.int8)])


@DTYPES
@pytest.mark.parametrize("scale", [0.03, 0.3, 0.004])
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_softmax(dtype: str, scale: float, beta: float) -> None:
    run_one(
        *("SOFTMAX", [[50, 12]], [50, 12]),
        dtype=dtype,
        scales=[scale],
        out=(1 / 256, -128),
        table="SoftmaxOptions",
        beta=beta,
    )


@pytest.mark.parametrize("scale", [0.03, 0.3, 0.004, 2.0])
@pytest.mark.parametrize("length", [1, 3, 12, 1000])
def test_log_softmax(length: int, scale: float) -> None:
    """The range of the elements differs between rows, from a single value to all
    values."""
    n = Network()
    x = n.input([40, length], "int8", scale, -3)
    y = n.tensor([40, length], "int8", 1 / 16, 127)
    n.op("LOG_SOFTMAX", [x], y, table="LogSoftmaxOptions")
    reach = 3 * np.arange(40)[:, None]
    numbers = np.clip(n.rng.integers(-reach, reach + 1, (40, length)), -128, 127)
    check(n.model(y), [numbers.astype(np.int8)])


def test_unsigned_softmax() -> None:
    n = Network()
    x, y = n.input([9, 12], "uint8", 0.05, 3), n.tensor([9, 12], "uint8", 1 / 256)
    n.op("SOFTMAX", [x], y, table="SoftmaxOptions", beta=1.0)
    check(n.model(y), inputs_of(n, ([9, 12], "uint8")))


@pytest.mark.thorough
@DTYPES
@pytest.mark.parametrize(
    ("kind", "result", "constants", "options"),
    [
        ("RESHAPE", [3, 40], [i32(3, -1)], {}),
        ("SQUEEZE", [4, 5, 6], [], {"table": "SqueezeOptions", "squeezeDims": [0]}),
        ("EXPAND_DIMS", [1, 4, 1, 5, 6], [np.array(-3, "i4")], {}),
        ("TRANSPOSE", [1, 6, 4, 5], [i32(0, 3, 1, 2)], {}),
        ("SLICE", [1, 2, 5, 3], [i32(0, 1, 0, 2), i32(1, 2, -1, 3)], {}),
        ("PAD", [1, 7, 5, 7], [i32([0, 0], [1, 2], [0, 0], [0, 1])], {}),
        ("GATHER", [1, 4, 3, 6], [i32(4, 0, 0)], {"table": "GatherOptions", "axis": 2}),
        ("TILE", [2, 4, 5, 18], [i32(2, 1, 1, 3)], {}),
        ("REVERSE_V2", [1, 4, 5, 6], [i32(2)], {}),
        ("REVERSE_V2", [1, 4, 5, 6], [i32(-1)], {}),
        (
            *("MIRROR_PAD", [1, 7, 5, 8], [i32([0, 0], [1, 2], [0, 0], [2, 0])]),
            {"table": "MirrorPadOptions", "mode": 1},
        ),
        (
            *("STRIDED_SLICE", [1, 2, 5]),
            [i32(0, -1, 1, 2), i32(1, 0, 9, 3), i32(1, -2, 1, 1)],
            {
                "table": "StridedSliceOptions",
                **{"beginMask": 4, "endMask": 4, "shrinkAxisMask": 8},
            },
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_data_movement(
    kind: str, result: list[int], constants: list[Any], options: Any, dtype: str
) -> None:
    shape = [1, 4, 5, 6]
    run_one(kind, [shape], result, *constants, dtype=dtype, out=None, **options)


@DTYPES
def test_top_k(dtype: str) -> None:
    n = Network()
    quantized = (0.03, -3) if dtype == "int8" else ()
    x, values = n.input([3, 40], dtype, *quantized), n.tensor([3, 5], dtype, *quantized)
    places = n.tensor([3, 5], "int32")
    n.op("TOPK_V2", [x, n.constant(np.array(5, "i4"))], values, places)
    check(n.model(values, places), inputs_of(n, ([3, 40], dtype)))


@DTYPES
@pytest.mark.parametrize(
    ("shape", "axis", "batch", "result"),
    [([2, 3], 1, 1, [2, 3, 6]), ([2, 4, 3], 2, 2, [2, 4, 3]), ([2], 2, 1, [2, 4])],
)
def test_gather_with_batch_dimensions(
    shape: list[int], axis: int, batch: int, result: list[int], dtype: str
) -> None:
    n = Network()
    quantized = (0.03, -3) if dtype == "int8" else ()
    x = n.input([2, 4, 6], dtype, *quantized)
    indices = n.constant(n.rng.integers(0, 4, shape, "i4"))
    y = n.tensor(result, dtype, *quantized)
    n.op("GATHER", [x, indices], y, table="GatherOptions", axis=axis, batchDims=batch)
    check(n.model(y), inputs_of(n, ([2, 4, 6], dtype)))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_running_sums(reverse: bool, exclusive: bool, dtype: str) -> None:
    n = Network()
    x, y = n.input([3, 7, 2], dtype), n.tensor([3, 7, 2], dtype)
    options = {"table": "CumsumOptions", "exclusive": exclusive, "reverse": reverse}
    n.op("CUMSUM", [x, n.constant(np.array(1, "i4"))], y, **options)
    check(n.model(y), inputs_of(n, ([3, 7, 2], dtype)))


@DTYPES
def test_split_unpack_pack_and_concatenation(dtype: str) -> None:
    n = Network()
    quantized = (0.03, -3) if dtype == "int8" else ()
    x = n.input([4, 6], dtype, *quantized)
    halves = [n.tensor([4, 3], dtype, *quantized) for _ in range(2)]
    axis = n.constant(np.array(1, "i4"))
    n.op("SPLIT", [axis, x], *halves, table="SplitOptions", numSplits=2)
    pieces = [n.tensor([4, size], dtype, *quantized) for size in (1, 2)]
    sizes = n.constant(i32(1, -1))
    own = {"table": "SplitVOptions", "numSplits": 2}
    n.op("SPLIT_V", [halves[0], sizes, axis], *pieces, **own)
    rows = [n.tensor([3], dtype, *quantized) for _ in range(4)]
    n.op("UNPACK", [halves[1]], *rows, table="UnpackOptions", num=4, axis=0)
    packed = n.tensor([3, 4], dtype, *quantized)
    n.op("PACK", rows, packed, table="PackOptions", axis=1, valuesCount=4)
    joined = n.tensor([4, 3], dtype, *quantized)
    n.op("CONCATENATION", pieces[::-1], joined, table="ConcatenationOptions", axis=1)
    check(n.model(packed, joined), inputs_of(n, ([4, 6], dtype)))


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize("kind", ["BILINEAR", "NEAREST_NEIGHBOR"])
@pytest.mark.parametrize(
    "options", [{}, {"alignCorners": True}, {"halfPixelCenters": True}], ids=str
)
@pytest.mark.parametrize("size", [(7, 11), (3, 2)], ids=str)
def test_resizing(
    kind: str, options: dict[str, Any], size: tuple[int, int], dtype: str
) -> None:
    table = f"Resize{kind.title().replace('_', '')}Options"
    run_one(
        *(f"RESIZE_{kind}", [[1, 4, 5, 3]], [1, *size, 3], i32(*size)),
        dtype=dtype,
        zeros=(0 if dtype == "int16" else -3,),
        out=None,
        table=table,
        **options,
    )


@DTYPES
def test_space_to_depth_and_to_batch(dtype: str) -> None:
    n = Network()
    quantized = (0.03, -3) if dtype == "int8" else ()
    x = n.input([1, 4, 6, 8], dtype, *quantized)
    deep = n.tensor([1, 2, 3, 32], dtype, *quantized)
    n.op("SPACE_TO_DEPTH", [x], deep, table="SpaceToDepthOptions", blockSize=2)
    wide = n.tensor([1, 8, 12, 2], dtype, *quantized)
    n.op("DEPTH_TO_SPACE", [x], wide, table="DepthToSpaceOptions", blockSize=2)
    blocks = n.constant(i32(2, 3))
    many = n.tensor([6, 3, 2, 8], dtype, *quantized)
    n.op("SPACE_TO_BATCH_ND", [x, blocks, n.constant(i32([1, 1], [0, 0]))], many)
    back = n.tensor([1, 4, 6, 8], dtype, *quantized)
    n.op("BATCH_TO_SPACE_ND", [many, blocks, n.constant(i32([1, 1], [0, 0]))], back)
    check(n.model(deep, wide, many, back), inputs_of(n, ([1, 4, 6, 8], dtype)))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, kind: str) -> None:
    data = NETWORKS[name](kind)
    check(data, images(data, 3))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["keywords", "person", "mobilenet"])
def test_8_bit_arena_is_a_quarter_of_float_arena(name: str) -> None:
    """Except for a few sums, all values in the arena have 8 bits instead of 32."""
    whole, quarter = (
        tensorplan.report(tensorplan.plan(tensorplan.from_tflite(NETWORKS[name](kind))))
        for kind in KINDS
    )
    assert quarter["pools"][0]["bytes"] <= 0.26 * whole["pools"][0]["bytes"]


def test_reshape_to_computed_sizes() -> None:
    """Converters write `x.reshape(len(x), -1)` in this form."""
    n = Network()
    x, shape = n.input([4, 3, 5], "float32"), n.tensor([3], "int32")
    n.op("SHAPE", [x], shape, table="ShapeOptions", outType=2)
    ends = [n.constant(i32(number)) for number in (0, 1, 1)]
    count, sizes = n.tensor([], "int32"), n.tensor([2], "int32")
    options = {"table": "StridedSliceOptions", "shrinkAxisMask": 1}
    n.op("STRIDED_SLICE", [shape, *ends], count, **options)
    rest = n.constant(np.array(15, "i4"))
    n.op("PACK", [count, rest], sizes, table="PackOptions", valuesCount=2)
    y = n.tensor([4, 15], "float32")
    n.op("RESHAPE", [x, sizes], y)
    data = n.model(y)
    check(data, inputs_of(n, ([4, 3, 5], "float32")))
    assert "reshape" in str(tensorplan.from_tflite(data))


def test_float16_and_int8_weights_of_float_operators() -> None:
    """The parameters keep the types in which the file stores them."""
    n = Network()
    x, y, z = (n.tensor([3, 4], "float32") for _ in range(3))
    x = n.input([3, 4], "float32")
    half = n.constant(n.rng.standard_normal((4, 4)).astype("f2"))
    whole = n.tensor([4, 4], "float32")
    n.op("DEQUANTIZE", [half], whole)
    n.op("FULLY_CONNECTED", [x, whole, -1], y, table="FullyConnectedOptions")
    byte = n.random(4, 4, scale=[0.01, 0.02, 0.03, 0.04])
    n.op("FULLY_CONNECTED", [y, byte, -1], z, table="FullyConnectedOptions")
    model = tensorplan.from_tflite(n.model(z))
    found = {array.dtype.name for array in model.parameters.values()}
    assert found == {"float16", "int8"}
    (given,) = inputs_of(n, ([3, 4], "float32"))
    (got,), (want,) = tensorplan.compile(model)(given), litert(n.model(z), [given])
    np.testing.assert_allclose(got, want, atol=0.05)  # LiteRT quantizes rows of inputs


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_floor_division_and_remainder(dtype: str) -> None:
    """Operands have both signs, and some quotients are near whole numbers."""
    for kind in ("FLOOR_DIV", "FLOOR_MOD"):
        n = Network()
        a, b = n.input([200], dtype), n.input([200], dtype)
        y = n.op(kind, [a, b], n.tensor([200], dtype))
        first = n.rng.integers(-90, 90, 200) * (0.1 if dtype == "float32" else 1)
        second = n.rng.integers(1, 9, 200) * (0.1 if dtype == "float32" else 1)
        second = second * n.rng.choice([-1, 1], 200)
        check(n.model(y), [first.astype(dtype), second.astype(dtype)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_bitwise_operators(dtype: str) -> None:
    for kind in ("BITWISE_XOR", "RIGHT_SHIFT"):
        n = Network()
        a, b = n.input([60], dtype), n.input([60], dtype)
        y = n.op(kind, [a, b], n.tensor([60], dtype))
        low = 0 if dtype == "uint8" else -3
        numbers = inputs_of(n, ([60], dtype))
        check(n.model(y), [*numbers, n.rng.integers(low, 40, 60).astype(dtype)])


def test_add_n_atan2_and_sign() -> None:
    n = Network()
    given = [n.input([3, 4], "float32") for _ in range(4)]
    y = n.op("ADD_N", given, n.tensor([3, 4], "float32"))
    z = n.op("ATAN2", [y, given[0]], n.tensor([3, 4], "float32"))
    sign = n.op("SIGN", [z], n.tensor([3, 4], "float32"))
    check(n.model(y, z, sign), inputs_of(n, *[([3, 4], "float32")] * 4))


@DTYPES
def test_gather_nd_and_scatter_nd(dtype: str) -> None:
    places = i32([[0, 1], [2, 3]], [[4, 0], [0, 1]])
    run_one("GATHER_ND", [[5, 4, 3]], [2, 2, 3], places, dtype=dtype, out=None)
    sizes = i32(5, 4, 3)
    n = Network()
    quantized = () if dtype == "float32" else (0.03, -3)
    x = n.input([2, 2, 3], dtype, *quantized)
    y = n.tensor([5, 4, 3], dtype, *quantized)
    n.op("SCATTER_ND", [n.constant(places), x, n.constant(sizes)], y)
    check(n.model(y), inputs_of(n, ([2, 2, 3], dtype)))


@DTYPES
def test_dynamic_update_slice(dtype: str) -> None:
    """The starts are inputs, and may lie beyond the last valid start."""
    n = Network()
    quantized = () if dtype == "float32" else (0.03, -3)
    x, part = n.input([6, 4], dtype, *quantized), n.input([2, 3], dtype, *quantized)
    y = n.tensor([6, 4], dtype, *quantized)
    n.op("DYNAMIC_UPDATE_SLICE", [x, part, n.input([2], "int32")], y)
    for starts in (i32(1, 1), i32(5, 3)):
        arrays = inputs_of(n, ([6, 4], dtype), ([2, 3], dtype))
        check(n.model(y), [*arrays, starts])


def test_embedding_lookup() -> None:
    """Tables hold floats, or 8-bit numbers with one scale for the table or for each
    row."""
    for scale in (None, 0.02, np.linspace(0.01, 0.2, 9)):
        n = Network()
        indices, table = n.input([5], "int32"), n.random(9, 4, scale=scale)
        y = n.tensor([5, 4], "float32")
        n.op("EMBEDDING_LOOKUP", [indices, table], y)
        check(n.model(y), [i32(0, 8, 3, 3, 5)])


@DTYPES
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int, dtype: str) -> None:
    n = Network()
    x, depth = n.input([2, 3], "int32"), n.constant(np.array(4, "i4"))
    on, off = (n.constant(np.array(k, dtype)) for k in (5, -2))
    shape = np.insert([2, 3], axis if axis >= 0 else 2, 4).tolist()
    y = n.tensor(shape, dtype)
    n.op("ONE_HOT", [x, depth, on, off], y, table="OneHotOptions", axis=axis)
    check(n.model(y), [i32([0, 3, 1], [-1, 4, 2])])


def test_reverse_sequence() -> None:
    n = Network()
    x, lengths = n.input([4, 3, 2], "float32"), n.input([3], "int32")
    y = n.tensor([4, 3, 2], "float32")
    options = {"table": "ReverseSequenceOptions", "seqDim": 0, "batchDim": 1}
    n.op("REVERSE_SEQUENCE", [x, lengths], y, **options)
    check(n.model(y), [*inputs_of(n, ([4, 3, 2], "float32")), i32(4, 1, 3)])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("kind", ["SUM", "PROD", "MAX", "MIN"])
def test_segment_reductions(kind: str, dtype: str) -> None:
    """Some segments are empty, and some rows belong to no segment."""
    n = Network()
    x, ids = n.input([6, 2], dtype), n.input([6], "int32")
    y = n.tensor([4, 2], dtype)
    n.op(f"UNSORTED_SEGMENT_{kind}", [x, ids, n.constant(np.array(4, "i4"))], y)
    numbers = n.rng.integers(-9, 9, (6, 2)).astype(dtype)
    check(n.model(y), [numbers, i32(3, 0, 0, 3, -1, 1)])
    n = Network()
    x, y = n.input([6, 2], dtype), n.tensor([4, 2], dtype)
    n.op("SEGMENT_SUM", [x, n.constant(i32(0, 0, 1, 2, 3, 3))], y)
    check(n.model(y), [numbers], "optimized")


def test_sparse_to_dense() -> None:
    for places in (np.array(3, "i4"), i32(3, 0), i32([3], [0])):
        n = Network()
        rest = n.constant(np.array(-1, "f4"))
        values = n.input(places.shape[:1], "float32")
        y = n.tensor([5], "float32")
        given = [n.constant(places), n.constant(i32(5)), values, rest]
        n.op("SPARSE_TO_DENSE", given, y, table="SparseToDenseOptions")
        check(n.model(y), inputs_of(n, (places.shape[:1], "float32")))


def test_bucketize() -> None:
    n = Network()
    x, y = n.input([5], "float32"), n.tensor([5], "int32")
    limits = np.array([-1, 0, 2.5], "f4")
    n.op("BUCKETIZE", [x], y, table="BucketizeOptions", boundaries=limits)
    check(n.model(y), [np.array([-3, -1, 0.5, 2.5, 9], "f4")])


@DTYPES
def test_diagonals(dtype: str) -> None:
    quantized = () if dtype == "float32" else (0.03, -3)
    n = Network()
    x, y = n.input([2, 3], dtype, *quantized), n.tensor([2, 3, 3], dtype, *quantized)
    n.op("MATRIX_DIAG", [x], y, table="MatrixDiagOptions")
    z = n.tensor([2, 3, 5], dtype, *quantized)
    options = {"table": "MatrixSetDiagOptions"}
    n.op("MATRIX_SET_DIAG", [n.input([2, 3, 5], dtype, *quantized), x], z, **options)
    check(n.model(y, z), inputs_of(n, ([2, 3], dtype), ([2, 3, 5], dtype)))


def test_broadcast_args_and_fill() -> None:
    n = Network()
    sizes = n.tensor([3], "int32")
    n.op("BROADCAST_ARGS", [n.constant(i32(4, 1, 2)), n.constant(i32(3, 1))], sizes)
    y = n.tensor([4, 3, 2], "float32")
    n.op("FILL", [sizes, n.input([], "float32")], y)
    check(n.model(y), inputs_of(n, ([], "float32")), "optimized")


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_3d_convolutions(stride: int, padding: int) -> None:
    n = Network()
    x = n.input([1, 5, 6, 7, 2], "float32")
    places = [-(-(s - 2 * padding) // stride) for s in (5, 6, 7)]
    y = n.tensor([1, *places, 4], "float32")
    options = {"strideD": stride, "strideH": stride, "strideW": stride}
    weights = [n.random(3, 3, 3, 2, 4), n.random(4)]
    n.op("CONV_3D", [x, *weights], y, table="Conv3DOptions", padding=padding, **options)
    check(n.model(y), inputs_of(n, ([1, 5, 6, 7, 2], "float32")))


@pytest.mark.parametrize(("padding", "stride"), [(0, 1), (0, 2), (1, 2)])
def test_transposed_3d_convolutions(stride: int, padding: int) -> None:
    n = Network()
    image = [1, 3, 4, 5, 2]
    sizes = [s * stride + padding * (3 - stride) for s in image[1:4]]
    x, y = n.input(image, "float32"), n.tensor([1, *sizes, 4], "float32")
    options = {"strideD": stride, "strideH": stride, "strideW": stride}
    inputs = [n.constant(i32(1, *sizes, 4)), n.random(3, 3, 3, 4, 2), x, n.random(4)]
    n.op(
        *("CONV_3D_TRANSPOSE", inputs, y),
        **{"table": "Conv3DOptions", "padding": padding, **options},
    )
    check(n.model(y), inputs_of(n, (image, "float32")))


def test_l2_pool_and_local_response_normalization() -> None:
    """LiteRT's reference kernel omits the last neighboring channel, so the optimized
    kernels are the oracle."""
    n = Network()
    x = n.input([1, 6, 7, 5], "float32")
    y, z = n.tensor([1, 3, 4, 5], "float32"), n.tensor([1, 6, 7, 5], "float32")
    size = {"filterHeight": 3, "filterWidth": 2, "strideH": 2, "strideW": 2}
    n.op("L2_POOL_2D", [x], y, table="Pool2DOptions", padding=0, **size)
    options = {"radius": 1, "bias": 1.5, "alpha": 0.3, "beta": 0.75}
    table = "LocalResponseNormalizationOptions"
    n.op("LOCAL_RESPONSE_NORMALIZATION", [x], z, table=table, **options)
    check(n.model(y, z), inputs_of(n, ([1, 6, 7, 5], "float32")), "optimized")


@pytest.mark.parametrize("length", [[1, 16], [4, 8], [1, 32]], ids=str)
def test_real_fourier_transform(length: list[int]) -> None:
    """Signals are truncated or padded with zeros."""
    n = Network()
    x, shape = n.input([2, 4, 16], "float32"), [2, length[0], length[1] // 2 + 1]
    y = n.tensor(shape, "complex64")
    n.op("RFFT2D", [x, n.constant(np.array(length, "i4"))], y, table="Rfft2dOptions")
    parts = [n.op(k, [y], n.tensor(shape, "float32")) for k in ("REAL", "IMAG")]
    size = n.op("COMPLEX_ABS", [y], n.tensor(shape, "float32"))
    check(n.model(*parts, size), inputs_of(n, ([2, 4, 16], "float32")))


def refused(data: bytes) -> str:
    with pytest.raises(LocatedError) as error:
        tensorplan.from_tflite(data)
    return str(error.value)


def test_error_lists_all_unsupported_operations() -> None:
    n = Network()
    x, y, z = (n.tensor([4], "float32") for _ in range(3))
    x = n.input([4], "float32")
    n.op("RANDOM_UNIFORM", [x], y)
    n.op("WHERE", [y], z)
    message = refused(n.model(z))
    assert "operation RANDOM_UNIFORM is not supported" in message
    assert "note: operation WHERE is not supported" in message
    assert "tflite#t1:1:1" in message


def test_missing_inputs_and_unsupported_quantization_are_refused() -> None:
    n = Network()
    x, y, z = n.input([4], "float32"), *(n.tensor([4], "float32") for _ in range(2))
    n.op("ADD", [x, z], y)
    assert "operation ADD: input 't2' is not computed" in refused(n.model(y))
    n = Network()
    n.input([4], "float32")
    assert "output 't1' is not computed" in refused(n.model(n.tensor([4], "float32")))
    n = Network()
    x, y = n.input([4], "int16", 0.1), n.tensor([4], "int16", 0.2)
    n.op("GELU", [x], y)
    assert "GELU is not supported with quantized elements of type INT16" in refused(
        n.model(y)
    )
    n = Network()
    x, y = n.input([4], "int16", 0.1, 3), n.tensor([4], "int16", 1 / (1 << 15))
    n.op("TANH", [x], y)
    assert "TANH is not supported with zero points of 16-bit numbers" in refused(
        n.model(y)
    )
    n = Network()
    x, y = n.input([4], "int16", 0.5), n.tensor([4], "int16", 0.25)
    n.op("SUB", [x, x], y)
    assert (
        "SUB is not supported with scales of INT16 that are powers of "
        "two" in refused(n.model(y))
    )
    n = Network()
    x, y = n.input([1, 4], "int16", 0.1), n.tensor([1, 2], "int16", 0.2)
    n.op("FULLY_CONNECTED", [x, n.random(2, 4, scale=0.1), n.constant(i32(1, 2))], y)
    assert "not supported with 16-bit numbers and a bias of INT32" in refused(
        n.model(y)
    )


@pytest.mark.parametrize(
    "kind",
    "BUCKETIZE CONV_3D CUMSUM FAKE_QUANT FLOOR_DIV L2_POOL_2D "
    "LOCAL_RESPONSE_NORMALIZATION SIGN SPARSE_TO_DENSE "
    "UNIDIRECTIONAL_SEQUENCE_RNN UNSORTED_SEGMENT_SUM".split(),
)
def test_float_only_operators_refuse_quantized_elements(kind: str) -> None:
    n = Network()
    x, y = n.input([4], "int8", 0.1), n.tensor([4], "int8", 0.2)
    ones = n.constant(i32(1, 1, 1, 1))
    n.op(kind, [x, ones, ones], y)
    assert f"operation {kind} is not supported with quantized elements" in refused(
        n.model(y)
    )


@pytest.mark.parametrize(
    ("low", "high", "bits"), [(-1.0, 2.0, 8), (-1.3, 1.1, 4), (0.5, 3.0, 16)]
)
def test_fake_quant(low: float, high: float, bits: int) -> None:
    n = Network()
    x, y = n.input([4, 50], "float32"), n.tensor([4, 50], "float32")
    numbers = {"min": low, "max": high, "numBits": bits}
    n.op("FAKE_QUANT", [x], y, table="FakeQuantOptions", **numbers)
    check(n.model(y), inputs_of(n, ([4, 50], "float32")))
    n = Network()
    x, y = n.input([4], "float32"), n.tensor([4], "float32")
    n.op("FAKE_QUANT", [x], y, table="FakeQuantOptions", min=1.0, max=1.0, numBits=8)
    assert "with 8 bits from 1.0 to 1.0, expected" in refused(n.model(y))


def test_log_softmax_refuses_other_result_scales() -> None:
    n = Network()
    x, y = n.input([4], "int8", 0.1), n.tensor([4], "int8", 0.125, 127)
    n.op("LOG_SOFTMAX", [x], y)
    message = "scale 0.125 and zero point 127 of the result, expected 0.0625 and 127"
    assert message in refused(n.model(y))


def test_damaged_files() -> None:
    """A damaged file gives a model or a located error, never another exception."""
    data = NETWORKS["hello"]("int8")
    assert "is not a valid LiteRT model" in refused(data[:40])
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(data)
        for place in rng.integers(8, len(data), 3):
            damaged[place] = rng.integers(256)
        with suppress(LocatedError):
            tensorplan.from_tflite(bytes(damaged), simplify=False)


def test_documentation_lists_all_supported_operators() -> None:
    page = Path(__file__).parents[1] / "docs" / "how-to" / "tflite.md"
    rows = re.findall(r"^\| .*quantized.* \| (.+) \|$", page.read_text(), re.M)
    supported = [*CONVERSIONS, *CONTROL, *STATE]
    assert sorted(" ".join(rows).split()) == sorted(supported)
