"""Rewrites DequantizeLinear → operation → QuantizeLinear as one operation on integers.

    x = DequantizeLinear(p, ...)    y = Conv(x, w)    QuantizeLinear(y, ...)

becomes `QLinearConv(p, ...)`, as in onnxruntime, whose quantizer writes either form. An
operation that only moves or compares elements is applied to the integers themselves, if
its operand and its result have equal scales and zero points.

Does not: rewrite an operation whose result has other readers, or whose scales and zero
points are not constants. Does not: rewrite quantization to other than 8 bits, or by
several scales per tensor, except one for each channel of a second operand.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper

from ...dialects.dtypes import Array
from .reading import array_of

_QUANTIZED = {
    "Add": "com.microsoft.QLinearAdd",
    "AveragePool": "com.microsoft.QLinearAveragePool",
    "Concat": "com.microsoft.QLinearConcat",
    "Conv": "QLinearConv",
    "Gemm": "com.microsoft.QGemm",
    "GlobalAveragePool": "com.microsoft.QLinearGlobalAveragePool",
    "LeakyRelu": "com.microsoft.QLinearLeakyRelu",
    "MatMul": "QLinearMatMul",
    "Mul": "com.microsoft.QLinearMul",
    "Sigmoid": "com.microsoft.QLinearSigmoid",
    "Softmax": "com.microsoft.QLinearSoftmax",
}

_MOVING = {
    *("DepthToSpace", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Slice"),
    *("SpaceToDepth", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
}

_CONVERSIONS = ("DequantizeLinear", "QuantizeLinear")

_NEAR = 1e-5
"""The relative difference allowed between the scale of a bias and the product of the
operands' scales."""


class _Integers(NamedTuple):
    """The names of a quantized value, its scale and its zero point."""

    values: str
    scale: str
    zero: str


def on_integers(graph: onnx.GraphProto, model: str) -> Sequence[onnx.NodeProto | None]:
    """The graph's nodes after the rewrite, with None in place of unused nodes."""
    return _Rewriting(graph, model).nodes()


def _read(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _read(inner)
            yield from (output.name for output in graph.output)


class _Rewriting:
    def __init__(self, graph: onnx.GraphProto, model: str):
        self._name = model
        self._nodes = list(graph.node)
        self._sources = {name: node for node in graph.node for name in node.output}
        self._readers = Counter(name for node in graph.node for name in _read(node))
        self._readers.update(output.name for output in graph.output)
        self._constants = {tensor.name: tensor for tensor in graph.initializer}

    def nodes(self) -> Sequence[onnx.NodeProto | None]:
        needed: list[onnx.NodeProto | None] = []
        for node in reversed(self._nodes):
            is_known = _is_of(node, "DequantizeLinear", *_QUANTIZED, *_MOVING)
            if is_known and not self._readers[node.output[0]]:
                self._readers.subtract(_read(node))
                needed.append(None)
                continue
            new = self._on_integers(node)
            if new is not None:
                self._readers.subtract(_read(node))
                self._readers.update(_read(new))
            needed.append(new or node)
        return needed[::-1]

    def _on_integers(self, last: onnx.NodeProto) -> onnx.NodeProto | None:
        """The node on integers that replaces the QuantizeLinear `last`, or None."""
        if not _is_of(last, "QuantizeLinear"):
            return None
        node, result = self._sources.get(last.input[0]), self._integers(last)
        if node is None or result is None or self._readers[last.input[0]] > 1:
            return None
        if _is_of(node, *_QUANTIZED):
            domain, _, name = _QUANTIZED[node.op_type].rpartition(".")
            inputs = self._inputs(node, result)
        elif _is_of(node, *_MOVING):
            domain, name, inputs = "", node.op_type, self._moved(node, result)
        else:
            return None
        if inputs is None:
            return None
        new = helper.make_node(name, inputs, last.output, node.name, domain=domain)
        new.attribute.extend(node.attribute)
        return new

    def _moved(self, node: onnx.NodeProto, result: _Integers) -> Sequence[str] | None:
        if (source := self._operand(node.input[0])) is None:
            return None
        for names in zip(source[1:], result[1:], strict=True):
            own, other = map(self._array, names)
            if own.dtype != other.dtype or not np.array_equal(own, other):
                return None
        return [source.values, *node.input[1:]]

    def _inputs(self, node: onnx.NodeProto, result: _Integers) -> Sequence[str] | None:
        """The inputs of the quantized operation; None if one is not dequantized."""
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            operands = [self._operand(name) for name in node.input]
            given = [name for operand in operands if operand for name in operand]
            if None in operands:
                return None
            if node.op_type == "Concat":
                return [result.scale, result.zero, *given]
            return [*given, result.scale, result.zero]
        first = self._operand(node.input[0])
        second = self._operand(node.input[1], _channels(node))
        if first is None or second is None:
            return None
        bias = self._bias(node, first, second)
        if bias is None:
            return None
        own = [result.scale, result.zero]
        behind = [*(bias or [""]), *own] if node.op_type == "Gemm" else [*own, *bias]
        return [*first, *second, *behind]

    def _bias(
        self, node: onnx.NodeProto, first: _Integers, second: _Integers
    ) -> Sequence[str] | None:
        """The names of the bias: one, or none without a bias.

        None if the bias is not dequantized with the scale of the sums.
        """
        if len(node.input) < 3 or not node.input[2]:
            return []
        source = self._sources.get(node.input[2])
        if source is None or not _is_of(source, "DequantizeLinear"):
            return None
        if any(a.name == "beta" and a.f != 1 for a in node.attribute):
            return None
        values, *own = source.input
        if any(name not in self._constants for name in own):
            return None
        scale, *zeros = map(self._array, own)
        product = self._array(first.scale) * self._array(second.scale)
        is_same = np.allclose(product, scale, _NEAR, 0)
        return [values] if is_same and not np.any(zeros) else None

    def _operand(self, name: str, axis: int | None = None) -> _Integers | None:
        """The integers from which `name` is dequantized, or None if it is not.

        They have one scale, or one for each index of `axis`.
        """
        source = self._sources.get(name)
        if source is None or not _is_of(source, "DequantizeLinear"):
            return None
        return self._integers(source, axis)

    def _integers(
        self, node: onnx.NodeProto, axis: int | None = None
    ) -> _Integers | None:
        """The inputs of a conversion; None unless its scale and zero point are
        constants, per tensor or along `axis`, for 8-bit integers."""
        scale, *zero = node.input[1:]
        if not zero or any(name not in self._constants for name in (scale, *zero)):
            return None
        if self._array(*zero).dtype.name not in ("int8", "uint8"):
            return None
        if self._array(scale).size > 1 and _attribute(node, "axis", 1) != axis:
            return None
        return _Integers(*node.input)

    def _array(self, constant: str) -> Array:
        return array_of(self._constants[constant], self._name)


def _is_of(node: onnx.NodeProto, *names: str) -> bool:
    """Whether `node` is one of these operations, with one result.

    In older opsets, conversions of 4 and 16 bits are in the domain `com.microsoft`.
    """
    is_own = node.domain in ("", "ai.onnx") or (
        node.domain == "com.microsoft" and node.op_type in _CONVERSIONS
    )
    return is_own and node.op_type in names and len(node.output) == 1


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    found = (a.i for a in node.attribute if a.name == name)
    return next(found, default)


def _channels(node: onnx.NodeProto) -> int:
    """The axis of the second operand that has the channels of the result."""
    return int(node.op_type != "Conv" and not _attribute(node, "transB", 0))
