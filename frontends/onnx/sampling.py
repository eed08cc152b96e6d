"""ONNX's operations that read images at computed places → tgraph.

A place lies between elements. Along each axis it reads some of them (taps), with
weights; the weights of several axes are multiplied. Places are in f32 at least.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import element_bytes
from ..builder import shape_of, type_of
from ..formulas import clamp, compare, per_channel
from ..indices import take_rows
from ..unsupported import Unsupported
from .node import Conversion, OnnxNode, Value


class _Tap(NamedTuple):
    element: SSAValue
    """An element's number along an axis, as a float; it may lie outside."""

    weight: SSAValue


def _precise(n: OnnxNode, x: SSAValue) -> SSAValue:
    return n.convert(x, f32) if element_bytes(type_of(x).element_type) < 4 else x


def _nearest(n: OnnxNode, place: SSAValue) -> Sequence[_Tap]:
    return [_Tap(n.emit(e.RoundNearestEvenOp, place), n.splat(1, type_of(place)))]


def _linear(n: OnnxNode, place: SSAValue) -> Sequence[_Tap]:
    low = n.emit(e.FloorOp, place)
    t = n.apply(e.SubtractOp, place, low)
    far = n.apply(e.SubtractOp, n.splat(1, type_of(t)), t)
    return [_Tap(low, far), _Tap(n.apply(e.AddOp, low, 1), t)]


def _cubic(n: OnnxNode, place: SSAValue) -> Sequence[_Tap]:
    """Keys' kernel with the coefficient -0.75, by Horner's rule in the fraction."""
    low, a = n.emit(e.FloorOp, place), -0.75
    t = n.apply(e.SubtractOp, place, low)
    taps: list[_Tap] = []
    for offset, coefficients in (
        (-1, (a, -2 * a, a, 0)),
        (0, (a + 2, -a - 3, 0, 1)),
        (1, (-a - 2, 2 * a + 3, -a, 0)),
        (2, (-a, a, 0, 0)),
    ):
        weight = n.splat(coefficients[0], type_of(t))
        for coefficient in coefficients[1:]:
            weight = n.apply(e.MultiplyOp, weight, t)
            weight = n.apply(e.AddOp, weight, coefficient)
        taps.append(_Tap(n.apply(e.AddOp, low, offset), weight))
    return taps


def _zero(n: OnnxNode, tap: _Tap, size: int) -> _Tap:
    """Elements outside are zero."""
    near = clamp(n, tap.element, 0, size - 1)
    inside = compare(n, near, "EQ", tap.element)
    return _Tap(near, n.apply(e.SelectOp, inside, tap.weight, _zeros(n, tap.weight)))


def _zeros(n: OnnxNode, like: SSAValue) -> SSAValue:
    return n.splat(0, type_of(like))


def _reflected(n: OnnxNode, place: SSAValue, low: float, high: float) -> SSAValue:
    """A triangle wave: low + |d - 2 range * round(d / (2 range))|, d from low."""
    period = 2 * (high - low)
    if not period:
        return n.splat(low, type_of(place))
    distance = n.apply(e.SubtractOp, place, low)
    turns = n.emit(e.RoundNearestEvenOp, n.apply(e.DivideOp, distance, period))
    rest = n.apply(e.SubtractOp, distance, n.apply(e.MultiplyOp, turns, period))
    return n.apply(e.AddOp, n.emit(e.AbsOp, rest), low)


def _sample(
    n: OnnxNode,
    axes: Sequence[Sequence[_Tap]],
    sizes: Sequence[int],
    read: Callable[[SSAValue], SSAValue],
) -> Sequence[SSAValue]:
    """Weighted elements, B x K x channels, of each combination of the axes' taps.

    Taps are inside, B x K; `read` has the elements at such numbers in row-major order.
    """
    results: list[SSAValue] = []
    for taps in product(*axes):
        place, weight = n.convert(taps[0].element, i32), taps[0].weight
        for tap, size in zip(taps[1:], sizes[1:], strict=True):
            place = n.apply(e.MultiplyOp, place, size)
            place = n.apply(e.AddOp, place, n.convert(tap.element, i32))
            weight = n.apply(e.MultiplyOp, weight, tap.weight)
        elements = read(place)
        wide = n.broadcast_in_dim(weight, shape_of(elements), [0, 1])
        results.append(
            n.apply(
                e.MultiplyOp, elements, n.convert(wide, type_of(elements).element_type)
            )
        )
    return results


def _combined(n: OnnxNode, op_type: type, values: Sequence[SSAValue]) -> SSAValue:
    result, *others = values
    for other in others:
        result = n.apply(op_type, result, other)
    return result


