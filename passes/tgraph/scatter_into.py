"""`tgraph-scatter-into`: replaces a scatter into zeros and an addition by one scatter.

    %0 = tgraph.scatter %zeros, %indices, %updates {kind = "add", ...} : ...
    %1 = tgraph.add %y, %0 : tensor<4x256x50257xf32>

    %1 = tgraph.scatter %y, %indices, %updates {kind = "add", ...} : ...

The new scatter updates only the affected elements of %y, in place, and the program no
longer stores the mostly empty tensor %0. The gradient of a cross entropy has this form:
it is the probabilities, with one number per token changed. If %0 has other readers, it
is still computed for them, but not kept for the addition.

    %0 = tgraph.dynamic_update_slice %zeros, %row, %i, %c0 : ...
    %1 = tgraph.add %y, %0 : tensor<24x64xf32>

    %0 = tgraph.dynamic_slice %y, %i, %c0 {slice_sizes = array<i64: 1, 64>} : ...
    %1 = tgraph.add %0, %row : tensor<1x64xf32>
    %2 = tgraph.dynamic_update_slice %y, %1, %i, %c0 : ...

The pass also treats a loop that starts with zeros and adds to a different row in each
iteration: the loop then stacks the rows without an addition.

The pass applies where no element is hit twice, so that the sums are unchanged (zeros
may change sign), and where %y has no other reader.

Needs: level 1, before fusion.
Leaves: level 1.
Does not: look through views, or into fusions.
"""

from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import tensor_blocks
from ...analysis.loops import counter, only_writer
from ...analysis.scans import linear
from ...dialects.tgraph.base import (
    TensorOp,
    ints,
    is_static,
    shape_of,
    tensor_type_of,
)
from ...dialects.tgraph.elementwise import AddOp
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp, ScatterOp
from ...dialects.tgraph.shaping import ConstantOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphScatterInto(OptionalPass):
    """Scatters directly into the tensor that the result would be added to."""

    name = "tgraph-scatter-into"
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for add in list(block.ops):
                if isinstance(add, AddOp) and not add.outs:
                    _rewrite(add)


def _rewrite(add: AddOp) -> None:
    for scattered, value in (add.inputs, reversed(add.inputs)):
        scatter = scattered.owner
        if not value.has_one_use() or value is scattered:
            continue
        if isinstance(scatter, ScatterOp):
            if not _hits_once(scatter) or scatter.kind.data != "add":
                continue
        elif not isinstance(scatter, DynamicUpdateSliceOp):
            continue
        if scatter.outs or not _is_zero(scatter.inputs[0]):
            continue
        new = scatter.clone()
        new.operands[0] = value
        if isinstance(new, DynamicUpdateSliceOp) and not _is_stacked(add, new, value):
            new.operands[1] = _added(add, new)
        new.result.name_hint = add.result.name_hint
        zeros = scatter.inputs[0].owner
        Rewriter.replace_op(add, new)
        for op in (scatter, zeros):
            if isinstance(op, TensorOp) and not op.result.uses:
                Rewriter.erase_op(op)
        return


def _is_zero(value: SSAValue) -> bool:
    op = value.owner
    return (
        isinstance(op, ConstantOp) and op.splat is not None and op.splat.value.data == 0
    )


def _is_stacked(add: AddOp, update: DynamicUpdateSliceOp, value: SSAValue) -> bool:
    """Whether the rows that are added to are zeros still."""
    loop, read = add.parent_op(), value.owner
    if not isinstance(loop, WhileOp) or not isinstance(read, ReadOp):
        return False
    number = cast(BlockArgument, read.variable).index
    counted, writer = counter(loop), only_writer(loop, number)
    if counted is None or not isinstance(writer, AssignOp):
        return False
    _, rows, *starts = update.inputs
    shape = shape_of(tensor_type_of(value.type))
    place = linear(starts[0], loop, counted)
    if place is None or abs(place.slope) != 1:
        return False
    low, high = place.ends(counted.trips)
    return (
        writer.value is add.result
        and _is_zero(loop.inputs[number])
        and shape_of(tensor_type_of(rows.type))[0] == 1
        and 0 <= low
        and high < shape[0]
    )


def _added(add: AddOp, update: DynamicUpdateSliceOp) -> SSAValue:
    """The sum of what is written and what is there."""
    into, rows, *starts = update.inputs
    old = DynamicSliceOp(
        [into, *starts],
        result_types=[rows.type],
        properties={"slice_sizes": ints(shape_of(tensor_type_of(rows.type)))},
    )
    sum = AddOp([old.result, rows], result_types=[rows.type])
    for op in (old, sum):
        op.location = add.location
        op.attributes |= add.attributes
        Rewriter.insert_op(op, InsertPoint.before(add))
    return sum.result


def _hits_once(scatter: ScatterOp) -> bool:
    """Whether no element is added to twice: there is one slice, in each batch."""
    type = tensor_type_of(scatter.inputs[1].type)
    if not is_static(type):
        return False
    dropped = {
        *scatter.scatter_indices_batching_dims.get_values(),
        scatter.index_vector_dim.value.data,
    }
    return prod(n for d, n in enumerate(shape_of(type)) if d not in dropped) == 1
