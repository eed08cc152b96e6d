"""Finds parameters and values that vary along few dimensions, for the folding passes.

The scales and shifts of a layer have one number for each channel. As operands they are
broadcast to the layer's shape. `channels_of` looks through the broadcast, and `Emitter`
computes with the value behind it, at its own small size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.functions import argument_attributes
from ....dialects.tgraph.base import (
    PARAMETER,
    AnyTensor,
    Shape,
    TensorOp,
    ints,
    segments,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
    without_ones,
)
from ....dialects.tgraph.callbacks import may_repeat
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ReshapeOp


def parameter_values(func: FuncOp, block: Block) -> set[SSAValue]:
    """The arguments marked `tgraph.parameter`, the constants, and all values that are
    computed from these alone, without callbacks."""
    attributes = argument_attributes(func)
    known: set[SSAValue] = {
        argument
        for argument, attrs in zip(block.args, attributes, strict=True)
        if PARAMETER in attrs
    }
    for op in block.ops:
        if not isinstance(op, TensorOp) or op.outs or not may_repeat(op):
            continue
        if known.issuperset(op.inputs):
            known.update(op.res)
    return known


@dataclass(frozen=True)
class Channels:
    """A value that is repeated along all dimensions of a larger one except `dims`."""

    source: SSAValue
    """The value. It has the sizes of `dims` in this order, and possibly sizes of 1."""

    dims: Shape

    @property
    def is_constant(self) -> bool:
        return isinstance(self.source.owner, ConstantOp)

    @property
    def is_positive(self) -> bool:
        """Whether all elements are known to be positive floating-point numbers."""
        owner = self.source.owner
        if not isinstance(owner, ConstantOp):
            return False
        if isinstance(owner.value, FloatAttr):
            return owner.value.value.data > 0
        if isinstance(owner.value, DenseIntOrFPElementsAttr):
            return all(
                isinstance(number, float) and number > 0
                for number in cast(Sequence[object], owner.value.get_values())
            )
        return False


def channels_of(value: SSAValue) -> Channels | None:
    """The value that `value` repeats; None if `value` is not a broadcast or a constant
    with one number."""
    owner = value.owner
    if isinstance(owner, ConstantOp) and owner.splat is not None:
        return Channels(value, ())
    if not isinstance(owner, BroadcastInDimOp) or owner.outs:
        return None
    source = owner.inputs[0]
    sizes = shape_of(tensor_type_of(source.type))
    dims = owner.broadcast_dimensions.get_values()
    kept = tuple(d for size, d in zip(sizes, dims, strict=True) if size != 1)
    return Channels(source, kept) if list(kept) == sorted(kept) else None


def compatible(first: Channels, second: Channels) -> bool:
    """Whether both values vary along the same dimensions, or one is a single number."""
    return not first.dims or not second.dims or first.dims == second.dims


class Emitter:
    """Inserts operations before `op`, with its location and attributes (device, group).

    Adds the results that depend on parameters alone to `parameters`.
    """

    def __init__(self, op: TensorOp, parameters: set[SSAValue]):
        self.op = op
        self.parameters = parameters

    def emit(
        self,
        op_type: type[TensorOp],
        inputs: Sequence[SSAValue],
        type: AnyTensor,
        **properties: Attribute,
    ) -> SSAValue:
        """Inserts an operation, and returns its result of type `type`."""
        new = op_type.create(
            operands=inputs,
            result_types=(type,),
            properties={**properties, "operandSegmentSizes": segments(inputs, ())},
            attributes=dict(self.op.attributes),
            location=self.op.location,
        )
        Rewriter.insert_op(new, InsertPoint.before(self.op))
        if self.parameters.issuperset(inputs):
            self.parameters.add(new.results[0])
        return new.results[0]

    def copy(self, op: TensorOp, inputs: Sequence[SSAValue]) -> SSAValue:
        """Inserts a copy of `op` on other inputs of the same types, and returns its
        result."""
        result_type = tensor_type_of(op.result.type)
        value = self.emit(type(op), inputs, result_type, **op.properties)
        new = value.owner
        assert isinstance(new, TensorOp)
        new.attributes = dict(op.attributes)
        new.location = op.location
        value.name_hint = op.result.name_hint
        return value

    def combine(
        self, op_type: type[TensorOp], first: Channels, second: Channels
    ) -> Channels:
        """Applies an elementwise operation to two compatible values, at their small
        size."""
        larger = first if first.dims else second
        return self.apply(op_type, (first, second), larger)

    def apply(
        self,
        op_type: type[TensorOp],
        operands: Sequence[Channels],
        larger: Channels,
        result: AnyTensor | None = None,
        **properties: Attribute,
    ) -> Channels:
        """Applies an elementwise operation to compatible values, at their small size.

        `larger` is an operand with the most dimensions. The element type is that of
        `result`, if given.
        """
        sizes = _sizes(larger)
        inputs = [
            self.spread(
                operand,
                with_shape(tensor_type_of(operand.source.type), sizes),
                tuple(range(len(operand.dims))),
            )
            for operand in operands
        ]
        type = with_shape(result or tensor_type_of(inputs[0].type), sizes)
        return Channels(self.emit(op_type, inputs, type, **properties), larger.dims)

    def spread(self, channels: Channels, type: AnyTensor, dims: Shape) -> SSAValue:
        """`channels` as a tensor of `type`, in which it varies along `dims`."""
        source = channels.source
        in_order = list(dims) == sorted(dims)
        if source.type == type and in_order:
            return source
        owner = source.owner
        if isinstance(owner, ConstantOp) and (number := owner.splat) is not None:
            return self.emit(ConstantOp, (), type, value=number)
        small = with_shape(type, _sizes(channels))
        if source.type != small:
            source = self.emit(ReshapeOp, (source,), small)
        if small == type and in_order:
            return source
        return self.emit(
            BroadcastInDimOp, (source,), type, broadcast_dimensions=ints(dims)
        )


def _sizes(channels: Channels) -> Shape:
    """The sizes of the dimensions along which `channels` varies."""
    if not channels.dims:
        return ()
    return without_ones(value_shape(channels.source))


def replace(op: TensorOp, value: SSAValue) -> None:
    """Replaces the result of `op` by `value`, and erases `op`."""
    if op.result.name_hint:
        value.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(value)
    op.detach()
    op.erase()
