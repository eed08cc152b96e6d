"""The builder of level-1 operations that frontends without a level 0 share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ..dialects.dtypes import Array, DType, constant_attribute
from ..dialects.sizes.dims import DIMS, Dims, DimsAttr, is_dynamic, static
from ..dialects.tgraph import base, reducing, shaping
from ..dialects.tgraph.base import (
    LARGEST_SIZE,
    AnyTensor,
    Shape,
    TensorOp,
    ints,
    with_element,
    with_shape,
)
from ..dialects.tgraph.elements import is_complex, real_element
from ..dialects.tgraph.elementwise import ComplexOp, ConvertOp
from ..dialects.tgraph.indexing import GatherOp
from ..dialects.tgraph.widening import widened
from .unsupported import Unsupported

ELEMENTS: Mapping[str, Attribute] = {
    "bool": i1,
    "float64": f64,
    "float32": f32,
    "float16": f16,
    "bfloat16": bf16,
    "complex64": ComplexType(f32),
    "complex128": ComplexType(f64),
    **{
        element.name.replace("f", "float", 1).replace("E", "_E", 1).lower(): element
        for element in (
            Float4E2M1FNType(),
            Float8E4M3FNType(),
            Float8E4M3FNUZType(),
            Float8E5M2Type(),
            Float8E5M2FNUZType(),
            Float8E8M0FNUType(),
        )
    },
    **{f"int{width}": IntegerType(width) for width in (2, 4, 8, 16, 32, 64)},
    **{
        f"uint{width}": IntegerType(width, Signedness.UNSIGNED)
        for width in (2, 4, 8, 16, 32, 64)
    },
}


_LARGEST_TABLE = 1 << 24
"""The largest number of elements of a constant that a frontend computes from sizes."""


def check_table(*sizes: int) -> None:
    """Raises `Unsupported` if a constant of these sizes would be too large."""
    if prod(sizes) > _LARGEST_TABLE:
        shape = "x".join(map(str, sizes))
        raise Unsupported(
            f"with a table of {shape} elements (at most {_LARGEST_TABLE})"
        )


def arange(size: int) -> Array:
    """The numbers 0, 1, ..., `size` - 1, from which frontends compute constants."""
    check_table(size)
    return np.arange(size)


def name_hint(name: str) -> str | None:
    """The name in printed IR for a value's name in a model; None if it is not valid.

    `layer1.0.conv1` is unchanged, `params['w']` becomes `params_w`, and `relu_1`
    becomes `relu.1`, because xDSL renumbers names that end with an underscore and
    digits.
    """
    hint = re.sub(r"[^\w.$-]+", "_", name).strip("_")
    hint = re.sub(r"_(?=\d+$)", ".", hint)
    return hint if SSAValue.is_valid_name(hint) else None


def at(location: LocationAttr) -> Operation:
    """An operation at `location`, to be passed to errors."""
    op = ModuleOp([])
    op.location = location
    return op


def element_type(dtype: DType) -> Attribute:
    if (element := ELEMENTS.get(dtype.name)) is None:
        raise Unsupported(f"with elements of type {dtype.name}")
    return element


def type_of(value: SSAValue) -> AnyTensor:
    return cast(AnyTensor, value.type)


def shape_of(value: SSAValue) -> Shape:
    """The sizes of a tensor, including symbolic sizes."""
    return base.shape_of(type_of(value))


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape to which tensors of these shapes are broadcast (NumPy's rule)."""
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    result: list[int] = []
    for sizes in zip(*padded, strict=True):
        others = [size for size in sizes if size != 1] or [1]
        if any(size != others[0] for size in others):
            listed = " and ".join(map(str, shapes))
            raise ValueError(f"shapes {listed} cannot be broadcast together")
        result.append(others[0])
    return tuple(result)


def axis_of(axis: int, rank: int) -> int:
    """The axis, which may count from the end, as an index from the front."""
    if not -rank <= axis < rank:
        raise Unsupported(f"with axis {axis}, expected {-rank} to {rank - 1}")
    return axis % rank


