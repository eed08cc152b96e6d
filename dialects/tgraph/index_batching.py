"""Rewrites gathers and scatters whose indices enumerate a dimension.

If all index vectors of a gather do, or are constants at equal distances, it takes a
slice. Otherwise, the enumerated
dimension becomes a batch dimension:

    %i = tgraph.concatenate %rows, %labels ... : ... -> tensor<8x2xi32>
    %1 = tgraph.gather %x, %i {start_index_map = array<i64: 0, 1>, ...} : ...

    %1 = tgraph.gather %x, %labels {start_index_map = array<i64: 1>,
         operand_batching_dims = array<i64: 0>, start_indices_batching_dims = ..., ...}

%rows is 0, 1, ..., 7, and %x has eight rows: in NumPy, `x[arange(8), labels]`. Each
index vector belongs to one row, which StableHLO's batching dimensions express. A tile
of the result then needs only its rows of %x, and a scatter with one index vector per
batch hits no element twice.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ..compatibility import insert, replace
from .base import TensorOp, ints, is_static, tensor_type_of, value_shape, with_shape
from .bounds import integers_of
from .canonicalization.positions import counts
from .elements import limits
from .fusing import keeps_sizes
from .indexing import GatherOp, ScatterOp, are_entries
from .shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)

_DIMENSIONS: Mapping[type[TensorOp], Sequence[str]] = {
    GatherOp: (
        "start_index_map",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
    ),
    ScatterOp: (
        "scatter_dims_to_operand_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    ),
}
"""The properties with the indexed dimensions of the operand, those that slices omit,
the batch dimensions of the operand, and the batch dimensions of the indices."""


class BatchOfIndices(RewritePattern):
    """gather or scatter at (iota, i) -> the same at i, with a batch dimension."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(op, GatherOp | ScatterOp)
        operand, indices, *rest = op.inputs
        vector_dim, joined = op.index_vector_dim.value.data, indices.owner
        types = [tensor_type_of(value.type) for value in (operand, indices)]
        if op.outs or not all(map(is_static, types)):
            return
        if not isinstance(joined, ConcatenateOp) or not are_entries(joined, vector_dim):
            return
        names = _DIMENSIONS[type(op)]
        indexed, dropped, of_operand, of_indices = (
            cast(DenseArrayBase[IntegerType], op.properties[name]).get_values()
            for name in names
        )
        batch = dict(zip(of_operand, of_indices, strict=True))
        entries = dict(zip(indexed, joined.inputs, strict=True))
        for dim, entry in list(entries.items()):
            along = _counted(entry, value_shape(operand)[dim], vector_dim)
            free = [d for d in along if d not in batch.values()]
            if free and dim in dropped and len(entries) > 1:
                batch[dim] = free[0]
                del entries[dim]
        if len(entries) == len(indexed):
            return
        left = insert(rewriter, _joined(joined, list(entries.values()), vector_dim))
        lists = (
            list(entries),
            [dim for dim in dropped if dim not in batch],
            sorted(batch),
            [batch[dim] for dim in sorted(batch)],
        )
        new = type(op).create(
            operands=[operand, left.result, *rest],
            result_types=[op.result.type],
            properties={
                **op.properties,
                **dict(zip(names, map(ints, lists), strict=True)),
            },
        )
        new.location, new.attributes = op.location, {**op.attributes}
        replace(rewriter, op, new)


class GatherOfCounted(RewritePattern):
    """gather of whole slices at equal distances -> a slice, a reverse and a transpose,
    which are views: an embedding's positions `table[arange(8)]`, or `x[:, [1, 0]]`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(op, GatherOp)
        operand, indices = op.inputs
        types = [tensor_type_of(value.type) for value in (operand, indices)]
        indexed = op.start_index_map.get_values()
        if op.outs or not all(map(is_static, types)) or len(indexed) != 1:
            return
        (dim,), shape, vectors = indexed, value_shape(operand), value_shape(indices)
        batch = [d for d in range(len(vectors)) if d != op.index_vector_dim.value.data]
        whole = [1 if d == dim else size for d, size in enumerate(shape)]
        if (
            len(batch) != 1
            or op.collapsed_slice_dims.get_values() != (dim,)
            or list(op.slice_sizes.get_values()) != whole
            or (places := _progression(indices, batch[0])) is None
            or not 0 <= min(places) <= max(places) < shape[dim]
        ):
            return
        type = with_shape(
            types[0], [len(places) if d == dim else n for d, n in enumerate(shape)]
        )
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        starts[dim], limits[dim] = min(places), max(places) + 1
        strides[dim] = abs(places.step)
        part = {"start_indices": starts, "limit_indices": limits, "strides": strides}
        made: list[TensorOp] = [
            SliceOp(
                [operand],
                result_types=[type],
                properties={name: ints(numbers) for name, numbers in part.items()},
            )
        ]
        if places.step < 0:
            along = {"dimensions": ints([dim])}
            made.append(
                ReverseOp(made[0].results, result_types=[type], properties=along)
            )
        offsets = op.offset_dims.get_values()
        others = iter([d for d in range(len(shape)) if d != dim])
        order = [next(others) if d in offsets else dim for d in range(len(shape))]
        made.append(
            TransposeOp(
                made[-1].results,
                result_types=[op.result.type],
                properties={"permutation": ints(order)},
            )
        )
        for new in made:
            new.location, new.attributes = op.location, {**op.attributes}
        for new in made[:-1]:
            insert(rewriter, new)
        replace(rewriter, op, made[-1])


def _progression(indices: SSAValue, along: int) -> range | None:
    """The indices along a dimension, the only one of a size other than 1, if they are
    known and at equal distances."""
    size, op = value_shape(indices)[along], indices.owner
    if not size or prod(value_shape(indices)) != size:
        return None
    while isinstance(op, ReshapeOp | BroadcastInDimOp) and keeps_sizes(op):
        op = op.inputs[0].owner
    if isinstance(op, ConstantOp) and (numbers := integers_of(op)):
        step = numbers[1] - numbers[0]
        places = range(numbers[0], numbers[0] + size * step, step or 1)
        return places if [*places] == numbers else None
    return range(size) if _counted(indices, size, -1) else None


def _counted(entry: SSAValue, size: int, vector_dim: int) -> Sequence[int]:
    """The dimensions along which an entry enumerates all of `size` indices."""
    _, most = limits(tensor_type_of(entry.type).element_type)
    return [
        dim
        for dim, length in enumerate(value_shape(entry))
        if dim != vector_dim and length == size <= most and counts(entry, dim)
    ]


def _joined(
    joined: ConcatenateOp, entries: Sequence[SSAValue], vector_dim: int
) -> ConcatenateOp:
    """Index vectors that consist of these entries only."""
    shape = list(value_shape(joined.result))
    shape[vector_dim] = len(entries)
    new = ConcatenateOp(
        entries,
        result_types=[with_shape(tensor_type_of(joined.result.type), shape)],
        properties={"dimension": joined.dimension},
    )
    new.location, new.attributes = joined.location, {**joined.attributes}
    return new