def _rows(n: OnnxNode, x: SSAValue) -> SSAValue:
    """Images (batch x channels x space) as batch x elements x channels."""
    batch, channels, *space = shape_of(x)
    return n.transpose(n.reshape(x, [batch, channels, prod(space)]), [0, 2, 1])


def _grid_sample(n: OnnxNode) -> Sequence[Value]:
    x, grid = n.value(0), _precise(n, n.value(1))
    batch, channels, *sizes = shape_of(x)
    places = shape_of(grid)[1:-1]
    axes: list[Sequence[_Tap]] = []
    for d, size in enumerate(sizes):
        column = len(sizes) - 1 - d  # the grid has the last axis first
        place = n.part(grid, len(places) + 1, column, column + 1)
        axes.append(_taps(n, n.reshape(place, [batch, prod(places)]), size))
    rows = _rows(n, x)
    sampled = _sample(n, axes, sizes, lambda place: take_rows(n, rows, place))
    result = n.transpose(_combined(n, e.AddOp, sampled), [0, 2, 1])
    return [n.reshape(result, [batch, channels, *places])]


def _taps(n: OnnxNode, place: SSAValue, size: int) -> Sequence[_Tap]:
    """For places from -1 to 1, as the node's attributes say."""
    mode = n.text("mode", "linear").removeprefix("bi")
    n.expect("mode", mode, *_MODES)
    padding = n.text("padding_mode", "zeros")
    n.expect("padding_mode", padding, "zeros", "border", "reflection")
    aligned = bool(n.integer("align_corners", 0))
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    place = _denormalized(n, place, size, aligned)
    if mode == "nearest":
        place = n.emit(e.RoundNearestEvenOp, place)
    if padding == "reflection":
        place = _reflected(n, place, low, high)
    taps = _MODES[mode](n, place)
    if padding == "zeros":
        return [_zero(n, tap, size) for tap in taps]
    if padding == "reflection":
        taps = [_Tap(_reflected(n, i, low, high), weight) for i, weight in taps]
    return [_Tap(clamp(n, i, 0, size - 1), weight) for i, weight in taps]


def _denormalized(n: OnnxNode, x: SSAValue, size: int, aligned: bool) -> SSAValue:
    """From -1 to 1 to elements' numbers: centers of the first and last, or edges."""
    shifted = n.apply(e.AddOp, x, 1)
    if aligned:
        return n.apply(e.MultiplyOp, n.apply(e.DivideOp, shifted, 2), size - 1)
    scaled = n.apply(e.MultiplyOp, shifted, size)
    return n.apply(e.DivideOp, n.apply(e.SubtractOp, scaled, 1), 2)


def _roi_align(n: OnnxNode) -> Sequence[Value]:
    """The mean (or maximum) of places in each bin, bins as many as the result has."""
    x, rois, batches = n.value(0), _precise(n, n.value(1)), n.value(2)
    _, channels, *sizes = shape_of(x)
    count = shape_of(rois)[0]
    ratio = n.integer("sampling_ratio", 0)
    if ratio < 1:
        raise Unsupported(f"with sampling_ratio = {ratio}, expected at least 1")
    mode = n.text("mode", "avg")
    n.expect("mode", mode, "avg", "max")
    default = "half_pixel" if n.opset >= 16 else "output_half_pixel"
    half = n.text("coordinate_transformation_mode", default) == "half_pixel"
    bins = n.integer("output_height", 1), n.integer("output_width", 1)
    points = [count, bins[0] * ratio, bins[1] * ratio]
    flat = [count, points[1] * points[2]]
    axes: list[Sequence[_Tap]] = []
    for d, size in enumerate(sizes):
        start, end = (_edge(n, rois, column, half) for column in (1 - d, 3 - d))
        length = n.apply(e.SubtractOp, end, start)
        if not half:
            length = n.apply(e.MaximumOp, length, 1)
        parts = (np.arange(points[d + 1], dtype="f4") + 0.5) / points[d + 1]
        along = n.convert(n.constant(parts), type_of(rois).element_type)
        steps = n.broadcast_in_dim(along, points, [d + 1])
        place = n.apply(
            e.AddOp,
            n.broadcast_in_dim(start, points, [0]),
            n.apply(e.MultiplyOp, n.broadcast_in_dim(length, points, [0]), steps),
        )
        axes.append(_inside(n, n.reshape(place, flat), size))
    rows = n.reshape(_rows(n, x), [shape_of(x)[0] * prod(sizes), channels])
    image = n.apply(e.MultiplyOp, n.convert(batches, i32), prod(sizes))
    first = n.broadcast_in_dim(image, flat, [0])
    sampled = _sample(
        n, axes, sizes, lambda place: n.take(rows, n.apply(e.AddOp, place, first), 0)
    )
    kind, op_type = _KINDS[mode]
    value = _combined(n, op_type, sampled)
    value = n.reshape(value, [count, bins[0], ratio, bins[1], ratio, channels])
    value = n.reduce(kind, value, [2, 4])
    if mode == "avg":
        value = n.apply(e.DivideOp, value, ratio**2)
    return [n.transpose(value, [0, 3, 1, 2])]


