"""`tgraph-hoist-transposes`: moves transposes before elementwise operations.

    %0 = tgraph.multiply %x, %s : tensor<4x8xf32>
    %1 = tgraph.tanh %0 : tensor<4x8xf32>
    %2 = tgraph.transpose %1 {permutation = array<i64: 1, 0>} : ... -> tensor<8x4xf32>
    func.return %2 : tensor<8x4xf32>

    %x0 = tgraph.transpose %x {permutation = array<i64: 1, 0>} : ... -> tensor<8x4xf32>
    %s0 = tgraph.transpose %s {permutation = array<i64: 1, 0>} : ... -> tensor<8x4xf32>
    %0 = tgraph.multiply %x0, %s0 : tensor<8x4xf32>
    %2 = tgraph.tanh %0 : tensor<8x4xf32>
    func.return %2 : tensor<8x4xf32>

A transpose is a view, but results are stored contiguously, and so are assigned values,
operands of concatenations, and reshapes that no strides can express. There, a transpose
copies a stored value. Before the operations, it is a view of their operands instead,
and the operations write straight to the destination of the copy. An image that is
normalized and brought to channels first needs no memory but its result. Two groups with
a transpose in between become one.

    %1 = tgraph.reshape %0 : (tensor<32x16xf32>) -> tensor<4x8x2x8xf32>
    %2 = tgraph.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : ...

If there is a reshape in between, as when an image is divided into patches, the pass
reshapes the operands, too, if this takes only views. It creates broadcasts, constants
of one number, and iotas in the new shape.

    %m = tgraph.compare %i, %j {direction = "LE"} : ...
    %0 = tgraph.select %m, %x, %y : ...           // %m has other readers
    %1 = tgraph.transpose %0 {permutation = array<i64: 1, 0>} : ...

What a few operations compute from iotas and constants of one number, such as the mask
of a triangle, is computed again in the new order, so no group has to store it.

Needs: level 1, before fusion.
Leaves: level 1.
Does not: move transposes before other operations whose results have other readers, or
which may be fused with the contraction or concatenation that they read; or handle
symbolic sizes.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from ...analysis.functions import erase_unused, is_unused, tensor_blocks
from ...analysis.layout import Layout
from ...dialects.sizes.symbolic import Symbolic
from ...dialects.tgraph.base import (
    TensorOp,
    value_shape,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.reducing import ReduceOp
from ...dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    PadOp,
    ReshapeOp,
    TransposeOp,
    ViewOp,
)
from ...dialects.tgraph.structure import AssignOp
from ..optional import OptionalPass
from .shared.reshaped import (
    can_fuse_with_reader,
    computed_for,
    computed_in,
    is_counted,
    reshaped,
    transposed,
)


@dataclass(frozen=True)
class TGraphHoistTransposes(OptionalPass):
    """Moves transposes before elementwise operations, so that they are views."""

    name = "tgraph-hoist-transposes"
    LOWERS_PEAK = True
    TOPIC = "fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            erase_unused(block)  # an unused reader would count as a use
            after = block.last_op
            while after and (inner := after.prev_op):  # visits inserted operations, too
                is_transpose = isinstance(inner, TransposeOp)
                if not (is_transpose and _is_copied(inner) and _hoist(inner)):
                    after = inner
            erase_unused(block)


def _is_copied(op: TransposeOp) -> bool:
    """Whether a reader requires a copy of the transpose, or is elementwise."""
    if op.outs or any(isinstance(size, Symbolic) for size in value_shape(op.result)):
        return False
    for use in op.result.uses:
        match reader := use.operation:
            case ElementwiseOp() | AssignOp() | ConcatenateOp():
                return True
            case DynamicUpdateSliceOp():
                if use.index == 1:
                    return True
            case ReshapeOp():
                seen = Layout.contiguous(value_shape(op.inputs[0])).viewed(op)
                if seen is None or seen.viewed(reader) is None:
                    return True
            case _:
                if reader.has_trait(IsTerminator, value_if_unregistered=False):
                    return True
    return False


def _hoist(op: TransposeOp) -> bool:
    """Moves `op` before the operations that compute its operand, if it is the only
    reader. Returns whether it moved."""
    view: ViewOp = op
    before = op.inputs[0]
    if isinstance(before.owner, ReshapeOp) and not before.owner.outs:
        if before.has_one_use():
            view = before.owner
    may_repeat = is_counted if view is op else None  # no view reshapes all iotas
    members = computed_for(view, may_repeat=may_repeat)
    computed = {member.result for member in members}
    read = dict.fromkeys(v for m in members for v in m.inputs if v not in computed)
    if not members or any(_is_joined(value, read) for value in read):
        return False
    shape = value_shape(op.result)
    made = computed_in(shape, members, lambda value: _seen(value, op))
    if made is None:
        return False
    Rewriter.insert_op(made, InsertPoint.before(members[-1]))
    op.result.replace_all_uses_with(made[-1].results[0])
    for old in dict.fromkeys((op, view, *reversed(members))):
        if is_unused(old):
            Rewriter.erase_op(old)
    for value in read:  # an unused view would count as a reader
        if isinstance(value.owner, ViewOp) and not value.uses:
            Rewriter.erase_op(value.owner)
    return True


def _is_joined(value: SSAValue, read: dict[SSAValue, None]) -> bool:
    """Whether `value` may be computed together with its readers: in a group with a
    contraction, or with a reduction of another value in `read`; or part by part, if it
    is a concatenation or a pad."""
    if isinstance(value.owner, BroadcastInDimOp):
        source = value.owner.inputs[0].owner
        return isinstance(source, ReduceOp) and any(v in read for v in source.inputs)
    return can_fuse_with_reader(value) or isinstance(value.owner, ConcatenateOp | PadOp)


def _seen(value: SSAValue, op: TransposeOp) -> list[TensorOp] | None:
    """The views that reshape `value` to the operand's shape and transpose it as `op`
    does; None if no view can reshape it."""
    shape = value_shape(op.inputs[0])
    made: list[TensorOp] = []
    if value_shape(value) != shape:
        views = reshaped(value, shape)
        if views is None:
            return None
        if isinstance(views, list):
            made, value = views, views[-1].results[0]
        else:
            value = views
    made.append(transposed(value, op.permutation.get_values()))
    made[-1].location = op.location
    return made
