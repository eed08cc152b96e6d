"""Converts constants and operations that move elements."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    UnregisteredOp,
)
from xdsl.ir import Operation, SSAValue

from ...dialects.diagnostics import name_of
from ...dialects.dtypes import constant_attribute, numpy_dtype
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import TensorOp, with_element
from ...dialects.tgraph.elements import is_complex, real_element
from ...dialects.tgraph.elementwise import ComplexOp
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, arrays

_SLICE = {name: name for name in ("start_indices", "limit_indices", "strides")}


_PAD = {
    "low": "edge_padding_low",
    "high": "edge_padding_high",
    "interior": "interior_padding",
}


def _constant(c: Conversion) -> Values:
    attr = c.attribute("value")
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        raise Unsupported("with elements that are not in the file")
    value = cast(DenseIntOrFPElementsAttr[IntegerType | AnyFloat], attr)
    if is_complex(value.get_element_type()):
        return (_complex_constant(c, value),)
    splat = _splat(value)
    return (c.emit(shaping.ConstantOp, (), value=value if splat is None else splat),)


def _complex_constant(
    c: Conversion, value: DenseIntOrFPElementsAttr[IntegerType | AnyFloat]
) -> SSAValue:
    """Composes a complex constant of two real constants."""
    element = real_element(value.get_element_type())
    numbers = np.frombuffer(value.data.data, numpy_dtype(value.get_element_type()))
    if len(numbers) > 1:
        numbers = numbers.reshape(value.get_shape())
    parts = [
        c.emit(
            shaping.ConstantOp,
            (),
            with_element(c.result_type, element),
            value=constant_attribute(part, element),
        )
        for part in (np.real(numbers), np.imag(numbers))
    ]
    return c.emit(ComplexOp, parts)


def _splat(
    value: DenseIntOrFPElementsAttr[IntegerType | AnyFloat],
) -> IntegerAttr[IntegerType] | FloatAttr | None:
    """The number that all elements equal; None if they differ."""
    type = value.get_element_type()
    data = value.data.data
    first = data[: type.compile_time_size]
    if not data or data != first * (len(data) // len(first)):
        return None
    if isinstance(type, IntegerType):
        return IntegerAttr(type.unpack(first, 1)[0], type)
    return FloatAttr(type.unpack(first, 1)[0], type)


def _iota(c: Conversion) -> Values:
    return (c.emit(shaping.IotaOp, (), dimension=c.integer("iota_dimension", 0)),)


def _slice(c: Conversion) -> Values:
    if c.inputs[0].type == c.result_type:
        return c.inputs
    return arrays(shaping.SliceOp, _SLICE, c)


def _pad(c: Conversion) -> Values:
    if not any(number for name in _PAD.values() for number in c.integers(name)):
        return c.inputs[:1]
    return arrays(shaping.PadOp, _PAD, c)


def _concatenate(c: Conversion) -> Values:
    dimension = c.integer("dimension", 0)
    return (c.emit(shaping.ConcatenateOp, c.inputs, dimension=dimension),)


_SAME_NAMES: Mapping[type[TensorOp], Sequence[str]] = {
    shaping.BroadcastInDimOp: ["broadcast_dimensions"],
    shaping.ReshapeOp: [],
    shaping.ReverseOp: ["dimensions"],
    shaping.TransposeOp: ["permutation"],
}


_TUPLE, _ELEMENT = "stablehlo.tuple", "stablehlo.get_tuple_element"


def _tuple(c: Conversion) -> Values:
    """Emits no operation: `get_tuple_element` finds the elements of the tuple."""
    (result,) = c.op.results
    if any(name_of(use.operation) not in (_TUPLE, _ELEMENT) for use in result.uses):
        raise Unsupported(": its result is forwarded")
    return UnregisteredOp.create(result_types=(result.type,)).results


def _get_tuple_element(c: Conversion) -> Values:
    return (c.scope[_element_of(c.op)],)


def _element_of(op: Operation) -> SSAValue:
    """The value at level 0 that a `get_tuple_element` extracts."""
    index = op.properties.get("index", op.attributes.get("index"))
    made = op.operands[0].owner
    while isinstance(made, Operation) and name_of(made) == _ELEMENT:
        made = _element_of(made).owner
    if not isinstance(made, Operation) or name_of(made) != _TUPLE:
        raise Unsupported(": its operand is not the result of stablehlo.tuple")
    assert isinstance(index, IntegerAttr)
    return made.operands[index.value.data]


def _number(c: Conversion) -> Values:
    """The number of this replica or partition: 0, as there is one."""
    zero = IntegerAttr(0, cast(IntegerType, c.result_type.element_type))
    return (c.emit(shaping.ConstantOp, (), c.result_type, value=zero),)


CONVERSIONS: Mapping[str, Converter] = {
    **{
        f"stablehlo.{op_type.name.removeprefix('tgraph.')}": partial(
            arrays, op_type, dict(zip(names, names, strict=True))
        )
        for op_type, names in _SAME_NAMES.items()
    },
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.iota": _iota,
    "stablehlo.optimization_barrier": lambda c: c.inputs,
    "stablehlo.pad": _pad,
    "stablehlo.partition_id": _number,
    "stablehlo.replica_id": _number,
    "stablehlo.slice": _slice,
    "stablehlo.tuple": _tuple,
}
