"""Writes values in another shape, without copying memory."""

from collections.abc import Callable, Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....analysis.flops import flops_of_element
from ....dialects.sizes.symbolic import Symbolic
from ....dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
    without_ones,
)
from ....dialects.tgraph.elements import is_integer, is_stored, number_of
from ....dialects.tgraph.elementwise import AddOp, ElementwiseOp, MultiplyOp
from ....dialects.tgraph.fusing import COMPUTED
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
    TransposeOp,
    ViewOp,
)

MOST_COUNTED = 8
"""The most operations, iotas and numbers included, of a value that is counted."""


def reshaped(value: SSAValue, shape: Shape) -> SSAValue | list[TensorOp] | None:
    """`value` in another shape: an existing value, or new operations, the last of which
    defines it. None if memory would have to be copied, or if `value` would otherwise be
    fused with its reader."""
    owner = value.owner
    type_ = with_shape(tensor_type_of(value.type), shape)
    if isinstance(owner, ConstantOp) and owner.splat is not None:
        return [ConstantOp(owner.splat, type_)]
    if isinstance(owner, BroadcastInDimOp):
        return _broadcast(owner, shape)
    if isinstance(owner, IotaOp) and not owner.outs:
        return _indices(owner, shape)
    if isinstance(owner, ReshapeOp) and not owner.outs:
        value = owner.inputs[0]
        if value_shape(value) == shape:
            return value
    is_same = without_ones(value_shape(value)) == without_ones(shape)
    if not (is_same or _is_contiguous(value)) or can_fuse_with_reader(value):
        return None
    return [ReshapeOp([value], result_types=(type_,))]


def transposed(value: SSAValue, order: Sequence[int]) -> TensorOp:
    """A new operation that gives `value` with its dimensions in `order`."""
    sizes = value_shape(value)
    type_ = with_shape(tensor_type_of(value.type), [sizes[dim] for dim in order])
    match value.owner:
        case ConstantOp() as constant if constant.splat is not None:
            return ConstantOp(constant.splat, type_)
        case IotaOp() as indices if not indices.outs:
            along = order.index(indices.dimension.value.data)
            return IotaOp.along(along, type_, type_.element_type)
        case BroadcastInDimOp() as wide if not wide.outs:
            dims = [order.index(d) for d in wide.broadcast_dimensions.get_values()]
            properties = {"broadcast_dimensions": ints(dims)}
            return BroadcastInDimOp(
                wide.inputs, result_types=(type_,), properties=properties
            )
        case TransposeOp() as other if not other.outs:
            inner = other.permutation.get_values()
            source, order = other.inputs[0], [inner[dim] for dim in order]
        case _:
            source = value
    properties = {"permutation": ints(order)}
    return TransposeOp([source], result_types=(type_,), properties=properties)


def computed_in(
    shape: Shape,
    members: Sequence[ElementwiseOp],
    seen: Callable[[SSAValue], SSAValue | list[TensorOp] | None],
    new: dict[SSAValue, SSAValue] | None = None,
) -> list[TensorOp] | None:
    """Copies of elementwise operations in another shape, with the views of their
    operands in this shape, which `seen` gives. None if `seen` returns None.

    new: receives, for each operand and result, its value in this shape.
    """
    made: list[TensorOp] = []
    new = {} if new is None else new
    for op in members:
        for operand in op.inputs:
            if operand in new:
                continue
            views = seen(operand)
            if views is None:
                erase_uninserted(made)
                return None
            if isinstance(views, list):
                made += views
            new[operand] = made[-1].results[0] if isinstance(views, list) else views
        made.append(in_shape(op, [new[operand] for operand in op.inputs], shape))
        new[op.result] = made[-1].results[0]
    return made


def in_shape(op: ElementwiseOp, operands: Sequence[SSAValue], shape: Shape) -> TensorOp:
    """A copy of `op` in another shape."""
    new = type(op).create(
        operands=operands,
        result_types=[with_shape(op.result.type, shape)],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )
    new.result.name_hint = op.result.name_hint
    return new


def computed_for(
    *views: ViewOp, may_repeat: Callable[[ElementwiseOp], bool] | None = None
) -> Sequence[ElementwiseOp]:
    """The elementwise operations, in order, whose results only `views` or other such
    operations read, or which `may_repeat` admits. `views` are in order."""
    found: dict[Operation, None] = dict.fromkeys(views)
    queue: list[TensorOp] = [*views]
    for reader in queue:  # grows
        for value in reader.operands:
            op = value.owner
            if (
                isinstance(op, ElementwiseOp)
                and op not in found
                and not op.outs
                and op.parent is reader.parent
                and (
                    all(use.operation in found for use in value.uses)
                    or (may_repeat and may_repeat(op))
                )
            ):
                found[op] = None
                queue.append(op)
    members: list[ElementwiseOp] = []
    op = views[-1].prev_op
    while op and len(members) + len(views) < len(found):
        if op in found and isinstance(op, ElementwiseOp):
            members.append(op)
        op = op.prev_op
    return members[::-1]


