"""`tgraph-unroll-loops`: writes out loops of few iterations over some rows of a stack.

    %w0 = tgraph.slice %w ...                 // rows 0 to 3 of a tensor<5x8x8xf32>
    %0:2 = tgraph.while %zero, %x, %w0 ...    // i = 0, 1
      %a = tgraph.dynamic_slice %w0, ...      // row 2 i
      ...                                     // and row 2 i + 1
    %w1 = tgraph.slice %w ...                 // row 4

    %a0 = tgraph.slice %w ...                 // row 0
    ...                                       // and rows 1 to 4

A scan that is unrolled by a factor that does not divide its length is a loop of few
iterations, with the remaining layers before or after it. Written out, all layers are
the same to later passes, which keep, recompute, and update each row on its own. What
the loop stacks becomes a concatenation of rows.

Needs: level 1, after `cse` and before tgraph-rematerialize-scan-residuals.
Leaves: level 1, canonical.
Does not: write out loops of more than four iterations, loops over all rows, or loops
whose iterations are not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import cse

from ...analysis.functions import tensor_blocks
from ...analysis.loops import counter
from ...analysis.scans import stacks
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import TensorOp
from ...dialects.tgraph.shaping import ConcatenateOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp, YieldOp
from ..optional import OptionalPass
from .shared.unrolled import is_over_some_rows, row_by_row

MOST = 4
"""Iterations of a loop that is written out, at most."""


@dataclass(frozen=True)
class TGraphUnrollLoops(OptionalPass):
    """Writes out loops of few iterations over some of a stack's rows."""

    name = "tgraph-unroll-loops"
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        changed = False
        for block in tensor_blocks(op):
            while (loop := _short_loop(block)) is not None:
                _write_out(loop)
                changed = True
        if changed:
            CanonicalizePass().apply(ctx, op)
            cse(op)


def _short_loop(block: Block) -> WhileOp | None:
    """The first loop of few iterations."""
    loops = (op for op in block.ops if isinstance(op, WhileOp))
    return next(filter(_is_short, loops), None)


def _is_short(loop: WhileOp) -> bool:
    counted = counter(loop)
    return (
        counted is not None
        and 0 < counted.trips <= MOST
        and not any(isinstance(op, TensorOp) and op.outs for op in loop.body.block.ops)
        and is_over_some_rows(loop)
    )


def _write_out(loop: WhileOp) -> None:
    loop = row_by_row(loop)
    counted = counter(loop)
    assert counted is not None
    remark(f"the loop is written out: {counted.trips} iterations", loop, passed=True)
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
    """Computes an iteration before the loop, and what it carries after it; the values
    of the body."""
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
    """What a loop stacks, of rows by their place."""
    joined = ConcatenateOp(
        [row for _, row in sorted(rows.items())],
        result_types=[like.type],
        properties={"dimension": IntegerAttr(0, i64)},
    )
    joined.location = loop.location
    Rewriter.insert_op(joined, InsertPoint.before(loop))
    return joined.result
