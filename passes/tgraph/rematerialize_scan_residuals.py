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

 * values that follow from the others by elementwise operations, broadcasts, and
   reshapes;
 * values that follow in this way from narrower values, such as the scores of all pairs
   of states from the states: the loop stacks the narrower values instead, if they take
   at most a fourth of the bytes;
 * tensors that the first loop only reads, and slices of them, such as the weights of
   layer i, if the place of the slice is a linear function of i;
 * integers that are linear functions of i;
 * values that one iteration passes to the next, if the loop also stacks the values that
   each iteration starts with. The second loop must begin with the last row. It then
   carries the row.

An iteration of an unrolled loop stacks several rows. Each of them counts as a stack of
its own if the other loop reads them one by one (shared/unrolled.py).

The first loop must write all rows, one in each iteration, starting from the first or
the last row. The row index may be any linear function of the counter.

Needs: level 1, after `cse` and before tgraph-fuse.
Leaves: level 1.
Does not: handle stacks with readers other than slices in later loops, or recompute more
than a few operations for a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.common_subexpression_elimination import cse

from ...analysis.functions import tensor_blocks
from ...analysis.loops import Counter, counter, is_read, only_writer
from ...analysis.scans import (
    Linear,
    Put,
    Stack,
    argument_for,
    before_reshapes,
    extended,
    linear,
    places,
    row_slices,
    stacks,
)
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import (
    Shape,
    TensorOp,
    VariableType,
    ints,
    shape_of,
    tensor_type_of,
    typical_bytes,
    value_bytes,
    value_shape,
    with_shape,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ReshapeOp, ViewOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ..optional import OptionalPass
from .shared.constants import full
from .shared.loops import rewrite_loops
from .shared.unrolled import place_at, put_row, row_by_row

MOST = 4
"""The largest number of elementwise operations to recompute for a value."""

NARROW = 4
"""How many times larger a value must be than the narrower values that replace it."""

FEW = 4
"""The fewest rows of a stack that is worth replacing by a value that a loop carries."""


@dataclass(frozen=True)
class TGraphRematerializeScanResiduals(OptionalPass):
    """Recomputes values in a loop instead of stacking them in an earlier loop."""

    name = "tgraph-rematerialize-scan-residuals"
    LOWERS_PEAK = True
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            rewrite_loops(block, _rewritten)


class _Reader(NamedTuple):
    """A slice, in another loop, of a stack."""

    slice: DynamicSliceOp

    @property
    def loop(self) -> WhileOp:
        """The loop around the slice. Loops that get more operands are replaced."""
        loop = self.slice.parent_op()
        assert isinstance(loop, WhileOp)
        return loop

    @property
    def block(self) -> Block:
        assert self.slice.parent is not None
        return self.slice.parent

    def row(self) -> Linear | None:
        """The row that the slice reads in each iteration; None if it does not read one
        whole row at a linear function of the counter."""
        counted = counter(self.loop)
        whole = shape_of(tensor_type_of(self.slice.inputs[0].type))
        row = shape_of(tensor_type_of(self.slice.result.type))
        if counted is None or row != (1, *whole[1:]):
            return None
        found = places(self.slice, self.loop, counted)
        return found[0] if found else None

    def carries(self, value: SSAValue) -> bool:
        return value in self.loop.inputs[: len(self.loop.res)]

    def can_have(self, leaves: Mapping[SSAValue, "_Leaf"]) -> bool:
        """Whether the loop can have `leaves`, which are functions of the row."""
        row, counted = self.row(), counter(self.loop)
        if row is None or counted is None:
            return False
        number = tensor_type_of(self.slice.inputs[1].type).element_type
        for value, leaf in leaves.items():
            if isinstance(leaf, Linear):
                if tensor_type_of(value.type).element_type != number:
                    return False
            elif self.carries(leaf.whole) or not all(
                start.of(row).fits(number, counted.trips) for start in leaf.starts
            ):
                return False
        return True

    def part(self, part: "_Part", type: Attribute) -> SSAValue:
        """Inserts a slice of a tensor, reshaped to `type`. The loop gets the tensor as
        an operand if it does not have it yet."""
        whole = argument_for(self.slice, part.whole)
        if part.sizes == shape_of(tensor_type_of(whole.type)):
            return self.shaped(whole, type)
        starts = [place_at(s, self.slice.inputs[1], self.slice) for s in part.starts]
        slice = DynamicSliceOp(
            [whole, *starts],
            result_types=[with_shape(tensor_type_of(whole.type), part.sizes)],
            properties={"slice_sizes": ints(part.sizes)},
        )
        return self.shaped(self.insert(slice), type)

    def shaped(self, value: SSAValue, type: Attribute) -> SSAValue:
        """Returns `value`, reshaped to `type`."""
        if type == value.type:
            return value
        return self.insert(ReshapeOp([value], result_types=[type]))

    def number(self, place: Linear, type: Attribute) -> SSAValue:
        """Inserts the value of `place` at the slice's row, broadcast to `type`."""
        number = place_at(place, self.slice.inputs[1], self.slice)
        how = {"broadcast_dimensions": ints(())}
        return self.insert(
            BroadcastInDimOp([number], result_types=[type], properties=how)
        )

    def like(self, op: TensorOp, operands: Sequence[SSAValue]) -> SSAValue:
        """Inserts a copy of `op` with other operands."""
        types, properties = [op.results[0].type], op.properties
        new = op.__class__.create(
            operands=operands, result_types=types, properties=properties
        )
        return self.insert(new)

    def insert(self, op: TensorOp) -> SSAValue:
        op.attributes |= self.slice.attributes
        op.location = self.slice.location
        self.block.insert_op_before(op, self.slice)
        return op.results[0]

    def replace(self, value: SSAValue) -> None:
        row = self.shaped(value, self.slice.result.type)
        self.slice.result.replace_all_uses_with(row)
        Rewriter.erase_op(self.slice)


class _Part(NamedTuple):
    """A slice of a tensor outside of a loop, at linear functions of a number."""

    whole: SSAValue
    starts: Sequence[Linear]
    sizes: Shape

    def of(self, number: Linear) -> "_Part":
        """The part with `number` in place of the variable of its starts."""
        return self._replace(starts=[start.of(number) for start in self.starts])


_Leaf: TypeAlias = _Part | Linear
"""A value as a function of the number of an iteration or of a row."""


class _Residuals:
    """The values that a loop stacks, some of which follow from the others."""

    def __init__(self, loop: WhileOp, counted: Counter):
        self.loop, self.counted = loop, counted
        self.kept: dict[SSAValue, _Part] = {}  # the rows that hold values

    def try_recompute(self, stack: Stack) -> bool:
        """Makes the readers of `stack` compute its rows. Returns whether they can."""
        (put,), whole = stack.puts, self.loop.res[stack.number]
        readers = _readers(whole)
        is_row = put.shape[0] == 1
        if readers and is_row and self._try_recompute(whole, put, readers):
            return True
        starts = [put.place, *[Linear(0, 0)] * (len(put.shape) - 1)]
        self.kept.setdefault(put.value, _Part(whole, starts, put.shape))
        return False

    def _try_recompute(
        self, whole: SSAValue, put: Put, readers: Sequence[_Reader]
    ) -> bool:
        leaves: dict[SSAValue, _Leaf] = {}
        narrow: dict[SSAValue, None] = {}
        chain = self._chain(put, leaves, narrow)
        if chain is None or not (leaves or narrow):
            return False
        if NARROW * sum(map(value_bytes, narrow)) > value_bytes(put.value):
            return False
        if not all(self._is_kept(leaf, whole) for leaf in leaves.values()):
            return False
        iteration = put.place.inverse()
        of_row = {value: leaf.of(iteration) for value, leaf in leaves.items()}
        if not all(reader.can_have(of_row) for reader in readers):
            return False
        if narrow:
            for value in narrow:
                self._stack(value, put)
            for value in (*leaves, *narrow):  # in the loop as it is now
                leaf = self._leaf(value)
                assert leaf is not None
                of_row[value] = leaf.of(iteration)
        for reader in readers:
            _compute(reader, put.value, chain, of_row)
        return True

    def _is_kept(self, leaf: _Leaf, stack: SSAValue) -> bool:
        """Whether keeping `leaf` takes no more bytes than keeping `stack`."""
        if isinstance(leaf, Linear) or leaf in self.kept.values():
            return True
        types = tensor_type_of(leaf.whole.type), tensor_type_of(stack.type)
        bytes, instead = map(typical_bytes, types)
        return _is_in_callers_memory(leaf.whole) or bytes <= instead

    def _stack(self, value: SSAValue, put: Put) -> None:
        """Makes the loop stack `value` in the same rows as `put` does."""
        type, number = tensor_type_of(value.type), len(self.loop.res)
        row = (1, *type.get_shape())
        stack = with_shape(type, (value_shape(put.update.result)[0], *row[1:]))
        begun = full(0, stack)
        for op in begun:
            op.location = self.loop.location
        Rewriter.insert_op(begun, InsertPoint.before(self.loop))
        self.loop = extended(self.loop, [begun[-1].result], ())
        self.kept = {
            stacked: part._replace(
                whole=self.loop.res[cast(OpResult, part.whole).index]
            )
            for stacked, part in self.kept.items()
        }
        index, others = put.update.inputs[2], len(row) - 1
        starts = [index, *[place_at(Linear(0, 0), index, put.update)] * others]
        put_row(self.loop, number, (value, row), starts, (put.update, put.update))
        places = [put.place, *[Linear(0, 0)] * others]
        self.kept[value] = _Part(self.loop.res[number], places, row)

    def _chain(
        self,
        put: Put,
        leaves: dict[SSAValue, _Leaf],
        narrow: dict[SSAValue, None],
    ) -> Sequence[TensorOp] | None:
        """The operations, in order, that compute the value of `put` from leaves and
        narrower values, which this function adds to `leaves` and `narrow`. None if
        there are too many, or other operations."""
        found: dict[TensorOp, None] = {}

        def visit(value: SSAValue) -> bool:
            op = value.owner
            if value in leaves or value in narrow or op in found:
                return True
            if (leaf := self._leaf(value)) is not None:
                leaves[value] = leaf
                return True
            if isinstance(op, ConstantOp) and op.splat is not None:
                found[op] = None
                return True
            if NARROW * value_bytes(value) <= value_bytes(put.value):
                narrow[value] = None
                return True
            if not isinstance(op, ElementwiseOp | BroadcastInDimOp | ReshapeOp):
                return False
            if len(found) >= 2 * MOST or not all(map(visit, op.inputs)):
                return False
            found[op] = None
            return True

        is_found = visit(put.value)
        count = sum(isinstance(op, ElementwiseOp) for op in found)
        return list(found) if is_found and count <= MOST else None

    def _leaf(self, value: SSAValue) -> _Leaf | None:
        number = linear(value, self.loop, self.counted)
        if number is not None and number.slope:
            return number
        return self.kept.get(value) or self._given(value)

    def _given(self, value: SSAValue) -> _Part | None:
        """`value` as all or a part of a tensor that the loop only reads, or None."""
        if isinstance(value, BlockArgument):
            shape = shape_of(tensor_type_of(value.type))
            whole = self.loop.inputs[value.index]
            return _Part(whole, [Linear(0, 0)] * len(shape), shape)
        op = before_reshapes(value).owner
        if not isinstance(op, DynamicSliceOp) or op.outs:
            return None
        argument = op.inputs[0]
        starts = places(op, self.loop, self.counted)
        if (
            starts is None
            or not isinstance(argument, BlockArgument)
            or isinstance(argument.type, VariableType)
        ):
            return None
        sizes = shape_of(tensor_type_of(op.result.type))
        return _Part(self.loop.inputs[argument.index], starts, sizes)

    def try_carry(self, stack: Stack) -> bool:
        """Makes a loop that reads `stack` from the last row on carry the row. Returns
        whether it can: each row must be the value with which the next iteration
        begins, and the loop must stack the values with which its iterations begin."""
        (put,), whole, trips = (
            stack.puts,
            self.loop.res[stack.number],
            self.counted.trips,
        )
        readers, begun = _readers(whole), self._stacked_starts(put.value)
        if not readers or begun is None or trips < FEW or put.shape[0] > 1:
            return False
        if len({reader.loop for reader in readers}) > 1:
            return False
        number, before = begun
        iteration = put.place.inverse()
        for reader in readers:
            counted, row = counter(reader.loop), reader.row()
            if (
                counted is None
                or row is None
                or counted.trips != trips
                or reader.block is not reader.loop.body.block
                or iteration.of(row) != Linear(-1, trips - 1)
                or not reader.can_have({put.value: before.of(iteration)})
            ):
                return False
        _carry(readers, self.loop.res[number], before.of(iteration))
        return True

    def _stacked_starts(self, value: SSAValue) -> tuple[int, _Part] | None:
        """The number of the carried value that `value` becomes, and the stack of this
        carried value at the start of each iteration; None if there is no such stack."""
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
    found = [stack for stack in stacks(loop) if len(stack.puts) == 1]
    if counted is None or not found:
        return loop
    slices = [op for stack in found for op in row_slices(loop.res[stack.number]) or ()]
    blocks = dict.fromkeys(slice.parent for slice in slices)
    residuals = _Residuals(loop, counted)
    rest = [stack for stack in found if not residuals.try_recompute(stack)]
    rest = [stack for stack in rest if not residuals.try_carry(stack)]
    dropped = [stack.number for stack in found if stack not in rest]
    if not dropped:
        return loop
    remark(
        f"{len(dropped)} of {len(found)} values that the loop stacks are recomputed "
        "from the others where they are read",
        loop,
        passed=True,
    )
    for block in filter(None, blocks):  # several readers compute the same values
        cse(block)
    return residuals.loop


def _is_in_callers_memory(value: SSAValue) -> bool:
    """Whether `value` is a view of the caller's memory."""
    op = value.owner
    if isinstance(op, ViewOp) and not op.outs:
        return _is_in_callers_memory(op.inputs[0])
    return isinstance(op, ReadOp | Block)


def _readers(stack: SSAValue) -> Sequence[_Reader]:
    """The readers of a stack; empty if some are not slices in loops."""
    return [_Reader(slice) for slice in row_slices(stack) or ()]


def _compute(
    reader: _Reader,
    value: SSAValue,
    chain: Sequence[TensorOp],
    leaves: Mapping[SSAValue, _Leaf],
) -> None:
    """Replaces the row that `reader` reads by `value`, computed from `leaves`, which
    are functions of the row."""
    new = {
        leaf: reader.number(place, leaf.type)
        if isinstance(place, Linear)
        else reader.part(place, leaf.type)
        for leaf, place in leaves.items()
    }
    for op in chain:
        new[op.results[0]] = reader.like(op, [new[v] for v in op.inputs])
    reader.replace(new[value])


def _carry(readers: Sequence[_Reader], last: SSAValue, before: _Part) -> None:
    """Makes the loop of `readers` carry the row that they read: first `last`, then
    `before`, a function of the row that the preceding iteration read."""
    loop = extended(readers[0].loop, [last], ())
    number = len(loop.res) - 1
    variable = loop.body.block.args[number]
    type = tensor_type_of(last.type)
    first = readers[0]
    read = ReadOp(variable)
    assign = AssignOp(variable, first.part(before, type))
    block = first.block
    assert block.first_op is not None
    assert block.last_op is not None
    block.insert_op_before(read, block.first_op)
    assign.location = first.slice.location
    block.insert_op_before(assign, block.last_op)
    for reader in readers:
        reader.replace(read.result)
