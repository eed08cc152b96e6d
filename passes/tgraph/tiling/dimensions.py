"""Says along which dimensions operands are sliced when a result is.

A tile of a result needs the same tile of some operands, along a dimension of theirs,
and all of the others: a tile of the rows of `dot(a, b)` needs those rows of `a`, and
all of `b`. Every element is computed from the same elements in the same order as in one
go.
"""

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Operation, SSAValue

from ....dialects.tgraph.base import (
    Shape,
    TensorOp,
    tensor_type_of,
    typical_bytes,
)
from ....dialects.tgraph.bodies import ReduceByOp, SortOp
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
)
from ....dialects.tgraph.reducing import (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    IotaOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
    ViewOp,
)
from ....dialects.tgraph.structure import FusionOp, YieldOp

Needs = Sequence[int | None]
"""For each operand the dimension along which it is sliced, None for all of it."""


def shape_of(value: SSAValue) -> Shape:
    return tensor_type_of(value.type).get_shape()


def bytes_of(value: SSAValue) -> int:
    return typical_bytes(tensor_type_of(value.type))


def result_shape(op: TensorOp) -> Shape:
    """Of each result that is tiled, be it a tensor or a destination."""
    return shape_of((op.res or op.outs)[0])


def needs(op: Operation, dim: int) -> Needs | None:
    """What tiles of all results along `dim` need; None if they can't be sliced."""
    match op:
        case ElementwiseOp():
            return [dim] * len(op.inputs)
        case ConstantOp():
            return () if op.splat is not None else None
        case IotaOp():
            return () if op.dimension.value.data != dim else None
        case FusionOp():
            found = body_dimensions(op, dim)
            return None if found is None else [found[a] for a in op.body.block.args]
        case ReduceOp() | ReduceByOp():
            dims = op.dimensions.get_values()
            kept = [d for d in range(len(shape_of(op.inputs[0]))) if d not in dims]
            starts = len(op.elements) if isinstance(op, ReduceByOp) else 0
            tensors = len(op.inputs) - starts
            return [kept[dim]] * tensors + [None] * starts
        case SortOp():
            return [dim] * len(op.inputs) if dim not in op.along else None
        case DotGeneralOp():
            return _of_product(op, dim)
        case ConvolutionOp():
            return _of_convolution(op, dim)
        case BroadcastInDimOp():
            dims = op.broadcast_dimensions.get_values()
            if dim not in dims or shape_of(op.inputs[0])[dims.index(dim)] == 1:
                return [None]
            return [dims.index(dim)]
        case TransposeOp():
            return [op.permutation.get_values()[dim]]
        case ReshapeOp():
            return _of_reshape(op, dim)
        case GatherOp():
            return _of_gather(op, dim)
        case ScatterOp():
            return _of_scatter(op, dim)
        case _:
            return _along(op, dim)


def _along(op: Operation, dim: int) -> Needs | None:
    """Of operations that leave some dimensions as they are, and mix others."""
    match op:
        case SliceOp():
            result = result_shape(op)
            whole = result[dim] == shape_of(op.inputs[0])[dim]
            return [dim] if whole else None
        case ReverseOp():
            return [dim] if dim not in op.dimensions.get_values() else None
        case ConcatenateOp():
            if op.dimension.value.data == dim:
                return None
            return [dim] * len(op.inputs)
        case DynamicSliceOp():
            whole = result_shape(op)[dim] == shape_of(op.inputs[0])[dim]
            return [dim, *(None for _ in op.starts)] if whole else None
        case DynamicUpdateSliceOp():
            whole = shape_of(op.inputs[1])[dim] == shape_of(op.inputs[0])[dim]
            return [dim, dim, *(None for _ in op.starts)] if whole else None
        case PadOp():
            amounts = op.low, op.high, op.interior
            padded = any(amount.get_values()[dim] for amount in amounts)
            return None if padded else [dim, None]
        case ReduceWindowOp():
            return [dim] if _is_pointwise(op, dim, op.base_dilations) else None
        case SelectAndScatterOp():
            return [dim, dim] if _is_pointwise(op, dim) else None
        case _:
            return None


def _is_pointwise(
    op: ReduceWindowOp | SelectAndScatterOp,
    dim: int,
    *further: DenseArrayBase[IntegerType],
) -> bool:
    """Whether the window has one element along a dimension, in each place another."""
    ones = op.window_dimensions, op.window_strides, *further
    zeros = op.padding_low, op.padding_high
    return all(n.get_values()[dim] == 1 for n in ones) and not any(
        n.get_values()[dim] for n in zeros
    )


def _of_product(op: DotGeneralOp, dim: int) -> Needs:
    batch = len(op.batching[0])
    if dim < batch:
        return [op.batching[0][dim], op.batching[1][dim]]
    dim -= batch
    left, right = (
        [
            d
            for d in range(len(shape_of(op.inputs[side])))
            if d not in op.batching[side] and d not in op.contracting[side]
        ]
        for side in (0, 1)
    )
    return [left[dim], None] if dim < len(left) else [None, right[dim - len(left)]]


