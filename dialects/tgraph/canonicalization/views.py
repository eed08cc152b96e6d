"""Merges and removes operations that move elements: reshape, transpose, broadcast."""

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...compatibility import replace
from ..base import (
    TensorOp,
    ints,
    is_static,
    tensor_type_of,
    value_shape,
    with_shape,
    without_ones,
)
from ..elementwise import ElementwiseOp
from ..partial import is_complete
from ..shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    TransposeOp,
)
from .common import (
    can_drop,
    can_merge,
    has_static_operands,
    insert_before,
    is_on_tensors,
    merge_with,
    replace_with,
)


class DropIdentity(RewritePattern):
    """A shape operation without effect -> its operand."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(op, TensorOp)
        if not op.results or op.operands[0].type != op.results[0].type:
            return
        if not can_drop(op) or _moves(op):
            return
        if is_complete(tensor_type_of(op.results[0].type)):
            replace(rewriter, op, (), (op.operands[0],))


def _moves(op: TensorOp) -> bool:
    """Whether an operation moves elements, although operand and result types match."""
    match op:
        case BroadcastInDimOp():
            dims = op.broadcast_dimensions.get_values()
            return dims != tuple(range(len(dims)))
        case ConcatenateOp():
            return len(op.inputs) > 1
        case PadOp():
            amounts = op.low, op.high, op.interior
            return any(any(amount.get_values()) for amount in amounts)
        case ReverseOp():
            shape = value_shape(op.result)
            return any(shape[d] != 1 for d in op.dimensions.get_values())
        case TransposeOp():
            permutation = op.permutation.get_values()
            return permutation != tuple(range(len(permutation)))
        case _:
            return False  # reshape, slice


class DropEmptyOperands(RewritePattern):
    """concatenate(x, y), where y has no elements -> concatenate(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatenateOp, rewriter: PatternRewriter) -> None:
        along = op.dimension.value.data
        kept = [value for value in op.inputs if value_shape(value)[along] != 0]
        kept = kept or op.inputs[:1]  # all are empty
        if not is_on_tensors(op) or len(kept) == len(op.inputs):
            return
        new = ConcatenateOp(
            kept,
            result_types=[op.result.type],
            properties={"dimension": op.dimension},
        )
        replace_with(rewriter, op, new)


class MergeReshapes(RewritePattern):
    """reshape(reshape(x)) -> reshape(x); also for a broadcast that only reshapes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ReshapeOp | BroadcastInDimOp):
            return
        if isinstance(source, BroadcastInDimOp) and not source.only_reshapes:
            return
        if can_merge(op, source):
            new = ReshapeOp(source.inputs, result_types=(op.result.type,))
            merge_with(rewriter, op, source, new)


class MergeTransposes(RewritePattern):
    """transpose(transpose(x)) -> transpose(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, TransposeOp) and can_merge(op, source)):
            return
        inner = source.permutation.get_values()
        merged = [inner[d] for d in op.permutation.get_values()]
        new = TransposeOp(
            source.inputs,
            result_types=(op.result.type,),
            properties={"permutation": ints(merged)},
        )
        merge_with(rewriter, op, source, new)


class MergeReverses(RewritePattern):
    """reverse(reverse(x)) -> reverse(x) along the dimensions that only one reverses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReverseOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, ReverseOp) and can_merge(op, source)):
            return
        merged = {*op.dimensions.get_values()} ^ {*source.dimensions.get_values()}
        new = ReverseOp(
            source.inputs,
            result_types=(op.result.type,),
            properties={"dimensions": ints(sorted(merged))},
        )
        merge_with(rewriter, op, source, new)


def _merge_broadcast(
    rewriter: PatternRewriter,
    op: TensorOp,
    source: BroadcastInDimOp,
    dimensions: Sequence[int],
) -> None:
    """Replaces a view of a broadcast by a broadcast of its operand to `dimensions`."""
    new = BroadcastInDimOp(
        source.inputs,
        result_types=(op.result.type,),
        properties={"broadcast_dimensions": ints(dimensions)},
    )
    merge_with(rewriter, op, source, new)


class MergeBroadcasts(RewritePattern):
    """broadcast_in_dim(broadcast_in_dim(x)) -> broadcast_in_dim(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: BroadcastInDimOp, rewriter: PatternRewriter
    ) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, BroadcastInDimOp) and can_merge(op, source)):
            return
        outer = op.broadcast_dimensions.get_values()
        merged = [outer[d] for d in source.broadcast_dimensions.get_values()]
        _merge_broadcast(rewriter, op, source, merged)


