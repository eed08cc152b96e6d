"""`tgraph-unroll-loops`: unrolls loops of few iterations completely, in two cases.

    %w0 = tgraph.slice %w ...                 // rows 0 to 3 of a tensor<5x8x8xf32>
    %0:2 = tgraph.while %zero, %x, %w0 ...    // i = 0, 1
      %a = tgraph.dynamic_slice %w0, ...      // row 2 i
      ...                                     // and row 2 i + 1
    %w1 = tgraph.slice %w ...                 // row 4

    %a0 = tgraph.slice %w ...                 // row 0
    ...                                       // and rows 1 to 4

A scan that is unrolled by a factor that does not divide its length is a loop of few
iterations, with the remaining layers before or after it. After complete unrolling, all
layers are the same to later passes, which keep, recompute, and update each row on its
own. A stack of the loop becomes a concatenation of rows.

    %0:3 = tgraph.while %zero, %x, %k ...     // i = 0, 1, 2
      %a = tgraph.multiply %x, %k             // %x is a tensor<8x8xui32>
      %b = tgraph.xor %a, ...                 // %k a tensor<ui32>

    %a0 = tgraph.multiply %x, %k
    %b0 = tgraph.xor %a0, ...
    %a1 = tgraph.multiply %b0, %k
    ...

The second case is a loop that computes element by element, such as the rounds of a
random number generator (Threefry). `tgraph-fuse` then puts the unrolled rounds into one
group, and into the groups that read the numbers, so that the rounds store nothing.

Needs: level 1, after `cse` and before tgraph-rematerialize-scan-residuals.
Leaves: level 1, canonical.
Does not: unroll loops over rows with more than four iterations, loops over all rows,
loops that would become more operations than a group may have, or loops whose number of
iterations is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import tensor_blocks
from ...analysis.loops import counter
from ...analysis.scans import stacks
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import Shape, TensorOp, value_shape
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
    SliceOp,
)
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp, YieldOp
from ..optional import OptionalPass
from .shared.simplifying import simplify
from .shared.unrolled import is_over_some_rows, row_by_row

MOST = 4
"""The largest number of iterations of a loop over rows that is unrolled."""

IN_A_GROUP = 256
"""The largest number of operations that an elementwise loop is unrolled to: the limit
of a group (`tgraph-fuse`)."""


@dataclass(frozen=True)
class TGraphUnrollLoops(OptionalPass):
    """Unrolls loops of few iterations, over some rows of a stack or elementwise."""

    name = "tgraph-unroll-loops"
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        changed = False
        for block in tensor_blocks(op):
            while (loop := _short_loop(block)) is not None:
                _write_out(loop)
                changed = True
        if changed:
            simplify(ctx, op.regions)


def _short_loop(block: Block) -> WhileOp | None:
    """The first loop to unroll, or None."""
    loops = (op for op in block.ops if isinstance(op, WhileOp))
    return next(filter(_is_short, loops), None)


def _is_short(loop: WhileOp) -> bool:
    counted, ops = counter(loop), list(loop.body.block.ops)
    if (
        counted is None
        or counted.trips < 1
        or any(isinstance(op, TensorOp) and op.outs for op in ops)
    ):
        return False
    if counted.trips <= MOST and is_over_some_rows(loop):
        return True
    computed = sum(isinstance(op, ElementwiseOp) for op in ops)
    return counted.trips * computed <= IN_A_GROUP and _is_elementwise(ops)


def _is_elementwise(ops: Sequence[Operation]) -> bool:
    """Whether one group may compute all operations: element by element, on arrays of
    one shape and on single numbers."""
    shapes: set[Shape] = set()
    for op in ops:
        match op:
            case ReadOp() | AssignOp() | YieldOp() | ConstantOp() | IotaOp():
                continue
            case ElementwiseOp() | BroadcastInDimOp():
                shapes.add(value_shape(op.result))
            case SliceOp() | ReshapeOp() if prod(value_shape(op.result)) == 1:
                continue
            case _:
                return False
    return len({shape for shape in shapes if prod(shape) != 1}) == 1


def _write_out(loop: WhileOp) -> None:
    loop = row_by_row(loop)
    counted = counter(loop)
    assert counted is not None
    remark(f"the loop is fully unrolled: {counted.trips} iterations", loop, passed=True)
    arguments = loop.body.block.args
    state: dict[SSAValue, SSAValue] = {}
    state.update(zip(arguments, loop.inputs, strict=True))
    found = stacks(loop)
    rows: dict[int, dict[int, SSAValue]] = {stack.number: {} for stack in found}
    for iteration in range(counted.trips):
        values = _iteration(loop, state)
        for stack in found:
            for put in stack.puts:
                row = put.update.inputs[1]
                at = put.place.start + iteration * put.place.slope
                rows[stack.number][at] = values.get(row, row)
    for number, result in enumerate(loop.res):
        value = state[arguments[number]]
        if number in rows:
            value = _concatenated(loop, rows[number], result)
        result.replace_all_uses_with(value)
    Rewriter.erase_op(loop)


def _iteration(
    loop: WhileOp, state: dict[SSAValue, SSAValue]
) -> dict[SSAValue, SSAValue]:
    """Inserts an iteration before the loop, and updates `state`, the carried values.
    Returns a new value for each value of the body."""
    values = dict(state)
    for op in loop.body.block.ops:
        match op:
            case ReadOp():
                values[op.result] = state[op.variable]
            case AssignOp():
                state[op.variable] = values[op.value]
            case YieldOp():
                pass
            case _:
                copy = op.clone(values)
                copy.location = op.location
                Rewriter.insert_op(copy, InsertPoint.before(loop))
    return values


def _concatenated(
    loop: WhileOp, rows: Mapping[int, SSAValue], like: SSAValue
) -> SSAValue:
    """Concatenates the rows of a stack, given by their places."""
    joined = ConcatenateOp(
        [row for _, row in sorted(rows.items())],
        result_types=[like.type],
        properties={"dimension": IntegerAttr(0, i64)},
    )
    joined.location = loop.location
    Rewriter.insert_op(joined, InsertPoint.before(loop))
    return joined.result
