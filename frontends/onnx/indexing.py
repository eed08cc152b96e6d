"""ONNX's operations that read or write at indices → tgraph."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import with_shape
from ..builder import axis_of, shape_of, type_of
from ..indices import (
    check_tuples,
    from_front,
    largest_along,
    one_hot,
    put_along,
    put_tuples,
    reverse_sequence,
    take_along,
    take_tuples,
)
from ..operators import Known, Value
from .node import Conversion, OnnxNode


def _from_front(n: OnnxNode, index: int, sizes: Sequence[int]) -> SSAValue:
    """An input of indices, with negative ones converted to count from the front.

    `sizes` has the size of the indexed dimension, or one size for each entry of the
    index vectors along the last dimension.
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
    length = shape_of(n.value(1))[-1]
    check_tuples(batch, length, len(shape_of(x)))
    indices = _from_front(n, 1, shape_of(x)[batch : batch + length])
    return [take_tuples(n, x, indices, batch)]


def _compress(n: OnnxNode) -> Sequence[Value]:
    """The elements at the places where the condition, a constant, is true."""
    x, places = n.value(0), np.flatnonzero(n.known(1))
    if "axis" not in n.attributes:
        x = n.reshape(x, [prod(shape_of(x))])
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    return [n.take(x, n.constant(places), axis)]


def _reverse_sequence(n: OnnxNode) -> Sequence[Value]:
    time, batch = n.integer("time_axis", 0), n.integer("batch_axis", 1)
    return [reverse_sequence(n, n.value(0), n.value(1), time=time, batch=batch)]


def _tensor_scatter(n: OnnxNode) -> Sequence[Value]:
    """Writes updates to a cache along one axis, from a start index per batch."""
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


def _scatter_nd(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    reduction = n.text("reduction", "none")
    n.expect("reduction", reduction, *_KINDS)
    length = shape_of(n.value(1))[-1]
    check_tuples(0, length, len(shape_of(x)))
    indices = _from_front(n, 1, shape_of(x)[:length])
    return [put_tuples(n, x, indices, n.value(2), _KINDS[reduction])]


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
