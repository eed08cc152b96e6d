"""The programs of `runtime.py` as ONNX models, without gradients, for ONNX Runtime."""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from jax_models.convolutional import MOBILENET

onnx: Any = import_module("onnx")
ort: Any = import_module("onnxruntime")

Array = Any
Name = str
OPSET, IR_VERSION = 20, 9


class Graph:
    """An ONNX model under construction. `graph("Add", x, y)` adds a node and returns
    the name of its result. Operands that are arrays become initializers."""

    def __init__(self, inputs: Sequence[Array]):
        self._inputs = inputs
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self.names = [f"x{n}" for n in range(len(inputs))]

    def __call__(self, kind: str, *operands: Name | Array, **attributes: Any) -> Name:
        return self.several(kind, 1, *operands, **attributes)[0]

    def several(
        self, kind: str, count: int, *operands: Name | Array, **attributes: Any
    ) -> Sequence[Name]:
        results = [f"v{len(self._nodes)}_{n}" for n in range(count)]
        names = [x if isinstance(x, str) else self._constant(x) for x in operands]
        node = onnx.helper.make_node(kind, names, results, **attributes)
        self._nodes.append(node)
        return results

    def _constant(self, array: Array) -> Name:
        name = f"c{len(self._initializers)}"
        array = np.array(array, order="C")
        self._initializers.append(onnx.numpy_helper.from_array(array, name))
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
            self._nodes, "main", inputs, [output], self._initializers
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


