"""ONNX's random numbers → tgraph: from one generator, whose state is a variable.

    %1, %bits = tgraph.rng_bit_generator %0     Threefry: a key and a counter
    %u = bits of a number from 1 to 2, less 1

The state begins with zeros and persists between runs. The seeds of nodes are ignored,
because each runtime draws different numbers from them.
"""

from collections.abc import Callable, Mapping, Sequence
from math import pi
from typing import TypeAlias

import numpy as np
from onnx import TensorProto, helper
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32
from xdsl.ir import SSAValue

from ...dialects.dtypes import is_float, numpy_dtype
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import AnyTensor
from ..builder import element_type, shape_of, type_of
from ..formulas import compare, index_of
from ..operators import Value
from ..unsupported import Unsupported
from .node import OnnxNode

STATE = TensorType(IntegerType(64, Signedness.UNSIGNED), [2])
_BITS = IntegerType(32, Signedness.UNSIGNED)
_ONE = 0x3F800000
"""The bits of 1.0 in f32. Numbers from 1 to 2 differ from it in the last 23 bits."""

Draw: TypeAlias = Callable[[AnyTensor], SSAValue]
"""Draws random bits of this type, and advances the generator."""


def _uniform(n: OnnxNode, draw: Draw, shape: Sequence[int]) -> SSAValue:
    """Numbers in [0, 1), in f32."""
    bits = draw(TensorType(_BITS, shape))
    bits = n.apply(e.OrOp, n.apply(e.ShiftRightLogicalOp, bits, 9), _ONE)
    number = n.emit(e.BitcastConvertOp, bits, type=TensorType(f32, shape))
    return n.apply(e.SubtractOp, number, 1)


def _between(n: OnnxNode, draw: Draw, shape: Sequence[int]) -> SSAValue:
    low, high = n.number("low", 0.0), n.number("high", 1.0)
    if low > high:
        raise Unsupported(f"with low = {low}, expected no more than high, {high}")
    number = n.apply(e.MultiplyOp, _uniform(n, draw, shape), high - low)
    return n.apply(e.AddOp, number, low)


def _normal(n: OnnxNode, draw: Draw, shape: Sequence[int]) -> SSAValue:
    """Normally distributed numbers, by the Box-Muller transform."""
    rest = n.apply(e.SubtractOp, 1, _uniform(n, draw, shape))
    length = n.emit(e.SqrtOp, n.apply(e.MultiplyOp, n.emit(e.LogOp, rest), -2))
    angle = n.apply(e.MultiplyOp, _uniform(n, draw, shape), 2 * pi)
    number = n.apply(e.MultiplyOp, length, n.emit(e.CosineOp, angle))
    number = n.apply(e.MultiplyOp, number, n.number("scale", 1.0))
    return n.apply(e.AddOp, number, n.number("mean", 0.0))


Conversion: TypeAlias = Callable[[OnnxNode, Draw], Sequence[Value]]


def _drawn(
    how: Callable[[OnnxNode, Draw, Sequence[int]], SSAValue], *, like: bool = False
) -> Conversion:
    """A conversion with the shape in the node's attributes, or that of its input."""

    def convert(n: OnnxNode, draw: Draw) -> Sequence[Value]:
        default, shape = TensorProto.FLOAT, n.integers("shape", ())
        if like:
            shape, default = shape_of(n.value(0)), _onnx_dtype(n.value(0))
        if any(size < 0 for size in shape):
            raise Unsupported(
                f"with shape = {list(shape)}, expected sizes of 0 or more"
            )
        dtype = helper.tensor_dtype_to_np_dtype(n.integer("dtype", default))
        if not is_float(dtype):
            raise Unsupported(f"with dtype = {dtype}, expected a floating-point type")
        return [n.convert(how(n, draw, shape), element_type(dtype))]

    return convert


def _onnx_dtype(x: SSAValue) -> int:
    return helper.np_dtype_to_tensor_dtype(numpy_dtype(type_of(x).element_type))


def _as(n: OnnxNode, x: SSAValue, default: int) -> SSAValue:
    dtype = helper.tensor_dtype_to_np_dtype(n.integer("dtype", default))
    return n.convert(x, element_type(dtype))


def _bernoulli(n: OnnxNode, draw: Draw) -> Sequence[Value]:
    """1 where a random number is below the probability. (ONNX's own definition requires
    a number above it.)"""
    x = n.value(0)
    chosen = compare(n, _uniform(n, draw, shape_of(x)), "LT", n.convert(x, f32))
    return [_as(n, chosen, _onnx_dtype(x))]


def _multinomial(n: OnnxNode, draw: Draw) -> Sequence[Value]:
    """Draws classes from log-probabilities: the largest after adding Gumbel noise."""
    x, count = n.value(0), n.integer("sample_size", 1)
    if count < 0:
        raise Unsupported(f"with sample_size = {count}, expected 0 or more")
    batch, classes = shape_of(x)
    shape = [batch, count, classes]
    # above 0, so that the arguments of both logarithms are positive
    number = n.apply(e.AddOp, _uniform(n, draw, shape), float(np.float32(2) ** -24))
    noise = n.emit(e.LogOp, n.emit(e.NegateOp, n.emit(e.LogOp, number)))
    weights = n.broadcast_in_dim(n.convert(x, f32), shape, [0, 2])
    best = index_of(n, "maximum", n.apply(e.SubtractOp, weights, noise), 2)
    return [_as(n, best, TensorProto.INT32)]


CONVERSIONS: Mapping[str, Conversion] = {
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "RandomNormal": _drawn(_normal),
    "RandomNormalLike": _drawn(_normal, like=True),
    "RandomUniform": _drawn(_between),
    "RandomUniformLike": _drawn(_between, like=True),
}
