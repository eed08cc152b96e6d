"""Reading, writing, and sorting along axes by indices, for all frontends."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph.base import ints, with_element, with_shape
from ..dialects.tgraph.bodies import SortOp
from ..dialects.tgraph.indexing import DynamicUpdateSliceOp, GatherOp, ScatterOp
from ..dialects.tgraph.shaping import ReverseOp
from ..dialects.tgraph.structure import YieldOp
from .builder import TensorBuilder, shape_of, type_of
from .formulas import compare, total_order
from .unsupported import Unsupported


def from_front(b: TensorBuilder, indices: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """Converts negative indices, which count from the end, to indices from the front.

    `sizes` has the size of the indexed dimension, or one size for each entry of the
    index vectors, which lie along the last dimension.
    """
    limits = b.constant(np.array(sizes))
    if len(sizes) == 1:
        limits = b.reshape(limits, [])
    limits = b.convert(limits, type_of(indices).element_type)
    moved = b.apply(e.AddOp, indices, limits)
    return b.apply(e.SelectOp, compare(b, indices, "LT", 0), moved, indices)


def take_ranges(b: TensorBuilder, x: SSAValue, taken: Sequence[range]) -> SSAValue:
    """Takes the range of each dimension in `taken`; ranges may count down."""
    forward = [r if r.step > 0 else r[::-1] for r in taken]
    x = b.slice(
        x,
        [r.start if r else 0 for r in forward],
        [r[-1] + 1 if r else 0 for r in forward],
        [r.step for r in forward],
    )
    if reversed_dims := [d for d, r in enumerate(taken) if r.step < 0]:
        x = b.emit(ReverseOp, x, dimensions=ints(reversed_dims))
    return x


def tile(b: TensorBuilder, x: SSAValue, repeats: Sequence[int]) -> SSAValue:
    """Repeats `x` along each dimension."""
    pairs = list(zip(repeats, shape_of(x), strict=True))
    dims = range(1, 2 * len(pairs), 2)
    repeated = b.broadcast_in_dim(x, [size for pair in pairs for size in pair], dims)
    return b.reshape(repeated, [count * size for count, size in pairs])


def _others(x: SSAValue, axis: int) -> list[int]:
    return [d for d in range(len(shape_of(x))) if d != axis]


def _reached(x: SSAValue, indices: SSAValue, axis: int) -> list[int]:
    """The sizes of the part of `x` that the indices can access."""
    limits = list(shape_of(indices))
    limits[axis] = shape_of(x)[axis]
    return limits


def take_along(b: TensorBuilder, x: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
    """NumPy's `take_along_axis`. The other axes are cut to the sizes of `indices`."""
    others, limits = _others(x, axis), _reached(x, indices, axis)
    if limits[axis] == 0 and 0 in shape_of(indices):
        return b.splat(0, with_shape(type_of(x), shape_of(indices)))
    return b.emit(
        GatherOp,
        b.slice(x, [0] * len(limits), limits),
        indices,
        offset_dims=ints(()),
        collapsed_slice_dims=ints([axis]),
        operand_batching_dims=ints(others),
        start_indices_batching_dims=ints(others),
        start_index_map=ints([axis]),
        index_vector_dim=IntegerAttr(len(limits), i64),
        slice_sizes=ints([1] * len(limits)),
    )


def take_rows(b: TensorBuilder, x: SSAValue, indices: SSAValue) -> SSAValue:
    """Takes rows of B x P x C matrices at B x K indices: the result is B x K x C."""
    return b.emit(
        GatherOp,
        x,
        indices,
        offset_dims=ints([2]),
        collapsed_slice_dims=ints([1]),
        operand_batching_dims=ints([0]),
        start_indices_batching_dims=ints([0]),
        start_index_map=ints([1]),
        index_vector_dim=IntegerAttr(2, i64),
        slice_sizes=ints([1, 1, shape_of(x)[2]]),
    )


def check_tuples(batch: int, length: int, rank: int) -> None:
    """Raises `Unsupported` unless index tuples fit the dimensions after `batch`."""
    if not 0 <= batch <= batch + length <= rank:
        raise Unsupported(
            f"with {length} indices after {batch} dimensions, expected at most {rank} "
            "together"
        )


def take_tuples(
    b: TensorBuilder, x: SSAValue, indices: SSAValue, batch: int = 0
) -> SSAValue:
    """Takes elements at index tuples, which lie along the last dimension."""
    shape = shape_of(x)
    *outer, length = shape_of(indices)
    check_tuples(batch, length, len(shape))
    indexed = range(batch, batch + length)
    rest = len(shape) - batch - length
    taken = [*outer, *shape[batch + length :]]
    if 0 in shape[batch : batch + length] and 0 in taken:
        return b.splat(0, with_shape(type_of(x), taken))
    return b.emit(
        GatherOp,
        x,
        indices,
        offset_dims=ints(range(len(outer), len(outer) + rest)),
        collapsed_slice_dims=ints(indexed),
        operand_batching_dims=ints(range(batch)),
        start_indices_batching_dims=ints(range(batch)),
        start_index_map=ints(indexed),
        index_vector_dim=IntegerAttr(len(outer), i64),
        slice_sizes=ints([1] * (batch + length) + [*shape[batch + length :]]),
    )


