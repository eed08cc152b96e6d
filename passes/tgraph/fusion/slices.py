"""Finds slices at dynamic starts that a group reads in place, without a copy."""

from collections.abc import Sequence

from xdsl.dialects.builtin import Float64Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ....analysis.cost import LAUNCH, LINE, time_to_move
from ....analysis.operations import is_view, operands_of
from ....analysis.versions import source_of
from ....dialects.sizes.symbolic import typical
from ....dialects.tgraph.base import (
    DONATED,
    AnyTensor,
    TensorOp,
    VariableType,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from ....dialects.tgraph.elements import is_complex
from ....dialects.tgraph.fusing import CONTRACTIONS, keeps_sizes
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
)
from ....dialects.tgraph.shaping import ReshapeOp
from ....dialects.tgraph.signature import attributes_of
from ....dialects.tgraph.structure import ReadOp, WhileOp
from .graph import place_of


def slice_in_place(reader: Operation, value: SSAValue) -> Sequence[TensorOp]:
    """The dynamic slice that defines `value`, an operand of a group's member, and the
    reshapes between that add or drop dimensions of size 1. Empty if the group has to
    read a copy:

    * of a small slice: to compute where it begins takes as long as to copy it, and a
      loop of small operations is one native function;
    * of a slice with few contiguous elements: a copy is faster to read;
    * of a value that may be overwritten, such as the state of a loop: the new state
      could not use its memory;
    * of an operand of a product that NumPy computes (f64, complex numbers), whose
      calls have fixed addresses.
    """
    reshapes: list[TensorOp] = []
    owner = value.owner
    while isinstance(owner, ReshapeOp) and keeps_sizes(owner):
        reshapes.append(owner)
        owner = operands_of(owner)[0][0].owner
    if (
        not isinstance(owner, DynamicSliceOp)
        or isinstance(reader, DynamicSliceOp | GatherOp | ScatterOp)
        or _is_in_variable(owner)
        or any(place_of(op) != place_of(reader) for op in (owner, *reshapes))
    ):
        return ()
    element = tensor_type_of(owner.result.type).element_type
    if isinstance(reader, CONTRACTIONS) and numpy_multiplies(element):
        return ()
    if not pays_in_place(owner, owner.result):
        return ()
    return (owner, *reshapes) if _stays(owner.inputs[0]) else ()


def numpy_multiplies(element: Attribute) -> bool:
    """Whether NumPy computes products of matrices with elements of this type."""
    return isinstance(element, Float64Type) or is_complex(element)


def pays_in_place(op: DynamicSliceOp | DynamicUpdateSliceOp, slice: SSAValue) -> bool:
    """Whether copying `slice` takes longer than computing where it begins, and it has
    at least `LINE` contiguous elements."""
    type = tensor_type_of(slice.type)
    if time_to_move(2 * typical_bytes(type)) < LAUNCH:
        return False
    return contiguous_elements(tensor_type_of(op.inputs[0].type), type) >= LINE


def contiguous_elements(whole: AnyTensor, part: AnyTensor) -> int:
    """The number of elements of `part`, a slice, that are contiguous in `whole`."""
    elements = 1
    for all, some in zip(
        reversed(shape_of(whole)), reversed(shape_of(part)), strict=True
    ):
        elements *= typical(some)
        if some != all:
            break
    return elements


def _is_in_variable(op: Operation) -> bool:
    """Whether an operation's result lies in the memory of a variable."""
    return isinstance(op, ReadOp) or bool(operands_of(op)[1])


def _stays(value: SSAValue) -> bool:
    """Whether no operation may write its result to the memory of `value`."""
    value = source_of(value)
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
