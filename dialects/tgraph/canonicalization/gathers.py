"""Simplifies gathers: at one place, of broadcasts, of elementwise operations."""

from collections.abc import Mapping
from math import prod

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ..base import (
    ints,
    is_static,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ..elementwise import ElementwiseOp
from ..indexing import GatherOp
from ..shaping import BroadcastInDimOp, ConstantOp, ReshapeOp, plain_slice
from .common import (
    added,
    can_merge,
    has_static_operands,
    is_on_tensors,
    merge_with,
    replace_with,
    splat_integer,
)


class GatherOfOnePlace(RewritePattern):
    """A gather whose indices are one constant number -> a slice, broadcast to all of
    its places, such as the embedding of one token type."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter) -> None:
        place, (x, indices) = splat_integer(op.inputs[1]), op.inputs
        is_known = all(is_static(tensor_type_of(v.type)) for v in (x, indices))
        batching = op.operand_batching_dims.get_values()
        if place is None or not is_known or batching or not is_on_tensors(op):
            return
        type, sizes = tensor_type_of(x.type), op.slice_sizes.get_values()
        first = [0] * len(sizes)
        for dim in op.start_index_map.get_values():
            first[dim] = min(max(place, 0), shape_of(type)[dim] - sizes[dim])
        part = plain_slice(x, first, [*map(int.__add__, first, sizes)])
        dropped = op.collapsed_slice_dims.get_values()
        kept = [size for dim, size in enumerate(sizes) if dim not in dropped]
        window = ReshapeOp(
            [added(rewriter, op, part)], result_types=[with_shape(type, kept)]
        )
        new = BroadcastInDimOp(
            [added(rewriter, op, window)],
            result_types=[op.result.type],
            properties={
                "broadcast_dimensions": ints(sorted(op.offset_dims.get_values()))
            },
        )
        replace_with(rewriter, op, new)


class GatherOfElementwise(RewritePattern):
    """gather(f(x, y)) -> f(gather(x), gather(y)), if f(x, y) has no other use and the
    gathers take fewer elements: only what is gathered is computed, and f(x, y) is not
    stored.

    Numbers are taken from broadcasts without a gather if no index selects among them:
    `log_softmax(x)[label]` is `x[label] - log(sum)`.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter) -> None:
        x, source = op.inputs[0], op.inputs[0].owner
        if not isinstance(source, ElementwiseOp) or not can_merge(op, source):
            return
        if not x.has_one_use() or not has_static_operands(op):
            return
        operands = dict.fromkeys(source.inputs)
        gathers = sum(1 for value in operands if not _is_seen_through(op, value))
        if gathers * prod(value_shape(op.result)) >= prod(value_shape(x)):
            return
        taken = {value: _taken(rewriter, op, value) for value in operands}
        new = type(source).create(
            operands=[taken[value] for value in source.inputs],
            result_types=[op.result.type],
            properties=source.properties,
        )
        replace_with(rewriter, op, new)


class GatherOfBroadcast(RewritePattern):
    """gather(broadcast_in_dim(x)) -> broadcast_in_dim(x), if all places that an index
    selects from have the same number."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, BroadcastInDimOp) or not can_merge(op, source):
            return
        if not has_static_operands(op):
            return
        if (dims := _kept(op, source)) is not None:
            merge_with(rewriter, op, source, _repeated(rewriter, op, source, dims))


def _is_seen_through(op: GatherOp, value: SSAValue) -> bool:
    """Whether `_taken` needs no gather."""
    source = value.owner
    if isinstance(source, ConstantOp):
        return source.splat is not None
    return isinstance(source, BroadcastInDimOp) and _kept(op, source) is not None


def _taken(rewriter: PatternRewriter, op: GatherOp, value: SSAValue) -> SSAValue:
    """What `op` takes from its operand, taken from `value`, which has the same
    shape."""
    source = value.owner
    type = with_shape(tensor_type_of(value.type), value_shape(op.result))
    if isinstance(source, ConstantOp) and source.splat is not None:
        return added(rewriter, op, ConstantOp(source.splat, type))
    if isinstance(source, BroadcastInDimOp):
        if (dims := _kept(op, source)) is not None:
            return added(rewriter, op, _repeated(rewriter, op, source, dims))
    gather = GatherOp(
        [value, op.inputs[1]], result_types=[type], properties=op.properties
    )
    return added(rewriter, op, gather)


def _kept(op: GatherOp, source: BroadcastInDimOp) -> Mapping[int, int] | None:
    """The dimensions of the result of `op` by the dimensions of the operand of `source`
    that are not 1, if `op`, applied to the result of `source`, takes all of these."""
    if not is_on_tensors(source) or not has_static_operands(source):
        return None
    places, dims = _places(op), source.broadcast_dimensions.get_values()
    sizes = enumerate(value_shape(source.inputs[0]))
    kept = [dim for dim, size in sizes if size != 1]
    if any(dims[dim] not in places for dim in kept):
        return None
    return {dim: places[dims[dim]] for dim in kept}


def _repeated(
    rewriter: PatternRewriter,
    op: GatherOp,
    source: BroadcastInDimOp,
    dims: Mapping[int, int],
) -> BroadcastInDimOp:
    """The operand of `source`, broadcast to what `op` takes from the result."""
    small = source.inputs[0]
    type = tensor_type_of(small.type)
    sizes = [value_shape(small)[dim] for dim in dims]
    reshape = ReshapeOp([small], result_types=[with_shape(type, sizes)])
    return BroadcastInDimOp(
        [added(rewriter, op, reshape)],
        result_types=[with_shape(type, value_shape(op.result))],
        properties={"broadcast_dimensions": ints([*dims.values()])},
    )


def _places(op: GatherOp) -> dict[int, int]:
    """The dimensions of the result by those of the operand along which `op` takes all
    elements, in order."""
    numbers = op.dimension_numbers
    shape, sizes = value_shape(op.inputs[0]), op.slice_sizes.get_values()
    outside = numbers.batch(len(value_shape(op.result)))
    places = {dim: outside[other] for dim, other in numbers.batching.items()}
    for dim, to in zip(numbers.kept(len(shape)), sorted(numbers.window), strict=True):
        if sizes[dim] == shape[dim] and dim not in numbers.indexed:
            places[dim] = to
    return places
