"""Rewrites unrolled scans, which access several rows per iteration, row by row.

%r = tgraph.concatenate %a, %b {dimension = 0 : i64} : ... -> tensor<2x8xf32>
...                            // iteration i puts %r into row i of a tensor<12x2x8xf32>

If other loops read rows of %a and of %b, each of these gets its own stack, a
tensor<12x1x8xf32>. If the whole stack is read as a tensor<24x8xf32>, the loop writes
rows 2 i and 2 i + 1 of such a tensor: each as soon as it is computed, or both at once
if they are one value. If an operand of the loop is a tensor<24x8xf32>, reshaped to a
tensor<12x2x8xf32>, the loop reads it without the reshape.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ....analysis.loops import Counter, counter, integer
from ....analysis.scans import (
    Linear,
    Stack,
    argument_for,
    before_reshapes,
    extended,
    linear,
    row_slices,
    stacks,
    without_unread,
)
from ....dialects.tgraph.base import (
    Shape,
    ints,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ....dialects.tgraph.elementwise import AddOp, MultiplyOp
from ....dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ....dialects.tgraph.shaping import ConcatenateOp, ConstantOp, ReshapeOp, SliceOp
from ....dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ....dialects.tgraph.unused import without_unused

_Parts = Mapping[int, SSAValue]
"""The values that make up a row of a stack, by their positions in the row."""


def is_over_some_rows(loop: WhileOp) -> bool:
    """Whether an operand of a loop is a slice, such as some rows, of a tensor."""
    return any(
        isinstance(before_reshapes(value).owner, SliceOp) for value in loop.inputs
    )


def row_by_row(loop: WhileOp) -> WhileOp:
    """The loop with one row in each slice that it reads or writes, where possible."""
    loop = _with_flat_reads(loop)
    changed = False
    for stack in stacks(loop):
        parts = _parts(stack)
        begun = loop.inputs[stack.number].owner
        if not parts or not isinstance(begun, ConstantOp) or begun.splat is None:
            continue
        result, first = loop.res[stack.number], len(loop.res)
        slices = row_slices(result) or () if len(parts) > 1 else ()
        starts = [_start(slice, parts) for slice in slices]
        if slices and None not in starts:
            loop = _with_a_stack_each(loop, stack, parts, begun)
            wholes = dict(zip(parts, loop.res[first:], strict=True))
            for slice, start in zip(slices, starts, strict=True):
                _read_stack(slice, wholes[start or 0])
        elif (flat := _flat(result, parts)) is not None:
            loop = _with_flat_stack(loop, stack, parts, begun)
            flat.result.replace_all_uses_with(loop.res[first])
            Rewriter.erase_op(flat)
        else:
            continue
        changed = True
    return without_unread(loop) if changed else loop


def insert_at(op: Operation, like: Operation, before: Operation) -> None:
    """Inserts `op` in front of `before`, with the location of `like`."""
    op.location = like.location
    assert before.parent is not None
    before.parent.insert_op_before(op, before)


def _parts(stack: Stack) -> _Parts:
    """The parts of the row that each iteration puts. Empty if a row is a single number,
    or if an iteration puts several rows."""
    put, found, at = stack.puts[0], dict[int, SSAValue](), 0
    op = put.value.owner
    if put.shape != (1, *value_shape(put.value)) or len(stack.puts) > 1:
        return {}
    if not isinstance(op, ConcatenateOp) or op.outs or op.dimension.value.data:
        return {0: put.value} if len(put.shape) > 1 else {}
    for part in op.inputs:
        found[at] = part
        at += value_shape(part)[0]
    return found


def _start(slice: DynamicSliceOp, parts: _Parts) -> int | None:
    """The position of the part from which a slice takes a row, or None."""
    _, _, start, *others = slice.inputs
    at = integer(start)
    if at is None or any(integer(other) != 0 for other in others):
        return None
    is_part = at in parts and value_shape(slice.result) == (1, *value_shape(parts[at]))
    return at if is_part else None


def _with_a_stack_each(
    loop: WhileOp, stack: Stack, parts: _Parts, begun: ConstantOp
) -> WhileOp:
    """The loop with an additional result for each part: its stack."""
    (put,), rows, first = stack.puts, value_shape(begun.result)[0], len(loop.res)
    shapes = [(rows, *value_shape(part)) for part in parts.values()]
    loop = extended(loop, [insert_full(begun, shape, loop) for shape in shapes], ())
    last = loop.body.block.last_op
    assert last is not None
    for number, part in enumerate(parts.values(), first):
        row = (1, *value_shape(part))
        put_row(loop, number, (part, row), put.update.starts, (put.update, last))
    return loop


def insert_full(begun: ConstantOp, shape: Shape, before: Operation) -> SSAValue:
    type = with_shape(tensor_type_of(begun.result.type), shape)
    constant = ConstantOp(begun.value, type)
    insert_at(constant, begun, before)
    return constant.result


def put_row(
    loop: WhileOp,
    number: int,
    part: tuple[SSAValue, Shape],
    starts: Sequence[SSAValue],
    place: tuple[Operation, Operation],
) -> None:
    """Writes a value, reshaped, into a row of the carried value `number`.

    part: the value and its shape in the row.
    place: the operation that gives the location, and the one to insert before.
    """
    (value, shape), (like, before) = part, place
    variable = loop.body.block.args[number]
    read = ReadOp(variable)
    row = ReshapeOp(
        [value], result_types=[with_shape(tensor_type_of(value.type), shape)]
    )
    update = DynamicUpdateSliceOp(
        [read.result, row.result, *starts], result_types=[read.result.type]
    )
    for op in (read, row, update, AssignOp(variable, update.result)):
        insert_at(op, like, before)


def _read_stack(slice: DynamicSliceOp, whole: SSAValue) -> None:
    """Makes a slice read a row of the part's own stack."""
    _, row, start, *others = slice.inputs
    only = others[0] if others else start  # clamped to 0, the only start that fits
    new = DynamicSliceOp(
        [argument_for(slice, whole), row, only, *others],
        result_types=[slice.result.type],
        properties={"slice_sizes": slice.slice_sizes},
    )
    new.attributes |= slice.attributes
    insert_at(new, slice, slice)
    slice.result.replace_all_uses_with(new.result)
    Rewriter.erase_op(slice)


