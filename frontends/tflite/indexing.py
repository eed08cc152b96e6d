"""Converts operations that read or write at indices.

Quantized integers are moved unchanged, so operands and results must have one scale.
Elements that nothing writes are the integer 0, as in LiteRT's kernels, whatever the
zero point is.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ..builder import axis_of, element_type, shape_of, type_of
from ..formulas import compare
from ..indices import (
    largest_along,
    one_hot,
    put,
    put_tuples,
    reverse_sequence,
    take_tuples,
)
from ..operators import Value
from ..unsupported import Unsupported
from .elementwise import expect_numbers, expect_one_scale
from .node import Conversion, TFLiteNode


def _gather(n: TFLiteNode) -> Sequence[Value]:
    x, indices, batch = n.value(0), n.value(1), n.option("BatchDims")
    axis = axis_of(n.option("Axis"), len(shape_of(x)))
    batch = batch + len(shape_of(indices)) if batch < 0 else batch
    if not 0 <= batch <= min(axis, len(shape_of(indices))):
        raise Unsupported(f"with {batch} dimensions of a batch, expected 0 to {axis}")
    return [n.take(x, indices, axis, batch)]


def _gather_tuples(n: TFLiteNode) -> Sequence[Value]:
    expect_one_scale(n, 0)
    return [take_tuples(n, n.value(0), n.value(1))]


def _scatter_tuples(n: TFLiteNode) -> Sequence[Value]:
    """Updates with equal indices are added."""
    expect_one_scale(n, 1)
    updates = n.value(1)
    zeros = n.full(0, type_of(updates).element_type, n.known_integers(2))
    return [put_tuples(n, zeros, n.value(0), updates, "add")]


def _embedding(n: TFLiteNode) -> Sequence[Value]:
    """Takes rows of a table, which may be quantized even if the result is not."""
    if n.is_quantized:
        expect_one_scale(n, 1)
        return [n.take(n.value(1), n.value(0), 0)]
    table = n.tensor(1)
    rows = n.take(n.value(1), n.value(0), 0)
    if not table.is_quantized:
        return [rows]
    rows = n.convert(rows, element_type(n.results[0].dtype))
    if table.scales.size == 1:
        return [n.apply(e.MultiplyOp, rows, float(table.scale))]
    scales = n.take(n.constant(table.scales), n.value(0), 0)
    scales = n.broadcast_in_dim(scales, shape_of(rows), [0])
    return [n.apply(e.MultiplyOp, rows, scales)]


def _top(n: TFLiteNode) -> Sequence[Value]:
    """The largest elements along the last axis, and their indices."""
    expect_one_scale(n, 0)
    x, (count,) = n.value(0), n.known_integers(1)
    values, indices = largest_along(n, x, len(shape_of(x)) - 1, count)
    return [values, n.convert(indices, element_type(n.results[1].dtype))]


def _one_hot(n: TFLiteNode) -> Sequence[Value]:
    indices, (depth,) = n.value(0), n.known_integers(1)
    axis = axis_of(n.option("Axis"), len(shape_of(indices)) + 1)
    chosen = one_hot(n, indices, depth, axis)
    on, off = (n.reshape(n.value(index), []) for index in (2, 3))
    return [n.apply(e.SelectOp, chosen, on, off)]


def _update_slice(n: TFLiteNode) -> Sequence[Value]:
    """Starts are clamped so that the slice is in bounds."""
    expect_one_scale(n, 0, 1)
    x, starts = n.value(0), n.value(2)
    places = [
        n.reshape(n.part(starts, 0, d, d + 1), []) for d in range(len(shape_of(x)))
    ]
    return [n.emit(DynamicUpdateSliceOp, x, n.value(1), *places)]


def _reverse_sequence(n: TFLiteNode) -> Sequence[Value]:
    expect_one_scale(n, 0)
    time, batch = n.option("SeqDim"), n.option("BatchDim")
    return [reverse_sequence(n, n.value(0), n.value(1), time=time, batch=batch)]


def _segments(n: TFLiteNode, kind: str, count: int) -> SSAValue:
    """Reduces the rows of each of `count` segments; rows with negative numbers are
    ignored. The maximum or minimum of no rows is the extreme finite number.
    """
    x, rank = n.value(0), len(shape_of(n.value(1)))
    places = n.reshape(n.value(1), [prod(shape_of(n.value(1)))])
    rest = shape_of(x)[rank:]
    rows = n.reshape(x, [*shape_of(places), *rest])
    dtype = n.results[0].dtype
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    extremes = {"maximum": limits.min, "minimum": limits.max}
    neutral = extremes.get(kind, int(kind == "multiply"))
    start = n.full(neutral, type_of(x).element_type, [count, *rest])
    return put(n, start, places, rows, 0, kind)


def _sorted_segments(n: TFLiteNode) -> Sequence[Value]:
    expect_numbers(n)
    return [_segments(n, "add", max(n.known_integers(1), default=-1) + 1)]


def _unsorted_segments(kind: str) -> Conversion:
    def convert(n: TFLiteNode) -> Sequence[Value]:
        expect_numbers(n)
        (count,) = n.known_integers(2)
        return [_segments(n, kind, count)]

    return convert


def _dense(n: TFLiteNode) -> Sequence[Value]:
    """Puts values at index tuples, which may be one tuple or a list of indices, and a
    default elsewhere.
    """
    expect_numbers(n)
    indices, shape, values = n.value(0), n.known_integers(1), n.value(2)
    if len(shape_of(indices)) < 2:
        count = prod(shape_of(indices)) // len(shape)
        indices = n.reshape(indices, [count, len(shape)])
    values = n.broadcast(values, shape_of(indices)[:1])
    rest = n.broadcast(n.reshape(n.value(3), []), shape)
    return [put_tuples(n, rest, indices, values, "replace")]


def _buckets(n: TFLiteNode) -> Sequence[Value]:
    """The number of boundaries that are not greater than each element."""
    expect_numbers(n)
    x = n.reshape(n.value(0), [*shape_of(n.value(0)), 1])
    limits = np.atleast_1d(n.option("BoundariesAsNumpy")).astype(np.float32)
    below = compare(n, n.convert(x, f32), "GE", n.constant(limits))
    below = n.convert(below, element_type(n.results[0].dtype))
    return [n.reduce("add", below, [len(shape_of(x)) - 1])]


CONVERSIONS: Mapping[str, Conversion] = {
    "BUCKETIZE": _buckets,
    "DYNAMIC_UPDATE_SLICE": _update_slice,
    "EMBEDDING_LOOKUP": _embedding,
    "GATHER": _gather,
    "GATHER_ND": _gather_tuples,
    "ONE_HOT": _one_hot,
    "REVERSE_SEQUENCE": _reverse_sequence,
    "SCATTER_ND": _scatter_tuples,
    "SEGMENT_SUM": _sorted_segments,
    "SPARSE_TO_DENSE": _dense,
    "TOPK_V2": _top,
    "UNSORTED_SEGMENT_MAX": _unsorted_segments("maximum"),
    "UNSORTED_SEGMENT_MIN": _unsorted_segments("minimum"),
    "UNSORTED_SEGMENT_PROD": _unsorted_segments("multiply"),
    "UNSORTED_SEGMENT_SUM": _unsorted_segments("add"),
}