@dataclass
class TensorBuilder:
    """Appends operations with the same source location to `into`."""

    into: list[Operation]
    location: LocationAttr

    def constant(self, array: Array) -> SSAValue:
        element = element_type(array.dtype)
        type = TensorType(element, array.shape)
        return self.add(shaping.ConstantOp(constant_attribute(array, element), type))

    def splat(self, number: complex, type: AnyTensor) -> SSAValue:
        """A tensor of type `type` whose elements all equal `number`."""
        return self.full(number, type.element_type, base.shape_of(type))

    def full(
        self, number: complex, element: Attribute, shape: Sequence[int]
    ) -> SSAValue:
        """A tensor of this element type and shape whose elements all equal `number`.

        Raises `Unsupported` for an integer type and a number that is no integer, and
        for a complex number and another type.
        """
        if is_complex(element):
            part = real_element(element)
            parts = (self.full(x, part, shape) for x in (number.real, number.imag))
            return self.emit(ComplexOp, *parts)
        if isinstance(number, complex):
            raise Unsupported(f"with {number} among elements of type {element}")
        if not isinstance(element, AnyFloat) and number != int(number):
            raise Unsupported(f"with {number} among elements of type {element}")
        value = (
            FloatAttr(float(number), element)
            if isinstance(element, AnyFloat)
            else IntegerAttr(int(number), cast(IntegerType, element))
        )
        if not any(map(is_dynamic, shape)):
            return self.add(shaping.ConstantOp(value, TensorType(element, shape)))
        scalar = self.add(shaping.ConstantOp(value, TensorType(element, [])))
        return self.broadcast(scalar, shape)

    def add(self, op: TensorOp) -> SSAValue:
        """Appends an operation. Raises `ValueError` for invalid sizes of results."""
        for result in op.results:
            for size in type_of(result).get_shape():
                if size != DYNAMIC_INDEX and not 0 <= size <= LARGEST_SIZE:
                    raise ValueError(
                        f"result has type {result.type}, expected sizes of 0 to "
                        f"{LARGEST_SIZE}"
                    )
        op.location = self.location
        ops = widened(op)
        self.into += ops
        return ops[-1].results[0]

    def emit(
        self,
        op_type: type[TensorOp],
        *inputs: SSAValue,
        type: AnyTensor | None = None,
        **properties: Attribute,
    ) -> SSAValue:
        """Appends an operation; without `type`, its shape rule gives the type."""
        op = op_type(
            inputs,
            result_types=[type or inputs[0].type],
            properties={**op_type.DEFAULTS, **properties},
        )
        return self.add(op) if type else self._typed(op)

    def _typed(self, op: TensorOp) -> SSAValue:
        """Appends an operation with the result type of its shape rule."""
        (found,) = op.result_types_of([type_of(value) for value in op.inputs])
        if found != op.results[0].type:
            Rewriter.replace_value_with_new_type(op.results[0], found)
        return self.add(op)

    def emit_all(
        self,
        op_type: type[TensorOp],
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        regions: Sequence[Region],
        **properties: Attribute,
    ) -> Sequence[SSAValue]:
        """Appends an operation with several results."""
        op = op_type(
            inputs, result_types=result_types, properties=properties, regions=regions
        )
        self.add(op)
        return op.results

    def apply(
        self, op_type: type[TensorOp], *operands: SSAValue | complex, **properties: Any
    ) -> SSAValue:
        """Appends an elementwise operation, broadcasting its operands (NumPy's rule).

        Numbers get the element type of the last tensor.
        """
        tensors = [value for value in operands if isinstance(value, SSAValue)]
        shape = broadcast_shapes(*map(shape_of, tensors))
        type = with_shape(type_of(tensors[-1]), shape)
        inputs = [
            self.broadcast(value, shape)
            if isinstance(value, SSAValue)
            else self.splat(value, type)
            for value in operands
        ]
        return self.emit(op_type, *inputs, **properties)

    def broadcast(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcasts `x` to `shape`; the dimensions of `x` are the last ones."""
        if shape_of(x) == tuple(shape):
            return x
        dims = range(len(shape) - len(shape_of(x)), len(shape))
        return self.broadcast_in_dim(x, shape, dims)

    def broadcast_in_dim(
        self, x: SSAValue, shape: Sequence[int], dims: Sequence[int]
    ) -> SSAValue:
        return self.emit(
            shaping.BroadcastInDimOp,
            x,
            type=with_shape(type_of(x), shape),
            broadcast_dimensions=ints(dims),
        )

    def reshape(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        if shape_of(x) == tuple(shape):
            return x
        type = with_shape(type_of(x), shape)
        return self.emit(shaping.ReshapeOp, x, type=type)

    def transpose(self, x: SSAValue, permutation: Sequence[int]) -> SSAValue:
        if list(permutation) == list(range(len(permutation))):
            return x
        return self.emit(shaping.TransposeOp, x, permutation=ints(permutation))

    def slice(
        self,
        x: SSAValue,
        starts: Sequence[int],
        limits: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> SSAValue:
        op = shaping.SliceOp(
            [x],
            result_types=[x.type],
            properties={
                "start_indices": ints(static(starts)),
                "limit_indices": ints(static(limits)),
                "strides": ints(strides or [1] * len(starts)),
            },
        )
        if symbolic := tuple(filter(is_dynamic, (*starts, *limits))):
            op.attributes[DIMS] = DimsAttr(Dims(symbolic))
        return self._typed(op)

    def part(self, x: SSAValue, axis: int, start: int, limit: int) -> SSAValue:
        """The elements from `start` to `limit` (exclusive) along one axis."""
        starts, limits = [0] * len(shape_of(x)), list(shape_of(x))
        starts[axis], limits[axis] = start, limit
        return self.slice(x, starts, limits)

    def pad(
        self,
        x: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        value: SSAValue | None = None,
    ) -> SSAValue:
        """Pads `x` with the scalar `value`, or with 0."""
        return self.emit(
            shaping.PadOp,
            x,
            value or self.splat(0, with_shape(type_of(x), ())),
            low=ints(low),
            high=ints(high),
            interior=ints([0] * len(low)),
        )

    def convert(self, x: SSAValue, element: Attribute) -> SSAValue:
        if type_of(x).element_type == element:
            return x
        return self.emit(ConvertOp, x, type=with_element(type_of(x), element))

    def iota(self, type: AnyTensor, dimension: int) -> SSAValue:
        return self.emit(
            shaping.IotaOp, type=type, dimension=IntegerAttr(dimension, i64)
        )

    def reduce(
        self, kind: str, x: SSAValue, axes: Sequence[int], *, keep: bool = False
    ) -> SSAValue:
        """Reduces `axes`; with `keep`, they stay as dimensions of size 1."""
        shape = shape_of(x)
        result = self.emit(
            reducing.ReduceOp, x, kind=StringAttr(kind), dimensions=ints(axes)
        )
        if not keep:
            return result
        return self.reshape(
            result, [1 if d in axes else n for d, n in enumerate(shape)]
        )

    def dot(
        self,
        a: SSAValue,
        b: SSAValue,
        contracting: tuple[Sequence[int], Sequence[int]],
        batching: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> SSAValue:
        return self.emit(
            reducing.DotGeneralOp,
            a,
            b,
            lhs_batching_dimensions=ints(batching[0]),
            rhs_batching_dimensions=ints(batching[1]),
            lhs_contracting_dimensions=ints(contracting[0]),
            rhs_contracting_dimensions=ints(contracting[1]),
        )

    def take(
        self, x: SSAValue, indices: SSAValue, axis: int, batch: int = 0
    ) -> SSAValue:
        """NumPy's `take` along an axis, for indices that are not negative.

        The first `batch` dimensions of `x` and `indices` are batch dimensions; they
        precede `axis`. If the result is empty, the axis may have size 0.
        """
        shape, rank = shape_of(x), len(shape_of(indices)) - batch
        taken = [*shape[:axis], *shape_of(indices)[batch:], *shape[axis + 1 :]]
        if shape[axis] == 0 and 0 in taken:
            return self.splat(0, with_shape(type_of(x), taken))
        one = [1 if d < batch or d == axis else s for d, s in enumerate(shape)]
        return self.emit(
            GatherOp,
            x,
            indices,
            offset_dims=ints(
                [*range(batch, axis), *range(axis + rank, len(shape) + rank - 1)]
            ),
            collapsed_slice_dims=ints([axis]),
            operand_batching_dims=ints(range(batch)),
            start_indices_batching_dims=ints(range(batch)),
            start_index_map=ints([axis]),
            index_vector_dim=IntegerAttr(batch + rank, i64),
            slice_sizes=ints(one),
        )