def _flat(result: SSAValue, parts: _Parts) -> ReshapeOp | None:
    """The reshape that makes one dimension of iterations and parts, if it is the only
    reader; else None."""
    users = [use.operation for use in result.uses]
    if len(users) != 1 or not isinstance(users[0], ReshapeOp) or users[0].outs:
        return None
    rows, count, *rest = value_shape(result)
    is_flat = value_shape(users[0].result) == (rows * count, *rest)
    return users[0] if is_flat and len(parts) in (1, count) else None


def _with_flat_stack(
    loop: WhileOp, stack: Stack, parts: _Parts, begun: ConstantOp
) -> WhileOp:
    """The loop with an additional result, a stack of single parts. Each part is written
    as soon as it is computed."""
    (put,), number = stack.puts, len(loop.res)
    rows, count, *rest = value_shape(begun.result)
    loop = extended(loop, [insert_full(begun, (rows * count, *rest), loop)], ())
    position = {op: n for n, op in enumerate(loop.body.block.ops)}

    def computed(item: tuple[int, SSAValue]) -> int:
        return position.get(cast(Operation, before_reshapes(item[1]).owner), -1)

    update = put.update
    _, _, row, _, *others = update.inputs
    for start, part in sorted(parts.items(), key=computed):
        at = place_at(Linear(count, start), row, update)
        put_row(
            loop, number, (part, value_shape(part)), [at, *others], (update, update)
        )
    return loop


def place_at(place: Linear, number: SSAValue, before: Operation) -> SSAValue:
    """The value of `place` where the iteration is `number`, computed before
    `before`."""
    type = tensor_type_of(number.type)
    element = cast(IntegerType, type.element_type)

    def emit(op: ConstantOp | MultiplyOp | AddOp) -> SSAValue:
        insert_at(op, before, before)
        return op.result

    def constant(value: int) -> SSAValue:
        return emit(ConstantOp(IntegerAttr(value, element), type))

    if not place.slope:
        return constant(place.start)
    if place.slope != 1:
        number = emit(MultiplyOp([number, constant(place.slope)], result_types=[type]))
    if not place.start:
        return number
    return emit(AddOp([number, constant(place.start)], result_types=[type]))


def _with_flat_reads(loop: WhileOp) -> WhileOp:
    """The loop that reads rows of reshaped operands without the reshapes."""
    if (counted := counter(loop)) is None:
        return loop
    block, inputs = loop.body.block, list(loop.inputs)
    for index in range(len(loop.res), len(inputs)):
        reshape, argument = inputs[index].owner, block.args[index]
        if not isinstance(reshape, ReshapeOp) or reshape.outs:
            continue
        source, shape = reshape.inputs[0], value_shape(argument)
        slices = [use.operation for use in argument.uses]
        if (
            len(shape) > 1
            and value_shape(source) == (shape[0] * shape[1], *shape[2:])
            and all(_is_in_row(op, argument, loop, counted) for op in slices)
        ):
            for slice in slices:
                _read_flat(cast(DynamicSliceOp, slice), source, shape[1])
            loop = cast(WhileOp, block.parent_op())
    return without_unused(loop)


def _is_in_row(
    op: Operation, argument: SSAValue, loop: WhileOp, counted: Counter
) -> bool:
    """Whether `op` takes a part of one row of `argument`, at a known position."""
    if not isinstance(op, DynamicSliceOp) or op.outs or op.inputs[0] is not argument:
        return False
    rows, count, *rest = value_shape(argument)
    one, size, *sizes = op.slice_sizes.get_values()
    row = linear(op.inputs[1], loop, counted)
    start = integer(op.inputs[2])
    if one != 1 or sizes != rest or row is None or start is None:
        return False
    low, high = row.ends(counted.trips)
    return 0 <= low and high < rows and 0 <= start <= count - size


def _read_flat(slice: DynamicSliceOp, source: SSAValue, count: int) -> None:
    whole = argument_for(slice, source)
    _, row, start, *others = slice.inputs
    at = place_at(Linear(count, cast(int, integer(start))), row, slice)
    sizes = value_shape(slice.result)[1:]
    new = DynamicSliceOp(
        [whole, at, *others],
        result_types=[with_shape(tensor_type_of(slice.result.type), sizes)],
        properties={"slice_sizes": ints(sizes)},
    )
    new.attributes |= slice.attributes
    shaped = ReshapeOp([new.result], result_types=[slice.result.type])
    for op in (new, shaped):
        insert_at(op, slice, slice)
    slice.result.replace_all_uses_with(shaped.result)
    Rewriter.erase_op(slice)
