"""`tgraph-coalesce-loops`: merges two nested loops into one.

    %0:2 = tgraph.while ...                    // i = 0, 1, ... 5
      %b = tgraph.dynamic_slice %w, %i ...     // row i of a tensor<6x4x8x8xf32>
      %1:3 = tgraph.while %zero, %x, %s, %b ...   // j = 0, 1, ... 3
        %r = tgraph.dynamic_slice %b, %j ...

    %1:3 = tgraph.while ...                    // n = 0, 1, ... 23
      %r = tgraph.dynamic_slice %w, %n ...     // row n of a tensor<24x8x8xf32>

The program no longer copies a block of rows, and the inner loop writes the values that
it stacks straight to their final place. To all later passes, a scan over blocks of
layers is a scan over layers.

Each value that the inner loop carries must start as a value that the outer loop carries
and become its next value, or it must be a stack that becomes one row of a stack of the
outer loop. Each tensor that the inner loop only reads must be the same in all
iterations, or a row of a tensor, which the inner loop then reads row by row. Each row
index must be a linear function of n.

Needs: level 1, after `cse` and before tgraph-fuse.
Leaves: level 1.
Does not: handle loops with other work between them, or inner loops that are unrolled or
use integers computed from i.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.loops import Counter, counter, only_writer
from ...analysis.scans import Linear, Stack, before_reshapes, places, stacks
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import (
    AnyTensor,
    TensorOp,
    VariableType,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ...dialects.tgraph.callbacks import has_side_effect
from ...dialects.tgraph.elementwise import CompareOp, RemainderOp
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ...dialects.tgraph.shaping import ConstantOp, ReshapeOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp, yielded
from ..optional import OptionalPass
from .shared.unrolled import place_at


@dataclass(frozen=True)
class TGraphCoalesceLoops(OptionalPass):
    """Merges two perfectly nested loops into one."""

    name = "tgraph-coalesce-loops"
    LOWERS_PEAK = True
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [
            loop
            for block in tensor_blocks(op)
            for loop in block.ops
            if isinstance(loop, WhileOp)
        ]
        for loop in loops:
            at: WhileOp | None = loop
            while at is not None and at.parent is not None:  # not erased meanwhile
                at = _coalesced(at)


class _Unfit(Exception):
    """Raised if two loops cannot be merged."""


class _Flat(NamedTuple):
    """A tensor whose rows are blocks of rows, to be reshaped to a tensor of rows."""

    whole: SSAValue  # defined outside of both loops
    rows: int  # in each block
    places: Mapping[Operation, Linear]  # the row that each accesses

    @property
    def type(self) -> AnyTensor:
        blocks, _, *rest = shape_of(tensor_type_of(self.whole.type))
        return with_shape(tensor_type_of(self.whole.type), (blocks * self.rows, *rest))


def _coalesced(outer: WhileOp) -> WhileOp | None:
    """Merges `outer` with the loop inside it. Returns the new loop, or None if the
    loops are unchanged."""
    inners = [op for op in outer.body.block.ops if isinstance(op, WhileOp)]
    counts = [counter(loop) for loop in (outer, *inners)]
    if len(inners) != 1 or None in counts or has_side_effect(outer):
        return None
    counted, inside = [count for count in counts if count is not None]
    try:
        nest = _Nest(outer, inners[0], counted, inside)
    except _Unfit:
        return None
    new = nest.coalesced()
    remark("the loop and the loop inside it become one", new, passed=True)
    return new


class _Nest:
    """Two nested loops. Raises `_Unfit` if they cannot be merged."""

    def __init__(
        self, outer: WhileOp, inner: WhileOp, counted: Counter, inside: Counter
    ):
        self.outer, self.inner = outer, inner
        self.counted, self.inside = counted, inside
        self.trips = counted.trips * inside.trips
        self.results: dict[int, int] = {}  # the inner loop's, by the outer loop's
        self.flat: dict[int, _Flat] = {}  # by inputs of the inner loop
        self.inputs: dict[int, SSAValue] = {}  # other inputs of the inner loop
        stacked = {stack.number: stack for stack in stacks(inner)}
        blocks = stacks(outer)
        count = len(inner.res)
        for number in range(len(inner.inputs)):
            if number == inside.number:
                self._check(not inner.res[number].uses)
            elif number >= count:
                self._give(number)
            elif number in stacked:
                self._stack(stacked[number], blocks)
            else:
                self._carry(number)
        rest = set(range(len(outer.res))) - {*self.results}
        self._check(rest == {counted.number})
        self._check(not outer.res[counted.number].uses)
        compare, writer = (
            yielded(inner.condition)[0].owner,
            only_writer(inner, inside.number),
        )
        self._check(isinstance(writer, AssignOp) and writer.value.has_one_use())
        self._check(self.trips > 0)
        element = tensor_type_of(inner.inputs[inside.number].type).element_type
        self._check(isinstance(compare, CompareOp))
        self._check(Linear(1, 1).fits(element, self.trips))

    def _check(self, holds: bool) -> None:
        if not holds:
            raise _Unfit

    def _carry(self, number: int) -> None:
        """Records input `number` of the inner loop, a value that both loops carry."""
        begun, end = self.inner.inputs[number], self.inner.res[number]
        read = begun.owner
        if not isinstance(read, ReadOp) or not isinstance(read.variable, BlockArgument):
            raise _Unfit
        outside = read.variable.index
        writer = only_writer(self.outer, outside)
        self._check(begun.has_one_use() and end.has_one_use())
        self._check(isinstance(writer, AssignOp) and writer.value is end)
        self._check(not self.outer.condition.block.args[outside].uses)
        self.results[outside] = number
        self.inputs[number] = self.outer.inputs[outside]

    def _stack(self, rows: Stack, blocks: Sequence[Stack]) -> None:
        """Records a stack of the inner loop that is a row of one of `blocks`."""
        result = self.inner.res[rows.number]
        found = [
            block
            for block in blocks
            if len(block.puts) == 1 and block.puts[0].value is result
        ]
        self._check(len(found) == 1 and result.has_one_use())
        (block,) = found
        whole = self.outer.inputs[block.number]
        shape = shape_of(tensor_type_of(result.type))
        self._check(shape_of(tensor_type_of(whole.type))[1:] == shape)
        (put,) = block.puts
        self._note(
            rows.number, whole, put.place, {row.update: row.place for row in rows.puts}
        )
        self.results[block.number] = rows.number

    def _give(self, number: int) -> None:
        """Records input `number` of the inner loop, which the loop only reads."""
        value = self.inner.inputs[number]
        if isinstance(value, BlockArgument):
            self._check(not isinstance(value.type, VariableType))
            self.inputs[number] = self.outer.inputs[value.index]
            return
        slice = before_reshapes(value).owner
        if not isinstance(slice, DynamicSliceOp) or slice.outs:
            raise _Unfit
        starts = places(slice, self.outer, self.counted)
        given = slice.inputs[0]
        shape = shape_of(tensor_type_of(value.type))
        if starts is None or not isinstance(given, BlockArgument):
            raise _Unfit
        self._check(not isinstance(given.type, VariableType))
        self._check(shape_of(tensor_type_of(given.type))[1:] == shape)
        self._check(shape_of(tensor_type_of(slice.result.type)) == (1, *shape))
        self._check(not self.inner.condition.block.args[number].uses)
        read: dict[Operation, Linear] = {}
        for use in self.inner.body.block.args[number].uses:
            op = use.operation
            if not isinstance(op, DynamicSliceOp) or use.index or op.outs:
                raise _Unfit
            if not (inside := places(op, self.inner, self.inside)):
                raise _Unfit
            read[op] = inside[0]
        self._note(number, self.outer.inputs[given.index], starts[0], read)

    def _note(
        self,
        number: int,
        whole: SSAValue,
        block: Linear,
        rows: Mapping[Operation, Linear],
    ) -> None:
        """Records `whole`, which the inner loop accesses at `rows` of `block`."""
        count = shape_of(tensor_type_of(whole.type))[1]
        slope = block.slope * count
        self._check(all(r.slope * self.inside.trips == slope for r in rows.values()))
        flat = {op: r.plus(Linear(0, block.start * count)) for op, r in rows.items()}
        self.flat[number] = _Flat(whole, count, flat)

    def coalesced(self) -> WhileOp:
        outer, inner = self.outer, self.inner
        zero = inner.inputs[self.inside.number].owner
        assert isinstance(zero, ConstantOp)
        self.inputs[self.inside.number] = self._outside(zero.clone())
        self._count()
        for number, flat in self.flat.items():
            self.inputs[number] = self._reshaped(flat.whole, flat.type)
            for region in inner.regions:
                _retype(region.block.args[number], flat.type)
        inputs = [self.inputs[number] for number in range(len(inner.inputs))]
        new = WhileOp(
            inputs,
            result_types=[value.type for value in inputs[: len(inner.res)]],
            regions=[inner.detach_region(region) for region in list(inner.regions)],
        )
        new.attributes |= inner.attributes
        self._outside(new)
        for outside, number in self.results.items():
            new.res[number].name_hint = outer.res[outside].name_hint
            _replace(outer.res[outside], new.res[number])
        outer.detach()
        outer.erase()
        assert new.parent is not None
        erase_unused(new.parent)  # among others, reshapes that the old loops read
        return new

    def _outside(self, op: TensorOp | WhileOp) -> SSAValue:
        """Inserts `op` before the loops, and returns its first result."""
        block = self.outer.parent
        assert block is not None
        op.location = self.outer.location
        block.insert_op_before(op, self.outer)
        return op.results[0]

    def _reshaped(self, value: SSAValue, type: AnyTensor) -> SSAValue:
        """Returns `value`, defined outside of the loops, reshaped to `type`."""
        op = value.owner
        if (same := before_reshapes(value)).type == type:
            return same
        if isinstance(op, ConstantOp) and op.splat is not None:
            return self._outside(ConstantOp(op.value, type))
        return self._outside(ReshapeOp([value], result_types=[type]))

    def _count(self) -> None:
        """Makes the inner loop count the iterations of both loops."""
        inner, number = self.inner, self.inside.number
        compare = yielded(inner.condition)[0].owner
        assert isinstance(compare, CompareOp)
        compare.operands[1] = _constant(self.trips, compare.inputs[1], compare)
        erase_unused(inner.condition.block)
        block = inner.body.block
        assert block.first_op is not None
        read = ReadOp(block.args[number])
        block.insert_op_before(read, block.first_op)
        for flat in self.flat.values():
            for op, place in flat.places.items():
                at = 2 if isinstance(op, DynamicUpdateSliceOp) else 1
                op.operands[at] = place_at(place, read.result, op)
        erase_unused(block)
        writer = only_writer(inner, number)
        assert isinstance(writer, AssignOp)
        for use in list(block.args[number].uses):
            old = use.operation
            if isinstance(old, ReadOp) and old is not read:
                self._count_inside(old, read, writer.value.owner)

    def _count_inside(self, old: ReadOp, new: ReadOp, step: object) -> None:
        """Replaces `old`, a read of the inner loop's counter: `step`, which increments
        it, uses `new`, and all other users `new` modulo the inner loop's trip count."""
        type = old.result.type
        rest: SSAValue | None = None
        for use in list(old.result.uses):
            if use.operation is step:
                use.operation.operands[use.index] = new.result
                continue
            if rest is None:
                trips = _constant(self.inside.trips, old.result, old)
                op = RemainderOp([new.result, trips], result_types=[type])
                op.location = old.location
                Rewriter.insert_op(op, InsertPoint.before(old))
                rest = op.result
            use.operation.operands[use.index] = rest
        Rewriter.erase_op(old)


