"""Constant folding of ONNX nodes, with ONNX's own reference evaluator.

Chains that compute shapes, such as Shape → Gather → Concat, become constants that
Reshape can read. Does not: fold operations on parameters or on large inputs, or
operations that would turn small constants into large ones.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ..operators import Known
from ..unsupported import Unsupported
from . import elementwise, indexing, reducing, shaping
from .node import OnnxNode

_LARGEST = 1 << 16  # the most elements of an input
_LARGEST_RESULT = 1 << 24
_MISTAKES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
_ONLY_FOLDED = {"MelWeightMatrix", "NonMaxSuppression", "NonZero", "Unique"}
"""Operations without a conversion: the size of their result depends on the inputs."""
_WITHOUT_CONVERSION = {"Constant", *_ONLY_FOLDED}
_FOLDED = {
    *("DequantizeLinear", "QuantizeLinear"),
    *_WITHOUT_CONVERSION,
    *elementwise.CONVERSIONS,
    *indexing.CONVERSIONS,
    *reducing.CONVERSIONS,
    *shaping.CONVERSIONS,
} - {"Identity", "Shape"}  # whose conversions do better
"""Operations that the evaluator does not compute in Python loops."""


_EVALUATED = {"DequantizeLinear": 19, "QuantizeLinear": 19}
"""The first opset in which the evaluator has an operation, if ONNX had it earlier."""


def fold(proto: onnx.NodeProto, node: OnnxNode) -> Sequence[Known] | None:
    """The node's outputs, or None if it is to be computed at run time."""
    if "" in proto.output or node.op_type not in _FOLDED:
        return None
    given: dict[str, object] = {}
    for name, value in zip(node.names, node.inputs, strict=True):
        if value is None:
            continue
        if (
            not isinstance(value, Known)
            or value.argument
            or value.array.size > _LARGEST
        ):
            if node.op_type in _ONLY_FOLDED:
                raise Unsupported(
                    f"with input {name!r} computed at run time, expected a constant"
                )
            return None
        given[name] = value.array
    graph = onnx.GraphProto()
    graph.node.append(proto)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in given)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in proto.output if name)
    try:
        if _result_size(node) > _LARGEST_RESULT:
            return None
        opset = max(node.opset, _EVALUATED.get(node.op_type, 0))
        evaluator = cast(Any, ReferenceEvaluator(graph, opsets={"": opset}))
        return [Known(np.asarray(array)) for array in evaluator.run(None, given)]
    except NotImplementedError:
        return None
    except _MISTAKES as error:
        # The evaluator also fails on some valid nodes, such as a GatherElements of one
        # row. If there is a conversion, it reports what does not fit.
        if node.op_type not in _WITHOUT_CONVERSION:
            return None
        message = " ".join(str(error).split())[:200]
        raise Unsupported(f"on constants that do not fit ({message})") from None


def _result_size(node: OnnxNode) -> float:
    """The most elements of the result, for operations that enlarge inputs; else 0."""
    match node.op_type:
        case "ConstantOfShape":
            return prod(node.known_integers(0))
        case "Expand" | "OneHot" | "Tile":
            return node.known(0).size * prod(node.known_integers(1))
        case "Range":
            start, limit, delta = (node.known(index).item() for index in range(3))
            return (limit - start) / delta
        case _:
            return 0
