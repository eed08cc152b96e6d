"""Makes loops carry the rows of a stack that are read, if these are few.

    %0:2 = tgraph.while ...      // iteration i puts %h into row i of 32
    %1 = tgraph.slice %0#1 ...   // row 7

    %0:2 = tgraph.while ...      // carries %h of iteration 7: i == 7 ? %h : what it was
    %1 = %0#1

For the row of the last iteration, each iteration overwrites the row of the previous
one. If this row is a state of the loop, the loop carries it already.

    %1 = tgraph.slice %0#1 ...   // rows 29 to 31

    %0:2 = tgraph.while ...      // iteration i puts %h into row max(i - 28, 0) of 4
    %1 = tgraph.slice %0#1 ...   // rows 1 to 3

If rows of several iterations are read together, the loop stacks only these. The rows
before and after them go to an extra row at the start or end of the stack, as indices of
updates are clamped. Extra rows are never read.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness, StringAttr, i1
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ....analysis.loops import counter, only_writer
from ....analysis.scans import Put, Stack, before_reshapes, extended, stacks
from ....dialects.tgraph.base import (
    ints,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from ....dialects.tgraph.elementwise import AddOp, CompareOp, SelectOp
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ReshapeOp, SliceOp
from ....dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from .unrolled import insert_at, insert_full, put_row


class _Written(NamedTuple):
    """Rows that one iteration puts into a stack."""

    put: int  # the number of the put in the iteration
    iteration: int
    row: int  # the first of the rows


def with_kept_rows(loop: WhileOp) -> WhileOp:
    """The loop that carries or stacks only the rows of its stacks that are read, where
    these are few."""
    if counter(loop) is None:
        return loop
    for stack in stacks(loop):
        loop = _with_rows_of(loop, stack)
        if loop.res[stack.number].uses:
            loop = _with_rows_between(loop, stack)
    return loop


def _with_rows_of(loop: WhileOp, stack: Stack) -> WhileOp:
    counted, result = counter(loop), loop.res[stack.number]
    assert counted is not None
    read: dict[SliceOp, _Written] = {}
    for op in dict.fromkeys(use.operation for use in result.uses):
        written = _written(op, stack.puts, counted.trips)
        if written is None:
            continue
        assert isinstance(op, SliceOp)
        state = _state(loop, stack.puts[written.put])
        if written.iteration == counted.trips - 1 and state is not None:
            _read(op, loop.res[state], stack.puts[written.put], written)
        else:
            read[op] = written
    begun = loop.inputs[stack.number].owner
    kept = dict.fromkeys(read.values())
    rows = sum(stack.puts[written.put].shape[0] for written in kept)
    if (
        not read
        or not isinstance(begun, ConstantOp)
        or begun.splat is None
        or any(use.operation not in read for use in result.uses)
        or rows >= shape_of(tensor_type_of(result.type))[0]
    ):
        return loop
    first = len(loop.res)
    puts = [stack.puts[written.put] for written in kept]
    loop = extended(loop, [insert_full(begun, put.shape, loop) for put in puts], ())
    carried = {written: number for number, written in enumerate(kept, first)}
    for written, number in carried.items():
        _keep(loop, number, stack.puts[written.put].update, written.iteration)
    for op, written in read.items():
        whole = loop.res[carried[written]]
        _read(op, whole, stack.puts[written.put], written)
    return loop


def _with_rows_between(loop: WhileOp, stack: Stack) -> WhileOp:
    """The loop that stacks the rows from the first to the last one that is read."""
    result, begun = loop.res[stack.number], loop.inputs[stack.number].owner
    count, *rest = shape_of(tensor_type_of(result.type))
    slices = [use.operation for use in result.uses]
    read = [rows for op in slices if (rows := _adjacent(op))]
    if (
        len(read) < len(slices)
        or not isinstance(begun, ConstantOp)
        or begun.splat is None
        or any(put.shape[0] != 1 for put in stack.puts)
    ):
        return loop
    first, end = min(start for start, _ in read), max(limit for _, limit in read)
    before, after = first > 0, end < count  # whether an extra row is needed there
    size = before + end - first + after
    if size >= count:
        return loop
    number = len(loop.res)
    (update, *_) = (put.update for put in stack.puts)
    starts = tensor_type_of(update.inputs[2].type)
    element = cast(IntegerType, starts.element_type)
    if element.signedness.data is Signedness.UNSIGNED:
        return loop
    loop = extended(loop, [insert_full(begun, (size, *rest), loop)], ())
    for put in stack.puts:
        update = put.update
        _, row, at, *others = update.inputs
        by = ConstantOp(IntegerAttr(before - first, element), starts)
        moved = AddOp([at, by.result], result_types=[starts])
        for op in (by, moved):
            insert_at(op, update, update)
        places = [moved.result, *others]
        put_row(loop, number, (row, put.shape), places, (update, update))
    for op in slices:
        op.operands[0] = loop.res[number]
        for name, (bound, *bounds) in _bounds(op).items():
            op.properties[name] = ints([bound + before - first, *bounds])
    return loop


def _adjacent(op: Operation) -> tuple[int, int] | None:
    """The half-open range of rows `[first, end)` that `op` takes; None if it is not a
    slice, or skips rows in between."""
    if not isinstance(op, SliceOp) or op.outs or op.strides.get_values()[0] != 1:
        return None
    return op.start_indices.get_values()[0], op.limit_indices.get_values()[0]


def _bounds(op: Operation) -> Mapping[str, Sequence[int]]:
    assert isinstance(op, SliceOp)
    return {
        "start_indices": op.start_indices.get_values(),
        "limit_indices": op.limit_indices.get_values(),
    }


def _written(op: Operation, puts: Sequence[Put], trips: int) -> _Written | None:
    """The put that writes the rows that `op` takes; None unless one iteration writes
    all of them."""
    if (rows := _adjacent(op)) is None:
        return None
    start, limit = rows
    for number, put in enumerate(puts):
        slope, begin = put.place
        near = (start - begin) // slope
        for iteration in (near, near + 1):
            row = begin + slope * iteration
            if 0 <= iteration < trips and row <= start < limit <= row + put.shape[0]:
                return _Written(number, iteration, row)
    return None


def _state(loop: WhileOp, put: Put) -> int | None:
    """The number of a carried value that is the value of `put`, or None."""
    for number in range(len(loop.res)):
        writer = only_writer(loop, number)
        if isinstance(writer, AssignOp) and before_reshapes(writer.value) is put.value:
            return number
    return None


def _read(op: SliceOp, kept: SSAValue, put: Put, written: _Written) -> None:
    """Makes a slice read rows that the loop keeps, instead of the stack."""
    whole = with_shape(tensor_type_of(kept.type), put.shape)
    if kept.type != whole:
        shaped = ReshapeOp([kept], result_types=[whole])
        insert_at(shaped, op, op)
        kept = shaped.result
    if whole == op.result.type:
        op.result.replace_all_uses_with(kept)
        Rewriter.erase_op(op)
        return
    op.operands[0] = kept
    start, *starts = op.start_indices.get_values()
    limit, *limits = op.limit_indices.get_values()
    op.properties["start_indices"] = ints([start - written.row, *starts])
    op.properties["limit_indices"] = ints([limit - written.row, *limits])


def _keep(loop: WhileOp, number: int, put: Operation, iteration: int) -> None:
    """Writes the rows of `put` in one iteration to the carried value `number`."""
    counted = counter(loop)
    assert counted is not None
    variable, row = loop.body.block.args[number], put.operands[1]
    if iteration < counted.trips - 1:
        index = ReadOp(loop.body.block.args[counted.number])
        type = tensor_type_of(index.result.type)
        element = cast(IntegerType, type.element_type)
        this = ConstantOp(IntegerAttr(iteration, element), type)
        is_this = CompareOp(
            [index.result, this.result],
            result_types=[with_element(type, i1)],
            properties={"direction": StringAttr("EQ")},
        )
        all_are = BroadcastInDimOp(
            [is_this.result],
            result_types=[with_element(tensor_type_of(row.type), i1)],
            properties={"broadcast_dimensions": ints([])},
        )
        old = ReadOp(variable)
        new = SelectOp([all_are.result, row, old.result], result_types=[row.type])
        for op in (this, is_this, all_are, old, new):
            insert_at(op, put, put)
        begin = loop.body.block.first_op
        assert begin is not None
        insert_at(index, put, begin)
        row = new.result
    insert_at(AssignOp(variable, row), put, put)
