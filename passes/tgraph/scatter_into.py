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

The pass also handles a loop that starts with zeros and adds to different rows in each
iteration: the loop then stacks the rows without an addition.

The pass applies if %y has no other reader. The gradient of an embedding that is also
the output layer has this form: %y is the product of the output layer.

Numerics: if the scatter updates an element several times, the updates are added to %y
one by one, not their sum to %y. Zeros may change sign.

Needs: level 1, before fusion.
Leaves: level 1.
Does not: look through views, or into fusions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import tensor_blocks
from ...analysis.loops import Counter, counter, only_writer
from ...analysis.scans import Linear, are_apart, places
from ...dialects.tgraph.base import TensorOp, ints, shape_of, tensor_type_of
from ...dialects.tgraph.elementwise import AddOp
from ...dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    ScatterOp,
)
from ...dialects.tgraph.shaping import ConstantOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphScatterInto(OptionalPass):
    """Scatters directly into the tensor that the result would be added to."""

    name = "tgraph-scatter-into"
    EXACT = False  # sums are added up in another order
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for add in list(block.ops):
                if isinstance(add, AddOp) and not add.outs:
                    _rewrite(add)


def _rewrite(add: AddOp) -> None:
    for scattered, value in _orders(add):
        scatter = scattered.owner
        if not value.has_one_use() or value is scattered:
            continue
        if isinstance(scatter, ScatterOp):
            if scatter.kind.data != "add":
                continue
        elif not isinstance(scatter, DynamicUpdateSliceOp):
            continue
        if scatter.outs or not _is_zero(scatter.inputs[0]):
            continue
        new = scatter.clone()
        new.operands[0] = value
        if isinstance(scatter, DynamicUpdateSliceOp) and not _is_stacked(
            scatter, value
        ):
            new.operands[1] = _added(add, scatter, value)
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


def _is_stacked(scatter: DynamicUpdateSliceOp, value: SSAValue) -> bool:
    """Whether the rows of `value` that `scatter` adds to are still zeros, because each
    iteration of a loop adds to other rows."""
    loop, read = scatter.parent_op(), _scattered(value)[0].owner
    if not isinstance(loop, WhileOp) or not isinstance(read, ReadOp):
        return False
    number = cast(BlockArgument, read.variable).index
    counted, writer = counter(loop), only_writer(loop, number)
    if counted is None or not isinstance(writer, AssignOp):
        return False
    begun, updates = _scattered(writer.value)
    slices = [_slice(update, loop, counted) for update in updates]
    return (
        begun.owner is read
        and scatter in updates
        and _is_zero(loop.inputs[number])
        and all(slices)
        and any(map(are_apart, zip(*slices, strict=True)))
    )


def _slice(
    update: DynamicUpdateSliceOp, loop: WhileOp, counted: Counter
) -> Sequence[tuple[Linear, int]]:
    """The start and the size of a slice in each dimension; empty if unknown."""
    sizes = shape_of(tensor_type_of(update.inputs[1].type))
    starts = places(update, loop, counted)
    return () if starts is None else list(zip(starts, sizes, strict=True))


def _scattered(value: SSAValue) -> tuple[SSAValue, Sequence[DynamicUpdateSliceOp]]:
    """The tensor that a chain of slice updates and additions of slices starts from, and
    these updates."""
    op = value.owner
    if isinstance(op, DynamicUpdateSliceOp):
        begun, updates = _scattered(op.inputs[0])
        return begun, (*updates, op)
    for scattered, other in _orders(op) if isinstance(op, AddOp) else ():
        scatter = scattered.owner
        if isinstance(scatter, DynamicUpdateSliceOp) and _is_zero(scatter.inputs[0]):
            begun, updates = _scattered(other)
            return begun, (*updates, scatter)
    return value, ()


def _orders(add: AddOp) -> Sequence[Sequence[SSAValue]]:
    left, right = add.inputs
    return (left, right), (right, left)


def _added(add: AddOp, update: DynamicUpdateSliceOp, into: SSAValue) -> SSAValue:
    """The sum of the slice that `update` writes and the same slice of `into`."""
    _, rows, *starts = update.inputs
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
