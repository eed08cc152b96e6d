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
such as arguments and constants, are copied into it.
"""

from collections.abc import Mapping

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..dialects.tgraph.base import IN_PLACE, TensorOp, shape_of, tensor_type_of
from ..dialects.tgraph.shaping import ConcatenateOp, ConstantOp
from ..dialects.tgraph.structure import IfOp, WhileOp
from .layout import Layout

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
            for index, value in enumerate(op.inputs):
                if is_computed(value, block):
                    found.setdefault(value, (op, index))
    return found


def is_computed(value: SSAValue, block: Block) -> bool:
    """Whether there is one operation that can write the value wherever it is told."""
    return (
        isinstance(value, OpResult)
        and isinstance(op := value.op, TensorOp)
        and not isinstance(op, ConstantOp | WhileOp | IfOp)
        and not op.outs
        and op.parent is block
    )


def part_layout(whole: Layout, part: Part) -> Layout:
    """How an operand lies in the memory of its concatenation, which lies so."""
    op, index = part
    dim = op.dimension.value.data
    shapes = [shape_of(tensor_type_of(value.type)) for value in op.inputs]
    starts = [0] * len(whole.shape)
    starts[dim] = sum(shape[dim] for shape in shapes[:index])
    return whole.sliced(starts, [1] * len(starts), shapes[index])
