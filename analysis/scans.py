"""What loops stack: tensors into whose rows they put a value in each iteration.

%i = tgraph.read %vi : tensor<i32>         // 0, 1, ... up to the last row
%s = tgraph.read %vs : tensor<32x4x8xf32>
%r = tgraph.broadcast_in_dim %y ... : ... -> tensor<1x4x8xf32>
%t = tgraph.dynamic_update_slice %s, %r, %i, %c0, %c0 : ...
tgraph.assign %vs, %t : tensor<32x4x8xf32>

The loop of a backward pass begins with the last row: it is the row 31 - %i.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from ..dialects.tgraph.base import VariableType, is_static, shape_of, tensor_type_of
from ..dialects.tgraph.elementwise import AddOp, SubtractOp
from ..dialects.tgraph.indexing import DynamicUpdateSliceOp
from ..dialects.tgraph.shaping import BroadcastInDimOp
from ..dialects.tgraph.structure import AssignOp, WhileOp
from .functions import erase_unused
from .loops import counter, integer, is_read, only_writer

Position = Mapping[Operation, int]
"""Of the operations in a body."""


class Linear(NamedTuple):
    """A number in the body of a loop, in iteration i."""

    slope: int
    start: int


class Stack(NamedTuple):
    """A tensor each row of which is written by an iteration of a loop, and by nobody
    else."""

    number: int  # of the loop's result
    value: SSAValue  # a row, in the body
    update: DynamicUpdateSliceOp  # that puts it there
    place: Linear  # where, in iteration i


def stacks(loop: WhileOp) -> list[Stack]:
    """What a loop stacks, the first computed first."""
    if (counted := counter(loop)) is None:
        return []
    position = {op: index for index, op in enumerate(loop.body.block.ops)}
    number, iterations = counted
    found: list[Stack] = []
    for index, type in enumerate(loop.declared):
        if is_static(type) and shape_of(type)[:1] == (iterations,):
            stack = _stacked(loop, index, number)
            if stack and stack.place in (Linear(1, 0), Linear(-1, iterations - 1)):
                found.append(stack)
    return sorted(found, key=lambda stack: _place(stack.value, position))


def extended(
    loop: WhileOp, carried: Sequence[SSAValue], given: Sequence[SSAValue]
) -> WhileOp:
    """The loop with further inputs: after what it carries, and after what it is
    given."""
    count = len(loop.res)
    for region in loop.regions:
        block = region.block
        for value in given:
            block.insert_arg(value.type, len(block.args))
        for index, value in enumerate(carried, count):
            block.insert_arg(VariableType(tensor_type_of(value.type)), index)
    before, after = loop.inputs[:count], loop.inputs[count:]
    return _made_anew(loop, [*before, *carried, *after, *given], range(count))


def without_stacks(loop: WhileOp, indices: Collection[int]) -> WhileOp:
    """Takes out results that are stacked but that nobody reads."""
    for index in indices:
        users = [use.operation for use in loop.body.block.args[index].uses]
        for assign in users:
            if isinstance(assign, AssignOp):
                update = assign.value.owner
                assert isinstance(update, DynamicUpdateSliceOp)
                for op in (assign, update, *(u for u in users if u is not assign)):
                    op.detach()
                    op.erase()
    erase_unused(loop.body.block)
    return _rebuild(loop, set(indices))


def without_unused(loop: WhileOp) -> WhileOp:
    """Takes out what a loop is given, does not carry and does not look at."""
    given = range(len(loop.res), len(loop.inputs))
    unused = {
        index
        for index in given
        if not any(region.block.args[index].uses for region in loop.regions)
    }
    return _rebuild(loop, unused) if unused else loop


def _rebuild(loop: WhileOp, dropped: Collection[int]) -> WhileOp:
    """The loop without some inputs, and results, that nobody uses."""
    for region in loop.regions:
        for index in sorted(dropped, reverse=True):
            region.block.erase_arg(region.block.args[index])
    kept = [index for index in range(len(loop.inputs)) if index not in dropped]
    results = [index for index in kept if index < len(loop.res)]
    return _made_anew(loop, [loop.inputs[index] for index in kept], results)


def _made_anew(
    loop: WhileOp, inputs: Sequence[SSAValue], results: Sequence[int]
) -> WhileOp:
    """A loop with the same regions, and some of the results; further ones come last."""
    count = sum(
        isinstance(argument.type, VariableType) for argument in loop.body.block.args
    )
    new = WhileOp(
        inputs,
        result_types=[value.type for value in inputs[:count]],
        regions=[loop.detach_region(region) for region in list(loop.regions)],
    )
    new.attributes |= loop.attributes
    new.location = loop.location
    block = loop.parent
    assert block is not None
    block.insert_op_before(new, loop)
    for old, result in zip(results, new.res, strict=False):
        result.name_hint = loop.res[old].name_hint
        loop.res[old].replace_all_uses_with(result)
    loop.detach()
    loop.erase()
    return new


def _place(value: SSAValue, position: Position) -> int:
    """Where a value is computed."""
    op = value.owner
    return position[op] if isinstance(op, Operation) else -1


def _linear(
    value: SSAValue, loop: WhileOp, index: int, depth: int = 8
) -> Linear | None:
    if (number := integer(value)) is not None:
        return Linear(0, number)
    if is_read(value, loop, index):
        return Linear(1, 0)
    op = value.owner
    if not isinstance(op, AddOp | SubtractOp) or not depth:
        return None
    left, right = (_linear(v, loop, index, depth - 1) for v in op.inputs)
    if left is None or right is None:
        return None
    sign = 1 if isinstance(op, AddOp) else -1
    return Linear(left.slope + sign * right.slope, left.start + sign * right.start)


def _stacked(loop: WhileOp, index: int, number: int) -> Stack | None:
    """What the loop puts into a result's rows, if that is all it does with it."""
    assign = only_writer(loop, index)
    if not isinstance(assign, AssignOp):
        return None
    update = assign.value.owner
    if not isinstance(update, DynamicUpdateSliceOp) or update.outs:
        return None
    whole, row, *starts = update.inputs
    users = [use.operation for use in loop.body.block.args[index].uses]
    if (
        not is_read(whole, loop, index)
        or len(users) != 2
        or loop.condition.block.args[index].uses
        or not (whole.has_one_use() and update.result.has_one_use())
        or (place := _linear(starts[0], loop, number)) is None
        or any(integer(start) != 0 for start in starts[1:])
    ):
        return None
    shape = shape_of(tensor_type_of(row.type))
    if shape != (1, *shape_of(tensor_type_of(whole.type))[1:]):
        return None
    op = row.owner
    if (
        isinstance(op, BroadcastInDimOp)
        and shape_of(tensor_type_of(op.inputs[0].type)) == shape[1:]
    ):
        dims = tuple(op.broadcast_dimensions.get_values())
        if dims != tuple(range(1, len(shape))):
            return None
        row = op.inputs[0]
    return Stack(index, row, update, place)