def put_tuples(
    b: TensorBuilder, x: SSAValue, indices: SSAValue, updates: SSAValue, kind: str
) -> SSAValue:
    """Combines each update into `x` at the place that `take_tuples` would read."""
    *outer, length = shape_of(indices)
    rank = len(shape_of(x))
    check_tuples(0, length, rank)
    return b.emit(
        ScatterOp,
        x,
        indices,
        updates,
        kind=StringAttr(kind),
        update_window_dims=ints(range(len(outer), len(outer) + rank - length)),
        inserted_window_dims=ints(range(length)),
        input_batching_dims=ints(()),
        scatter_indices_batching_dims=ints(()),
        scatter_dims_to_operand_dims=ints(range(length)),
        index_vector_dim=IntegerAttr(len(outer), i64),
    )


def put_along(
    b: TensorBuilder,
    x: SSAValue,
    indices: SSAValue,
    updates: SSAValue,
    axis: int,
    kind: str,
) -> SSAValue:
    """Combines each update into `x` at the place that `take_along` would read."""
    others, limits = _others(x, axis), _reached(x, indices, axis)
    nothing = [0] * len(limits)
    part = b.slice(x, nothing, limits)
    part = b.emit(
        ScatterOp,
        part,
        indices,
        b.slice(updates, nothing, shape_of(indices)),
        kind=StringAttr(kind),
        update_window_dims=ints(()),
        inserted_window_dims=ints([axis]),
        input_batching_dims=ints(others),
        scatter_indices_batching_dims=ints(others),
        scatter_dims_to_operand_dims=ints([axis]),
        index_vector_dim=IntegerAttr(len(limits), i64),
    )
    if list(shape_of(x)) == limits:
        return part
    starts = [b.constant(np.array(0)) for _ in limits]
    return b.emit(DynamicUpdateSliceOp, x, part, *starts)


def put(
    b: TensorBuilder,
    x: SSAValue,
    indices: SSAValue,
    updates: SSAValue,
    axis: int,
    kind: str,
) -> SSAValue:
    """Combines slices of `updates` into `x` at indices (rank 1) along an axis."""
    return b.emit(
        ScatterOp,
        x,
        indices,
        updates,
        kind=StringAttr(kind),
        update_window_dims=ints(_others(x, axis)),
        inserted_window_dims=ints([axis]),
        scatter_dims_to_operand_dims=ints([axis]),
        index_vector_dim=IntegerAttr(1, i64),
    )


def _order(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Integers in the order of the floats `x`: -0 equals 0, NaN is the largest."""
    x = b.apply(e.SelectOp, compare(b, x, "EQ", x), x, np.nan)
    return total_order(b, b.apply(e.AddOp, x, 0))  # -0 + 0 is 0


def sorted_along(
    b: TensorBuilder,
    x: SSAValue,
    axis: int,
    *,
    descending: bool = False,
    count: int | None = None,
) -> tuple[SSAValue, SSAValue]:
    """Sorts along an axis; returns the elements and their original indices (i64).

    The sort is stable. With `count`, only the first elements are returned. As in NumPy,
    NaN is larger than infinity, and -0 equals 0.
    """
    index = b.iota(with_element(type_of(x), i64), axis)
    element, number = (with_shape(type_of(value), []) for value in (x, index))
    block = Block(arg_types=[element, element, number, number])
    before: list[Operation] = []
    inner = TensorBuilder(before, b.location)
    keys: list[SSAValue] = list(block.args[:2])
    if isinstance(element.element_type, AnyFloat):
        keys = [_order(inner, key) for key in keys]
    answer = compare(inner, keys[0], "GT" if descending else "LT", keys[1])
    block.add_ops([*before, YieldOp(answer)])
    types, properties = [type_of(x), type_of(index)], dict[str, Attribute]()
    if count is not None:
        shape = list(shape_of(x))
        shape[axis] = count
        types = [with_shape(type, shape) for type in types]
        properties["count"] = IntegerAttr(count, i64)
    values, places = b.emit_all(
        SortOp,
        [x, index],
        types,
        [Region(block)],
        dimension=IntegerAttr(axis, i64),
        **properties,
    )
    return values, places


def largest_along(
    b: TensorBuilder, x: SSAValue, axis: int, count: int, *, largest: bool = True
) -> tuple[SSAValue, SSAValue]:
    """The `count` largest (or smallest) elements along an axis, and their indices."""
    return sorted_along(b, x, axis, descending=largest, count=count)


def one_hot(b: TensorBuilder, indices: SSAValue, depth: int, axis: int) -> SSAValue:
    """A boolean for each position along a new axis: whether it equals the index."""
    shape = list(shape_of(indices))
    shape.insert(axis, depth)
    kept = [d for d in range(len(shape)) if d != axis]
    wide = b.broadcast_in_dim(indices, shape, kept)
    return compare(b, wide, "EQ", b.iota(type_of(wide), axis))


def reverse_sequence(
    b: TensorBuilder, x: SSAValue, lengths: SSAValue, *, time: int, batch: int
) -> SSAValue:
    """Reverses the first elements along the axis `time`, `lengths[i]` for batch `i`."""
    lengths = b.broadcast_in_dim(lengths, shape_of(x), [batch])
    place = b.iota(type_of(lengths), time)
    mirrored = b.apply(e.SubtractOp, b.apply(e.SubtractOp, lengths, place), 1)
    inside = compare(b, place, "LT", lengths)
    return take_along(b, x, b.apply(e.SelectOp, inside, mirrored, place), time)
