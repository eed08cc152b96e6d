"""`tgraph-rematerialize-scan-residuals`: recomputes values that a forward loop would
stack for a backward loop.

    %0:3 = tgraph.while ...             // iteration i puts y into row i of %0#1,
                                        // and 1 - y into row i of %0#2
    %1 = tgraph.while ..., %0#1, %0#2 ...    // reads a row of both

    %0:2 = tgraph.while ...
    %1 = tgraph.while ..., %0#1 ...     // computes 1 - y from the row of %0#1

The loop of a forward pass stacks the values that the loop of the backward pass needs.
In a recurrent network, one or two operations compute many of these values, such as the
derivatives of the gates, from the others. The pass no longer stacks them. Each
iteration of the backward loop recomputes them instead, with bitwise identical results:

 * values that follow elementwise from the others;
 * row i of a tensor that the first loop receives, such as the weights of a layer, and
   the index i itself;
 * the values that one iteration passes to the next, if the loop also stacks them as the
   next iteration's inputs. If the second loop begins with the last row, it carries that
   row.

An iteration of an unrolled loop stacks several rows. Each of them counts as a stack of
its own if the other loop reads them one by one (shared/unrolled.py).

The first loop must write all rows: its counter runs from 0 to the number of rows in
steps of 1. The row index may be any linear function of the counter.

Needs: level 1, after `cse` and before tgraph-fuse.
Leaves: level 1.
Does not: handle stacks that anything but slices in a later loop reads, or repeat more
than a few operations for a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.functions import tensor_blocks
from ...analysis.loops import Counter, counter, is_read, only_writer
from ...analysis.scans import (
    Linear,
    Stack,
    extended,
    given,
    linear,
    row_slices,
    stacks,
    without_stacks,
)
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import (
    AnyTensor,
    TensorOp,
    VariableType,
    ints,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ...dialects.tgraph.elementwise import AddOp, ElementwiseOp
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ReshapeOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ..optional import OptionalPass
from .shared.unrolled import row_by_row

MOST = 4
"""Operations that are repeated for a value, at most."""

FEW = 4
"""Rows of a stack that is worth less than what a loop carries instead."""


@dataclass(frozen=True)
class TGraphRematerializeScanResiduals(OptionalPass):
    """Recomputes values in a loop instead of stacking them in an earlier loop."""

    name = "tgraph-rematerialize-scan-residuals"
    LOWERS_PEAK = True
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in list(tensor_blocks(op)):
            at = block.first_op
            while at is not None:  # loops after it are made anew
                at = (_rewritten(at) if isinstance(at, WhileOp) else at).next_op


class _Reader(NamedTuple):
    """A slice, in another loop, of what a loop has stacked."""

    slice: DynamicSliceOp

    @property
    def loop(self) -> WhileOp:
        """Loops that are given more are made anew."""
        loop = self.slice.parent_op()
        assert isinstance(loop, WhileOp)
        return loop

    @property
    def block(self) -> Block:
        assert self.slice.parent is not None
        return self.slice.parent

    def row(self) -> Linear | None:
        """The row that it takes in each iteration."""
        counted = counter(self.loop)
        return counted and linear(self.slice.inputs[1], self.loop, counted)

    def carries(self, value: SSAValue) -> bool:
        return value in self.loop.inputs[: len(self.loop.res)]

    def rows_of(self, whole: SSAValue) -> SSAValue:
        """The same slice of another tensor, which the loop is given if it is not."""
        argument = given(self.slice, whole)
        taken = _taken(argument, self.slice)
        return taken or self.emit(self.slice, [argument, *self.slice.inputs[1:]])

    def emit(self, like: TensorOp, operands: Sequence[SSAValue]) -> SSAValue:
        """An operation on rows in this place."""
        slice = self.slice
        first = operands[0] if like is slice else like.results[0]
        shape = shape_of(tensor_type_of(slice.result.type))
        copy = type(like).create(
            operands=operands,
            result_types=[with_shape(tensor_type_of(first.type), shape)],
            properties=like.properties,
            attributes=dict(slice.attributes),
            location=like.location,
        )
        self.block.insert_op_before(copy, slice)
        return copy.results[0]

    def replace(self, value: SSAValue) -> None:
        self.slice.result.replace_all_uses_with(value)
        Rewriter.erase_op(self.slice)


_Leaf: TypeAlias = SSAValue | Linear
"""A tensor that has a value in row i, or the value in iteration i."""


class _Residuals:
    """What a loop stacks, and what of it follows from the rest."""

    def __init__(self, loop: WhileOp, counted: Counter):
        self.loop, self.counted = loop, counted
        self.kept: dict[SSAValue, SSAValue] = {}  # the stacks of values

    def have_computed(self, stack: Stack) -> bool:
        """Has those who read a stack compute its rows; whether they can."""
        whole, value = self.loop.res[stack.number], stack.puts[0].value
        readers = _readers(whole)
        if readers and self._have_computed(whole, value, readers):
            return True
        self.kept.setdefault(value, whole)
        return False

    def _have_computed(
        self, whole: SSAValue, value: SSAValue, readers: Sequence[_Reader]
    ) -> bool:
        leaves: dict[SSAValue, _Leaf] = {}
        chain = self._chain(value, leaves)
        if chain is None or not leaves:
            return False
        type = tensor_type_of(whole.type)
        for reader in readers:
            for leaf in leaves.values():
                if isinstance(leaf, Linear):
                    if not self._counts(reader, type):
                        return False
                elif shape_of(tensor_type_of(leaf.type)) != shape_of(type):
                    return False
                elif reader.carries(leaf):
                    return False
        for reader in readers:
            _compute(reader, value, chain, leaves)
        return True

    def _chain(
        self, value: SSAValue, leaves: dict[SSAValue, _Leaf]
    ) -> Sequence[TensorOp] | None:
        """The operations that compute a value from leaves, which it finds, in order."""
        found: dict[TensorOp, None] = {}

        def visit(value: SSAValue) -> bool:
            op = value.owner
            if value in leaves or op in found:
                return True
            if (leaf := self._leaf(value)) is not None:
                leaves[value] = leaf
                return True
            if not isinstance(op, ElementwiseOp):
                if not isinstance(op, ConstantOp) or op.splat is None:
                    return False
            elif len(found) >= 2 * MOST or not all(map(visit, op.inputs)):
                return False
            found[op] = None
            return True

        is_found = visit(value)
        count = sum(isinstance(op, ElementwiseOp) for op in found)
        return list(found) if is_found and count <= MOST else None

    def _linear(self, value: SSAValue) -> Linear | None:
        return linear(value, self.loop, self.counted)

    def _leaf(self, value: SSAValue) -> _Leaf | None:
        if value in self.kept:
            return self.kept[value]
        if (number := self._linear(value)) and number.slope == 1:
            return number
        return self._given(value)

    def _given(self, value: SSAValue) -> SSAValue | None:
        """The tensor that the loop is given, if a value is row i of it."""
        op = value.owner
        if isinstance(op, ReshapeOp):
            op = op.inputs[0].owner
        if not isinstance(op, DynamicSliceOp) or op.outs:
            return None
        argument, start, *others = op.inputs
        if not isinstance(argument, BlockArgument) or isinstance(
            argument.type, VariableType
        ):
            return None
        rows = shape_of(tensor_type_of(argument.type))
        is_row = (
            argument.block is self.loop.body.block
            and rows[0] == self.counted.trips
            and tuple(op.slice_sizes.get_values()) == (1, *rows[1:])
            and shape_of(tensor_type_of(value.type)) in (rows[1:], (1, *rows[1:]))
            and self._linear(start) == Linear(1, 0)
            and all(self._linear(other) == Linear(0, 0) for other in others)
        )
        return self.loop.inputs[argument.index] if is_row else None

    def _counts(self, reader: _Reader, type: AnyTensor) -> bool:
        """Whether a slice takes one row in each iteration, whose number is known."""
        row, counted = reader.row(), counter(reader.loop)
        if row is None or counted is None or len(shape_of(type)) != 1:
            return False
        low, high = row.ends(counted.trips)
        start = tensor_type_of(reader.slice.inputs[1].type)
        is_inside = 0 <= low and high < self.counted.trips
        return is_inside and start.element_type == type.element_type

    def have_carried(self, stack: Stack) -> bool:
        """Has those who read a stack, from the last row on, carry the row; whether they
        can, as what an iteration leaves to the next one is stacked as what that begins
        with, too."""
        whole, rows = self.loop.res[stack.number], self.counted.trips
        readers, begun = _readers(whole), self._begun(stack.puts[0].value)
        if not readers or begun is None or rows < FEW:
            return False
        if len({reader.loop for reader in readers}) > 1:
            return False
        number, before = begun
        for reader in readers:
            counted = counter(reader.loop)
            if (
                counted is None
                or counted.trips != rows
                or reader.block is not reader.loop.body.block
                or reader.row() != Linear(-1, rows - 1)
                or reader.carries(before)
                or shape_of(tensor_type_of(reader.slice.result.type))
                != (1, *shape_of(tensor_type_of(whole.type))[1:])
            ):
                return False
        _carry(readers, self.loop.res[number], before)
        return True

    def _begun(self, value: SSAValue) -> tuple[int, SSAValue] | None:
        """The result of the loop that a value becomes, and the stack of what that is
        before."""
        for use in value.uses:
            assign = use.operation
            if isinstance(assign, AssignOp) and isinstance(
                assign.variable, BlockArgument
            ):
                number = assign.variable.index
                for start, stack in self.kept.items():
                    if only_writer(self.loop, number) is assign and is_read(
                        start, self.loop, number
                    ):
                        return number, stack
        return None


def _rewritten(loop: WhileOp) -> WhileOp:
    loop = row_by_row(loop)
    counted = counter(loop)
    found = [stack for stack in stacks(loop) if stack.puts[0].place == Linear(1, 0)]
    if counted is None or not found:
        return loop
    residuals = _Residuals(loop, counted)
    rest = [stack for stack in found if not residuals.have_computed(stack)]
    rest = [stack for stack in rest if not residuals.have_carried(stack)]
    dropped = [stack.number for stack in found if stack not in rest]
    if not dropped:
        return loop
    remark(
        f"{len(dropped)} of {len(found)} values that the loop stacks are recomputed "
        "from the others where they are read",
        loop,
        passed=True,
    )
    return without_stacks(loop, dropped)


def _readers(stack: SSAValue) -> Sequence[_Reader]:
    """All that reads a stack; none if that is not slices in loops alone."""
    return [_Reader(slice) for slice in row_slices(stack) or ()]


def _compute(
    reader: _Reader,
    value: SSAValue,
    chain: Sequence[TensorOp],
    leaves: Mapping[SSAValue, _Leaf],
) -> None:
    """Computes what is read of a stack from its leaves."""
    new = {
        leaf: _counted(reader, place)
        if isinstance(place, Linear)
        else reader.rows_of(place)
        for leaf, place in leaves.items()
    }
    for op in chain:
        new[op.results[0]] = reader.emit(op, [new[v] for v in op.inputs])
    reader.replace(new[value])


def _counted(reader: _Reader, place: Linear) -> SSAValue:
    """The number of an iteration of the first loop, from that of the row."""
    row = reader.slice.inputs[1]
    type = tensor_type_of(reader.slice.result.type)
    ops: list[TensorOp] = [
        BroadcastInDimOp(
            [row],
            result_types=[type],
            properties={"broadcast_dimensions": ints(())},
        )
    ]
    if place.start:
        element = cast(IntegerType, type.element_type)
        start = ConstantOp(IntegerAttr(place.start, element), type)
        ops += [start, AddOp([ops[0].result, start.result], result_types=[type])]
    for op in ops:
        op.location = reader.slice.location
        reader.block.insert_op_before(op, reader.slice)
    return ops[-1].result


def _carry(readers: Sequence[_Reader], last: SSAValue, before: SSAValue) -> None:
    """Has the loop of these carry what it reads, first `last`, then the row of
    `before` that it has read in the iteration before."""
    loop = extended(readers[0].loop, [last], ())
    number = len(loop.res) - 1
    variable = loop.body.block.args[number]
    type = tensor_type_of(last.type)
    first = readers[0]
    row = first.rows_of(before)
    read = ReadOp(variable)
    taken = ReshapeOp([row], result_types=[type])
    assign = AssignOp(variable, taken.result)
    block = first.block
    assert block.first_op is not None
    assert block.last_op is not None
    block.insert_op_before(read, block.first_op)
    for op in (taken, assign):
        op.location = first.slice.location
        block.insert_op_before(op, block.last_op)
    for reader in readers:
        of = tensor_type_of(reader.slice.result.type)
        same = ReshapeOp([read.result], result_types=[of])
        same.location = reader.slice.location
        block.insert_op_before(same, reader.slice)
        reader.replace(same.result)


def _taken(whole: SSAValue, like: DynamicSliceOp) -> SSAValue | None:
    """The slice of a tensor at the same place, if it has been taken already."""
    for use in whole.uses:
        op = use.operation
        if (
            isinstance(op, DynamicSliceOp)
            and op.operands[1:] == like.operands[1:]
            and op.slice_sizes == like.slice_sizes
            and op.is_before_in_block(like)
        ):
            return op.result
    return None
