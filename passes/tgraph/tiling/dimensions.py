"""Finds the dimensions along which operands are sliced to compute a tile of a result.

A tile of a result needs the corresponding tile of some operands, along one of their
dimensions, and the other operands whole. For example, a tile of rows of `dot(a, b)`
needs these rows of `a`, and all of `b`. Every element is computed from the same
elements in the same order as without tiles.
"""

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Operation, SSAValue

from ....dialects.tgraph.base import Shape, TensorOp, tensor_type_of
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
"""For each operand, the dimension along which it is sliced; None if it is needed
whole."""


def shape_of(value: SSAValue) -> Shape:
    return tensor_type_of(value.type).get_shape()


def result_shape(op: TensorOp) -> Shape:
    """The shape of each tiled result, which may be a tensor or a destination."""
    return shape_of((op.res or op.outs)[0])


def needs(op: Operation, dim: int) -> Needs | None:
    """The slices of operands that tiles of all results along `dim` need; None if the
    results cannot be tiled along `dim`."""
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
    """`needs` of operations that keep some dimensions as they are and mix others."""
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
    """Whether the window covers one element along `dim`, a new one in each position."""
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
    """For an offset dimension, a tile of the operand; else a tile of the indices."""
    numbers = op.dimension_numbers
    if dim in numbers.window:
        sizes = shape_of(op.inputs[0])
        along = numbers.kept(len(sizes))[sorted(numbers.window).index(dim)]
        is_whole = op.slice_sizes.get_values()[along] == sizes[along]
        return [along, None] if is_whole else None
    batch = numbers.batch(len(result_shape(op)))
    of_indices = _batch_dimensions(op)[batch.index(dim)]
    shared = zip(numbers.indices_batching, numbers.operand_batching, strict=True)
    return [dict(shared).get(of_indices), of_indices]


def _of_scatter(op: ScatterOp, dim: int) -> Needs | None:
    """Tiles along `dim` only where no index decides to which tile an update goes."""
    numbers = op.dimension_numbers
    updates = range(len(shape_of(op.inputs[2])))
    if dim in (batching := numbers.operand_batching):
        of_indices = numbers.indices_batching[batching.index(dim)]
        along = next(d for d in updates if update_dimension(op, d) == of_indices)
        return [dim, of_indices, along]
    if dim in numbers.omitted:
        return None
    kept = numbers.kept(len(result_shape(op)))
    along = sorted(numbers.window)[kept.index(dim)]
    is_whole = shape_of(op.inputs[2])[along] == shape_of(op.inputs[0])[dim]
    return [dim, None, along] if is_whole else None


def update_dimension(op: ScatterOp, dim: int) -> int | None:
    """The dimension of the indices that corresponds to dimension `dim` of the updates;
    None for a window dimension."""
    numbers = op.dimension_numbers
    if dim in numbers.window:
        return None
    batch = numbers.batch(len(shape_of(op.inputs[2])))
    return _batch_dimensions(op)[batch.index(dim)]


def _batch_dimensions(op: GatherOp | ScatterOp) -> Sequence[int]:
    """The dimensions of the indices, without the dimension of the index vectors."""
    vector = op.dimension_numbers.vector
    return [d for d in range(len(shape_of(op.inputs[1]))) if d != vector]


def _of_reshape(op: ReshapeOp, dim: int) -> Needs | None:
    """Slices the source along the dimension before which there are equally many
    elements: its tiles have the same elements. The number of tiles must divide both
    dimensions."""
    source, result = shape_of(op.inputs[0]), result_shape(op)
    before = prod(result[:dim])
    fits = [d for d in range(len(source)) if prod(source[:d]) == before]
    return [max(fits, key=lambda d: source[d])] if fits else None


def body_dimensions(op: FusionOp, dim: int) -> dict[SSAValue, int | None] | None:
    """The dimensions along which all values of a fusion's body are sliced.

    None if the result cannot be tiled along `dim`, or needs a value in two ways: tiled
    along two dimensions, or both tiled and whole.
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
    """Yields the sizes of all dimensions that are sliced for tiles of the result along
    `dim`. The number of tiles has to divide each of them."""
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
    """Whether every tile repeats `op`, because that costs little or nothing."""
    if isinstance(op, ConstantOp):
        return op.splat is not None and not op.outs
    return isinstance(op, ViewOp | IotaOp) and not op.outs