def _of_convolution(op: ConvolutionOp, dim: int) -> Needs | None:
    image, kernel, result = op.labels
    label = result[dim]
    if label == "b" and op.batch_group_count.value.data == 1:
        return [image.index("b"), None]
    if label == "f" and op.groups == 1:
        return [None, kernel.index("o")]
    return None


def _of_gather(op: GatherOp, dim: int) -> Needs | None:
    """A tile of the slices, or of the places that are read."""
    offsets = op.offset_dims.get_values()
    batching = op.operand_batching_dims.get_values()
    if dim in offsets:
        dropped = {*op.collapsed_slice_dims.get_values(), *batching}
        sizes = shape_of(op.inputs[0])
        kept = [d for d in range(len(sizes)) if d not in dropped]
        along = kept[sorted(offsets).index(dim)]
        is_whole = op.slice_sizes.get_values()[along] == sizes[along]
        return [along, None] if is_whole else None
    batch = [d for d in range(len(result_shape(op))) if d not in offsets]
    of_indices = _batch_dimensions(op)[batch.index(dim)]
    together = op.start_indices_batching_dims.get_values()
    if of_indices in together:
        return [batching[together.index(of_indices)], of_indices]
    return [None, of_indices]


def _of_scatter(op: ScatterOp, dim: int) -> Needs | None:
    """A tile of the operand: where no index tells in which tile an update lies."""
    batching = op.input_batching_dims.get_values()
    updates = range(len(shape_of(op.inputs[2])))
    if dim in batching:
        of_indices = op.scatter_indices_batching_dims.get_values()[batching.index(dim)]
        along = next(d for d in updates if update_dimension(op, d) == of_indices)
        return [dim, of_indices, along]
    dropped = {*op.inserted_window_dims.get_values(), *batching}
    if dim in dropped:
        return None
    kept = [d for d in range(len(result_shape(op))) if d not in dropped]
    along = sorted(op.update_window_dims.get_values())[kept.index(dim)]
    is_whole = shape_of(op.inputs[2])[along] == shape_of(op.inputs[0])[dim]
    return [dim, None, along] if is_whole else None


def update_dimension(op: ScatterOp, dim: int) -> int | None:
    """The dimension of the indices that a dimension of the updates goes with."""
    window = op.update_window_dims.get_values()
    if dim in window:
        return None
    batch = [d for d in range(len(shape_of(op.inputs[2]))) if d not in window]
    return _batch_dimensions(op)[batch.index(dim)]


def _batch_dimensions(op: GatherOp | ScatterOp) -> Sequence[int]:
    """Dimensions of the indices, without that of the index vectors."""
    vector = op.index_vector_dim.value.data
    return [d for d in range(len(shape_of(op.inputs[1]))) if d != vector]


def _of_reshape(op: ReshapeOp, dim: int) -> Needs | None:
    """The dimension with as many elements after it: then tiles are the same.

    Both have to be divisible by the number of tiles.
    """
    source, result = shape_of(op.inputs[0]), result_shape(op)
    before = prod(result[:dim])
    fits = [d for d in range(len(source)) if prod(source[:d]) == before]
    return [max(fits, key=lambda d: source[d])] if fits else None


def body_dimensions(op: FusionOp, dim: int) -> dict[SSAValue, int | None] | None:
    """For all values of a fusion's body the dimensions along which they are sliced.

    None if the result can't be sliced so, or needs both a tile and all of a value.
    """
    if len(op.yielded) != 1:
        return None
    found: dict[SSAValue, int | None] = {op.yielded[0]: dim}
    for inner in reversed(list(op.body.block.ops)):
        if isinstance(inner, YieldOp) or inner.results[0] not in found:
            continue
        along = found[inner.results[0]]
        needed = [None] * len(inner.operands) if along is None else needs(inner, along)
        if needed is None:
            return None
        for value, d in zip(inner.operands, needed, strict=True):
            if found.setdefault(value, d) != d:
                return None
    for argument in op.body.block.args:
        found.setdefault(argument, None)
    return found


def sliced_sizes(op: TensorOp, dim: int) -> Iterator[int]:
    """Of all that is sliced for a tile of the result: the number of tiles has to
    divide these."""
    yield shape_of(op.results[0])[dim]
    if isinstance(op, FusionOp):
        found = body_dimensions(op, dim) or {}
        sliced = found.items()
    else:
        sliced = zip(op.inputs, needs(op, dim) or (), strict=True)
    for value, along in sliced:
        if along is not None:
            yield shape_of(value)[along]


def is_repeated(op: Operation) -> bool:
    """Whether every tile makes its own: what costs nothing, or next to it."""
    if isinstance(op, ConstantOp):
        return op.splat is not None and not op.outs
    return isinstance(op, ViewOp | IotaOp) and not op.outs
