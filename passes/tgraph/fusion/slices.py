"""Which slices at dynamic starts a group reads where they lie, without a copy."""

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....analysis.cost import LAUNCH, time_to_move
from ....analysis.operations import is_view, operands_of
from ....dialects.tgraph.base import (
    DONATED,
    TensorOp,
    VariableType,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from ....dialects.tgraph.indexing import DynamicSliceOp
from ....dialects.tgraph.shaping import ReshapeOp
from ....dialects.tgraph.signature import attributes_of
from ....dialects.tgraph.structure import ReadOp, WhileOp


def slice_in_place(value: SSAValue) -> Sequence[TensorOp]:
    """The slice that a value is, and what reshapes it by dimensions of size 1; nothing
    if groups have to read a copy.

    A small slice is copied: to say where it begins takes as long, and a loop of small
    operations is one native function. So is a slice of what may be overwritten, such as
    a loop's own state: its memory could not be the new state's.
    """
    reshapes: list[TensorOp] = []
    owner = value.owner
    while isinstance(owner, ReshapeOp) and is_view(owner) and _keeps_sizes(owner):
        reshapes.append(owner)
        owner = operands_of(owner)[0][0].owner
    if not isinstance(owner, DynamicSliceOp) or _is_in_variable(owner):
        return ()
    size = typical_bytes(tensor_type_of(owner.result.type))
    if time_to_move(2 * size) < LAUNCH or not _stays(owner.inputs[0]):
        return ()
    return (owner, *reshapes)


def _keeps_sizes(op: Operation) -> bool:
    types = tensor_type_of(op.operands[0].type), tensor_type_of(op.results[0].type)
    before, after = ([n for n in shape_of(type) if n != 1] for type in types)
    return before == after


def _is_in_variable(op: Operation) -> bool:
    """Whether an operation's result lies in the memory of a variable."""
    return isinstance(op, ReadOp) or bool(operands_of(op)[1])


def _stays(value: SSAValue) -> bool:
    """Whether no operation may compute its result into a value's memory."""
    while isinstance(value.owner, Operation) and is_view(value.owner):
        value = value.owner.operands[0]
    if isinstance(value, BlockArgument):
        if not _is_donated(value):
            return not isinstance(value.type, VariableType)
    elif isinstance(value.owner, Operation) and _is_in_variable(value.owner):
        return False
    values = [value]
    for seen in values:
        for use in seen.uses:
            op = use.operation
            if is_view(op):
                values += op.results
            elif isinstance(op, WhileOp):
                if isinstance(op.body.block.args[use.index].type, VariableType):
                    return False
            elif isinstance(op, TensorOp) and use.index in op.overwritable():
                return False
    return True


def _is_donated(argument: BlockArgument) -> bool:
    func = argument.owner.parent_op()
    return isinstance(func, FuncOp) and DONATED in attributes_of(func, argument.index)
