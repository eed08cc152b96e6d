"""Concatenations in place: operations write their operands directly into the result.

    %a = tgraph.exponential %x : tensor<4x8xf32>
    %b = tgraph.tanh %y : tensor<4x8xf32>
    %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place} : ...

    %c = memref.alloc() : memref<8x8xf32>
    %0 = memref.reinterpret_cast %c to offset: [0], ...
    tgraph.exponential %x outs(%0) : memref<4x8xf32>
    %1 = memref.reinterpret_cast %c to offset: [32], ...
    tgraph.tanh %y outs(%1) : ...

The memory of the result exists from the first operand on. Operands that lie elsewhere,
such as arguments and constants, are copied into it. What an operand is a reshape of is
computed into it, too, if strides can say its shape there: what is stacked gets a
dimension of size 1 first.
"""

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..dialects.tgraph.base import IN_PLACE, Shape, TensorOp, shape_of, tensor_type_of
from ..dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    ReshapeOp,
)
from ..dialects.tgraph.structure import IfOp, WhileOp
from .layout import Layout
from .operations import contracts

Part = tuple[ConcatenateOp, int]
"""Where a value goes: the concatenation, and as which of its operands."""


def is_in_place(op: Operation) -> bool:
    """Whether the operation is a concatenation whose operands go straight into it."""
    return IN_PLACE in op.attributes and isinstance(op, ConcatenateOp) and not op.outs


def parts(block: Block) -> Mapping[SSAValue, Part]:
    """The values of a block that are computed straight into a concatenation."""
    found: dict[SSAValue, Part] = {}
    for op in block.ops:
        if isinstance(op, ConcatenateOp) and is_in_place(op):
            for index in range(len(op.inputs)):
                for value in computed(op, index, block):
                    found.setdefault(value, (op, index))
    return found


def computed(op: ConcatenateOp, index: int, block: Block) -> Iterator[SSAValue]:
    """The operand of a concatenation, and what it is a reshape of, as far as operations
    can write them where the operand is to lie. Products and convolutions write rows of
    adjacent elements."""
    value = op.inputs[index]
    part: Layout | None = None
    while is_computed(value, block):
        yield value
        if not is_reshape(value.owner):
            return
        (value,) = value.owner.inputs
        part = part or part_layout(Layout.contiguous(_shape(op.result)), (op, index))
        layout = part.reshaped(_shape(value))
        if layout is None or (contracts(value.owner) and not _has_rows(layout)):
            return


def is_computed(value: SSAValue, block: Block) -> bool:
    """Whether there is one operation that can write the value wherever it is told."""
    return (
        isinstance(value, OpResult)
        and isinstance(op := value.op, TensorOp)
        and not isinstance(op, ConstantOp | WhileOp | IfOp)
        and not op.outs
        and op.parent is block
    )


def is_reshape(op: Operation | Block) -> TypeGuard[ReshapeOp | BroadcastInDimOp]:
    """Whether an operation gives the same elements another shape."""
    if isinstance(op, BroadcastInDimOp):
        return not op.outs and op.only_reshapes
    return isinstance(op, ReshapeOp) and not op.outs


def part_layout(whole: Layout, part: Part) -> Layout:
    """How an operand lies in the memory of its concatenation, which lies so."""
    op, index = part
    dim = op.dimension.value.data
    shapes = list(map(_shape, op.inputs))
    starts = [0] * len(whole.shape)
    starts[dim] = sum(shape[dim] for shape in shapes[:index])
    return whole.sliced(starts, [1] * len(starts), shapes[index])


def _has_rows(layout: Layout) -> bool:
    """Whether the elements of the last dimension are adjacent."""
    sizes = zip(layout.shape, layout.strides, strict=True)
    return next((step for size, step in reversed([*sizes]) if size != 1), 1) == 1


def _shape(value: SSAValue) -> Shape:
    return shape_of(tensor_type_of(value.type))