def is_counted(op: ElementwiseOp) -> bool:
    """Whether a few cheap operations compute the result from iotas and single numbers
    alone, which takes less time than reading it."""
    makers: list[Operation | Block] = [op]
    for maker in makers:  # grows
        match maker:
            case ElementwiseOp() if flops_of_element(maker) > 1:
                return False
            case ElementwiseOp() | BroadcastInDimOp():
                makers += (value.owner for value in maker.inputs)
            case ConstantOp() if maker.splat is None:
                return False
            case ConstantOp() | IotaOp():
                pass
            case _:
                return False
        if len(makers) > MOST_COUNTED:
            return False
    return True


def erase_uninserted(made: Sequence[TensorOp]) -> None:
    """Erases operations that were not inserted, so that they do not stay as users."""
    for op in reversed(made):
        op.erase()


def can_fuse_with_reader(value: SSAValue) -> bool:
    """Whether the operation that defines `value` can be fused with its only reader."""
    readers = {use.operation for use in value.uses}
    return isinstance(value.owner, COMPUTED) and len(readers) == 1


def _is_contiguous(value: SSAValue) -> bool:
    """Whether `value` is known to be contiguous in memory."""
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.inputs[0]
    return not isinstance(value.owner, ViewOp | IotaOp)


def _is_reduced(value: SSAValue) -> bool:
    """Whether the operation that defines `value` can be fused with its only reader and
    is not elementwise, such as a reduction. One group would then read the operands of
    both, which need not be live at the same time otherwise."""
    return can_fuse_with_reader(value) and not isinstance(value.owner, ElementwiseOp)


def _broadcast(op: BroadcastInDimOp, shape: Shape) -> list[TensorOp] | None:
    """The reshape of a broadcast, written as a broadcast, or None."""
    source = op.inputs[0]
    if op.outs or _is_reduced(source):
        return None
    dims = op.broadcast_dimensions.get_values()
    large = value_shape(op.result)
    kept = [
        dim
        for size, dim in zip(value_shape(source), dims, strict=True)
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
    if (narrow := tuple(shape[dim] for dim in to)) != value_shape(source):
        if can_fuse_with_reader(source) or not _is_contiguous(source):
            return None
        views.append(ReshapeOp([source], result_types=(with_shape(type_, narrow),)))
        source = views[-1].results[0]
    wide = BroadcastInDimOp(
        [source],
        result_types=(with_shape(type_, shape),),
        properties={"broadcast_dimensions": ints(to)},
    )
    return [*views, wide]


def _indices(op: IotaOp, shape: Shape) -> list[TensorOp] | None:
    """The reshape of an iota, if its dimension stays or is split: computed from the
    indices along the parts. Else None."""
    dimension, type_ = op.dimension.value.data, with_shape(op.result.type, shape)
    large = value_shape(op.result)
    for old, new in matching(large, shape):
        if dimension not in old:
            continue
        if any(large[dim] != 1 for dim in old if dim != dimension):
            return None
        parts = [dim for dim in new if shape[dim] != 1]
        if len(parts) > 1 and not _is_exact(type_.element_type):
            return None
        return _counted(type_, parts) if parts else [_number(0, type_)]
    return None


def _is_exact(element: Attribute) -> bool:
    """Whether sums and products of indices are exact in this type."""
    return is_integer(element) and not is_stored(element) and element != i1


def _counted(type_: AnyTensor, dims: Sequence[int]) -> list[TensorOp]:
    """The operations for each element's position in the row-major order of `dims`."""
    first, *rest = dims
    made: list[TensorOp] = [IotaOp.along(first, type_, type_.element_type)]
    for dim in rest:
        count = made[-1].results[0]
        size = _number(shape_of(type_)[dim], type_)
        scaled = MultiplyOp([count, size.result], result_types=(type_,))
        index = IotaOp.along(dim, type_, type_.element_type)
        total = AddOp([scaled.result, index.result], result_types=(type_,))
        made += [size, scaled, index, total]
    return made


def _number(number: int, type_: AnyTensor) -> ConstantOp:
    return ConstantOp(number_of(number, type_.element_type), type_)


def is_plain(reshape: ReshapeOp) -> bool:
    """Whether all sizes are known, and none is 0."""
    sizes = (*value_shape(reshape.result), *value_shape(reshape.inputs[0]))
    return 0 not in sizes and not any(isinstance(size, Symbolic) for size in sizes)


def matching(old: Shape, new: Shape) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yields the dimensions of two shapes that correspond, as few as possible at once.

    For `(32, 5)` and `(4, 8, 5)`: 0 and (0, 1), then 1 and 2.
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
