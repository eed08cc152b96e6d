"""Converts ATen's indexing and sorting operations to tgraph."""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import ints, with_element
from ...dialects.tgraph.indexing import GatherOp, ScatterOp
from ...dialects.tgraph.shaping import ConcatenateOp
from ..builder import broadcast_shapes, shape_of, type_of
from ..formulas import compare, cumulative
from ..indices import (
    from_front,
    largest_along,
    put,
    put_along,
    sorted_along,
    take_along,
)
from ..known import known
from ..unsupported import Unsupported
from .call import AtenCall, Conversion, Results


def _embedding(c: AtenCall) -> SSAValue:
    return c.take(c["weight"], c["indices"], 0)


def _embedding_bag(c: AtenCall) -> Results:
    """The sums, means or maxima of the rows in each bag. For maxima, also the number of
    the first row that has each of them."""
    if 1 in c.used or 2 in c.used:
        raise Unsupported("with the bag of each row, or the count of rows in each bag")
    indices = c["indices"]
    bags = _Bags(c, shape_of(indices)[0], c.shape[0])
    rows = c.take(c["weight"], indices, 0)
    kept = c.full(1, i1, shape_of(indices))
    if c["padding_idx"] >= 0:
        kept = compare(c, indices, "NE", int(c["padding_idx"]))
    column = c.reshape(kept, [*shape_of(kept), 1])
    sizes = bags.reduced("add", c.convert(kept, i64), 0)
    sizes = c.reshape(sizes, [*shape_of(sizes), 1])
    if c["mode"] == _LARGEST:
        some = compare(c, sizes, "GT", 0)
        rows = c.apply(e.SelectOp, column, rows, _LOW)
        largest = bags.reduced("maximum", rows, _LOW)
        result = c.apply(e.SelectOp, some, largest, 0)
        if 3 not in c.used:
            return [result, None, None, None]
        best = c.apply(e.AndOp, column, compare(c, rows, "EQ", bags.of_rows(largest)))
        numbers = c.iota(with_element(type_of(rows), i64), 0)
        last = shape_of(indices)[0] - 1
        number = bags.reduced("minimum", c.apply(e.SelectOp, best, numbers, last), last)
        taken = c.take(indices, number, 0)
        return [result, None, None, c.apply(e.SelectOp, some, taken, 0)]
    if 3 in c.used:
        raise Unsupported("with the rows that have the largest elements")
    scale = c.convert(column, c.element)
    if c["per_sample_weights"] is not None:
        own = c.reshape(c["per_sample_weights"], shape_of(column))
        scale = c.apply(e.MultiplyOp, scale, own)
    if c["padding_idx"] >= 0 or c["per_sample_weights"] is not None:
        rows = c.apply(e.MultiplyOp, rows, scale)
    total = bags.reduced("add", rows, 0)
    if c["mode"] == _MEAN:
        count = c.convert(c.apply(e.MaximumOp, sizes, 1), c.element)
        total = c.apply(e.DivideOp, total, count)
    return [total, None, None, None]


