"""Nodes that are known when the model is read: shapes, and what follows from them.

ONNX's own reference evaluator computes them, so that chains such as Shape → Gather →
Concat leave a constant that Reshape can read. Parameters are left alone, and so is what
would make large constants of small ones.
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

_LARGEST = 1 << 16  # elements of an input
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
"""What has no conversion, because the size of the result depends on the inputs."""
_WITHOUT_CONVERSION = {"Constant", *_ONLY_FOLDED}
_FOLDED = {
    *("DequantizeLinear", "QuantizeLinear"),
    *_WITHOUT_CONVERSION,
    *elementwise.CONVERSIONS,
    *indexing.CONVERSIONS,
    *reducing.CONVERSIONS,
    *shaping.CONVERSIONS,
} - {"Identity", "Shape"}  # whose conversions know better
"""What the evaluator does not compute in loops of Python."""


_EVALUATED = {"DequantizeLinear": 19, "QuantizeLinear": 19}
"""The first opset for which the evaluator has an operation that is older."""


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
        # The evaluator also fails on some that are right, such as a GatherElements of
        # one row: a conversion says itself what does not fit.
        if node.op_type not in _WITHOUT_CONVERSION:
            return None
        message = " ".join(str(error).split())[:200]
        raise Unsupported(f"on constants that do not fit ({message})") from None


def _result_size(node: OnnxNode) -> float:
    """How many elements come out of what makes many of few, at most; 0 for others."""
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
