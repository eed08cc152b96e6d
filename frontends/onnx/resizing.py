"""ONNX's Resize → tgraph: resizes axis by axis, by indices or by weights.

Scales and places are f32, as in the model and in onnxruntime: 10 elements times 0.7 are
7 elements, and a place halfway between two elements rounds as in onnxruntime. Integers
are interpolated in f32. As in onnxruntime, `linear` drops the fraction, and `antialias`
rounds after each axis, from the last axis to the first. `cubic` rounds at the end, as
in ONNX's reference. Rounded numbers are clamped to the range of the type, as in ONNX's
reference; onnxruntime's `antialias` clamps even signed 8-bit integers to 0 to 255.
"""

from collections.abc import Callable, Mapping, Sequence
from math import floor
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.elements import is_float, limits
from ..builder import arange, axis_of, shape_of, type_of
from ..formulas import clamp
from ..operators import Value
from ..windows import (
    cubic,
    interpolate,
    kernel_weights,
    linear,
    linear_weights,
    take_places,
)
from .node import Conversion, OnnxNode


class _Axis(NamedTuple):
    """An axis to resize, with the length in the formulas, which may be fractional."""

    axis: int
    before: int
    after: int
    length: np.float32
    scale: np.float32
    region: tuple[float, float]
    """The start and the end of the part to resize, as shares of the axis."""


def _resize(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    mode = n.text("mode", "nearest")
    n.expect("mode", mode, "nearest", "linear", "cubic")
    element = type_of(x).element_type
    is_weighted = mode != "nearest" and not is_float(element)
    is_smooth = bool(n.integer("antialias", 0))
    if is_weighted:
        x = n.convert(x, f32)
    for one in reversed(_axes(n, shape_of(x))):
        if one.after != one.before or one.scale != 1 or one.region != (0, 1):
            x = _along(n, x, mode, one)
            if is_weighted and is_smooth:
                x = _rounded(n, x, element)
    if is_weighted and mode == "cubic" and not is_smooth:
        x = _rounded(n, x, element)
    return [n.convert(x, element)]


def _rounded(n: OnnxNode, x: SSAValue, element: Attribute) -> SSAValue:
    """Rounds to integers, ties away from 0, clamped to the range of `element`."""
    return clamp(n, n.emit(e.RoundNearestAfzOp, x), *limits(element))


def _axes(n: OnnxNode, shape: Sequence[int]) -> Sequence[_Axis]:
    axes = [axis_of(a, len(shape)) for a in n.integers("axes", range(len(shape)))]
    before = [shape[axis] for axis in axes]
    policy = n.text("keep_aspect_ratio_policy", "stretch")
    n.expect("keep_aspect_ratio_policy", policy, "stretch", *_POLICIES)
    if not n.has(3):
        scales = [*n.known(2).ravel().astype(np.float32)]
        lengths = [a * scale for a, scale in zip(before, scales, strict=True)]
        after = [int(length) for length in lengths]
    else:
        after = n.known_integers(3)
        lengths = [np.float32(size) for size in after]
        scales = [b / np.float32(a) for a, b in zip(before, lengths, strict=True)]
        if policy != "stretch":
            scales = [_POLICIES[policy](scales)] * len(axes)
            lengths = [a * scale for a, scale in zip(before, scales, strict=True)]
            after = [floor(length + 0.5) for length in lengths]
    regions = [(0.0, 1.0)] * len(axes)
    if _is_cropped(n):
        corners = [float(number) for number in n.known(1).ravel()]
        regions = list(zip(corners[: len(axes)], corners[len(axes) :], strict=True))
    return [
        _Axis(*values)
        for values in zip(axes, before, after, lengths, scales, regions, strict=True)
    ]


_POLICIES: Mapping[str, Callable[[Sequence[np.float32]], np.float32]] = {
    "not_larger": min,
    "not_smaller": max,
}


def _is_cropped(n: OnnxNode) -> bool:
    mode = n.text("coordinate_transformation_mode", "half_pixel")
    return mode == "tf_crop_and_resize"


def _places(n: OnnxNode, one: _Axis) -> Array:
    """The position of each new element along an axis, in indices of old elements."""
    mode = n.text("coordinate_transformation_mode", "half_pixel")
    n.expect(
        "coordinate_transformation_mode",
        mode,
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "asymmetric",
        "align_corners",
        "tf_crop_and_resize",
    )
    _, before, after, length, scale, (start, end) = one
    index = arange(after).astype(np.float32)
    if mode == "asymmetric":
        return index / scale
    if mode == "align_corners":
        return index * (before - 1) / (length - 1) if length > 1 else index * 0.0
    if mode == "tf_crop_and_resize":
        if length <= 1:
            return index * 0.0 + (start + end) * (before - 1) / 2
        step = (end - start) * (before - 1) / (length - 1)
        return start * (before - 1) + index * step
    if mode == "pytorch_half_pixel" and length <= 1:
        return index * 0.0
    places = (index + 0.5) / scale
    if mode == "half_pixel_symmetric":
        places = before / 2 * (1 - after / length) + places  # in this order
    return places - 0.5


def _along(n: OnnxNode, x: SSAValue, mode: str, one: _Axis) -> SSAValue:
    places = _places(n, one)
    if mode == "nearest":
        result = _nearest(n, x, one.axis, places)
    else:
        result = interpolate(n, x, one.axis, _weights(n, mode, one, places))
    if not _is_cropped(n):
        return result
    outside = n.constant((places < 0) | (places > one.before - 1))
    outside = n.broadcast_in_dim(outside, shape_of(result), [one.axis])
    value = n.splat(n.number("extrapolation_value", 0.0), type_of(result))
    return n.apply(e.SelectOp, outside, value, result)


def _weights(n: OnnxNode, mode: str, one: _Axis, places: Array) -> Array:
    """The weights of old elements in new ones.

    With `antialias`, a kernel that shrinks an image is stretched, to read all elements.
    """
    is_smooth = n.integer("antialias", 0) and one.scale < 1
    stretch = float(1 / one.scale) if is_smooth else 1.0
    inside = bool(n.integer("exclude_outside", 0))
    if mode == "linear" and stretch == 1:
        return linear_weights(one.before, places)
    kernel, reach = linear, 1
    if mode == "cubic":
        kernel, reach = cubic(n.number("cubic_coeff_a", -0.75)), 2
    return kernel_weights(
        one.before, places, kernel, reach, stretch=stretch, inside=inside
    )


def _nearest(n: OnnxNode, x: SSAValue, axis: int, places: Array) -> SSAValue:
    rounding = n.text("nearest_mode", "round_prefer_floor")
    n.expect("nearest_mode", rounding, *_ROUNDINGS)
    last = shape_of(x)[axis] - 1
    indices = np.clip(_ROUNDINGS[rounding](places), 0, last)
    return take_places(n, x, axis, indices)


def _prefer_floor(places: Array) -> Array:
    return np.ceil(places - 0.5)


def _prefer_ceil(places: Array) -> Array:
    return np.floor(places + 0.5)


_ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": _prefer_floor,
    "round_prefer_ceil": _prefer_ceil,
    "floor": np.floor,
    "ceil": np.ceil,
}

CONVERSIONS: Mapping[str, Conversion] = {"Resize": _resize}
