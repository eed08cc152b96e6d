"""`tgraph-reroll-loops`: merges an unrolled loop and the iterations after it.

    %w0 = tgraph.slice %w ...                   // rows 0 to 94 of a tensor<96x8x8xf32>
    %0:3 = tgraph.while %zero, %x, %s, %w0 ...  // i = 0, 1, ... 18
      ...                                       // row 5 i, 5 i + 1, ... 5 i + 4
    %w1 = tgraph.slice %w ...                   // row 95
    %y = ...                                    // of %0#1 and row 95
    %1 = tgraph.concatenate %0#2, ...           // what is stacked, and the row of %y

    %0:3 = tgraph.while %zero, %x, %t, %w ...   // n = 0, 1, ... 95
      ...                                       // row n

A scan that is unrolled by a factor that does not divide its length is a loop over
some rows, with the remaining iterations after it. Later passes look for loops over all
rows: they keep, recompute, and update row by row. This pass makes one loop of all
iterations, each with one row (loop rerolling).

The pass finds the first iteration in the body: the operations that compute the first of
several adjacent rows. It computes each further iteration symbolically, from the values
of the preceding one. It looks for the operations of an iteration in the body or, for
the remaining iterations, after the loop. Every element is computed from the same
elements as before, so results are bitwise identical.

Needs: level 1, after tgraph-unroll-loops.
Leaves: level 1, canonical.
Does not: handle loops over all rows, loops whose stacks have readers besides the
concatenation with the remaining rows, or remaining iterations before the loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.loops import counter, only_writer
from ...analysis.scans import Linear, argument_for, before_reshapes, extended
from ...dialects.contents import contents_of
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import tensor_type_of
from ...dialects.tgraph.callbacks import has_side_effect
from ...dialects.tgraph.elements import number_of
from ...dialects.tgraph.elementwise import CompareOp
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import ConstantOp, ReshapeOp
from ...dialects.tgraph.structure import ReadOp, WhileOp
from ..optional import OptionalPass
from .shared.iterations import Body, Remaining, Unfit
from .shared.loops import rewrite_loops
from .shared.simplifying import simplify
from .shared.unrolled import (
    insert_full,
    is_over_some_rows,
    place_at,
    put_row,
    row_by_row,
)


@dataclass(frozen=True)
class TGraphRerollLoops(OptionalPass):
    """Merges an unrolled loop and the iterations after it into one loop."""

    name = "tgraph-reroll-loops"
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = _candidates(op)
        if not found:
            return
        for loop in found:
            _sink_constants(loop)
        simplify(ctx, op.regions)
        before = contents_of(op)
        for block in dict.fromkeys(loop.parent for loop in _candidates(op)):
            assert block is not None
            rewrite_loops(block, _rerolled)
        if contents_of(op) != before:
            simplify(ctx, op.regions)


def _candidates(op: ModuleOp) -> Sequence[WhileOp]:
    """The loops to which later iterations may be added."""
    return [
        loop
        for block in tensor_blocks(op)
        for loop in block.ops
        if isinstance(loop, WhileOp) and _is_candidate(loop)
    ]


def _is_candidate(loop: WhileOp) -> bool:
    is_known = counter(loop) is not None and is_over_some_rows(loop)
    return is_known and not has_side_effect(loop)


def _sink_constants(loop: WhileOp) -> None:
    """Replaces constants of one number that the loop receives by constants in its body,
    as in the operations after the loop."""
    for number in range(len(loop.res), len(loop.inputs)):
        constant = before_reshapes(loop.inputs[number]).owner
        if not isinstance(constant, ConstantOp) or constant.splat is None:
            continue
        for use in list(loop.body.block.args[number].uses):
            op = use.operation
            if isinstance(op, DynamicSliceOp):
                row = _constant(constant.value, op.result.type, op)
                op.result.replace_all_uses_with(row)
                Rewriter.erase_op(op)
            else:
                type = loop.inputs[number].type
                op.operands[use.index] = _constant(constant.value, type, op)


def _rerolled(loop: WhileOp) -> WhileOp:
    if not _is_candidate(loop):
        return loop
    loop = row_by_row(loop)
    try:
        body = Body(loop)
        remaining = Remaining(body)
    except Unfit:
        return loop
    remark(
        f"iterations merged into the loop that precedes them: {len(remaining.rows)}",
        loop,
        passed=True,
    )
    return _joined(body, remaining)


def _joined(body: Body, remaining: Remaining) -> WhileOp:
    """Makes the loop compute all iterations, one row each. Returns the loop."""
    loop, block = body.loop, body.block
    assert block.first_op is not None
    ends = remaining.uses_of_ends()
    index = ReadOp(block.args[body.counted.number])
    block.insert_op_before(index, block.first_op)
    for op in body.ops:
        row = body.slices.get(op)
        for n, value in enumerate(op.operands):
            if (number := body.numbers.get(value)) is not None:
                first = Linear(0, row.first if row and n == 1 else 0)
                place = body.once(number).plus(first)
                op.operands[n] = place_at(place, index.result, op)
        if isinstance(op, DynamicSliceOp) and row is not None:
            op.operands[0] = argument_for(op, row.whole)
    for stack in body.stacks:
        joined, begin = remaining.wholes[stack.number]
        loop = _loop_of(index)
        number = len(loop.res)
        begun = loop.inputs[stack.number].owner
        assert isinstance(begun, ConstantOp)
        shape = tensor_type_of(joined.result.type).get_shape()
        loop = extended(loop, [insert_full(begun, shape, loop)], ())
        put = body.puts[stack.number][0]
        update, place = put.update, body.once(put.place).plus(Linear(0, begin))
        at = place_at(place, index.result, update)
        starts = [at, *update.inputs[3:]]
        put_row(loop, number, (put.value, put.shape), starts, (update, update))
        joined.result.replace_all_uses_with(loop.res[number])
        Rewriter.erase_op(joined)
    loop = _loop_of(index)
    for number, value in body.next.items():
        writer = only_writer(loop, number)
        assert writer is not None
        writer.operands[1] = value
        for use in ends.get(number, ()):
            _read_end(use, loop.res[number])
    _count(loop, body.counted.number, remaining.trips)
    return loop


def _loop_of(op: Operation) -> WhileOp:
    """The loop whose body contains `op`. Loops that are extended are replaced."""
    loop = op.parent_op()
    assert isinstance(loop, WhileOp)
    return loop


def _read_end(use: Use, value: SSAValue) -> None:
    """Replaces the operand of `use` by the loop's result `value`, perhaps reshaped."""
    op, index = use.operation, use.index
    type = op.operands[index].type
    if value.type != type:
        shaped = ReshapeOp([value], result_types=[tensor_type_of(type)])
        shaped.location = op.location
        Rewriter.insert_op(shaped, InsertPoint.before(op))
        value = shaped.result
    op.operands[index] = value


def _count(loop: WhileOp, number: int, trips: int) -> None:
    """Makes `loop` run `trips` iterations. `number` is that of its counter."""
    block = loop.condition.block
    end = block.last_op
    assert end is not None
    read = ReadOp(block.args[number])
    type = tensor_type_of(read.result.type)
    limit = ConstantOp(number_of(trips, type.element_type), type)
    test = CompareOp(
        [read.result, limit.result],
        result_types=[end.operands[0].type],
        properties={"direction": StringAttr("LT")},
    )
    for op in (read, limit, test):
        op.location = end.location
        block.insert_op_before(op, end)
    end.operands[0] = test.result
    erase_unused(block)


def _constant(number: Attribute, type: Attribute, before: Operation) -> SSAValue:
    op = ConstantOp(number, tensor_type_of(type))
    op.location = before.location
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.result
