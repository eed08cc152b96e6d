"""Converts quantized elements, which represent `(integer - zero point) * scale`.

    tensor<4x!quant.uniform<i8:f32, 0.5:3>>      at level 0
    tensor<4xi8>                                 at level 1

An operation on quantized elements dequantizes its operands, computes, and quantizes its
result (StableHLO's `dequantize_op_quantize`). Operations that only move elements move
the integers.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerType,
    Signedness,
    TensorType,
    UnregisteredAttr,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.diagnostics import name_of
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import AnyTensor, with_element
from ...dialects.tgraph.elements import AnyInteger, limits
from ..builder import TensorBuilder, shape_of
from ..formulas import clamp

_MOVING = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("bitcast_convert", "broadcast_in_dim", "concatenate", "constant"),
        *("dynamic_slice", "dynamic_update_slice", "gather", "optimization_barrier"),
        *("reshape", "reverse", "slice", "transpose"),
    )
)
CONVERTING = ("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize")

_UNIFORM = re.compile(
    r"!quant\.uniform<(?P<storage>[iu]\d+)(<(?P<low>-?\d+):(?P<high>-?\d+)>)?"
    r":(?P<expressed>\w+)(:(?P<axis>\d+))?,\s*(?P<parameters>[^{}]+|\{[^{}]+\})>"
)

_EXPRESSED: Mapping[str, AnyFloat] = {str(type): type for type in (bf16, f16, f32, f64)}


@dataclass(frozen=True)
class Quantization:
    """The parameters of a quantized element type."""

    storage: AnyInteger
    expressed: AnyFloat
    limits: tuple[int, int]
    """The smallest and the largest integer in use."""

    axis: int | None
    """The dimension that has a scale for each index; None if there is one scale."""

    parameters: Sequence[tuple[float, int]]
    """Pairs of a scale and a zero point."""


@cache
def _quantization(element: Attribute) -> Quantization | None:
    if not isinstance(element, UnregisteredAttr):
        return None
    found = _UNIFORM.fullmatch(str(element))
    if found is None or found["expressed"] not in _EXPRESSED:
        return None
    width, is_unsigned = int(found["storage"][1:]), found["storage"][0] == "u"
    sign = Signedness.UNSIGNED if is_unsigned else Signedness.SIGNLESS
    storage = IntegerType(width, sign)
    low, high = limits(storage)
    pairs = [text.split(":") for text in found["parameters"].strip("{} ").split(",")]
    return Quantization(
        storage,
        _EXPRESSED[found["expressed"]],
        (int(found["low"] or low), int(found["high"] or high)),
        int(found["axis"]) if found["axis"] else None,
        [(float(scale), int(*zero or "0")) for scale, *zero in pairs],
    )


def quantization_of(type: Attribute) -> Quantization | None:
    """The quantization of a tensor's elements; None if it is missing or unknown."""
    if not isinstance(type, TensorType):
        return None
    return _quantization(cast(AnyTensor, type).element_type)


def stored(type: Attribute) -> Attribute:
    """The type of a value at level 1."""
    found = quantization_of(type)
    return with_element(cast(AnyTensor, type), found.storage) if found else type


def expressed(type: Attribute) -> Attribute:
    """The type of the numbers that a value represents."""
    found = quantization_of(type)
    return with_element(cast(AnyTensor, type), found.expressed) if found else type


def is_quantized(op: Operation) -> bool:
    """Whether an operand or a result is quantized."""
    return any(quantization_of(v.type) for v in (*op.operands, *op.results))


def moves_integers(op: Operation) -> bool:
    """Whether the operation can work on the integers directly."""
    found = [quantization_of(v.type) for v in (*op.operands, *op.results)]
    same = {str(quantization.parameters) for quantization in found if quantization}
    return name_of(op) in _MOVING and len(same) == 1


def retyped(op: Operation, as_type: Callable[[Attribute], Attribute]) -> Operation:
    """A clone of the operation, with the types of its results replaced."""
    new = op.clone()
    for result in new.results:
        Rewriter.replace_value_with_new_type(result, as_type(result.type))
    return new


def dequantized(b: TensorBuilder, x: SSAValue, type: Attribute) -> SSAValue:
    """The numbers that a value at level 1 represents, where `type` is its type at level
    0; other values are unchanged.
    """
    if (q := quantization_of(type)) is None:
        return x
    scale, zero = _parameters(b, x, q)
    shifted = b.apply(e.SubtractOp, b.convert(x, q.expressed), zero)
    return b.apply(e.MultiplyOp, shifted, scale)


def quantized(b: TensorBuilder, x: SSAValue, type: Attribute) -> SSAValue:
    """The integers that represent the numbers `x`, if `type` is quantized."""
    if (q := quantization_of(type)) is None:
        return x
    scale, zero = _parameters(b, x, q)
    shifted = b.apply(e.AddOp, b.apply(e.DivideOp, x, scale), zero)
    whole = b.emit(e.RoundNearestEvenOp, clamp(b, shifted, *q.limits))
    return b.convert(whole, q.storage)


def _parameters(
    b: TensorBuilder, x: SSAValue, q: Quantization
) -> tuple[SSAValue | float, SSAValue | float]:
    """Scale and zero point, as numbers or as tensors along the axis."""
    if q.axis is None:
        return q.parameters[0]
    after = len(shape_of(x)) - q.axis - 1
    scales, zeros = np.array(q.parameters).T.reshape(2, -1, *[1] * after)
    return (
        b.convert(b.constant(scales), q.expressed),
        b.convert(b.constant(zeros), q.expressed),
    )