_KINDS = {"avg": ("add", e.AddOp), "max": ("maximum", e.MaximumOp)}


def _edge(n: OnnxNode, rois: SSAValue, column: int, half: bool) -> SSAValue:
    value = n.reshape(n.part(rois, 1, column, column + 1), [shape_of(rois)[0]])
    value = n.apply(e.MultiplyOp, value, n.number("spatial_scale", 1.0))
    return n.apply(e.SubtractOp, value, 0.5) if half else value


def _inside(n: OnnxNode, place: SSAValue, size: int) -> Sequence[_Tap]:
    """Places up to one element outside are at the border, others are zero."""
    near = clamp(n, place, -1, size)
    is_near = compare(n, near, "EQ", place)
    taps = _linear(n, clamp(n, place, 0, size - 1))
    return [
        _Tap(
            clamp(n, tap.element, 0, size - 1),
            n.apply(e.SelectOp, is_near, tap.weight, _zeros(n, tap.weight)),
        )
        for tap in taps
    ]


def _deformable_convolution(n: OnnxNode) -> Sequence[Value]:
    """Columns of elements that an offset moves, times the kernel."""
    x, kernel, offset = (n.value(index) for index in range(3))
    batch, channels, *sizes = shape_of(x)
    outputs, _, *window = shape_of(kernel)
    if len(sizes) != 2:
        raise Unsupported(f"of images of {len(sizes)} dimensions, expected 2")
    groups, parts = n.integer("group", 1), n.integer("offset_group", 1)
    space = shape_of(offset)[2:]
    taken, area = prod(window), prod(space)
    flat = [batch * parts, taken * area]
    moves = n.reshape(_precise(n, offset), [batch * parts, taken, 2, *space])
    strides, dilations = (n.integers(k, [1, 1]) for k in ("strides", "dilations"))
    pads = n.integers("pads", [0] * 4)
    axes: list[Sequence[_Tap]] = []
    for d, size in enumerate(sizes):
        grid = np.indices([*window, *space])  # kernel's, then image's coordinates
        fixed = grid[d] * dilations[d] + grid[2 + d] * strides[d] - pads[d]
        start = n.constant(fixed.reshape(taken, *space).astype(np.float32))
        start = n.convert(start, type_of(moves).element_type)
        move = n.reshape(n.part(moves, 2, d, d + 1), [batch * parts, taken, *space])
        place = n.reshape(n.apply(e.AddOp, move, start), flat)
        axes.append([_zero(n, tap, size) for tap in _linear(n, place)])
    rows = _rows(n, n.reshape(x, [batch * parts, channels // parts, *sizes]))
    sampled = _sample(n, axes, sizes, lambda place: take_rows(n, rows, place))
    columns = _combined(n, e.AddOp, sampled)
    if n.has(4):
        mask = n.reshape(n.value(4), flat)
        mask = n.broadcast_in_dim(mask, shape_of(columns), [0, 1])
        columns = n.apply(e.MultiplyOp, columns, mask)
    columns = n.transpose(columns, [0, 2, 1])
    columns = n.reshape(columns, [batch, groups, channels // groups * taken, area])
    kernel = n.reshape(kernel, [groups, outputs // groups, channels // groups * taken])
    result = n.dot(kernel, columns, ([2], [2]), ([0], [1]))
    result = n.transpose(result, [2, 0, 1, 3])
    result = n.reshape(result, [batch, outputs, *space])
    if n.has(3):
        bias = per_channel(n, n.value(3), shape_of(result))
        result = n.apply(e.AddOp, result, bias)
    return [result]


_MODES: Mapping[str, Callable[[OnnxNode, SSAValue], Sequence[_Tap]]] = {
    "cubic": _cubic,
    "linear": _linear,
    "nearest": _nearest,
}

CONVERSIONS: Mapping[str, Conversion] = {
    "DeformConv": _deformable_convolution,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
}