def attention(
    g: Graph, q: Name, k: Name, v: Name, mask: Array | Name | None = None
) -> Name:
    """Attention on tensors (batch, length, heads, width); `mask` is added to scores."""
    q, v = (g("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, v))
    scores = g("MatMul", q, g("Transpose", k, perm=[0, 2, 3, 1]))
    scores = g("Mul", scores, number(0.125))  # heads are 64 wide
    if mask is not None:
        scores = g("Add", scores, mask)
    return g("Transpose", g("MatMul", softmax(g, scores), v), perm=[0, 2, 1, 3])


def mixed(
    g: Graph, p: Sequence[Array], x: Name, length: int, mask: Array | Name | None
) -> Name:
    """The attention of a block, with the linear layers before and after it."""
    width = p[0].shape[0]
    apart = g("Reshape", linear(g, x, p[2], p[3]), ints(1, length, 3, width // 64, 64))
    q, k, v = (g("Gather", apart, np.int64(n), axis=2) for n in range(3))
    heads = g("Reshape", attention(g, q, k, v, mask), ints(1, length, width))
    return linear(g, heads, p[4], p[5])


def blocks(
    g: Graph, p: Sequence[Array], x: Name, length: int, mask: Array | Name | None = None
) -> Name:
    for first in range(0, len(p), 12):
        q = p[first : first + 12]
        x = g("Add", x, mixed(g, q, norm(g, x, q[0], q[1]), length, mask))
        inner = gelu(g, linear(g, norm(g, x, q[6], q[7]), q[8], q[9]))
        x = g("Add", x, linear(g, inner, q[10], q[11]))
    return x


def gpt2(g: Graph, p: Sequence[Array], ids: Name) -> Name:
    tokens, places, scale, shift, *rest = p
    length = len(places)
    x = g("Add", g("Gather", tokens, ids), places[None])
    hidden = np.triu(np.full((length, length), -1e9, np.float32), 1)
    x = blocks(g, rest, x, length, hidden)
    last = g("Gather", x, np.int64(-1), axis=1)
    return g("MatMul", norm(g, last, scale, shift), tokens.T)


def bert(g: Graph, p: Sequence[Array], ids: Name, is_seen: Name) -> Name:
    tokens, places, scale, shift, *rest = p
    length = len(places)
    x = g("Add", g("Gather", tokens, ids), places[None])
    x = norm(g, x, scale, shift)
    unseen = g("Cast", g("Equal", is_seen, np.int32(0)), to=onnx.TensorProto.FLOAT)
    mask = g("Mul", g("Reshape", unseen, ints(1, 1, 1, length)), number(-1e9))
    for first in range(0, len(rest), 12):
        q = rest[first : first + 12]
        x = norm(g, g("Add", x, mixed(g, q, x, length, mask)), q[0], q[1])
        inner = linear(g, g("Gelu", linear(g, x, q[8], q[9])), q[10], q[11])
        x = norm(g, g("Add", x, inner), q[6], q[7])
    return x


def vit(g: Graph, p: Sequence[Array], images: Name) -> Name:
    embedding, places, scale, shift, head, *rest = p
    apart = g("Reshape", images, ints(1, 8, 16, 8, 16, 3))
    patches = g("Transpose", apart, perm=[0, 1, 3, 2, 4, 5])
    x = linear(g, g("Reshape", patches, ints(1, 64, -1)), embedding, places)
    x = norm(g, blocks(g, rest, x, len(places)), scale, shift)
    return g("MatMul", g("ReduceMean", x, ints(1), keepdims=0), head)


def mlp(g: Graph, p: Sequence[Array], x: Name) -> Name:
    for layer in range(0, len(p), 2):
        x = g("Relu", x) if layer else x
        x = g("Gemm", x, p[layer], p[layer + 1])
    return x


def lstm(g: Graph, p: Sequence[Array], x: Name) -> Name:
    def ordered(x: Array) -> Array:
        i, f, c, o = np.split(x, 4, -1)
        return np.concatenate([i, o, f, c], -1).T[None]

    by_input, by_state, bias, readout = p
    biases = np.concatenate([ordered(bias), np.zeros_like(bias)[None]], -1)
    weights = ordered(by_input), ordered(by_state), biases
    _, last = g.several("LSTM", 2, x, *weights, hidden_size=len(by_state))
    return g("MatMul", g("Squeeze", last, ints(0)), readout)


class Layers:
    """Convolutions: each call takes the next weights and bias of `p`."""

    def __init__(self, g: Graph, p: Sequence[Array]):
        self._g = g
        self._rest = iter(p)

    def __call__(self, x: Name, stride: int = 1, is_depthwise: bool = False) -> Name:
        weights, bias = next(self._rest).transpose(3, 2, 0, 1), next(self._rest)
        return self._g(
            *("Conv", x, weights, bias),
            strides=[stride] * 2,
            pads=[weights.shape[-1] // 2] * 4,
            group=len(weights) if is_depthwise else 1,
        )


def largest(g: Graph, x: Name, size: int, pad: int = 0) -> Name:
    return g("MaxPool", x, kernel_shape=[size] * 2, strides=[2, 2], pads=[pad] * 4)


def classified(g: Graph, p: Sequence[Array], x: Name) -> Name:
    return linear(g, g("Flatten", g("GlobalAveragePool", x)), p[-2], p[-1])


def lenet(g: Graph, p: Sequence[Array], x: Name) -> Name:
    convolve = Layers(g, p)
    for _ in range(2):
        x = largest(g, g("Relu", convolve(x)), 2)
    x = g("Transpose", x, perm=[0, 2, 3, 1])
    return mlp(g, p[4:], g("Reshape", x, ints(-1, p[4].shape[0])))


def resnet18(g: Graph, p: Sequence[Array], x: Name) -> Name:
    convolve = Layers(g, p)
    x = largest(g, g("Relu", convolve(x, 2)), 3, 1)
    for inputs, outputs in pairwise((64, 64, 128, 256, 512)):
        for number in range(2):
            stride = 2 if number == 0 and inputs != outputs else 1
            y = convolve(g("Relu", convolve(x, stride)))
            y = g("Add", y, x if stride == 1 else convolve(x, stride))
            x = g("Relu", y)
    return classified(g, p, x)


def mobilenetv2(g: Graph, p: Sequence[Array], x: Name) -> Name:
    convolve, width = Layers(g, p), 32

    def clipped(x: Name) -> Name:
        return g("Clip", x, number(0), number(6))

    x = clipped(convolve(x, 2))
    for _, outputs, stride in MOBILENET:
        y = convolve(clipped(convolve(clipped(convolve(x)), stride, True)))
        is_residual = stride == 1 and width == outputs
        x, width = g("Add", x, y) if is_residual else y, outputs
    return classified(g, p, clipped(convolve(x)))


REPEATING: Mapping[str, Any] = {
    "mode": "nearest",
    "nearest_mode": "floor",
    "coordinate_transformation_mode": "asymmetric",
}


def unet(g: Graph, p: Sequence[Array], x: Name) -> Name:
    convolve = Layers(g, p)

    def twice(x: Name) -> Name:
        return g("Relu", convolve(g("Relu", convolve(x))))

    kept: list[Name] = []
    for _ in range(3):
        kept.append(twice(x))
        x = largest(g, kept[-1], 2)
    x = twice(x)
    scales = np.array([1, 1, 2, 2], np.float32)
    for skipped in reversed(kept):
        x = g("Resize", x, "", scales, **REPEATING)
        x = twice(g("Concat", x, skipped, axis=1))
    return convolve(x)


NETWORKS: Mapping[str, Callable[..., Name]] = {
    "bert": bert,
    "gpt2": gpt2,
    "lstm": lstm,
    "mlp": mlp,
    "vit": vit,
}
ON_IMAGES: Mapping[str, Callable[..., Name]] = {
    "lenet": lenet,
    "mobilenetv2": mobilenetv2,
    "resnet18": resnet18,
    "unet": unet,
}
"""Networks on images, which ONNX expects in NCHW layout."""


def exported(
    name: str, arrays: Sequence[Array], parameters: Sequence[int]
) -> tuple[bytes, Sequence[Array]] | None:
    """The serialized model of a program, and its inputs; None for unknown names."""
    inputs = [a for n, a in enumerate(arrays) if n not in parameters]
    own = [arrays[n] for n in parameters]
    if name in ON_IMAGES:
        inputs = [np.ascontiguousarray(x.transpose(0, 3, 1, 2)) for x in inputs]
    graph = Graph(inputs)
    if name in KERNELS:
        result = KERNELS[name](graph, *graph.names)
    elif name == "attention":
        result = attention(graph, *graph.names)
    elif name in NETWORKS or name in ON_IMAGES:
        result = {**NETWORKS, **ON_IMAGES}[name](graph, own, *graph.names)
    else:
        return None
    return graph.model(result), inputs


def session(model: bytes) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A function that runs `model` in ONNX Runtime with all optimizations."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads = 1
    made = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [x.name for x in made.get_inputs()]
    return lambda arrays: made.run(None, dict(zip(names, arrays, strict=True)))
