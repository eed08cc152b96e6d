"""Simplifies slices: of slices, broadcasts, concatenations and elementwise operations,
and slices at constants.
"""

from math import prod
from typing import TypeGuard, cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...compatibility import erase, replace
from ..base import (
    TensorOp,
    ints,
    is_static,
    tensor_type_of,
    value_bytes,
    value_shape,
    with_shape,
)
from ..elementwise import ElementwiseOp
from ..indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ..shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
    SliceOp,
    plain_slice,
)
from .common import (
    added,
    can_drop,
    can_merge,
    has_static_operands,
    insert_before,
    is_on_tensors,
    is_plain_slice,
    merge_with,
    replace_with,
    splat_integer,
)


class DynamicSliceAtConstant(RewritePattern):
    """dynamic_slice at constants -> slice, which is a view."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DynamicSliceOp, rewriter: PatternRewriter) -> None:
        numbers = [splat_integer(value) for value in op.starts]
        starts = [number for number in numbers if number is not None]
        if not is_on_tensors(op) or len(starts) < len(numbers):
            return
        sizes = op.slice_sizes.get_values()
        shape = value_shape(op.inputs[0])
        starts = [
            min(max(start, 0), whole - size)
            for start, whole, size in zip(starts, shape, sizes, strict=True)
        ]
        limits = [*map(int.__add__, starts, sizes)]
        replace_with(rewriter, op, plain_slice(op.inputs[0], starts, limits))


class UpdateOfAll(RewritePattern):
    """dynamic_update_slice of all elements -> the update."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: DynamicUpdateSliceOp, rewriter: PatternRewriter
    ) -> None:
        new = op.inputs[1]
        if can_drop(op) and new.type == op.result.type and has_static_operands(op):
            replace(rewriter, op, (), (new,))


class SlicesOfDynamicSlice(RewritePattern):
    """dynamic_slice -> slices of it -> dynamic_slices, if it has no other uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        whole = op.inputs[0]
        if isinstance(whole.owner, ReshapeOp):
            whole = whole.owner.inputs[0]
        taken = whole.owner
        if not isinstance(taken, DynamicSliceOp) or not is_on_tensors(taken):
            return
        if not all(_is_part(use.operation) for use in whole.uses):
            return
        starts, sizes = list(taken.starts), list(value_shape(whole))
        firsts, lasts = op.start_indices.get_values(), op.limit_indices.get_values()
        dropped = len(sizes) - len(firsts)
        if value_shape(whole) != (*(1,) * dropped, *value_shape(op.inputs[0])):
            return
        for dim, (first, last) in enumerate(zip(firsts, lasts, strict=True), dropped):
            if (size := last - first) == sizes[dim]:
                continue
            start = splat_integer(starts[dim])
            room = value_shape(taken.inputs[0])[dim] - sizes[dim]
            if start is None:
                return
            type = tensor_type_of(starts[dim].type)
            element = cast(IntegerType, type.element_type)
            first += min(max(start, 0), room)
            at = ConstantOp(IntegerAttr(first, element), type)
            insert_before(rewriter, taken, at)
            starts[dim], sizes[dim] = at.result, size
        part = DynamicSliceOp(
            [taken.inputs[0], *starts],
            result_types=[with_shape(tensor_type_of(whole.type), sizes)],
            properties={"slice_sizes": ints(sizes)},
        )
        insert_before(rewriter, taken, part)
        new = ReshapeOp([part.result], result_types=[op.result.type])
        replace_with(rewriter, op, new)


def _is_part(op: Operation) -> bool:
    """Whether an operation only takes slices with stride 1, possibly of a reshape."""
    if isinstance(op, ReshapeOp) and not op.outs:
        users = [use.operation for use in op.result.uses]
        return all(isinstance(user, SliceOp) and _is_part(user) for user in users)
    return is_plain_slice(op)


class MergeSlices(RewritePattern):
    """slice(slice(x)) -> slice(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, SliceOp) and can_merge(op, source)):
            return
        starts, strides = source.start_indices.get_values(), source.strides.get_values()
        if not has_static_operands(source) or any(stride != 1 for stride in strides):
            return
        first, last = (
            ints([*map(int.__add__, starts, indices.get_values())])
            for indices in (op.start_indices, op.limit_indices)
        )
        properties = {"start_indices": first, "limit_indices": last}
        new = SliceOp(
            source.inputs,
            result_types=[op.result.type],
            properties={**properties, "strides": op.strides},
        )
        merge_with(rewriter, op, source, new)


