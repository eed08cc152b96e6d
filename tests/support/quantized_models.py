"""Networks with random weights, quantized by onnxruntime: MobileNetV2, a network for
keyword spotting, and a block of BERT.

    python tests/support/quantized_models.py FOLDER [--large]

Writes all of them as `NAME.WAY.onnx`, in small versions without `--large`.
"""

import argparse
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """A model with one input `x` that is built node by node."""

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"c_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int, scale: float) -> str:
        array = self._rng.standard_normal(shape) * scale
        return self.constant(array.astype("f4"))

    def conv(
        self, x: str, inputs: int, outputs: int, size: Sequence[int], **options: Any
    ) -> str:
        per_group = inputs // options.get("group", 1)
        scale = (2 / (per_group * size[0] * size[1])) ** 0.5
        weight = self.weight(outputs, per_group, *size, scale=scale)
        pads = {"pads": [(k - 1) // 2 for k in size] + [k // 2 for k in size]}
        bias = self.weight(outputs, scale=0.1)
        return self.op("Conv", x, weight, bias, **{**pads, **options})

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        weight = self.weight(inputs, outputs, scale=inputs**-0.5)
        return self.op(
            "Add", self.op("MatMul", x, weight), self.weight(outputs, scale=0.1)
        )

    def classes(self, x: str, inputs: int, outputs: int) -> str:
        weight = self.weight(inputs, outputs, scale=inputs**-0.5)
        x = self.op("Flatten", x)
        return self.op("Gemm", x, weight, self.weight(outputs, scale=0.1))

    def model(self, shape: Sequence[int], result: str) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", [x], [y], self.initializers)
        imports = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        return onnx.shape_inference.infer_shapes(model)


def mobilenet(opset: int, *, large: bool) -> onnx.ModelProto:
    """MobileNetV2 for 224x224 images; a narrow, short one for 32x32 if not `large`."""
    n, size, share = Network(opset), 224 if large else 32, 1 if large else 4

    def clipped(x: str) -> str:
        return n.op("Clip", x, n.constant(np.float32(0)), n.constant(np.float32(6)))

    channels = 32 // share
    x = clipped(n.conv("x", 3, channels, (3, 3), strides=[2, 2]))
    blocks = [
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ]
    for factor, outputs, count, first in blocks if large else blocks[:3]:
        for stride in (first, *[1] * (count - 1)):
            wide, given, y = channels * factor, outputs // share, x
            if factor > 1:
                y = clipped(n.conv(y, channels, wide, (1, 1)))
            y = n.conv(y, wide, wide, (3, 3), group=wide, strides=[stride] * 2)
            y = n.conv(clipped(y), wide, given, (1, 1))
            x = n.op("Add", x, y) if (stride, given) == (1, channels) else y
            channels = given
    x = clipped(n.conv(x, channels, 1280 // share, (1, 1)))
    x = n.op("GlobalAveragePool", x)
    classes = 1000 if large else 10
    return n.model([1, 3, size, size], n.classes(x, 1280 // share, classes))


def keywords(opset: int, *, large: bool) -> onnx.ModelProto:
    """DS-CNN: separable convolutions that spot keywords in one second of sound."""
    n, width = Network(opset), 64 if large else 16
    x = n.op("Relu", n.conv("x", 1, width, (10, 4), strides=[2, 2]))
    for _ in range(4 if large else 2):
        x = n.op("Relu", n.conv(x, width, width, (3, 3), group=width))
        x = n.op("Relu", n.conv(x, width, width, (1, 1)))
    x = n.op("AveragePool", x, kernel_shape=[25, 5])
    return n.model([1, 1, 49, 10], n.op("Softmax", n.classes(x, width, 12), axis=1))


def bert(opset: int, *, large: bool) -> onnx.ModelProto:
    """An encoder block: attention, then two layers with an exact GELU."""
    n = Network(opset)
    length, size, heads = (128, 256, 4) if large else (12, 32, 2)

    def norm(x: str) -> str:
        scale, shift = n.constant(np.ones(size, "f4")), n.weight(size, scale=0.1)
        if opset >= 17:
            return n.op("LayerNormalization", x, scale, shift)
        centered = n.op("Sub", x, n.op("ReduceMean", x, axes=[-1]))
        variance = n.op("ReduceMean", n.op("Mul", centered, centered), axes=[-1])
        safe = n.op("Add", variance, n.constant(np.float32(1e-5)))
        y = n.op("Div", centered, n.op("Sqrt", safe))
        return n.op("Add", n.op("Mul", y, scale), shift)

    def head(x: str, order: Sequence[int]) -> str:
        shape = n.constant(np.array([1, length, heads, size // heads]))
        parts = n.op("Reshape", n.dense(x, size, size), shape)
        return n.op("Transpose", parts, perm=order)

    query, key = head("x", [0, 2, 1, 3]), head("x", [0, 2, 3, 1])
    value = head("x", [0, 2, 1, 3])
    root = n.constant(np.float32((size // heads) ** 0.5))
    scores = n.op("Div", n.op("MatMul", query, key), root)
    mixed = n.op("MatMul", n.op("Softmax", scores, axis=-1), value)
    rows = n.op("Transpose", mixed, perm=[0, 2, 1, 3])
    rows = n.op("Reshape", rows, n.constant(np.array([1, length, size])))
    x = norm(n.op("Add", "x", n.dense(rows, size, size)))
    y = n.dense(x, size, 4 * size)
    erf = n.op("Erf", n.op("Div", y, n.constant(np.float32(2**0.5))))
    y = n.op("Mul", y, n.op("Add", erf, n.constant(np.float32(1))))
    y = n.dense(n.op("Mul", y, n.constant(np.float32(0.5))), 4 * size, size)
    return n.model([1, length, size], norm(n.op("Add", x, y)))


NETWORKS = {"bert": bert, "keywords": keywords, "mobilenet": mobilenet}

UNSIGNED = {"weight_type": "QUInt8"}

WAYS: Mapping[str, Mapping[str, Any]] = {
    "qdq": {"quant_format": "QDQ", "activation_type": "QUInt8"},
    "qdq-channels": {"quant_format": "QDQ", "per_channel": True},
    "operators": {"quant_format": "QOperator", "activation_type": "QUInt8"},
    "operators-channels": {"quant_format": "QOperator", "per_channel": True},
    "unsigned": {"quant_format": "QDQ", "activation_type": "QUInt8", **UNSIGNED},
    "dynamic": {"reduce_range": True},
    "dynamic-channels": {"per_channel": True, "reduce_range": True},
    "dynamic-unsigned": UNSIGNED,
}
"""Options of the quantizer for each way to quantize. All but the dynamic ways calibrate
ranges. Numbers are signed unless the options say otherwise. `reduce_range` selects
7-bit weights, as onnxruntime's documentation advises for processors without VNNI."""


def images(model: onnx.ModelProto, seed: int) -> np.ndarray:
    """A random input of `model`, from a seed."""
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims]
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


@contextmanager
def _no_advice() -> Iterator[None]:
    """Hides the quantizer's warnings, which recommend preprocessing."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


@_no_advice()
def quantized(model: onnx.ModelProto, way: str, folder: Path) -> bytes:
    """The model that onnxruntime quantizes; temporary files are in `folder`."""
    from onnxruntime import quantization as q

    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(model, source)
    options = {"weight_type": "QInt8", **WAYS[way]}
    for name in ("weight_type", "activation_type"):
        if name in options:
            options[name] = getattr(q.QuantType, options[name])
    if way.startswith("dynamic"):
        cast(Any, q).quantize_dynamic(source, target, **options)
        return target.read_bytes()

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [{"x": images(model, seed)} for seed in range(2)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    options["quant_format"] = getattr(q.QuantFormat, options["quant_format"])
    cast(Any, q).quantize_static(source, target, Reader(), **options)
    return target.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--opset", type=int, default=17)
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    for name, network in NETWORKS.items():
        model = network(args.opset, large=args.large)
        onnx.save(model, args.folder / f"{name}.float.onnx")
        for way in WAYS:
            data = quantized(model, way, args.folder)
            (args.folder / f"{name}.{way}.onnx").write_bytes(data)
    for name in ("float", "quantized"):
        (args.folder / f"{name}.onnx").unlink()


if __name__ == "__main__":
    main()
