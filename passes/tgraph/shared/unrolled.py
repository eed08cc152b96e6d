"""Stacks of several rows in each iteration, as an unrolled scan has them, taken apart.

%0 = tgraph.while ...          // iteration i puts %r into row i of a tensor<12x2x8xf32>
%r = tgraph.concatenate %a, %b {dimension = 0 : i64} : ... -> tensor<2x8xf32>
...
%1 = tgraph.dynamic_slice %s, %j, %c1, %c0 ... : ... -> tensor<1x1x8xf32>

%0:2 = tgraph.while ...        // %a into one of a tensor<12x1x8xf32>, %b of another
...
%1 = tgraph.dynamic_slice %t, %j, %c0, %c0 ... : ... -> tensor<1x1x8xf32>

Where rows are read as a whole, the parts are put into them one after the other: none
waits for the rest.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from ....analysis.loops import integer
from ....analysis.scans import (
    Stack,
    extended,
    given,
    row_slices,
    stacks,
    unshaped,
    without_stacks,
    without_unused,
)
from ....dialects.tgraph.base import Shape, shape_of, tensor_type_of, with_shape
from ....dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ....dialects.tgraph.shaping import ConcatenateOp, ConstantOp, ReshapeOp
from ....dialects.tgraph.structure import AssignOp, ReadOp, WhileOp


def taken_apart(loop: WhileOp) -> WhileOp:
    """The loop with a stack for each part of the rows that others read in parts, and
    with rows that are put together in place."""
    dropped: list[int] = []
    for stack in stacks(loop):
        if not (parts := _parts(stack)):
            continue
        begun = loop.inputs[stack.number].owner
        slices = row_slices(loop.res[stack.number])
        starts = [_start(slice, parts) for slice in slices or ()]
        if not isinstance(begun, ConstantOp) or not begun.splat or None in starts:
            slices = None
        if not slices:
            _put_one_by_one(loop, stack, parts)
            continue
        assert isinstance(begun, ConstantOp)
        first = len(loop.res)
        loop = _stacked(loop, stack, parts, begun)
        wholes = dict(zip(parts, loop.res[first:], strict=True))
        for slice, start in zip(slices, starts, strict=True):
            assert start is not None
            _read(slice, wholes[start])
        dropped.append(stack.number)
    if not dropped:
        return loop
    readers = [use.operation for number in dropped for use in loop.res[number].uses]
    for reader in dict.fromkeys(readers):
        assert isinstance(reader, WhileOp)
        without_unused(reader)
    return without_stacks(loop, dropped)


def _shape(value: SSAValue) -> Shape:
    return shape_of(tensor_type_of(value.type))


def _parts(stack: Stack) -> dict[int, SSAValue]:
    """What is stacked in a row, by where it begins; nothing if that is one tensor."""
    op, found, at = stack.value.owner, dict[int, SSAValue](), 0
    if not isinstance(op, ConcatenateOp) or op.outs or op.dimension.value.data:
        return {}
    if _shape(stack.update.inputs[1]) != (1, *_shape(op.result)):
        return {}
    for part in op.inputs:
        found[at] = part
        at += _shape(part)[0]
    return found


def _start(slice: DynamicSliceOp, parts: dict[int, SSAValue]) -> int | None:
    """Where the part begins that a slice takes a row of."""
    _, _, start, *others = slice.inputs
    at = integer(start)
    if at not in parts or any(integer(other) != 0 for other in others):
        return None
    return at if _shape(slice.result) == (1, *_shape(parts[at])) else None


def _put_one_by_one(loop: WhileOp, stack: Stack, parts: dict[int, SSAValue]) -> None:
    """Writes each part to its place in the row, rather than all of the row at once."""
    variable, update = loop.body.block.args[stack.number], stack.update
    whole, _, row, within, *others = update.inputs
    (use,) = update.result.uses
    assign, type = use.operation, tensor_type_of(within.type)
    position = {op: n for n, op in enumerate(loop.body.block.ops)}

    def computed(item: tuple[int, SSAValue]) -> int:
        return position.get(cast(Operation, unshaped(item[1]).owner), -1)

    for start, part in sorted(parts.items(), key=computed):
        at = ConstantOp(IntegerAttr(start, cast(IntegerType, type.element_type)), type)
        read = ReadOp(variable)
        for op in (at, read):
            _insert(op, update, assign)
        changed = _put(read.result, part, [row, at.result, *others], update, assign)
        _insert(AssignOp(variable, changed), update, assign)
    for op in (assign, update, whole.owner):
        assert isinstance(op, Operation)
        op.detach()
        op.erase()


def _put(
    whole: SSAValue,
    part: SSAValue,
    starts: Sequence[SSAValue],
    like: DynamicUpdateSliceOp,
    before: Operation,
) -> SSAValue:
    """The tensor with a part in it."""
    shape = with_shape(tensor_type_of(part.type), (1, *_shape(part)))
    row = ReshapeOp([part], result_types=[shape])
    put = DynamicUpdateSliceOp([whole, row.result, *starts], result_types=[whole.type])
    for op in (row, put):
        _insert(op, like, before)
    return put.result


def _insert(op: Operation, like: Operation, before: Operation) -> None:
    op.location = like.location
    assert before.parent is not None
    before.parent.insert_op_before(op, before)


def _stacked(
    loop: WhileOp, stack: Stack, parts: dict[int, SSAValue], begun: ConstantOp
) -> WhileOp:
    """The loop with further results, the stacks of parts."""
    rows, first = _shape(begun.result)[0], len(loop.res)
    empty: list[SSAValue] = []
    for part in parts.values():
        type = with_shape(tensor_type_of(part.type), (rows, *_shape(part)))
        constant = ConstantOp(begun.value, type)
        _insert(constant, begun, loop)
        empty.append(constant.result)
    loop = extended(loop, empty, ())
    body, update = loop.body.block, stack.update
    last = body.last_op
    assert last is not None
    for number, part in enumerate(parts.values(), first):
        read = ReadOp(variable := body.args[number])
        _insert(read, update, last)
        whole = _put(read.result, part, update.inputs[2:], update, last)
        _insert(AssignOp(variable, whole), update, last)
    return loop


def _read(slice: DynamicSliceOp, whole: SSAValue) -> None:
    """Takes a row of a part's own stack instead."""
    _, row, start, *others = slice.inputs
    only = others[0] if others else start  # as rows begin at 0, and 0 is all that fits
    new = DynamicSliceOp(
        [given(slice, whole), row, only, *others],
        result_types=[slice.result.type],
        properties={"slice_sizes": slice.slice_sizes},
    )
    new.attributes |= slice.attributes
    _insert(new, slice, slice)
    slice.result.replace_all_uses_with(new.result)
    slice.detach()
    slice.erase()
