"""Converts ATen operations that create or move elements to tgraph."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import element_bytes, ints, with_shape
from ...dialects.tgraph.base import shape_of as shape_of_type
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ..builder import axis_of, shape_of, type_of
from ..formulas import bitcast, compare
from ..indices import put
from ..unsupported import Unsupported
from .call import AtenCall, Conversion, Results


def _view(c: AtenCall) -> SSAValue:
    """Reshapes to the result's shape, which PyTorch has inferred. A view with another
    element type has the same bits; the last dimension absorbs a change of width."""
    x = c["self"]
    if "dtype" not in c.arguments:
        return c.reshape(x, c.shape)
    source, target = type_of(x), c.type
    if i1 in (source.element_type, target.element_type):
        raise Unsupported("of Booleans")
    before, after = (element_bytes(t.element_type) for t in (source, target))
    if before < after:  # the parts of each element of the result
        split = [*shape_of(x)[:-1], c.shape[-1], after // before]
        return bitcast(c, c.reshape(x, split), target)
    parts = [*shape_of(x), before // after] if before > after else c.shape
    return c.reshape(bitcast(c, x, with_shape(target, parts)), c.shape)


def _permute(c: AtenCall) -> SSAValue:
    return c.transpose(c["self"], c.axes("dims"))


def _expand(c: AtenCall) -> SSAValue:
    return c.broadcast(c["self"], c.shape)


def _range_of(c: AtenCall, axis: int) -> tuple[int, int, int]:
    """The start, end and step of a slice. The size of the axis may be symbolic."""
    size: Any = shape_of(c["self"])[axis]
    start: Any = c["start"] or 0
    end, step = c["end"], c["step"]
    if isinstance(size, int):
        taken = range(size)[start:end:step]
        return taken.start, max(taken.start, taken.stop), step
    if end is None or (isinstance(end, int) and end > _FAR):
        end = size
    start, end = (b + size if isinstance(b, int) and b < 0 else b for b in (start, end))
    return start, end, step


_FAR = 1 << 62
"""A slice whose end exceeds this number extends to the end of the dimension."""


def _slice(c: AtenCall) -> SSAValue:
    x, axis = c["self"], c.axis()
    starts, limits = [0] * len(shape_of(x)), list(shape_of(x))
    strides = [1] * len(limits)
    starts[axis], limits[axis], strides[axis] = _range_of(c, axis)
    return c.slice(x, starts, limits, strides)


def _slice_scatter(c: AtenCall) -> SSAValue:
    axis = c.axis()
    x = c["self"]
    start, end, step = _range_of(c, axis)
    if step != 1:
        places = c.constant(np.arange(start, end, step))
        return put(c, x, places, c["src"], axis, "replace")
    starts = [start if d == axis else 0 for d in range(len(shape_of(x)))]
    places = [c.constant(np.array(place)) for place in starts]
    return c.emit(DynamicUpdateSliceOp, x, c["src"], *places)


def _select(c: AtenCall) -> SSAValue:
    axis = c.axis()
    start = axis_of(c["index"], shape_of(c["self"])[axis])
    part = c.part(c["self"], axis, start, start + 1)
    return c.reshape(part, c.shape)


def _concatenate(c: AtenCall) -> SSAValue:
    given: Sequence[Any] = c["tensors"]
    values = [c.convert(v, c.element) for v in given if shape_of(v) != (0,)]
    if len(values) == 1:
        return values[0]
    axis = axis_of(c["dim"], len(shape_of(values[0])))
    dimension = IntegerAttr(axis, i64)
    return c.emit(shaping.ConcatenateOp, *values, dimension=dimension)


def _split(c: AtenCall) -> Results:
    x, axis = c["self"], c.axis()
    sizes = [shape_of_type(type)[axis] for type in c.types]
    ends = accumulate(sizes)
    return [c.part(x, axis, end - n, end) for n, end in zip(sizes, ends, strict=True)]


def _flip(c: AtenCall) -> SSAValue:
    return c.emit(shaping.ReverseOp, c["self"], dimensions=ints(c.axes("dims")))


def _repeat(c: AtenCall) -> SSAValue:
    x, repeats = c["self"], c["repeats"]
    shape = [1] * (len(repeats) - len(shape_of(x))) + list(shape_of(x))
    pairs = [size for pair in zip(repeats, shape, strict=True) for size in pair]
    x = c.reshape(x, shape)
    x = c.broadcast_in_dim(x, pairs, range(1, len(pairs), 2))
    return c.reshape(x, c.shape)


def _filled(name: str | float) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        number = c[name] if isinstance(name, str) else name
        if isinstance(number, SSAValue):
            return c.broadcast(c.convert(cast(SSAValue, number), c.element), c.shape)
        return c.full(number, c.element, c.shape)

    return convert


def _range(c: AtenCall) -> SSAValue:
    start, step = c.get("start", 0), c.get("step", 1)
    index = c.iota(c.type, 0)
    if step != 1:
        index = c.apply(e.MultiplyOp, index, step)
    if start != 0:
        index = c.apply(e.AddOp, index, start)
    return index


def _pad(c: AtenCall) -> SSAValue:
    """A padding, given in pairs (low, high) that begin with the last dimension."""
    x, pads = c["self"], c["pad"]
    rest = [0] * (len(shape_of(x)) - len(pads) // 2)
    value = c.full(c["value"], type_of(x).element_type, ())
    return c.pad(x, [*rest, *pads[-2::-2]], [*rest, *pads[-1::-2]], value)


def _matrices_last(c: AtenCall) -> list[int]:
    """The order of dimensions that moves those of the matrices to the end."""
    rank = len(shape_of(c["self"]))
    pair = [axis_of(c[name], rank) for name in ("dim1", "dim2")]
    return [*(d for d in range(rank) if d not in pair), *pair]


def _diagonal(c: AtenCall) -> SSAValue:
    x, offset = c.transpose(c["self"], _matrices_last(c)), c["offset"]
    *others, rows, columns = shape_of(x)
    start = offset if offset >= 0 else -offset * columns
    places = start + np.arange(c.shape[-1]) * (columns + 1)
    flat = c.reshape(x, [*others, rows * columns])
    return c.take(flat, c.constant(places), len(others))


def _with_diagonal(c: AtenCall) -> SSAValue:
    """Replaces a diagonal of matrices by the argument `src`."""
    order, offset = _matrices_last(c), int(c["offset"])
    x = c.transpose(c["self"], order)
    *others, rows, columns = shape_of(x)
    before, rank = max(-offset, 0), len(others)
    length = min(rows - before, columns - max(offset, 0))
    source = c.broadcast(c["src"], [*others, length])
    after = rows - before - length
    column = c.pad(source, [*[0] * rank, before], [*[0] * rank, after])
    wide = c.broadcast_in_dim(column, shape_of(x), range(rank + 1))
    numbers = TensorType(i64, [rows, columns])
    away = c.apply(e.SubtractOp, c.iota(numbers, 1), c.iota(numbers, 0))
    y = c.apply(e.SelectOp, compare(c, away, "EQ", offset), wide, x)
    return c.transpose(y, np.argsort(order).tolist())


def _strided_range(c: AtenCall) -> tuple[SSAValue, Sequence[int], range | Array]:
    """The elements of a tensor in a line, the order of dimensions in which they follow
    each other there, and the places in the line of the elements that the given strides
    select: a range if they are consecutive. Strides count elements of the memory that
    the tensor lies in, which may hold other elements as well: those cannot be read."""
    example = c.examples["self"]
    order = sorted(range(example.dim()), key=lambda d: -example.stride(d))
    in_memory = example.permute(order)
    line = c.reshape(c.transpose(c["self"], order), [example.numel()])
    start = c["storage_offset"]
    first = 0 if start is None else start - example.storage_offset()
    places = first + _addresses(c["size"], c["stride"])
    if not in_memory.is_contiguous():
        held = _addresses(in_memory.shape, in_memory.stride()).ravel()
        ascending = np.argsort(held, kind="stable")
        at = np.searchsorted(held, places, sorter=ascending)
        found = ascending[np.minimum(at, held.size - 1)]
        places = np.where(held[found] == places, found, -1)
    if places.size and (places.min() < 0 or places.max() >= example.numel()):
        raise Unsupported("beyond the elements of its tensor")
    if places.size and (np.diff(places.ravel()) == 1).all():
        return line, order, range(places.flat[0], places.flat[0] + places.size)
    return line, order, places


def _addresses(shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The distance of each element from the first, in elements."""
    steps = (np.arange(n) * step for n, step in zip(shape, strides, strict=True))
    return reduce(np.add, np.ix_(*steps), np.zeros((), np.int64))