class SliceOfBroadcast(RewritePattern):
    """slice(broadcast_in_dim(x)) -> broadcast_in_dim(slice(x)): the slice of a repeated
    dimension repeats less."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, BroadcastInDimOp) and can_merge(op, source)):
            return
        if not has_static_operands(source) or not is_static(
            tensor_type_of(op.result.type)
        ):
            return
        bounds = op.start_indices, op.limit_indices, op.strides
        kept = list(
            zip(*(n.get_values() for n in bounds), value_shape(op.result), strict=True)
        )
        x, dims = source.inputs[0], source.broadcast_dimensions.get_values()
        taken = [
            (0, 1, 1, 1) if size == 1 else kept[dim]
            for size, dim in zip(value_shape(x), dims, strict=True)
        ]
        starts, limits, strides, shape = ([n[i] for n in taken] for i in range(4))
        part = SliceOp(
            source.inputs,
            result_types=[with_shape(tensor_type_of(x.type), shape)],
            properties={
                "start_indices": ints(starts),
                "limit_indices": ints(limits),
                "strides": ints(strides),
            },
        )
        insert_before(rewriter, op, part)
        repeated = BroadcastInDimOp(
            part.results, result_types=(op.result.type,), properties=source.properties
        )
        merge_with(rewriter, op, source, repeated)


class SliceOfReshape(RewritePattern):
    """slice(reshape(x)) -> reshape(slice(x)), if the reshape only adds and drops
    dimensions of size 1."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, ReshapeOp) and can_merge(op, source)):
            return
        if not has_static_operands(source) or not _keeps_dimensions(source):
            return
        if 0 in value_shape(op.result):  # it may take nothing of a dimension of size 1
            return
        bounds = op.start_indices, op.limit_indices, op.strides
        kept = zip(
            value_shape(source.result), *(n.get_values() for n in bounds), strict=True
        )
        taken = iter([ranges for size, *ranges in kept if size != 1])
        shape = value_shape(source.inputs[0])
        every = [(0, 1, 1) if size == 1 else next(taken) for size in shape]
        starts, limits, strides = (ints([n[i] for n in every]) for i in range(3))
        sizes = [-((n[0] - n[1]) // n[2]) for n in every]
        part = SliceOp(
            source.inputs,
            result_types=[with_shape(tensor_type_of(op.result.type), sizes)],
            properties={
                "start_indices": starts,
                "limit_indices": limits,
                "strides": strides,
            },
        )
        insert_before(rewriter, op, part)
        new = ReshapeOp([part.result], result_types=[op.result.type])
        merge_with(rewriter, op, source, new)


def _keeps_dimensions(op: ReshapeOp) -> bool:
    """Whether a reshape only adds and drops dimensions of size 1."""
    old, new = value_shape(op.inputs[0]), value_shape(op.result)
    return [n for n in old if n != 1] == [n for n in new if n != 1]


class SlicesOfConcatenation(RewritePattern):
    """concatenate -> slices of it -> slices of operands, if it has no other uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        joined = op.inputs[0].owner
        if not (isinstance(joined, ConcatenateOp) and can_merge(op, joined)):
            return
        parts = [_operand_of(use.operation, joined) for use in joined.result.uses]
        part = _operand_of(op, joined)
        if part is None or None in parts:
            return
        operand, start = part
        starts, limits = (
            list(indices.get_values())
            for indices in (op.start_indices, op.limit_indices)
        )
        for indices in (starts, limits):
            indices[joined.dimension.value.data] -= start
        properties = {"start_indices": ints(starts), "limit_indices": ints(limits)}
        new = SliceOp(
            [operand],
            result_types=[op.result.type],
            properties={**properties, "strides": op.strides},
        )
        replace_with(rewriter, op, new)


class SlicesOfElementwise(RewritePattern):
    """f(x, y) -> slices of it -> f(slice(x), slice(y)), if it has no other uses, the
    slices take no more elements together, and f(x, y) has more bytes than the values
    from which elementwise operations and broadcasts compute it: these may have to be
    stored instead. Arguments are stored anyway.

    `sides[..., 0] * sides[..., 1]` stores no sides of rectangles.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        whole, source = op.inputs[0], op.inputs[0].owner
        if not isinstance(source, ElementwiseOp) or not can_merge(op, source):
            return
        slices: list[SliceOp] = []
        for use in whole.uses:
            if not isinstance(use.operation, SliceOp):
                return
            slices.append(use.operation)
        if not all(can_merge(part, source) for part in slices):
            return
        if not has_static_operands(source):
            return
        taken = sum(prod(value_shape(part.result)) for part in slices)
        if taken > prod(value_shape(whole)):
            return
        if _is_from_as_many_bytes(whole, min(_CHAIN, _REPEATED // len(slices))):
            return
        for part in slices:
            inputs = {x: _same_slice(rewriter, part, x) for x in source.inputs}
            new = type(source).create(
                operands=[inputs[value] for value in source.inputs],
                result_types=[part.result.type],
                properties=source.properties,
            )
            merge_with(rewriter, part, source, new)
        erase(rewriter, source)


_CHAIN, _REPEATED = 64, 2048
"""The most operations that are repeated for each slice of their result, and for all its
slices together. A loop that is unrolled over many rows takes a slice in each step."""


def _is_from_as_many_bytes(whole: SSAValue, most: int) -> bool:
    """Whether the values from which elementwise operations and broadcasts compute
    `whole` have as many bytes as `whole`, or more than `most` operations do. Arguments
    and constants count as none. Values that other operations read count, unless these
    are slices, too: they may have to be stored."""
    chain: dict[SSAValue, TensorOp] = {}
    stored: list[SSAValue] = []
    pending = [whole]
    for value in pending:  # the body appends
        source = value.owner
        if _is_sliced_through(source):
            chain[value] = source
            if len(chain) > most:
                return True
            pending += [x for x in source.inputs if x not in pending]
        elif not isinstance(source, Block | ConstantOp | IotaOp):
            stored.append(value)
    ops = {*chain.values()}
    stored += [
        value
        for value, op in chain.items()
        if value is not whole
        and isinstance(op, ElementwiseOp)
        and any(
            use.operation not in ops and not isinstance(use.operation, SliceOp)
            for use in value.uses
        )
    ]
    return sum(map(value_bytes, stored)) >= value_bytes(whole)


def _is_sliced_through(op: Operation | Block) -> TypeGuard[TensorOp]:
    """Whether canonicalization moves slices of the result to the operands."""
    match op:
        case ReshapeOp():
            return is_on_tensors(op) and _keeps_dimensions(op)
        case ElementwiseOp() | BroadcastInDimOp():
            return is_on_tensors(op)
        case SliceOp():
            return is_plain_slice(op)
        case _:
            return False


def _same_slice(rewriter: PatternRewriter, op: SliceOp, value: SSAValue) -> SSAValue:
    """The part of `value` that `op` takes from its operand of the same shape."""
    type = with_shape(tensor_type_of(value.type), value_shape(op.result))
    part = SliceOp([value], result_types=[type], properties=op.properties)
    return added(rewriter, op, part)


def _operand_of(op: Operation, joined: ConcatenateOp) -> tuple[SSAValue, int] | None:
    """The operand of a concatenation that contains the slice `op`, and the index at
    which the operand begins; None if no operand contains it."""
    if (
        not isinstance(op, SliceOp)
        or not is_on_tensors(op)
        or not has_static_operands(joined)
    ):
        return None
    dim, start = joined.dimension.value.data, 0
    first, last = (i.get_values()[dim] for i in (op.start_indices, op.limit_indices))
    for operand in joined.inputs:
        size = value_shape(operand)[dim]
        if start <= first and last <= start + size:
            return operand, start
        start += size
    return None
