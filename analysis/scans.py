"""Finds the tensors that loops stack, by writing one row or more in each iteration.

%i = tgraph.read %vi : tensor<i32>         // 0, 1, ... up to the last row
%s = tgraph.read %vs : tensor<32x4x8xf32>
%r = tgraph.broadcast_in_dim %y ... : ... -> tensor<1x4x8xf32>
%t = tgraph.dynamic_update_slice %s, %r, %i, %c0, %c0 : ...
tgraph.assign %vs, %t : tensor<32x4x8xf32>

The loop of a backward pass starts with the last row: it writes row 31 - %i.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ..dialects.tgraph.base import (
    Shape,
    TensorOp,
    VariableType,
    is_static,
    shape_of,
    tensor_type_of,
)
from ..dialects.tgraph.elementwise import (
    AddOp,
    CompareOp,
    ConvertOp,
    MultiplyOp,
    SelectOp,
    SubtractOp,
)
from ..dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ..dialects.tgraph.shaping import BroadcastInDimOp, IotaOp, ReshapeOp
from ..dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ..dialects.tgraph.unused import rebuilt, without_unused
from .loops import Counter, counter, integer, is_read, only_writer

DEPTH = 8
"""The limit on the operations between a number and the counter."""

Position = Mapping[Operation, int]
"""The position of each operation in a body."""


class Linear(NamedTuple):
    """The number `slope * i + start` in iteration i of a loop."""

    slope: int
    start: int

    def plus(self, other: "Linear", sign: int = 1) -> "Linear":
        slope, start = self.slope + sign * other.slope, self.start + sign * other.start
        return Linear(slope, start)

    def of(self, other: "Linear") -> "Linear":
        """This number with `other` in place of i."""
        return Linear(self.slope * other.slope, self.slope * other.start + self.start)

    def inverse(self) -> "Linear":
        """The iteration as a function of this number; the slope must be 1 or -1."""
        return Linear(self.slope, -self.slope * self.start)

    def fits(self, element: Attribute, trips: int) -> bool:
        """Whether the number fits a signed integer type in all iterations."""
        if not isinstance(element, IntegerType):
            return False
        low, high = self.ends(trips)
        limit = 1 << (element.bitwidth - 1)
        return -limit <= low and high < limit

    def ends(self, trips: int) -> tuple[int, int]:
        """The least and the greatest value of the number."""
        last = self.start + self.slope * (trips - 1)
        return min(self.start, last), max(self.start, last)


class Put(NamedTuple):
    """A row, or several adjacent rows, that each iteration writes."""

    value: SSAValue  # the contents, in the body, in any shape
    update: DynamicUpdateSliceOp  # the operation that writes them
    place: Linear  # the first row, in iteration i

    @property
    def shape(self) -> Shape:
        """The shape of the rows."""
        return shape_of(tensor_type_of(self.update.inputs[1].type))


class Stack(NamedTuple):
    """A tensor of which each row is written exactly once, by one iteration of a loop,
    and by nothing else."""

    number: int  # the index of the loop's result
    puts: Sequence[Put]  # in order, the same in each iteration


def stacks(loop: WhileOp) -> list[Stack]:
    """The stacks of a loop, in the order in which their first values are computed."""
    if (counted := counter(loop)) is None:
        return []
    position = {op: index for index, op in enumerate(loop.body.block.ops)}
    found: list[Stack] = []
    for index, type in enumerate(loop.declared):
        if is_static(type) and shape_of(type):
            if puts := _puts(loop, index, counted, position):
                found.append(Stack(index, puts))
    return sorted(found, key=lambda stack: _place(stack.puts[0].value, position))


def row_slices(stack: SSAValue) -> Sequence[DynamicSliceOp] | None:
    """The slices that read a stack; None if anything but slices in loops reads it."""
    found: list[DynamicSliceOp] = []
    for use in stack.uses:
        loop = use.operation
        if not isinstance(loop, WhileOp) or use.index < len(loop.res):
            return None
        arguments = [region.block.args[use.index] for region in loop.regions]
        for read in (read for argument in arguments for read in argument.uses):
            op = read.operation
            if not isinstance(op, DynamicSliceOp) or read.index or op.outs:
                return None
            found.append(op)
    return found


def argument_for(slice: DynamicSliceOp, whole: SSAValue) -> SSAValue:
    """The argument that is `whole` in the loop around `slice`; adds it to the loop's
    inputs if needed."""
    loop = slice.parent_op()
    assert isinstance(loop, WhileOp)
    assert slice.parent is not None
    if whole not in loop.inputs[len(loop.res) :]:
        loop = extended(loop, (), [whole])
    return slice.parent.args[list(loop.inputs).index(whole, len(loop.res))]


def extended(
    loop: WhileOp, carried: Sequence[SSAValue], given: Sequence[SSAValue]
) -> WhileOp:
    """The loop with additional inputs: `carried` after the carried ones, and `given`
    after all others."""
    count = len(loop.res)
    for region in loop.regions:
        block = region.block
        for value in given:
            block.insert_arg(value.type, len(block.args))
        for index, value in enumerate(carried, count):
            block.insert_arg(VariableType(tensor_type_of(value.type)), index)
    before, after = loop.inputs[:count], loop.inputs[count:]
    types = [*loop.declared, *(value.type for value in carried)]
    inputs = [*before, *carried, *after, *given]
    return rebuilt(loop, inputs, types, range(count))


def without_unread(loop: WhileOp) -> WhileOp:
    """The loop without the values that it carries for no reader, or for loops that do
    not read them."""
    users = (use.operation for result in loop.res for use in result.uses)
    for user in dict.fromkeys(users):
        if isinstance(user, WhileOp):
            without_unused(user)
    return without_unused(loop)


def _place(value: SSAValue, position: Position) -> int:
    """The position of the operation that computes `value`; -1 for an argument."""
    op = value.owner
    return position[op] if isinstance(op, Operation) else -1


def linear(
    value: SSAValue, loop: WhileOp, counted: Counter, depth: int = DEPTH
) -> Linear | None:
    """The number that all elements of an integer in the body are, as a function of the
    iteration. None if it does not follow from the counter, or leaves its type's
    range."""
    element = tensor_type_of(value.type).element_type
    found = _linear(value, loop, counted, depth)
    return found if found and found.fits(element, counted.trips) else None


def places(
    op: DynamicSliceOp | DynamicUpdateSliceOp, loop: WhileOp, counted: Counter
) -> Sequence[Linear] | None:
    """The start of the slice that `op` reads or writes, by dimension. None unless it is
    linear in the iteration, and within the tensor in each."""
    is_update = isinstance(op, DynamicUpdateSliceOp)
    whole, part = (
        tensor_type_of(value.type)
        for value in (op.inputs[0], op.inputs[1] if is_update else op.result)
    )
    if not (is_static(whole) and is_static(part)):
        return None
    found: list[Linear] = []
    for start, size, taken in zip(
        op.starts, shape_of(whole), shape_of(part), strict=True
    ):
        # A slice of the whole dimension starts at 0: its start is clamped.
        place = Linear(0, 0) if size == taken else linear(start, loop, counted)
        if place is None:
            return None
        low, high = place.ends(counted.trips)
        if low < 0 or high + taken > size:
            return None
        found.append(place)
    return found


def _linear(
    value: SSAValue, loop: WhileOp, counted: Counter, depth: int
) -> Linear | None:
    op = value.owner
    if op is loop.body.block:  # an input of the loop
        assert isinstance(value, BlockArgument)
        value = loop.inputs[value.index]
    if (number := integer(value)) is not None:
        return Linear(0, number)
    if isinstance(op, ReadOp):
        return _induction(op, loop, counted)
    if isinstance(op, DynamicSliceOp):
        return _of_iota(op, loop, counted, depth)
    if not isinstance(op, TensorOp) or op.outs or not depth:
        return None
    match op, [linear(v, loop, counted, depth - 1) for v in op.inputs]:
        case ((ReshapeOp() | BroadcastInDimOp() | ConvertOp()), [Linear() as same]):
            return same
        case AddOp(), [Linear() as left, Linear() as right]:
            return left.plus(right)
        case SubtractOp(), [Linear() as left, Linear() as right]:
            return left.plus(right, -1)
        case MultiplyOp(), [Linear(0, factor), Linear() as other]:
            return Linear(factor * other.slope, factor * other.start)
        case MultiplyOp(), [Linear() as other, Linear(0, factor)]:
            return Linear(factor * other.slope, factor * other.start)
        case SelectOp(), [_, yes, no]:
            holds = _holds(op.inputs[0].owner, loop, counted, depth - 1)
            return None if holds is None else yes if holds else no
        case _:
            return None


def _of_iota(
    op: DynamicSliceOp, loop: WhileOp, counted: Counter, depth: int
) -> Linear | None:
    """The number in a slice of an iota, as in a scan over `arange(n)`."""
    value = op.inputs[0]
    if value.owner is loop.body.block:
        assert isinstance(value, BlockArgument)
        value = loop.inputs[value.index]
    iota, type = value.owner, tensor_type_of(value.type)
    if (
        not isinstance(iota, IotaOp)
        or not isinstance(type.element_type, IntegerType)
        or not is_static(type)
        or iota.outs
        or op.outs
        or not depth
    ):
        return None
    dim = iota.dimension.value.data
    if op.slice_sizes.get_values()[dim] != 1:
        return None
    start = linear(op.starts[dim], loop, counted, depth - 1)
    if start is None:
        return None
    low, high = start.ends(counted.trips)
    return start if low >= 0 and high < shape_of(type)[dim] else None


def _induction(read: ReadOp, loop: WhileOp, counted: Counter) -> Linear | None:
    """The carried value, if each iteration adds the same number to it."""
    if not isinstance(read.variable, BlockArgument):
        return None
    number = read.variable.index
    if is_read(read.result, loop, counted.number):
        return Linear(1, 0)
    writer = only_writer(loop, number)
    start = integer(loop.inputs[number])
    if not isinstance(writer, AssignOp) or start is None:
        return None
    add = writer.value.owner
    if not isinstance(add, AddOp) or not is_read(add.inputs[0], loop, number):
        return None
    step = integer(add.inputs[1])
    return None if step is None else Linear(step, start)


def _holds(
    op: Operation | Block, loop: WhileOp, counted: Counter, depth: int
) -> bool | None:
    """Whether a comparison holds in all iterations, or in none; None if neither."""
    if not isinstance(op, CompareOp) or op.direction.data != "LT":
        return None
    left, right = (linear(v, loop, counted, depth) for v in op.inputs)
    if left is None or right is None:
        return None
    low, high = left.plus(right, -1).ends(counted.trips)
    return True if high < 0 else False if low >= 0 else None


def _puts(
    loop: WhileOp, index: int, counted: Counter, position: Position
) -> Sequence[Put]:
    """The writes to the rows of a loop's result, if they fill all rows and the loop has
    no other use of the result; empty otherwise."""
    users = [use.operation for use in loop.body.block.args[index].uses]
    users.sort(key=position.__getitem__)
    assigns = [op for op in users if isinstance(op, AssignOp)]
    chains = [updates_of(assign.value) for assign in assigns]
    found = [_put(op, loop, counted) for _, updates in chains for op in updates]
    puts = [put for put in found if put is not None]
    parts = [(put.place, put.shape[0]) for put in puts]
    count, rows = sum(size for _, size in parts), shape_of(loop.declared[index])[0]
    accesses = zip([begun.owner for begun, _ in chains], assigns, strict=True)
    if (
        not puts
        or len(found) > len(puts)
        or loop.condition.block.args[index].uses
        or users != [op for pair in accesses for op in pair]
        or counted.trips * count != rows
        or not are_apart(parts)
    ):
        return ()
    return puts


def are_apart(rows: Sequence[tuple[Linear, int]]) -> bool:
    """Whether no row is in two slices, in any iterations. Each slice is given by its
    first row and its number of rows."""
    slope = rows[0][0].slope
    if not slope or any(place.slope != slope for place, _ in rows):
        return False
    hit = [(place.start + n) % slope for place, count in rows for n in range(count)]
    return len(set(hit)) == len(hit)


def updates_of(value: SSAValue) -> tuple[SSAValue, Sequence[DynamicUpdateSliceOp]]:
    """The tensor that slices are written into, and the chain of updates that write
    them, as long as nothing else reads the tensors in between."""
    op = value.owner
    if not isinstance(op, DynamicUpdateSliceOp) or op.outs or not value.has_one_use():
        return value, ()
    whole, updates = updates_of(op.inputs[0])
    return whole, (*updates, op)


def _put(update: DynamicUpdateSliceOp, loop: WhileOp, counted: Counter) -> Put | None:
    """The rows that an update writes; None if it does not write whole rows in place
    that are linear in the iteration."""
    whole, row, *_ = update.inputs
    if (starts := places(update, loop, counted)) is None:
        return None
    shape = shape_of(tensor_type_of(row.type))
    if shape[1:] != shape_of(tensor_type_of(whole.type))[1:]:
        return None
    return Put(before_reshapes(row), update, starts[0])


def before_reshapes(value: SSAValue) -> SSAValue:
    """The value of which `value` is a reshape, through all reshapes."""
    op = value.owner
    if not isinstance(op, ReshapeOp | BroadcastInDimOp) or op.outs:
        return value
    if isinstance(op, BroadcastInDimOp) and not op.only_reshapes:
        return value
    return before_reshapes(op.inputs[0])
