"""The programs of `runtime.py` as ONNX models, for ONNX Runtime. No gradients."""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

onnx: Any = import_module("onnx")
ort: Any = import_module("onnxruntime")

Array = Any
Name = str
OPSET, IR_VERSION = 20, 9


class Graph:
    """A model under construction: `graph("Add", x, y)` is the name of a sum. Arrays
    become initialisers."""

    def __init__(self, inputs: Sequence[Array]):
        self._inputs = inputs
        self._nodes: list[Any] = []
        self._initialisers: list[Any] = []
        self.names = [f"x{n}" for n in range(len(inputs))]

    def __call__(self, kind: str, *operands: Name | Array, **attributes: Any) -> Name:
        name = f"v{len(self._nodes)}"
        names = [x if isinstance(x, str) else self._constant(x) for x in operands]
        node = onnx.helper.make_node(kind, names, [name], **attributes)
        self._nodes.append(node)
        return name

    def _constant(self, array: Array) -> Name:
        name = f"c{len(self._initialisers)}"
        array = np.array(array, order="C")
        self._initialisers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def model(self, result: Name) -> bytes:
        helper = onnx.helper
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for name, x in zip(self.names, self._inputs, strict=True)
        ]
        output = helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(
            self._nodes, "main", inputs, [output], self._initialisers
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return model.SerializeToString()


def number(value: float) -> Array:
    return np.float32(value)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def chain2(g: Graph, x: Name, y: Name) -> Name:
    return g("Add", g("Mul", x, y), number(0.25))


def chain5(g: Graph, x: Name, y: Name) -> Name:
    return g("Mul", g("Sub", g("Max", chain2(g, x, y), x), y), number(0.75))


def gelu(g: Graph, x: Name) -> Name:
    return g("Gelu", x, approximate="tanh")


def swish(g: Graph, x: Name, y: Name) -> Name:
    return g("Add", g("Mul", x, g("Sigmoid", x)), y)


def softmax(g: Graph, x: Name) -> Name:
    return g("Softmax", x, axis=-1)


def norm(g: Graph, x: Name, scale: Name | Array, shift: Name | Array) -> Name:
    return g("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)


def column_sums(g: Graph, x: Name) -> Name:
    return g("ReduceSum", x, ints(0), keepdims=0)


KERNELS: Mapping[str, Callable[..., Name]] = {
    "chain2": chain2,
    "chain5": chain5,
    "gelu": gelu,
    "swish": swish,
    "softmax": softmax,
    "layernorm": norm,
    "column_sums": column_sums,
}


def linear(g: Graph, x: Name, weights: Array, bias: Array) -> Name:
    return g("Add", g("MatMul", x, weights), bias)


def block(g: Graph, p: Sequence[Array], x: Name, length: int) -> Name:
    width = p[0].shape[0]
    heads = width // 64
    qkv = linear(g, norm(g, x, p[0], p[1]), p[2], p[3])
    apart = g("Reshape", qkv, ints(1, length, 3, heads, 64))
    q, k, v = (g("Gather", apart, np.int64(n), axis=2) for n in range(3))
    q, v = (g("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
    scores = g("MatMul", q, g("Transpose", k, perm=[0, 2, 3, 1]))
    hidden = np.triu(np.full((length, length), -1e9, np.float32), 1)
    scores = g("Add", g("Mul", scores, number(0.125)), hidden)
    mixed = g("Transpose", g("MatMul", softmax(g, scores), v), perm=[0, 2, 1, 3])
    mixed = g("Reshape", mixed, ints(1, length, width))
    x = g("Add", x, linear(g, mixed, p[4], p[5]))
    inner = gelu(g, linear(g, norm(g, x, p[6], p[7]), p[8], p[9]))
    return g("Add", x, linear(g, inner, p[10], p[11]))


def gpt2(g: Graph, p: Sequence[Array], ids: Name) -> Name:
    tokens, places, scale, shift, *rest = p
    x = g("Add", g("Gather", tokens, ids), places[None])
    for first in range(0, len(rest), 12):
        x = block(g, rest[first : first + 12], x, len(places))
    last = g("Gather", x, np.int64(-1), axis=1)
    return g("MatMul", norm(g, last, scale, shift), tokens.T)


def resnet18(g: Graph, p: Sequence[Array], x: Name) -> Name:
    rest = iter(p)

    def convolve(x: Name, stride: int) -> Name:
        weights, bias = next(rest).transpose(3, 2, 0, 1), next(rest)
        pads = [weights.shape[-1] // 2] * 4
        return g("Conv", x, weights, bias, strides=[stride] * 2, pads=pads)

    x = g("Relu", convolve(x, 2))
    x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for inputs, outputs in pairwise((64, 64, 128, 256, 512)):
        for number in range(2):
            stride = 2 if number == 0 and inputs != outputs else 1
            y = convolve(g("Relu", convolve(x, stride)), 1)
            y = g("Add", y, x if stride == 1 else convolve(x, stride))
            x = g("Relu", y)
    pooled = g("Flatten", g("GlobalAveragePool", x))
    return linear(g, pooled, next(rest), next(rest))


def candidates(
    name: str, arrays: Sequence[Array], parameters: Sequence[int]
) -> dict[str, Callable[[], Sequence[Array]]]:
    """ONNX Runtime on `arrays`, if the program is written here."""
    inputs = [a for n, a in enumerate(arrays) if n not in parameters]
    own = [arrays[n] for n in parameters]
    if name == "resnet18":  # which it computes with channels outside
        inputs = [np.ascontiguousarray(inputs[0].transpose(0, 3, 1, 2))]
    graph = Graph(inputs)
    if name in KERNELS:
        result = KERNELS[name](graph, *graph.names)
    elif name in ("gpt2", "resnet18"):
        result = (gpt2 if name == "gpt2" else resnet18)(graph, own, *graph.names)
    else:
        return {}
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(
        graph.model(result), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for input, array in zip(graph.names, inputs, strict=True):
        binding.bind_ortvalue_input(input, ort.OrtValue.ortvalue_from_numpy(array))
    (first,) = session.run(None, dict(zip(graph.names, inputs, strict=True)))
    out = ort.OrtValue.ortvalue_from_numpy(first)
    binding.bind_ortvalue_output(result, out)

    def run() -> Sequence[Array]:
        session.run_with_iobinding(binding)
        return [out.numpy()]

    return {"ort": run}
