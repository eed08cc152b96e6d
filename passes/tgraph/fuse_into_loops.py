"""`tgraph-fuse-into-loops`: moves the readers of a loop's stack into the loop.

    %0:2 = tgraph.while ...              // iteration i puts %h into row i of 32
    %1 = tgraph.dot_general %0#1, %w ... : ... -> tensor<32x4x8xf32>

    %0:2 = tgraph.while ...              // iteration i puts dot(%h, %w) into row i

A scan over time stacks its states, and a layer after the scan reads all of them: the
output layer of a recurrent network, its loss, or the scan of the next layer. If the
readers can be computed row by row, this pass moves them into the loop, and the stack is
never stored. Sums over the rows become sums that the loop carries (loop fusion, as in
Kennedy and McKinley, "Maximizing loop parallelism and improving data locality via loop
fusion and distribution", 1993). `tgraph-tile` decides what can be computed row by row.
An operation that reads only the last iteration's row, such as a classifier on the last
state, reads the state that the loop carries instead. If only the rows of a few
iterations are read, the loop carries these rows. If only adjacent rows are read, the
loop stacks no others (`shared/kept_rows.py`).

The pass fuses only if the values that are then stored take fewer bytes than the stack,
and if the additional estimated time is at most a tenth of the time of the loop and the
readers: a product reads its weights again in each iteration.

Needs: level 1, after `cse` and before tgraph-fuse.
Leaves: level 1.
Does not: handle stacks that other loops also read, as a backward pass does, or loops
that stack several rows in each iteration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.cost import time
from ...analysis.functions import erase_unused, tensor_functions
from ...analysis.loops import counter, only_writer
from ...analysis.scans import Put, before_reshapes, extended, stacks
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import value_bytes
from ...dialects.tgraph.callbacks import has_side_effect
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import ReshapeOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp, YieldOp
from ..optional import OptionalPass
from .shared.kept_rows import with_kept_rows
from .shared.loops import rewrite_loops
from .shared.streams import has_streams
from .shared.unrolled import place_at
from .tiling.loop_rewriting import write_loop
from .tiling.loop_search import reread_time
from .tiling.loops import Surroundings, TiledLoop, loop_over_stacks
from .tiling.windows import users

SLOWDOWN_DIVISOR = 10
"""The loop and the readers may take longer by their time divided by this."""


@dataclass(frozen=True)
class TGraphFuseIntoLoops(OptionalPass):
    """Moves operations that read a stack row by row into the loop that stacks."""

    name = "tgraph-fuse-into-loops"
    EXACT = False  # products of rows may be added up in another order
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if not has_streams(func, "nothing is moved into loops"):
                rewrite_loops(block, _fused)


def _fused(loop: WhileOp) -> WhileOp:
    """Moves readers of stacks into `loop`. Returns the loop, which may be a new one."""
    loop = with_kept_rows(loop)
    counted, block = counter(loop), loop.parent
    assert block is not None
    if counted is None or has_side_effect(loop):  # the loop would move
        return loop
    puts: dict[SSAValue, Put] = {
        loop.res[stack.number]: stack.puts[0]
        for stack in stacks(loop)
        if len(stack.puts) == 1 and stack.puts[0].shape[0] == 1
    }
    for place in dict.fromkeys(put.place for put in puts.values()):
        rows = {stack: put for stack, put in puts.items() if put.place == place}
        found = loop_over_stacks(Surroundings(block), list(rows), counted.trips)
        if found and _pays(found, loop, list(rows)):
            remark(
                f"{len(found.members)} operations that read what the loop stacks are "
                "moved into it",
                loop,
                passed=True,
            )
            return _joined(loop, write_loop(found), rows)
    return loop


def _pays(found: TiledLoop, loop: WhileOp, stacks: Sequence[SSAValue]) -> bool:
    """Whether the stacks that are no longer stored take more bytes than the values
    stored instead, and the program takes little longer. Elementwise values from before
    the loop count, too: they were computed in the groups of their readers."""
    inside = set(found.members)
    gone = [stack for stack in stacks if inside.issuperset(users(stack))]
    earlier = [v for v in found.sliced if isinstance(v.owner, ElementwiseOp)]
    took = sum(map(time, (loop, *found.members)))
    return (
        not found.is_peeled
        and sum(map(value_bytes, gone))
        > sum(map(value_bytes, (*found.carried, *earlier)))
        and SLOWDOWN_DIVISOR * found.tiles * reread_time(found) <= took
    )


def _joined(first: WhileOp, second: WhileOp, rows: Mapping[SSAValue, Put]) -> WhileOp:
    """Merges two loops and returns the new loop. Of the first loop's results, the
    second one reads only rows of the stacks in `rows`."""
    inside, block = counter(second), second.parent
    assert inside is not None
    assert block is not None
    puts = {
        n: rows[whole]
        for n, value in enumerate(second.inputs)
        if (whole := before_reshapes(value)) in rows
    }
    kept, size, count = len(first.res), len(first.inputs), len(second.res)
    carried = [n for n in range(count) if n != inside.number]
    given = [n for n in range(count, len(second.inputs)) if n not in puts]
    new = extended(first, *([second.inputs[n] for n in ns] for ns in (carried, given)))
    new.detach()
    block.insert_op_before(new, second)
    places = {
        **{n: place for place, n in enumerate(carried, kept)},
        **{n: place for place, n in enumerate(given, size + len(carried))},
    }
    old, arguments = second.body.block.args, new.body.block.args
    values: dict[SSAValue, SSAValue] = {old[n]: arguments[p] for n, p in places.items()}
    for n in carried:
        second.res[n].replace_all_uses_with(new.res[places[n]])
    _add_iteration(new, second, values, {old[n]: put for n, put in puts.items()})
    Rewriter.erase_op(second)
    erase_unused(block)
    return new


def _add_iteration(
    loop: WhileOp,
    other: WhileOp,
    values: dict[SSAValue, SSAValue],
    puts: Mapping[SSAValue, Put],
) -> None:
    """Appends the body of `other` to the body of `loop`. `values` maps arguments of
    `other` to arguments of `loop`, and `puts` maps the others to the rows put there."""
    counted, inside = counter(loop), counter(other)
    assert counted is not None
    assert inside is not None
    body, counts = loop.body.block, other.body.block.args[inside.number]
    begin, end = body.first_op, body.last_op
    assert begin is not None
    assert end is not None
    index = ReadOp(body.args[counted.number])
    body.insert_op_before(index, begin)
    number = place_at(next(iter(puts.values())).place, index.result, end)
    for op in other.body.block.ops:
        match op:
            case ReadOp() if op.variable is counts:
                values[op.result] = number
                continue
            case AssignOp() if op.variable is counts:
                continue
            case YieldOp():
                continue
            case DynamicSliceOp() if op.inputs[0] in puts:
                row = puts[op.inputs[0]].value
                copy = ReshapeOp([row], result_types=[op.result.type])
            case _:
                copy = op.clone(values)
        copy.location = op.location
        body.insert_op_before(copy, end)
        values.update(zip(op.results, copy.results, strict=True))
    _count_last(loop, counted.number)
    erase_unused(body)


def _count_last(loop: WhileOp, number: int) -> None:
    """Moves the increment of the loop's counter after all readers of the counter."""
    body, writer = loop.body.block, only_writer(loop, number)
    assert body.last_op is not None
    if isinstance(writer, AssignOp) and writer.value.has_one_use():
        for op in (writer.value.owner, writer):
            assert isinstance(op, Operation)
            op.detach()
            body.insert_op_before(op, body.last_op)
