"""ONNX's operations that read or write at indices → tgraph."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from tensorplan.dialects.tgraph import elementwise as e
from tensorplan.dialects.tgraph.base import ints
from tensorplan.dialects.tgraph.indexing import GatherOp, ScatterOp
from tensorplan.frontends.onnx.elementwise import compare
from tensorplan.frontends.onnx.node import (
    Conversion,
    Known,
    Node,
    Value,
    axis_of,
    shape_of,
    type_of,
)


def _from_front(n: Node, index: int, sizes: Sequence[int]) -> SSAValue:
    """An input of indices, negative ones counted from the end.

    `sizes` has that of the indexed dimension, or one for each entry of index vectors,
    which lie along the last dimension.
    """
    indices = n.inputs[index]
    if isinstance(indices, Known) and indices.argument is None:
        array = indices.array
        return n.constant(np.where(array < 0, array + np.array(sizes), array))
    values = n.value(index)
    limits = n.constant(np.array(sizes))
    if len(sizes) == 1:
        limits = n.reshape(limits, [])
    limits = n.convert(limits, type_of(values).element_type)
    moved = n.apply(e.AddOp, values, limits)
    return n.apply(e.SelectOp, compare(n, values, "LT", 0), moved, values)


def _gather(n: Node) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    if (place := n.scalar(1)) is not None:  # a view
        start = axis_of(int(place), shape_of(x)[axis])
        shape = [*shape_of(x)]
        shape[axis : axis + 1] = n.known(1).shape
        return [n.reshape(n.part(x, axis, start, start + 1), shape)]
    return [n.take(x, _from_front(n, 1, [shape_of(x)[axis]]), axis)]


def _gather_elements(n: Node) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    indices = _from_front(n, 1, [shape_of(x)[axis]])
    others = [d for d in range(len(shape_of(x))) if d != axis]
    limits = [
        shape_of(x)[d] if d == axis else size
        for d, size in enumerate(shape_of(indices))
    ]
    return [
        n.emit(
            GatherOp,
            n.slice(x, [0] * len(limits), limits),
            indices,
            offset_dims=ints(()),
            collapsed_slice_dims=ints([axis]),
            operand_batching_dims=ints(others),
            start_indices_batching_dims=ints(others),
            start_index_map=ints([axis]),
            index_vector_dim=IntegerAttr(len(limits), i64),
            slice_sizes=ints([1] * len(limits)),
        )
    ]


def _gather_nd(n: Node) -> Sequence[Value]:
    x, batch = n.value(0), n.integer("batch_dims", 0)
    shape = shape_of(x)
    *outer, length = shape_of(n.value(1))
    indexed = range(batch, batch + length)
    indices = _from_front(n, 1, [shape[d] for d in indexed])
    rest = len(shape) - batch - length
    return [
        n.emit(
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
    ]


def _scatter_nd(n: Node) -> Sequence[Value]:
    x, updates = n.value(0), n.value(2)
    reduction = n.text("reduction", "none")
    n.expect("reduction", reduction, *_KINDS)
    *outer, length = shape_of(n.value(1))
    rank = len(shape_of(x))
    return [
        n.emit(
            ScatterOp,
            x,
            _from_front(n, 1, shape_of(x)[:length]),
            updates,
            kind=StringAttr(_KINDS[reduction]),
            update_window_dims=ints(range(len(outer), len(outer) + rank - length)),
            inserted_window_dims=ints(range(length)),
            input_batching_dims=ints(()),
            scatter_indices_batching_dims=ints(()),
            scatter_dims_to_operand_dims=ints(range(length)),
            index_vector_dim=IntegerAttr(len(outer), i64),
        )
    ]


_KINDS = {
    "none": "replace",
    "add": "add",
    "mul": "multiply",
    "max": "maximum",
    "min": "minimum",
}

CONVERSIONS: Mapping[str, Conversion] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterND": _scatter_nd,
}
