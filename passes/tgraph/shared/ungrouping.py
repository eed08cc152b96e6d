"""Takes apart the groups that tgraph-eliminate-assigns and tgraph-fuse have made.

%r = tgraph.fusion(%x = %a) outs(%v) : ... { %0 = tgraph.exponential %x ... yield %0 }

%0 = tgraph.exponential %a : tensor<4xf32>
tgraph.assign %v, %0 : tensor<4xf32>
"""

from collections.abc import Mapping

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.tgraph.base import TensorOp, segments
from ....dialects.tgraph.structure import AssignOp, FusionOp
from ..fusion.graph import PLACE


def ungroup(block: Block) -> Mapping[SSAValue, SSAValue]:
    """Takes apart the groups of a block. Returns the value that replaces each of their
    results."""
    renamed: dict[SSAValue, SSAValue] = {}
    for op in list(block.ops):
        if isinstance(op, TensorOp) and op.outs:
            for variable, result in zip(op.outs, op.res, strict=True):
                assign = AssignOp(variable, result)
                assign.location = op.location
                block.insert_op_after(assign, op)
            op.properties["operandSegmentSizes"] = segments(op.inputs, ())
            op.operands = [*op.operands[: op.input_count]]
        if isinstance(op, FusionOp):
            terminator = op.body.block.last_op
            assert terminator is not None
            terminator.detach()
            place = {n: a for n, a in op.attributes.items() if n in PLACE}
            for inner in op.body.block.ops:
                inner.attributes |= place
            Rewriter.inline_block(op.body.block, InsertPoint.before(op), op.inputs)
            for result, value in zip(op.res, terminator.operands, strict=True):
                result.replace_all_uses_with(value)
                renamed[result] = value
            terminator.erase()
            op.detach()
            op.erase()
    return renamed
