"""ONNX's operations that read or write at indices → tgraph."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import ints, with_shape
from ...dialects.tgraph.indexing import GatherOp, ScatterOp
from ..builder import axis_of, shape_of, type_of
from ..formulas import compare
from ..indices import from_front, largest_along, one_hot, put_along, take_along
from ..operators import Known, Value
from ..unsupported import Unsupported
from .node import Conversion, OnnxNode


def _from_front(n: OnnxNode, index: int, sizes: Sequence[int]) -> SSAValue:
    """An input of indices, negative ones counted from the end.

    `sizes` has that of the indexed dimension, or one for each entry of index vectors,
    which lie along the last dimension.
    """
    indices = n.inputs[index]
    if isinstance(indices, Known) and indices.argument is None:
        array = indices.array
        return n.constant(np.where(array < 0, array + np.array(sizes), array))
    return from_front(n, n.value(index), sizes)


def _gather(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    if (place := n.scalar(1)) is not None:  # a view
        start = axis_of(int(place), shape_of(x)[axis])
        shape = [*shape_of(x)]
        shape[axis : axis + 1] = n.known(1).shape
        return [n.reshape(n.part(x, axis, start, start + 1), shape)]
    return [n.take(x, _from_front(n, 1, [shape_of(x)[axis]]), axis)]


def _gather_elements(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    indices = _from_front(n, 1, [shape_of(x)[axis]])
    return [take_along(n, x, indices, axis)]


def _scatter_elements(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    indices = _from_front(n, 1, [shape_of(x)[axis]])
    reduction = n.text("reduction", "none")
    n.expect("reduction", reduction, *_KINDS)
    return [put_along(n, x, indices, n.value(2), axis, _KINDS[reduction])]


def _top_k(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", -1), len(shape_of(x)))
    (count,) = n.known_integers(1)
    return largest_along(n, x, axis, count, largest=bool(n.integer("largest", 1)))


def _one_hot(n: OnnxNode) -> Sequence[Value]:
    (depth,) = n.known_integers(1)
    rank = len(shape_of(n.value(0)))
    axis = axis_of(n.integer("axis", -1), rank + 1)
    indices = _from_front(n, 0, [depth])
    if isinstance(type_of(indices).element_type, AnyFloat):
        indices = n.convert(indices, i64)
    off, on = (n.reshape(n.part(n.value(2), 0, k, k + 1), []) for k in range(2))
    chosen = one_hot(n, indices, depth, axis)
    return [n.apply(e.SelectOp, chosen, on, off)]


def _gather_nd(n: OnnxNode) -> Sequence[Value]:
    x, batch = n.value(0), n.integer("batch_dims", 0)
    shape = shape_of(x)
    *outer, length = shape_of(n.value(1))
    _check_tuples(batch, length, len(shape))
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


def _compress(n: OnnxNode) -> Sequence[Value]:
    """The elements whose places have a true condition, which is a constant."""
    x, places = n.value(0), np.flatnonzero(n.known(1))
    if "axis" not in n.attributes:
        x = n.reshape(x, [prod(shape_of(x))])
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    return [n.take(x, n.constant(places), axis)]


def _reverse_sequence(n: OnnxNode) -> Sequence[Value]:
    time, batch = n.integer("time_axis", 0), n.integer("batch_axis", 1)
    return [reverse_sequence(n, n.value(0), n.value(1), time=time, batch=batch)]


def reverse_sequence(
    n: OnnxNode, x: SSAValue, lengths: SSAValue, *, time: int, batch: int
) -> SSAValue:
    """The first elements along the time axis in reverse, as many as a batch has."""
    lengths = n.broadcast_in_dim(lengths, shape_of(x), [batch])
    place = n.iota(type_of(lengths), time)
    turned = n.apply(e.SubtractOp, n.apply(e.SubtractOp, lengths, place), 1)
    inside = compare(n, place, "LT", lengths)
    return take_along(n, x, n.apply(e.SelectOp, inside, turned, place), time)


def _tensor_scatter(n: OnnxNode) -> Sequence[Value]:
    """Updates of a cache along one axis, from an index on that each batch has."""
    x, updates = n.value(0), n.value(1)
    axis = axis_of(n.integer("axis", -2), len(shape_of(x)))
    mode = n.text("mode", "linear")
    n.expect("mode", mode, "linear", "circular")
    type = with_shape(TensorType(i64, []), shape_of(updates))
    place = n.iota(type, axis)
    if n.has(2):
        start = n.broadcast_in_dim(n.value(2), shape_of(updates), [0])
        place = n.apply(e.AddOp, start, place)
    if mode == "circular":
        place = n.apply(e.RemainderOp, place, shape_of(x)[axis])
    return [put_along(n, x, place, updates, axis, "replace")]


def _check_tuples(batch: int, length: int, rank: int) -> None:
    """Indices come in tuples, for the dimensions after those of a batch."""
    if not 0 <= batch <= batch + length <= rank:
        raise Unsupported(
            f"with {length} indices after {batch} dimensions, expected at most {rank} "
            "together"
        )


def _scatter_nd(n: OnnxNode) -> Sequence[Value]:
    x, updates = n.value(0), n.value(2)
    reduction = n.text("reduction", "none")
    n.expect("reduction", reduction, *_KINDS)
    *outer, length = shape_of(n.value(1))
    rank = len(shape_of(x))
    _check_tuples(0, length, rank)
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
    "Compress": _compress,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "TopK": _top_k,
}
