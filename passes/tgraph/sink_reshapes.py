"""`tgraph-sink-reshapes`: reshapes go after elementwise operations.

    %0 = tgraph.dot_general %x, %w {...} : ... -> tensor<32x8xf32>
    %1 = tgraph.reshape %0 : (tensor<32x8xf32>) -> tensor<4x8x8xf32>
    %2 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 2>} : ...
    %3 = tgraph.add %1, %2 : tensor<4x8x8xf32>

    %0 = tgraph.dot_general %x, %w {...} : ... -> tensor<32x8xf32>
    %2 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : ...
    %1 = tgraph.add %0, %2 : tensor<32x8xf32>
    %3 = tgraph.reshape %1 : (tensor<32x8xf32>) -> tensor<4x8x8xf32>

So the operation joins the group of what it reads, and nothing is stored between the
two: linear layers of PyTorch, which flatten and unflatten around each product, and
group normalisation. (MLIR's linalg fuses by expanding and collapsing shapes likewise.)

Done where only this operation reads the value, and all its other operands can be seen
in that shape without a copy, and are not computed for this operation alone.

Needs: level 1, before fusion. Leaves: the same. Does not: move other views, or reshapes
of symbolic sizes; or part an operation from a reduction that it could join, or from the
variable or concatenation that it is computed into.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...dialects.sizes.symbolic import Symbolic
from ...dialects.tgraph.base import (
    Shape,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.fusing import COMPUTED, CONTRACTIONS
from ...dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
    ViewOp,
)
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphSinkReshapes(OptionalPass):
    """Moves reshapes after elementwise operations, so that these can be fused."""

    name = "tgraph-sink-reshapes"
    LOWERS_PEAK = True
    TOPIC = "fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            erase_unused(block)  # a dead reader would count
            for inner in list(block.ops):
                if isinstance(inner, ElementwiseOp) and not inner.outs:
                    _sink(inner)
            erase_unused(block)


def _sink(op: ElementwiseOp) -> None:
    """Computes in the shape that an operand had before it was reshaped, if the others
    can be seen in that shape."""
    reshape = next((r for v in op.inputs if (r := _reshape_for(op, v))), None)
    if reshape is None or not _may_be_reshaped(op):
        return
    shape = _shape(reshape.inputs[0])
    seen = {value: _seen(value, shape) for value in op.inputs}
    operands: list[SSAValue] = []
    for value in op.inputs:
        view = seen[value]
        if view is None:
            return
        operands.append(view[-1].results[0] if isinstance(view, list) else view)
    before = InsertPoint.before(op)
    for view in seen.values():
        for made in view if isinstance(view, list) else ():
            Rewriter.insert_op(made, before)
    new = type(op).create(
        operands=operands,
        result_types=[with_shape(op.result.type, shape)],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )
    result = ReshapeOp([new.result], result_types=(op.result.type,))
    result.location = op.location
    new.result.name_hint = op.result.name_hint
    Rewriter.replace_op(op, [new, result])


def _reshape_for(op: ElementwiseOp, value: SSAValue) -> ReshapeOp | None:
    """The reshape that a value is, if what it reshapes is computed for this operation
    alone."""
    reshape = value.owner
    if not isinstance(reshape, ReshapeOp) or reshape.outs:
        return None
    sizes = (*_shape(value), *_shape(reshape.inputs[0]))
    if 0 in sizes or any(isinstance(size, Symbolic) for size in sizes):
        return None
    is_alone = all(use.operation is op for use in value.uses)
    return reshape if is_alone and _is_joined(reshape.inputs[0]) else None


def _is_joined(value: SSAValue) -> bool:
    """Whether what computes a value can be fused with the only reader."""
    readers = {use.operation for use in value.uses}
    return isinstance(value.owner, COMPUTED) and len(readers) == 1


def _may_be_reshaped(op: ElementwiseOp) -> bool:
    """Whether nothing is lost if a reshape is between an operation and its readers."""
    readers = {use.operation for use in op.result.uses}
    if any(isinstance(reader, ElementwiseOp) for reader in readers):
        return len(readers) == 1
    return all(isinstance(r, (ViewOp, ReturnOp, *CONTRACTIONS)) for r in readers)


def _seen(value: SSAValue, shape: Shape) -> SSAValue | list[TensorOp] | None:
    """A value in another shape, as the operations, the last of them, that show it so;
    None if there are none, or if the value would have been fused with its reader."""
    owner = value.owner
    type_ = with_shape(tensor_type_of(value.type), shape)
    if isinstance(owner, ConstantOp) and owner.splat is not None:
        return [ConstantOp(owner.splat, type_)]
    if isinstance(owner, BroadcastInDimOp):
        return _broadcast(owner, shape)
    if isinstance(owner, ReshapeOp) and not owner.outs:
        value = owner.inputs[0]
        if _shape(value) == shape:
            return value
    if not _is_contiguous(value) or _is_joined(value):
        return None
    return [ReshapeOp([value], result_types=(type_,))]


def _is_contiguous(value: SSAValue) -> bool:
    """Whether it is known to lie in memory as it is, in order."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.inputs[0]
    return not isinstance(value.owner, ViewOp | IotaOp)


def _broadcast(op: BroadcastInDimOp, shape: Shape) -> list[TensorOp] | None:
    """The reshape of a broadcast, as a broadcast."""
    source = op.inputs[0]
    if op.outs or _is_joined(source) or not _is_contiguous(source):
        return None
    dims = op.broadcast_dimensions.get_values()
    large = _shape(op.result)
    kept = [
        dim
        for size, dim in zip(_shape(source), dims, strict=True)
        if size == large[dim] != 1
    ]
    if kept != sorted(kept):
        return None
    to: list[int] = []
    for old, new in _matching(large, shape):
        given = [dim in kept for dim in old if large[dim] != 1]
        if any(given):
            if not all(given):
                return None
            to += new
    type_ = tensor_type_of(source.type)
    views: list[TensorOp] = []
    if (narrow := tuple(shape[dim] for dim in to)) != _shape(source):
        views.append(ReshapeOp([source], result_types=(with_shape(type_, narrow),)))
        source = views[-1].results[0]
    wide = BroadcastInDimOp(
        [source],
        result_types=(with_shape(type_, shape),),
        properties={"broadcast_dimensions": ints(to)},
    )
    return [*views, wide]


def _matching(old: Shape, new: Shape) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Dimensions of two shapes that hold the same elements, as few as possible at once.

    `(32, 5)` and `(4, 8, 5)`: 0 and 0, 1; 1 and 2.
    """
    i = j = 0
    while i < len(old) or j < len(new):
        first, last = (i, j), (min(i + 1, len(old)), min(j + 1, len(new)))
        i, j = last
        while (a := prod(old[first[0] : i])) != (b := prod(new[first[1] : j])):
            if a < b:
                i += 1
            else:
                j += 1
        yield range(first[0], i), range(first[1], j)


def _shape(value: SSAValue) -> Shape:
    return shape_of(tensor_type_of(value.type))
