"""Converts operations that compute with sizes, and those whose shape is computed.

Sizes become expressions (dialects/sizes/symbolic.py). A size that a program computes
becomes one `tgraph.size`, and a computed shape becomes part of the type. The conditions
of JAX's `shape_assertion`s are collected in symbols.py.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    i64,
)
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, SSAValue

from ...dialects.diagnostics import name_of
from ...dialects.sizes.dims import DIMS, Dims, DimsAttr, encoding_of, static
from ...dialects.sizes.symbolic import (
    Size,
    Symbolic,
    floordiv,
    is_known_at_least,
    maximum,
    minimum,
    mod,
)
from ...dialects.tgraph import elementwise, shaping
from ...dialects.tgraph.base import AnyTensor, ints, shape_of, with_shape
from ...dialects.tgraph.indexing import GatherOp
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, type_of

LARGEST = 64
"""The largest number of elements of a tensor that can be a shape."""


def sizes_of(value: SSAValue) -> Sequence[Size] | None:
    """The elements of an integer tensor, row-major, as sizes; None if unknown."""
    type, op = value.type, value.owner
    if not isinstance(op, _KNOWN) or not isinstance(
        cast(AnyTensor, type).element_type, IntegerType
    ):
        return None
    shape = shape_of(cast(AnyTensor, type))
    if any(isinstance(size, Symbolic) for size in shape) or prod(shape) > LARGEST:
        return None
    if isinstance(op, shaping.SizeOp):
        return (op.size,)
    if isinstance(op, shaping.ConstantOp):
        if isinstance(op.value, IntegerAttr):
            return (op.value.value.data,) * prod(shape)
        dense = cast(DenseIntOrFPElementsAttr[IntegerType], op.value)
        return tuple(dense.get_values())
    parts = [sizes_of(operand) for operand in op.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    match op:
        case shaping.ReshapeOp() | elementwise.ConvertOp():
            return known[0]
        case shaping.ConcatenateOp():
            return (
                [size for part in known for size in part] if len(shape) == 1 else None
            )
        case shaping.BroadcastInDimOp() if len(known[0]) == 1:
            return list(known[0]) * prod(shape)
        case shaping.SliceOp() if len(shape) == 1:
            (start,), (limit,) = (
                op.start_indices.get_values(),
                op.limit_indices.get_values(),
            )
            return known[0][start : limit : op.strides.get_values()[0]]
        case elementwise.ClampOp():
            low, middle, high = known
            raised = map(maximum, low, middle)
            return list(map(minimum, raised, high))
        case elementwise.ElementwiseOp() if len(known) == 2:
            compute = _ARITHMETIC[op.name.removeprefix("tgraph.")]
            results = [compute(*pair) for pair in zip(*known, strict=True)]
            return None if None in results else cast(list[Size], results)
        case _:
            return None


def folded(c: Conversion) -> Values | None:
    """A `tgraph.size` for each result if the operation computes sizes, or None."""
    functions, inputs = _FOLDED.get(name_of(c.op)), c.inputs
    if isinstance(c.op, CallOp):
        functions = _CALLED.get(re.sub(r"_\d+$", "", c.op.callee.string_value()))
        inputs = inputs[-2:]  # JAX's symbols precede the operands
    if functions is None or not all(map(_is_element, c.op.results)):
        return None
    parts = [sizes_of(value) for value in inputs]
    if not any(isinstance(s, Symbolic) for part in parts for s in part or ()):
        return None
    known = [part[0] for part in parts if part]
    if len(known) < len(parts):
        return None
    results = [compute(*known) for compute in functions]
    if None in results:
        return None
    return [size_as_element(c, size) for size in cast(list[Size], results)]


def _is_element(value: SSAValue) -> bool:
    type = type_of(value)
    element = type.element_type
    return (
        not type.shape.data
        and isinstance(element, IntegerType)
        and element.bitwidth >= 32
    )


def size_as_element(c: Conversion, size: Size) -> SSAValue:
    if isinstance(size, int):
        return c.number(size, c.result_type)
    return c.emit(shaping.SizeOp, (), c.result_type, value=DimsAttr(Dims((size,))))


def _divide(a: Size, b: Size) -> Size | None:
    """The quotient if both are known to be positive: StableHLO rounds toward zero."""
    if is_known_at_least(a, 0) and is_known_at_least(b, 1):
        return floordiv(a, b)
    return None


def _same(a: Size) -> Size:
    return a


def _remainder(a: Size, b: Size) -> Size | None:
    if is_known_at_least(a, 0) and is_known_at_least(b, 1):
        return mod(a, b)
    return None


_ARITHMETIC: Mapping[str, Callable[[Size, Size], Size | None]] = {
    "add": lambda a, b: a + b,
    "divide": _divide,
    "maximum": maximum,
    "minimum": minimum,
    "multiply": lambda a, b: a * b,
    "remainder": _remainder,
    "subtract": lambda a, b: a - b,
}

_FOLDED: Mapping[str, Sequence[Callable[..., Size | None]]] = {
    **{f"stablehlo.{name}": (compute,) for name, compute in _ARITHMETIC.items()},
    "stablehlo.convert": (_same,),
    "stablehlo.reshape": (_same,),
}
"""Functions that compute the results of operations on sizes."""

_CALLED: Mapping[str, Sequence[Callable[..., Size]]] = {
    "floor_divide": (floordiv,),
    "remainder": (mod,),
    "divmod": (floordiv, mod),
}
"""Functions that compute the results of jax.numpy's functions on sizes. These round
down by comparing signs, so inlining them would give no expression of sizes.
"""

_KNOWN = (
    shaping.BroadcastInDimOp,
    shaping.ConcatenateOp,
    shaping.ConstantOp,
    shaping.ReshapeOp,
    shaping.SizeOp,
    shaping.SliceOp,
    elementwise.AddOp,
    elementwise.ClampOp,
    elementwise.ConvertOp,
    elementwise.DivideOp,
    elementwise.MaximumOp,
    elementwise.MinimumOp,
    elementwise.MultiplyOp,
    elementwise.RemainderOp,
    elementwise.SubtractOp,
)


def shape_in(value: SSAValue) -> Sequence[Size]:
    """The shape that an operand holds. Raises `Unsupported` if it is not known."""
    sizes = sizes_of(value)
    if sizes is None:
        raise Unsupported("with a shape that is not computed from sizes")
    return sizes


def sized(**arrays: Sequence[Size]) -> dict[str, Attribute]:
    """The properties of an operation for arrays of sizes, in the order of `SIZED`."""
    properties: dict[str, Attribute] = {
        name: ints(static(sizes)) for name, sizes in arrays.items()
    }
    flat = [size for sizes in arrays.values() for size in sizes]
    if isinstance(dims := encoding_of(cast(Sequence[Size], flat), None), DimsAttr):
        properties[DIMS] = dims
    return properties


def _typed(c: Conversion, shape: Sequence[Size]) -> AnyTensor:
    return with_shape(c.result_type, cast(Sequence[int], shape))


def _get_dimension_size(c: Conversion) -> Values:
    (x,) = c.inputs
    dimension = c.attribute("dimension")
    assert isinstance(dimension, IntegerAttr)
    return (size_as_element(c, shape_of(type_of(x))[dimension.value.data]),)


def _dynamic_broadcast_in_dim(c: Conversion) -> Values:
    x, shape = c.inputs
    result = c.emit(
        shaping.BroadcastInDimOp,
        (x,),
        _typed(c, shape_in(shape)),
        broadcast_dimensions=c.array("broadcast_dimensions"),
    )
    return (result,)


def _dynamic_reshape(c: Conversion) -> Values:
    x, shape = c.inputs
    return (c.emit(shaping.ReshapeOp, (x,), _typed(c, shape_in(shape))),)


def _dynamic_iota(c: Conversion) -> Values:
    type = _typed(c, shape_in(c.inputs[0]))
    dimension = c.integer("iota_dimension", 0)
    return (c.emit(shaping.IotaOp, (), type, dimension=dimension),)


def _real_dynamic_slice(c: Conversion) -> Values:
    x, *bounds = c.inputs
    if (sizes := _window(bounds[0], bounds[1])) and set(shape_in(bounds[2])) == {1}:
        return (_slice_from(c, x, bounds[0], sizes),)
    starts, limits, strides = map(shape_in, bounds)
    result = c.emit(
        shaping.SliceOp,
        (x,),
        **sized(start_indices=starts, limit_indices=limits),
        strides=ints(numbers(strides)),
    )
    return (result,)


def _window(starts: SSAValue, limits: SSAValue) -> Sequence[Size] | None:
    """The sizes of a slice whose starts are computed at run time and whose limits are
    the starts plus known sizes; None for other slices.
    """
    end = limits.owner
    if sizes_of(starts) is not None or not isinstance(end, elementwise.AddOp):
        return None
    added = [value for value in end.inputs if value is not starts]
    return sizes_of(added[0]) if len(added) == 1 else None


def _slice_from(
    c: Conversion, x: SSAValue, starts: SSAValue, sizes: Sequence[Size]
) -> SSAValue:
    every = ints(range(len(sizes)))
    return c.emit(
        GatherOp,
        (x, starts),
        _typed(c, sizes),
        **{**GatherOp.DEFAULTS, **sized(slice_sizes=sizes)},
        offset_dims=every,
        collapsed_slice_dims=ints(()),
        start_index_map=every,
        index_vector_dim=IntegerAttr(0, i64),
    )


def _dynamic_pad(c: Conversion) -> Values:
    x, value, *edges = c.inputs
    low, high, interior = map(shape_in, edges)
    result = c.emit(
        shaping.PadOp,
        (x, value),
        **sized(low=low, high=high),
        interior=ints(numbers(interior)),
    )
    return (result,)


def numbers(sizes: Sequence[Size]) -> list[int]:
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) < len(sizes):
        raise Unsupported("with symbolic strides or padding")
    return known


CONVERSIONS: Mapping[str, Converter] = {
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast_in_dim,
    "stablehlo.dynamic_iota": _dynamic_iota,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.get_dimension_size": _get_dimension_size,
}
