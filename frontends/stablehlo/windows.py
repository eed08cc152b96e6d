"""Converts reductions of windows by any body.

The body must be associative. Along one dimension after another, a window is composed of
windows whose sizes are powers of two, and each of these of two of half its size.

Padding has no effect. It is left out if the body may turn two initial values into
another value, as a complex `logaddexp` turns two -inf into NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.sizes.symbolic import Symbolic
from ...dialects.tgraph import elementwise, shaping
from ...dialects.tgraph.base import AnyTensor, ints, shape_of, with_element
from ..builder import TensorBuilder
from ..formulas import compare
from ..known import known
from ..unsupported import Unsupported
from .conversion import Conversion, Values, broadcast, padding, type_of


def reduced_by_body(c: Conversion) -> Values:
    """Converts a `stablehlo.reduce_window` of any number of tensors."""
    count = len(c.op.results)
    tensors, initial = list(c.inputs[:count]), c.inputs[count:]
    shape = shape_of(type_of(tensors[0]))
    results = [type_of(result) for result in c.op.results]
    if any(isinstance(size, Symbolic) for size in (*shape, *shape_of(results[0]))):
        raise Unsupported("with symbolic sizes, by more than one operation")
    starts = [broadcast(c, x, t) for x, t in zip(initial, results, strict=True)]
    if 0 in shape_of(results[0]):
        return starts
    ones = [1] * len(shape)
    low, high = padding(c, len(shape))
    holes = [n - 1 for n in c.integers("base_dilations", ones)]
    b = TensorBuilder(c.into, c.op.location)
    tensors = [
        b.emit(shaping.PadOp, *pair, low=low, high=high, interior=ints(holes))
        for pair in zip(tensors, initial, strict=True)
    ]
    matters = not _are_kept(c, initial)
    ends = low.get_values(), high.get_values(), holes
    paddings = [matters & _is_padding(*of) for of in zip(shape, *ends, strict=True)]
    only_padding: list[Array] = []
    for axis, (is_padding, size, stride, dilation) in enumerate(
        zip(
            paddings,
            c.integers("window_dimensions"),
            c.integers("window_strides", ones),
            c.integers("window_dilations", ones),
            strict=True,
        )
    ):
        elements = _Windows(axis, tensors, is_padding)
        windows = _windows(c, b, elements, size, stride, dilation)
        tensors = windows.values
        only_padding.append(windows.is_padding)
    found = c.applied(0, [*starts, *tensors])
    for axis, is_padding in enumerate(only_padding):
        found = _chosen(b, axis, is_padding, starts, found)
    return found


def _are_kept(c: Conversion, initial: Sequence[SSAValue]) -> bool:
    """Whether the body is known to map the initial values, twice, to themselves."""
    alone = replace(c, into=[])
    made = map(known, alone.applied(0, [*initial, *initial]))
    return all(
        x is not None and y is not None and x.tobytes() == y.tobytes()
        for x, y in zip(map(known, initial), made, strict=True)
    )


def _is_padding(size: int, low: int, high: int, holes: int) -> Array:
    """Which elements of a padded dimension are padding."""
    padded = np.ones(max(0, size + (size - 1) * holes), bool)
    padded[:: holes + 1] = False
    padded = np.pad(padded, (max(0, low), max(0, high)), constant_values=True)
    return padded[max(0, -low) : len(padded) - max(0, -high)]


@dataclass(frozen=True)
class _Windows:
    """Results of the body for windows along one axis. Where a window is only padding
    (`is_padding`), the values are arbitrary.
    """

    axis: int
    values: list[SSAValue]
    is_padding: Array

    def part(self, b: TensorBuilder, first: int, count: int) -> _Windows:
        end = first + count
        values = [b.part(value, self.axis, first, end) for value in self.values]
        return replace(self, values=values, is_padding=self.is_padding[first:end])

    def followed_by(self, c: Conversion, b: TensorBuilder, other: _Windows) -> _Windows:
        values = c.applied(0, [*self.values, *other.values])
        first, second = self.is_padding, other.is_padding
        values = _chosen(b, self.axis, second & ~first, self.values, values)
        values = _chosen(b, self.axis, first & ~second, other.values, values)
        return replace(self, values=values, is_padding=first & second)


def _chosen(
    b: TensorBuilder,
    axis: int,
    where: Array,
    first: Sequence[SSAValue],
    second: Sequence[SSAValue],
) -> list[SSAValue]:
    """Selects from `first` where `where` is true along the axis, else from `second`."""
    if not where.any():
        return list(second)
    places = _mask_along(b, with_element(type_of(first[0]), i32), axis, where)
    return [
        b.emit(elementwise.SelectOp, places, x, y, type=type_of(x))
        for x, y in zip(first, second, strict=True)
    ]


def _mask_along(b: TensorBuilder, type: AnyTensor, axis: int, where: Array) -> SSAValue:
    """`where` along an axis as a boolean tensor; `type` is a tensor of integers."""
    edges = np.flatnonzero(np.diff(where, prepend=False, append=False))
    number = b.iota(type, axis)
    runs = [
        b.apply(
            elementwise.AndOp,
            compare(b, number, "GE", start),
            compare(b, number, "LT", end),
        )
        for start, end in edges.reshape(-1, 2).tolist()
    ]
    return reduce(partial(b.apply, elementwise.OrOp), runs)


def _windows(
    c: Conversion,
    b: TensorBuilder,
    elements: _Windows,
    size: int,
    stride: int,
    dilation: int,
) -> _Windows:
    """Applies the body to each window of `size` elements along an axis."""
    length = len(elements.is_padding)
    places = length - (size - 1) * dilation
    power, span = elements, 1  # windows of `span` elements
    windows: _Windows | None = None
    offset = 0
    while True:
        if size & span:
            following = power.part(b, offset * dilation, places)
            windows = windows.followed_by(c, b, following) if windows else following
            offset += span
        if 2 * span > size:
            break
        count = length - (2 * span - 1) * dilation
        halves = power.part(b, 0, count), power.part(b, span * dilation, count)
        power, span = halves[0].followed_by(c, b, halves[1]), 2 * span
    assert windows
    if stride == 1:
        return windows
    shape = shape_of(type_of(windows.values[0]))
    strides = [stride if d == windows.axis else 1 for d in range(len(shape))]
    values = [b.slice(x, [0] * len(shape), shape, strides) for x in windows.values]
    return replace(windows, values=values, is_padding=windows.is_padding[::stride])
