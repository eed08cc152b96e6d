"""`tgraph-fuse`: chains of elementwise operations become one `tgraph.fusion`.

    %0 = tgraph.broadcast_in_dim %b {...} : (tensor<8xf32>) -> tensor<4x8xf32>
    %1 = tgraph.add %a, %0 : tensor<4x8xf32>
    %2 = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
    %3 = tgraph.maximum %1, %2 : tensor<4x8xf32>

    %3 = tgraph.fusion(%x = %a, %y = %b)
         : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
      %0 = tgraph.broadcast_in_dim %y {...} : (tensor<8xf32>) -> tensor<4x8xf32>
      %1 = tgraph.add %x, %0 : tensor<4x8xf32>
      %2 = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
      %3 = tgraph.maximum %1, %2 : tensor<4x8xf32>
      tgraph.yield %3 : tensor<4x8xf32>
    }

So what is between the operations is never stored, and a broadcast or constant that only
elementwise operations read is never stored at its full size. An elementwise operation
joins the group of its users if one group holds them all; broadcasts, constants with one
number and iotas cost nothing to repeat and are copied into every group that reads them.

Needs: level 1. Leaves: level 1; groups have one result and one shape.
Does not: fuse reductions, contractions or views, compute a value in two groups, look at
what fusing does to the peak.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.dialects.tgraph.base import TensorOp, segments, tensor_type_of
from tensorplan.dialects.tgraph.elementwise import ElementwiseOp
from tensorplan.dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, IotaOp
from tensorplan.dialects.tgraph.structure import FusionOp, YieldOp
from tensorplan.passes.functions import tensor_functions


@dataclass(frozen=True)
class TGraphFuse(ModulePass):
    """Fuses chains of elementwise operations."""

    name = "tgraph-fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, block in tensor_functions(op):
            _erase_unused(block)  # a dead reader would keep its operand out of a group
            ops = list(block.ops)
            position = {op: index for index, op in enumerate(ops)}
            grouped: set[Operation] = set()
            # Backwards, so that an operation's users have their groups before it.
            for root in reversed(ops):
                if _is_elementwise(root) and root not in grouped:
                    members = _group(root, ops, position)
                    grouped.update(members)
                    _outline(root, sorted(members, key=position.__getitem__))
            _erase_unused(block)


def _is_elementwise(op: Operation) -> TypeGuard[ElementwiseOp]:
    return isinstance(op, ElementwiseOp) and bool(op.res)


def _is_repeatable(op: Operation) -> TypeGuard[TensorOp]:
    """Costs nothing to compute again wherever its result is needed."""
    if isinstance(op, ConstantOp):
        return op.splat is not None and bool(op.res)
    return isinstance(op, BroadcastInDimOp | IotaOp) and bool(op.res)


def _group(
    root: ElementwiseOp, ops: Sequence[Operation], position: Mapping[Operation, int]
) -> set[TensorOp]:
    """The operations that are computed together with `root`."""
    members: set[TensorOp] = {root}
    candidates: list[int] = []

    def push_producers(op: TensorOp) -> None:
        for operand in op.inputs:
            if isinstance(operand.owner, Operation) and operand.owner in position:
                heappush(candidates, -position[operand.owner])

    push_producers(root)
    while candidates:  # latest first: all users of a candidate are decided
        op = ops[-heappop(candidates)]
        if op in members:
            continue
        if _is_repeatable(op):
            members.add(op)
        elif (
            _is_elementwise(op)
            and not op.outs
            and all(use.operation in members for use in op.result.uses)
        ):
            members.add(op)
            push_producers(op)
    return members


def _outline(root: ElementwiseOp, members: Sequence[TensorOp]) -> None:
    """Puts the members, in program order, into a fusion in the place of `root`."""
    if len(members) == 1:
        return
    body = Block()
    inputs: list[SSAValue] = []
    inside: dict[SSAValue, SSAValue] = {}  # values outside the body -> in the body
    for op in members:
        for value in op.inputs:
            if value not in inside:
                inputs.append(value)
                argument = body.insert_arg(tensor_type_of(value.type), len(inputs) - 1)
                inside[value] = argument
                inside[value].name_hint = value.name_hint
        copy = type(op).create(
            operands=[inside[value] for value in op.inputs],
            result_types=[op.result.type],
            properties=op.properties | {"operandSegmentSizes": segments(op.inputs, ())},
            location=op.location,
        )
        body.add_op(copy)
        inside[op.result] = copy.results[0]
        copy.results[0].name_hint = op.result.name_hint
    body.add_op(YieldOp(inside[root.result]))
    fusion = FusionOp(
        inputs, Region(body), outs=root.outs, result_types=[root.result.type]
    )
    fusion.location = root.location
    Rewriter.insert_op(fusion, InsertPoint.before(root))
    root.result.replace_all_uses_with(fusion.result)


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if (
            isinstance(op, TensorOp)
            and not op.outs
            and not any(result.uses for result in op.res)
        ):
            op.detach()
            op.erase()