def _constant(number: int, like: SSAValue, before: Operation) -> SSAValue:
    type = tensor_type_of(like.type)
    element = cast(IntegerType, type.element_type)
    op = ConstantOp(IntegerAttr(number, element), type)
    op.location = before.location
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.result


def _retype(value: SSAValue, type: AnyTensor) -> None:
    """Changes `value` to `type`, and with it reads and updates of slices."""
    is_variable = isinstance(value.type, VariableType)
    new = VariableType(type) if is_variable else type
    value = Rewriter.replace_value_with_new_type(value, new)
    for use in list(value.uses):
        op = use.operation
        if isinstance(op, ReadOp | DynamicUpdateSliceOp):
            _retype(op.result, type)


def _read_as(new: SSAValue, old: SSAValue) -> None:
    """Replaces reshapes of `old` that have the type of `new` by `new`, and erases
    unused reshapes."""
    for op in [use.operation for use in old.uses]:
        if isinstance(op, ReshapeOp) and not op.outs:
            _read_as(new, op.result)
            if op.result.type == new.type:
                op.result.replace_all_uses_with(new)
            if not op.result.uses:
                Rewriter.erase_op(op)


def _replace(old: SSAValue, new: SSAValue) -> None:
    """Replaces a loop's result by one that may have another shape."""
    _read_as(new, old)
    if old.type != new.type and old.uses:
        shaped = ReshapeOp([new], result_types=[old.type])
        loop = new.owner
        assert isinstance(loop, WhileOp)
        shaped.location = loop.location
        Rewriter.insert_op(shaped, InsertPoint.after(loop))
        new = shaped.result
    old.replace_all_uses_with(new)