class _Bags:
    """Bags of consecutive rows. If all bags are known to have the same size, they are a
    dimension of a reshaped tensor. Otherwise, rows are scattered by bag number."""

    def __init__(self, c: AtenCall, count: int, bags: int):
        self._c, self._bags, self._shape = c, bags, [bags, count // max(bags, 1)]
        starts = known(c["offsets"])
        even = np.arange(bags) * self._shape[1]
        self._numbers = None
        if starts is None or count % bags or not np.array_equal(starts[:bags], even):
            self._numbers = self._computed(count)

    def _computed(self, count: int) -> SSAValue:
        """The number of the bag of each row."""
        c, bags = self._c, self._bags
        starts = c.convert(c.part(c["offsets"], 0, 0, bags), i64)
        ones = c.full(1, i64, [bags])
        marks = put(c, c.full(0, i64, [count + 1]), starts, ones, 0, "add")
        started = cumulative(c, "add", c.part(marks, 0, 0, count), 0)
        return c.apply(e.SubtractOp, started, 1)

    def reduced(self, kind: str, x: SSAValue, neutral: float) -> SSAValue:
        c, (_, *rest) = self._c, shape_of(x)
        if self._numbers is None:
            return c.reduce(kind, c.reshape(x, [*self._shape, *rest]), [1])
        start = c.full(neutral, type_of(x).element_type, [self._bags, *rest])
        return put(c, start, self._numbers, x, 0, kind)

    def of_rows(self, x: SSAValue) -> SSAValue:
        """The entry of `x` for the bag of each row."""
        c, (_, *rest) = self._c, shape_of(x)
        if self._numbers is not None:
            return c.take(x, self._numbers, 0)
        dims = [0, *range(2, len(rest) + 2)]
        wide = c.broadcast_in_dim(x, [*self._shape, *rest], dims)
        return c.reshape(wide, [self._shape[0] * self._shape[1], *rest])


_MEAN, _LARGEST = 1, 2
_LOW = float("-inf")


def _index_select(c: AtenCall) -> SSAValue:
    x, axis = c["self"], c.axis()
    return c.take(x, from_front(c, c["index"], [shape_of(x)[axis]]), axis)


def _gather(c: AtenCall) -> SSAValue:
    return take_along(c, c["self"], c["index"], c.axis())


def _scatter(kind: str | None) -> Conversion:
    """The conversion of a scatter. If `kind` is None, the argument `reduce` selects the
    reduction."""

    def convert(c: AtenCall) -> SSAValue:
        index = c["index"]
        source = c.operand("src") if "src" in c.arguments else c["value"]
        if not isinstance(source, SSAValue):
            source = c.full(source, c.element, shape_of(index))
        reduce = c.get("reduce")
        if reduce is not None:
            c.expect("reduce", *_REDUCTIONS)
            c.expect("include_self", True)
        found = kind or _REDUCTIONS[str(reduce)]
        return put_along(c, c["self"], index, cast(SSAValue, source), c.axis(), found)

    return convert


def _indexed(c: AtenCall) -> tuple[list[int], SSAValue, list[int], list[int]]:
    """The indexed dimensions, the index vectors along the last dimension, their batch
    shape, and the dimensions of the result that are not indexed (NumPy's rule).
    """
    x, given = c["self"], c["indices"]
    dims = [d for d, index in enumerate(given) if index is not None]
    indices: list[SSAValue] = [given[d] for d in dims]
    if any(type_of(index).element_type == i1 for index in indices):
        raise Unsupported("with a mask: the shape of the result depends on values")
    shape = list(broadcast_shapes(*map(shape_of, indices)))
    columns = [
        c.broadcast(c.convert(from_front(c, index, [shape_of(x)[d]]), i64), shape)
        for d, index in zip(dims, indices, strict=True)
    ]
    vectors = columns[0]
    if len(columns) > 1:
        columns = [c.reshape(column, [*shape, 1]) for column in columns]
        dimension = IntegerAttr(len(shape), i64)
        vectors = c.emit(ConcatenateOp, *columns, dimension=dimension)
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if adjacent else 0
    rest = len(shape_of(x)) - len(dims)
    places = [d if d < first else d + len(shape) for d in range(rest)]
    return dims, vectors, shape, places


def _index(c: AtenCall) -> SSAValue:
    x = c["self"]
    dims, vectors, shape, places = _indexed(c)
    sizes = [1 if d in dims else size for d, size in enumerate(shape_of(x))]
    return c.emit(
        GatherOp,
        x,
        vectors,
        offset_dims=ints(places),
        collapsed_slice_dims=ints(dims),
        start_index_map=ints(dims),
        index_vector_dim=IntegerAttr(len(shape), i64),
        slice_sizes=ints(sizes),
    )


def _index_put(c: AtenCall) -> SSAValue:
    x = c["self"]
    if (masked := _masked(c)) is not None:
        return masked
    dims, vectors, shape, places = _indexed(c)
    kept = [size for d, size in enumerate(shape_of(x)) if d not in dims]
    rest, batch = iter(kept), iter(shape)
    rank = len(kept) + len(shape)
    target = [next(rest if d in places else batch) for d in range(rank)]
    return c.emit(
        ScatterOp,
        x,
        vectors,
        c.broadcast(c.operand("values"), target),
        kind=StringAttr("add" if c["accumulate"] else "replace"),
        update_window_dims=ints(places),
        inserted_window_dims=ints(dims),
        scatter_dims_to_operand_dims=ints(dims),
        index_vector_dim=IntegerAttr(len(shape), i64),
    )


def _unfold(c: AtenCall) -> SSAValue:
    """Windows along an axis, whose elements lie along a new last dimension."""
    x, axis = c["self"], c.axis("dimension")
    count, size, step = c.shape[axis], int(c["size"]), int(c["step"])
    places = np.arange(count)[:, None] * step + np.arange(size)
    windows = c.take(x, c.constant(places), axis)
    order = [d for d in range(len(c.shape)) if d != axis + 1]
    return c.transpose(windows, [*order, axis + 1])


def _masked(c: AtenCall) -> SSAValue | None:
    """Converts `x[mask] = number`, where no shape depends on values. Returns None for
    other indices."""
    mask: Any = c["indices"][0]
    if len(c["indices"]) != 1 or type_of(mask).element_type != i1:
        return None
    values: SSAValue = c.operand("values")
    if shape_of(values) not in ((), (1,)) or c["accumulate"]:
        raise Unsupported("with a mask and values whose number depends on the mask")
    x = c["self"]
    rank = range(len(shape_of(mask)))
    wide = c.broadcast_in_dim(mask, shape_of(x), rank)
    return c.apply(e.SelectOp, wide, c.reshape(values, []), x)


def _masked_scatter(c: AtenCall) -> SSAValue:
    """Replaces elements where the mask is true by the source's elements, in order."""
    x, source = c["self"], c["source"]
    mask = c.broadcast(c["mask"], c.shape)
    count = c.convert(c.reshape(mask, [prod(c.shape)]), i64)
    before = c.apply(e.SubtractOp, cumulative(c, "add", count, 0), count)
    flat = c.reshape(source, [prod(shape_of(source))])
    taken = c.reshape(c.take(flat, before, 0), c.shape)
    return c.apply(e.SelectOp, mask, taken, x)


def _embedding_backward(c: AtenCall) -> SSAValue:
    """Adds each gradient to the row that was read. The gradient of padding is 0."""
    c.expect("scale_grad_by_freq", False)
    head, indices = c["grad_output"], c["indices"]
    count, (*_, width) = prod(shape_of(indices)), shape_of(head)
    indices, rows = c.reshape(indices, [count]), c.reshape(head, [count, width])
    if c["padding_idx"] >= 0:
        kept = compare(c, indices, "NE", int(c["padding_idx"]))
        rows = c.apply(e.SelectOp, c.reshape(kept, [count, 1]), rows, 0)
    zeros = c.full(0, c.element, c.shape)
    return put(c, zeros, indices, rows, 0, "add")


def _pool_backward(rank: int, c: AtenCall) -> SSAValue:
    """The gradient of a max pool: adds each gradient to the element at its index."""
    rows = [prod(shape_of(c["self"])[:-rank]), prod(shape_of(c["self"])[-rank:])]
    head, places = (
        c.reshape(c[name], [rows[0], prod(shape_of(c[name])[-rank:])])
        for name in ("grad_output", "indices")
    )
    zeros = c.full(0, c.element, rows)
    return c.reshape(put_along(c, zeros, places, head, 1, "add"), c.shape)


def _sort(c: AtenCall) -> Results:
    return sorted_along(c, c["self"], c.axis(), descending=c["descending"])


def _top_k(c: AtenCall) -> Results:
    largest: bool = c["largest"]
    return largest_along(c, c["self"], c.axis(), c["k"], largest=largest)


def _places(c: AtenCall, sorted: SSAValue, x: SSAValue) -> SSAValue:
    """The number of elements of `sorted` before each element of `x`."""
    rank = len(shape_of(x))
    if len(shape_of(sorted)) == 1:
        rows = sorted
    else:
        *batch, count = shape_of(sorted)
        rows = c.reshape(sorted, [*batch, 1, count])
    column = c.reshape(x, [*shape_of(x), 1])
    is_right = c["right"] or c.get("side") == "right"
    before = compare(c, rows, "LE" if is_right else "LT", column)
    return c.reduce("add", c.convert(before, c.element), [rank])


def _bucketize(c: AtenCall) -> SSAValue:
    return _places(c, c["boundaries"], c["self"])


def _searched(c: AtenCall) -> SSAValue:
    if c.get("sorter") is not None:
        raise Unsupported("with a sorter")
    return _places(c, c["sorted_sequence"], c["self"])


_REDUCTIONS: Mapping[str, str] = {
    "add": "add",
    "amax": "maximum",
    "amin": "minimum",
    "multiply": "multiply",
    "prod": "multiply",
    "sum": "add",
}

CONVERSIONS: Mapping[str, Conversion] = {
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "bucketize": _bucketize,
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "gather": _gather,
    "index": _index,
    "index_put": _index_put,
    "index_select": _index_select,
    "masked_scatter": _masked_scatter,
    **{
        f"{name}{rank}d{rest}_backward": partial(_pool_backward, rank)
        for rank in (2, 3)
        for name, rest in (("adaptive_max_pool", ""), ("max_pool", "_with_indices"))
    },
    "scatter": _scatter("replace"),
    "scatter_add": _scatter("add"),
    "scatter_reduce": _scatter(None),
    "searchsorted": _searched,
    "sort": _sort,
    "topk": _top_k,
    "unfold": _unfold,
}