def _strided(c: AtenCall) -> SSAValue:
    line, _, places = _strided_range(c)
    if isinstance(places, range):
        return c.reshape(c.part(line, 0, places.start, places.stop), c.shape)
    return c.take(line, c.constant(places), 0)


def _strided_scatter(c: AtenCall) -> SSAValue:
    """Writes at strides, as the gradient of a global average pool in channels-last
    layout does."""
    line, order, places = _strided_range(c)
    if 0 in c.examples["self"].stride() and not c.examples["self"].is_contiguous():
        raise Unsupported("on a tensor with several elements at one address")
    source = c.reshape(c["src"], [prod(shape_of(c["src"]))])
    if isinstance(places, range):
        start = c.constant(np.array(places.start))
        y = c.emit(DynamicUpdateSliceOp, line, source, start)
    else:
        y = put(c, line, c.constant(places.ravel()), source, 0, "replace")
    y = c.reshape(y, [c.shape[dim] for dim in order])
    return c.transpose(y, np.argsort(order).tolist())


def _copy(c: AtenCall) -> SSAValue:
    return c.broadcast(c.tensor("src"), c.shape)


def _triangle(indices: Callable[..., Sequence[Any]]) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        places = np.stack(indices(c["row"], c["offset"], c["col"]))
        return c.convert(c.constant(places.astype(np.int64)), c.element)

    return convert


CONVERSIONS: Mapping[str, Conversion] = {
    **{name: _view for name in ("squeeze", "unsqueeze", "view")},
    "_efficientzerotensor": _filled(0),
    "alias": lambda c: c["self"],
    "detach": lambda c: c["self"],
    "as_strided": _strided,
    "as_strided_scatter": _strided_scatter,
    "arange": _range,
    "cat": _concatenate,
    "clone": lambda c: c["self"],
    "constant_pad_nd": _pad,
    "copy": _copy,
    "diagonal": _diagonal,
    "diagonal_scatter": _with_diagonal,
    "empty": _filled(0),
    "empty_permuted": _filled(0),
    "empty_strided": _filled(0),
    "expand": _expand,
    "flip": _flip,
    "full": _filled("fill_value"),
    "full_like": _filled("fill_value"),
    "lift_fresh_copy": lambda c: c["self"],
    "new_empty_strided": _filled(0),
    "permute": _permute,
    "repeat": _repeat,
    "scalar_tensor": _filled("s"),
    "select": _select,
    "slice": _slice,
    "slice_scatter": _slice_scatter,
    "split_with_sizes": _split,
    "tril_indices": _triangle(np.tril_indices),
    "triu_indices": _triangle(np.triu_indices),
}
