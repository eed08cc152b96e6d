"""Concatenations in place: operations compute the operands directly in the result.

    %a = tgraph.exponential %x : tensor<4x8xf32>
    %b = tgraph.tanh %y : tensor<4x8xf32>
    %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place} : ...

    %c = memref.alloc() : memref<8x8xf32>
    %0 = memref.reinterpret_cast %c to offset: [0], ...
    tgraph.exponential %x outs(%0) : memref<4x8xf32>
    %1 = memref.reinterpret_cast %c to offset: [32], ...
    tgraph.tanh %y outs(%1) : ...

The memory of the result is allocated before the first operand is computed. Operands
that lie elsewhere, such as arguments and constants, are copied into it. If an operand
is a reshape, its source is computed into the result, too, provided that strides
describe its shape there: stacking reshapes its operands to add a dimension of size 1.
"""

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..dialects.tgraph.base import IN_PLACE, TensorOp, value_shape
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
"""The part of a concatenation that a value becomes: the operation, and its operand."""


def is_in_place(op: Operation) -> bool:
    """Whether `op` is a concatenation whose operands are computed into its result."""
    return IN_PLACE in op.attributes and isinstance(op, ConcatenateOp) and not op.outs


def parts(block: Block) -> Mapping[SSAValue, Part]:
    """The values of a block that are computed directly into a concatenation."""
    found: dict[SSAValue, Part] = {}
    for op in block.ops:
        if isinstance(op, ConcatenateOp) and is_in_place(op):
            for index in range(len(op.inputs)):
                for value in computed(op, index, block):
                    found.setdefault(value, (op, index))
    return found


def computed(op: ConcatenateOp, index: int, block: Block) -> Iterator[SSAValue]:
    """The operand `index` of a concatenation, and the values that are reshaped into it,
    as far as operations can write them at the operand's place. Contractions can only
    write rows of adjacent elements."""
    value = op.inputs[index]
    part: Layout | None = None
    while is_computed(value, block):
        yield value
        if not is_reshape(value.owner):
            return
        (value,) = value.owner.inputs
        whole = Layout.contiguous(value_shape(op.result))
        part = part or part_layout(whole, (op, index))
        layout = part.reshaped(value_shape(value))
        if layout is None or (contracts(value.owner) and not has_rows(layout)):
            return


def is_computed(value: SSAValue, block: Block) -> bool:
    """Whether one operation of `block` computes the value and can write it anywhere."""
    return (
        isinstance(value, OpResult)
        and isinstance(op := value.op, TensorOp)
        and not isinstance(op, ConstantOp | WhileOp | IfOp)
        and not op.outs
        and op.parent is block
    )


def is_reshape(op: Operation | Block) -> TypeGuard[ReshapeOp | BroadcastInDimOp]:
    """Whether `op` only changes the shape, not the order of the elements."""
    if isinstance(op, BroadcastInDimOp):
        return not op.outs and op.only_reshapes
    return isinstance(op, ReshapeOp) and not op.outs


def part_layout(whole: Layout, part: Part) -> Layout:
    """The layout of an operand in its concatenation, which has the layout `whole`."""
    op, index = part
    dim = op.dimension.value.data
    shapes = list(map(value_shape, op.inputs))
    starts = [0] * len(whole.shape)
    starts[dim] = sum(shape[dim] for shape in shapes[:index])
    return whole.sliced(starts, [1] * len(starts), shapes[index])


def has_rows(layout: Layout) -> bool:
    """Whether the elements of the last dimension above size 1 are adjacent."""
    sizes = zip(layout.shape, layout.strides, strict=True)
    return next((step for size, step in reversed([*sizes]) if size != 1), 1) == 1