class TransposeOfBroadcast(RewritePattern):
    """transpose(broadcast_in_dim(x)) -> broadcast_in_dim(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, BroadcastInDimOp) and can_merge(op, source)):
            return
        places = op.permutation.get_values()
        dims = [places.index(d) for d in source.broadcast_dimensions.get_values()]
        _merge_broadcast(rewriter, op, source, dims)


class ElementwiseOfBroadcasts(RewritePattern):
    """f(broadcast_in_dim(x), broadcast_in_dim(y)) -> broadcast_in_dim(f(x, y)), if both
    broadcast in the same way: the computed, and possibly stored, tensor is smaller.

    Constants of one number, and scalars, may be broadcast in any way.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, ElementwiseOp) or not is_on_tensors(op):
            return
        owners = [value.owner for value in op.inputs]
        sources = [s for s in owners if isinstance(s, ConstantOp | BroadcastInDimOp)]
        repeated = [s for s in sources if isinstance(s, BroadcastInDimOp)]
        if not repeated or len(sources) < len(owners):
            return
        whole = tensor_type_of(op.result.type)
        if not is_static(whole) or not all(map(has_static_operands, repeated)):
            return
        first = max(repeated, key=lambda s: prod(value_shape(s.inputs[0])))
        shape = value_shape(first.inputs[0])
        if prod(shape) >= prod(value_shape(op.result)):
            return
        if not all(_is_repeated_as(first, s) and can_merge(op, s) for s in sources):
            return
        operands: list[SSAValue] = []
        for source in sources:
            if source.properties == first.properties:
                operands.append(source.inputs[0])
                continue
            type_ = with_shape(tensor_type_of(source.result.type), shape)
            small = type(source).create(
                operands=source.operands,
                result_types=(type_,),
                properties=source.properties,
            )
            insert_before(rewriter, op, small)
            operands.append(small.result)
        new = type(op).create(
            operands=operands,
            result_types=(with_shape(whole, shape),),
            properties=op.properties,
        )
        insert_before(rewriter, op, new)
        again = BroadcastInDimOp(
            new.results, result_types=(op.result.type,), properties=first.properties
        )
        merge_with(rewriter, op, first, again)


def _is_repeated_as(
    first: BroadcastInDimOp, source: BroadcastInDimOp | ConstantOp
) -> bool:
    """Whether `source` has equal elements wherever the broadcast `first` has."""
    if isinstance(source, ConstantOp):
        return source.splat is not None
    shape = value_shape(source.inputs[0])
    return not shape or (
        shape == value_shape(first.inputs[0])
        and source.broadcast_dimensions == first.broadcast_dimensions
    )


class BroadcastOfReshape(RewritePattern):
    """broadcast_in_dim(reshape(x)) -> broadcast_in_dim(x), if the reshape only adds or
    removes dimensions of size 1."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: BroadcastInDimOp, rewriter: PatternRewriter
    ) -> None:
        if new := without_reshape(op):
            replace(rewriter, op, new)


def without_reshape(op: BroadcastInDimOp) -> BroadcastInDimOp | None:
    """The broadcast of a reshape's operand, if the reshape only adds or removes
    dimensions of size 1; None otherwise."""
    source = op.inputs[0].owner
    if not (isinstance(source, ReshapeOp) and can_merge(op, source)):
        return None
    outer = op.broadcast_dimensions.get_values()
    before, after = value_shape(source.inputs[0]), value_shape(op.inputs[0])
    places = [dim for size, dim in zip(after, outer, strict=True) if size != 1]
    if without_ones(before) != without_ones(after):
        return None
    # A dimension of size 1 may map to any remaining result dimension.
    left = [d for d in range(len(value_shape(op.result))) if d not in places]
    dims: list[int] = []
    for size in before:
        if size != 1:
            dims.append(places.pop(0))
        elif left:
            dims.append(left.pop(0))
        else:
            return None
    new = BroadcastInDimOp(
        source.inputs,
        result_types=(op.result.type,),
        properties={"broadcast_dimensions": ints(dims)},
    )
    new.location, new.attributes = op.location, {**source.attributes}
    return new
