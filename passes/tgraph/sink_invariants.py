"""`tgraph-sink-invariants`: computes masks and positions in the loops that read them.

    %i = tgraph.iota {dimension = 0} : tensor<128x128xi32>
    %j = tgraph.iota {dimension = 1} : tensor<128x128xi32>
    %m = tgraph.compare %i, %j {direction = "GE"} : ... -> tensor<128x128xi1>
    %0:2 = tgraph.while %c0, %h, %m : ... {...} do {
    ^bb0(%vi: ..., %vh: ..., %a: tensor<128x128xi1>):
      %s = tgraph.select %a, %scores, %low : tensor<128x128xf32>

    %0:2 = tgraph.while %c0, %h : ... {...} do {
    ^bb0(%vi: ..., %vh: ...):
      %i = tgraph.iota {dimension = 0} : tensor<128x128xi32>
      %j = tgraph.iota {dimension = 1} : tensor<128x128xi32>
      %m = tgraph.compare %i, %j {direction = "GE"} : ... -> tensor<128x128xi1>
      %s = tgraph.select %m, %scores, %low : tensor<128x128xf32>

A value that is computed before a loop is live as long as the loop runs. A value that
follows from constants and indices alone, element by element, needs no memory at all if
its readers compute it, in their own groups: causal masks, positional encodings, complex
constants (rematerialization, Briggs, Cooper and Torczon, "Rematerialization", PLDI
1992). The pass moves such values into the loop, the cheapest ones first, as long as all
of them add at most a hundredth to the loop's estimated time. It goes from the outermost
loop inwards.

Needs: level 1, before tgraph-fuse, which groups the operations with their readers.
Leaves: level 1.
Does not: move values that are read by operations other than elementwise ones, or by the
loop's condition, or that depend on an argument of the function.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.cost import arithmetic, time, time_to_move
from ...analysis.functions import blocks_within, erase_makers, tensor_functions
from ...analysis.loops import iterations
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import value_bytes
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, IotaOp, ReshapeOp
from ...dialects.tgraph.structure import WhileOp
from ...dialects.tgraph.unused import without_unused
from ..optional import OptionalPass
from .shared.streams import has_streams

MOST = 64
"""The largest number of operations that compute a value."""

MAX_SLOWDOWN = 0.01
"""The share of a loop's time that the values may add. For the same share,
tgraph-hoist-invariants moves operations out of the loop again."""

_VIEWS = BroadcastInDimOp, ReshapeOp
_COMPUTED = ElementwiseOp, IotaOp, ConstantOp, *_VIEWS


@dataclass(frozen=True)
class TGraphSinkInvariants(OptionalPass):
    """Computes values of constants and indices in the loops that read them."""

    name = "tgraph-sink-invariants"
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if not has_streams(func, "nothing is moved into loops"):
                for each in blocks_within(block):
                    for loop in list(each.ops):
                        if isinstance(loop, WhileOp):
                            _sink(loop)


def _sink(loop: WhileOp) -> None:
    """Moves invariants into a loop."""
    arguments = loop.body.block.args
    found: list[tuple[float, int, Sequence[Operation]]] = []
    for number in range(len(loop.res), len(loop.inputs)):
        value = loop.inputs[number]
        readers = _readers(arguments[number])
        if isinstance(value.owner, ConstantOp) or not readers:
            continue
        if loop.condition.block.args[number].uses:
            continue
        if ops := _computing(value):
            took = time_to_move(value_bytes(value))
            found.append((readers * (sum(map(arithmetic, ops)) - took), number, ops))
    left = MAX_SLOWDOWN * time(loop) / max(iterations(loop), 1)
    copies: dict[SSAValue, SSAValue] = {}
    first = loop.body.block.first_op
    assert first is not None
    for added, number, ops in sorted(found, key=lambda x: x[:2]):
        left -= max(added, 0)
        if left < 0:
            break
        for op in ops:
            if op.results[0] not in copies:
                Rewriter.insert_op(op.clone(copies), InsertPoint.before(first))
        arguments[number].replace_all_uses_with(copies[loop.inputs[number]])
    if not copies:
        return
    remark(f"operations computed in the loop: {len(copies)}", loop, passed=True)
    given = [value for value in loop.inputs if value in copies]
    without_unused(loop)
    erase_makers(given)


def _readers(value: SSAValue) -> int:
    """The number of elementwise operations that read a value, also as a view or in a
    loop that gets it. 0 if others read it, too."""
    count = 0
    for use in value.uses:
        op = use.operation
        if isinstance(op, ElementwiseOp):
            readers = 1
        elif isinstance(op, _VIEWS):
            readers = _readers(op.result)
        elif isinstance(op, WhileOp) and use.index >= len(op.res):
            readers = iterations(op) * _readers(op.body.block.args[use.index])
        else:
            readers = 0
        if not readers:
            return 0
        count += readers
    return count


def _computing(value: SSAValue) -> Sequence[Operation]:
    """The operations that compute a value from constants and indices, in program order.
    Empty if it depends on other values, or on too many operations."""
    found: dict[Operation, None] = {}
    return list(found) if _add(value, found, MOST) else ()


def _add(value: SSAValue, found: dict[Operation, None], most: int) -> bool:
    """Adds the operations that compute a value to `found`. Returns whether they depend
    on nothing else, and no more than `most` of them on one another."""
    op = value.owner
    if op in found:
        return True
    if not isinstance(op, _COMPUTED) or op.outs or not most or len(found) == MOST:
        return False
    if not all(_add(operand, found, most - 1) for operand in op.operands):
        return False
    found[op] = None
    return True
