"""ONNX's operations that sample images at computed coordinates → tgraph."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ...dialects.dtypes import numpy_dtype
from ...dialects.tgraph import elementwise as e
from ..builder import shape_of, type_of
from ..formulas import clamp, compare, per_channel
from ..indices import take_rows
from ..operators import Value
from ..sampling import (
    GridSampling,
    Tap,
    combined,
    grid_sample,
    linear,
    precise,
    rows_of,
    sample,
    zero_outside,
    zeros,
)
from ..unsupported import Unsupported
from .node import Conversion, OnnxNode


def _affine_grid(n: OnnxNode) -> Sequence[Value]:
    """Transforms the points of a grid from -1 to 1 by the matrix `theta`.

    ONNX's own definition squeezes `theta`, so it fails for a batch of one.
    """
    theta, (batch, _, *space) = n.value(0), n.known_integers(1)
    is_aligned = n.integer("align_corners", 0)
    lines = [
        np.linspace(-1, 1, size) if is_aligned else (2 * np.arange(size) + 1) / size - 1
        for size in space
    ]
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*places, np.ones(space)], -1).reshape(-1, len(space) + 1)
    dtype = numpy_dtype(type_of(theta).element_type)
    moved = n.dot(theta, n.constant(points.astype(dtype)), ([2], [1]))
    return [n.reshape(n.transpose(moved, [0, 2, 1]), [batch, *space, len(space)])]


def _grid_sample(n: OnnxNode) -> Sequence[Value]:
    mode = n.text("mode", "linear").removeprefix("bi")
    n.expect("mode", mode, "nearest", "linear", "cubic")
    padding = n.text("padding_mode", "zeros")
    n.expect("padding_mode", padding, "zeros", "border", "reflection")
    how = GridSampling(mode, padding, bool(n.integer("align_corners", 0)))
    return [grid_sample(n, n.value(0), n.value(1), how)]


def _roi_align(n: OnnxNode) -> Sequence[Value]:
    """The mean or the maximum of the samples in each bin."""
    x, rois, batches = n.value(0), precise(n, n.value(1)), n.value(2)
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
    axes: list[Sequence[Tap]] = []
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
    rows = n.reshape(rows_of(n, x), [shape_of(x)[0] * prod(sizes), channels])
    image = n.apply(e.MultiplyOp, n.convert(batches, i32), prod(sizes))
    first = n.broadcast_in_dim(image, flat, [0])
    sampled = sample(
        n, axes, sizes, lambda place: n.take(rows, n.apply(e.AddOp, place, first), 0)
    )
    kind, op_type = _KINDS[mode]
    value = combined(n, op_type, sampled)
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


def _inside(n: OnnxNode, place: SSAValue, size: int) -> Sequence[Tap]:
    """Moves places up to one element outside to the border. Others outside read 0."""
    near = clamp(n, place, -1, size)
    is_near = compare(n, near, "EQ", place)
    taps = linear(n, clamp(n, place, 0, size - 1))
    return [
        Tap(
            clamp(n, tap.element, 0, size - 1),
            n.apply(e.SelectOp, is_near, tap.weight, zeros(n, tap.weight)),
        )
        for tap in taps
    ]


def _deformable_convolution(n: OnnxNode) -> Sequence[Value]:
    """The kernel times columns of elements that are sampled at moved places."""
    x, kernel, offset = (n.value(index) for index in range(3))
    batch, channels, *sizes = shape_of(x)
    outputs, _, *window = shape_of(kernel)
    if len(sizes) != 2:
        raise Unsupported(f"on images of {len(sizes)} dimensions, expected 2")
    groups, parts = n.integer("group", 1), n.integer("offset_group", 1)
    space = shape_of(offset)[2:]
    taken, area = prod(window), prod(space)
    flat = [batch * parts, taken * area]
    moves = n.reshape(precise(n, offset), [batch * parts, taken, 2, *space])
    strides, dilations = (n.integers(k, [1, 1]) for k in ("strides", "dilations"))
    pads = n.integers("pads", [0] * 4)
    axes: list[Sequence[Tap]] = []
    for d, size in enumerate(sizes):
        grid = np.indices([*window, *space])  # kernel's, then image's coordinates
        fixed = grid[d] * dilations[d] + grid[2 + d] * strides[d] - pads[d]
        start = n.constant(fixed.reshape(taken, *space).astype(np.float32))
        start = n.convert(start, type_of(moves).element_type)
        move = n.reshape(n.part(moves, 2, d, d + 1), [batch * parts, taken, *space])
        place = n.reshape(n.apply(e.AddOp, move, start), flat)
        axes.append([zero_outside(n, tap, size) for tap in linear(n, place)])
    rows = rows_of(n, n.reshape(x, [batch * parts, channels // parts, *sizes]))
    sampled = sample(n, axes, sizes, lambda place: take_rows(n, rows, place))
    columns = combined(n, e.AddOp, sampled)
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


CONVERSIONS: Mapping[str, Conversion] = {
    "AffineGrid": _affine_grid,
    "DeformConv": _deformable_convolution,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
}
