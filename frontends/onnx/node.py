"""One ONNX node on its way to tgraph, and what conversions share.

A value is `Known` (an array: an initialiser, or what follows from shapes and constants)
or computed at run time (an SSA value). A conversion takes a `Node` and returns the
node's outputs; `Unsupported` says why there is no tgraph form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
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

from tensorplan.dialects.tgraph import reducing, shaping
from tensorplan.dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    ints,
    with_element,
    with_shape,
)
from tensorplan.dialects.tgraph.elementwise import ConvertOp
from tensorplan.dialects.tgraph.indexing import GatherOp
from tensorplan.runtime.dtypes import Array, DType, constant_attribute

_ELEMENTS: Mapping[str, Attribute] = {
    "bool": i1,
    "float64": f64,
    "float32": f32,
    "float16": f16,
    "bfloat16": bf16,
    **{f"int{width}": IntegerType(width) for width in (8, 16, 32, 64)},
    **{
        f"uint{width}": IntegerType(width, Signedness.UNSIGNED)
        for width in (8, 16, 32, 64)
    },
}


class Unsupported(Exception):
    """Why a node has no tgraph form; follows its operation's name in messages."""


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """A value that is known when the model is read."""

    array: Array

    argument: SSAValue | None = None
    """The function's argument for it, if it is a parameter."""


Value: TypeAlias = Known | SSAValue


def element_type(dtype: DType) -> Attribute:
    if (element := _ELEMENTS.get(dtype.name)) is None:
        raise Unsupported(f"with elements of type {dtype.name}")
    return element


def type_of(value: SSAValue) -> AnyTensor:
    return cast(AnyTensor, value.type)


def shape_of(value: SSAValue) -> Shape:
    return type_of(value).get_shape()


def axis_of(axis: int, rank: int) -> int:
    """The axis counted from the front."""
    if not -rank <= axis < rank:
        raise Unsupported(f"with axis {axis}, expected {-rank} to {rank - 1}")
    return axis % rank


@dataclass
class Node:
    """A node's attributes and inputs, and the operations that come out of it."""

    op_type: str
    opset: int
    outputs: int
    """How many outputs it has; trailing ones that nobody names are left out."""

    attributes: Mapping[str, Any]
    names: Sequence[str]
    """Of its inputs."""

    inputs: Sequence[Value | None]
    into: list[Operation]
    location: LocationAttr

    # What the model says.

    def integer(self, name: str, default: int) -> int:
        return self.attributes.get(name, default)

    def number(self, name: str, default: float) -> float:
        return self.attributes.get(name, default)

    def text(self, name: str, default: str) -> str:
        return cast(bytes, self.attributes.get(name, default.encode())).decode()

    def integers(self, name: str, default: Sequence[int]) -> Sequence[int]:
        return self.attributes.get(name, default)

    def expect(self, name: str, got: object, *allowed: object) -> None:
        """Refuses another value of an attribute."""
        if got not in allowed:
            expected = " or ".join(repr(value) for value in allowed)
            raise Unsupported(f"with {name} = {got!r}, expected {expected}")

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> SSAValue:
        """An input as a value of the program."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"without input {index}")
        return self.materialize(value)

    def known(self, index: int) -> Array:
        """An input that shapes depend on."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"without input {index}")
        if not isinstance(value, Known):
            raise Unsupported(
                f"with input {self.names[index]!r} computed at run time, expected a "
                "constant"
            )
        return value.array

    def known_integers(self, index: int) -> list[int]:
        return [int(number) for number in self.known(index).ravel()]

    def scalar(self, index: int) -> float | None:
        """The number that an input is, if it is a constant."""
        value = self.inputs[index]
        if not isinstance(value, Known) or value.argument or value.array.size != 1:
            return None
        return value.array.item()

    def axes(self, index: int, rank: int) -> list[int] | None:
        """The attribute `axes`, which an input in newer opsets; None if neither."""
        if self.has(index):
            axes: Sequence[int] = self.known_integers(index)
        elif "axes" in self.attributes:
            axes = self.attributes["axes"]
        else:
            return None
        return [axis_of(axis, rank) for axis in axes]

    # What is made of it.

    def materialize(self, value: Value) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        return self.constant(value.array) if value.argument is None else value.argument

    def constant(self, array: Array) -> SSAValue:
        element = element_type(array.dtype)
        type = TensorType(element, array.shape)
        return self.add(shaping.ConstantOp(constant_attribute(array, element), type))

    def splat(self, number: float, type: AnyTensor) -> SSAValue:
        """A tensor of this type with this number everywhere."""
        element = type.element_type
        value = (
            FloatAttr(number, element)
            if isinstance(element, AnyFloat)
            else IntegerAttr(int(number), cast(IntegerType, element))
        )
        return self.add(shaping.ConstantOp(value, type))

    def add(self, op: TensorOp) -> SSAValue:
        op.location = self.location
        self.into.append(op)
        return op.results[0]

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
        if type is None:
            (found,) = op.result_types_of([type_of(value) for value in inputs])
            if found != inputs[0].type:
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
        """Appends an operation of several results."""
        op = op_type(
            inputs, result_types=result_types, properties=properties, regions=regions
        )
        self.add(op)
        return op.results

    def apply(
        self, op_type: type[TensorOp], *operands: SSAValue | float, **properties: Any
    ) -> SSAValue:
        """An elementwise operation on operands broadcast to one shape (NumPy's rule).

        Numbers are of the last tensor's element type.
        """
        tensors = [value for value in operands if isinstance(value, SSAValue)]
        shape = np.broadcast_shapes(*map(shape_of, tensors))
        type = with_shape(type_of(tensors[-1]), shape)
        inputs = [
            self.broadcast(value, shape)
            if isinstance(value, SSAValue)
            else self.splat(value, type)
            for value in operands
        ]
        return self.emit(op_type, *inputs, **properties)

    def broadcast(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`x` repeated to `shape`; its dimensions are the last ones."""
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
        return self.emit(
            shaping.SliceOp,
            x,
            start_indices=ints(starts),
            limit_indices=ints(limits),
            strides=ints(strides or [1] * len(starts)),
        )

    def part(self, x: SSAValue, axis: int, start: int, limit: int) -> SSAValue:
        """Elements `start` to below `limit` along one axis."""
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
        """`x` with a scalar around, 0 if none is given."""
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
        """`keep`: the reduced dimensions stay, with size 1."""
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

    def take(self, x: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """NumPy's `take` along an axis; indices are not negative."""
        shape, rank = shape_of(x), len(shape_of(indices))
        return self.emit(
            GatherOp,
            x,
            indices,
            offset_dims=ints(
                [*range(axis), *range(axis + rank, len(shape) + rank - 1)]
            ),
            collapsed_slice_dims=ints([axis]),
            operand_batching_dims=ints(()),
            start_indices_batching_dims=ints(()),
            start_index_map=ints([axis]),
            index_vector_dim=IntegerAttr(rank, i64),
            slice_sizes=ints([*shape[:axis], 1, *shape[axis + 1 :]]),
        )


Conversion: TypeAlias = Callable[[Node], Sequence[Value]]
