"""Writes values in another shape, without reshaping what is in memory."""

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from ....dialects.tgraph.base import (
    Shape,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ....dialects.tgraph.fusing import COMPUTED
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
    ViewOp,
)


def reshaped(value: SSAValue, shape: Shape) -> SSAValue | list[TensorOp] | None:
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
        if type_shape(value) == shape:
            return value
    if not _is_contiguous(value) or is_joined(value):
        return None
    return [ReshapeOp([value], result_types=(type_,))]


def is_joined(value: SSAValue) -> bool:
    """Whether what computes a value can be fused with the only reader."""
    readers = {use.operation for use in value.uses}
    return isinstance(value.owner, COMPUTED) and len(readers) == 1


def _is_contiguous(value: SSAValue) -> bool:
    """Whether it is known to lie in memory as it is, in order."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.inputs[0]
    return not isinstance(value.owner, ViewOp | IotaOp)


def _broadcast(op: BroadcastInDimOp, shape: Shape) -> list[TensorOp] | None:
    """The reshape of a broadcast, as a broadcast."""
    source = op.inputs[0]
    if op.outs or is_joined(source) or not _is_contiguous(source):
        return None
    dims = op.broadcast_dimensions.get_values()
    large = type_shape(op.result)
    kept = [
        dim
        for size, dim in zip(type_shape(source), dims, strict=True)
        if size == large[dim] != 1
    ]
    if kept != sorted(kept):
        return None
    to: list[int] = []
    for old, new in matching(large, shape):
        given = [dim in kept for dim in old if large[dim] != 1]
        if any(given):
            if not all(given):
                return None
            to += new
    type_ = tensor_type_of(source.type)
    views: list[TensorOp] = []
    if (narrow := tuple(shape[dim] for dim in to)) != type_shape(source):
        views.append(ReshapeOp([source], result_types=(with_shape(type_, narrow),)))
        source = views[-1].results[0]
    wide = BroadcastInDimOp(
        [source],
        result_types=(with_shape(type_, shape),),
        properties={"broadcast_dimensions": ints(to)},
    )
    return [*views, wide]


def matching(old: Shape, new: Shape) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
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


def type_shape(value: SSAValue) -> Shape:
    return shape_of(tensor_type_of(value.type))
