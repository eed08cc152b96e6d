"""ONNX's Resize → tgraph: along one axis after the other, by indices or by weights."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ..builder import axis_of, counted, shape_of
from ..windows import cubic_weights, interpolate, linear_weights, take_places
from .node import Conversion, OnnxNode, Value


def _resize(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    rank = len(shape_of(x))
    axes = [axis_of(axis, rank) for axis in n.integers("axes", range(rank))]
    mode = n.text("mode", "nearest")
    n.expect("mode", mode, "nearest", "linear", "cubic")
    policy = n.text("keep_aspect_ratio_policy", "stretch")
    n.expect("keep_aspect_ratio_policy", policy, "stretch")
    n.expect("antialias", n.integer("antialias", 0), 0)
    before = [shape_of(x)[axis] for axis in axes]
    if n.has(3):
        lengths: Sequence[float] = n.known_integers(3)
        scales = [b / a for a, b in zip(before, lengths, strict=True)]
    else:
        scales = [float(scale) for scale in n.known(2).ravel()]
        lengths = [a * scale for a, scale in zip(before, scales, strict=True)]
    for axis, length, scale in zip(axes, lengths, scales, strict=True):
        size = shape_of(x)[axis]
        if int(length) != size or scale != 1:
            x = _along(n, x, axis, mode, _places(n, size, length, scale))
    return [x]


def _places(n: OnnxNode, before: int, length: float, scale: float) -> Array:
    """Where the new elements along an axis lie among the old ones, of size `before`.

    `length` is the old size times the scale, which ONNX's formulas are about; it may
    have a fraction, which the new size has not.
    """
    mode = n.text("coordinate_transformation_mode", "half_pixel")
    n.expect(
        "coordinate_transformation_mode",
        mode,
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "asymmetric",
        "align_corners",
    )
    after = int(length)
    index = counted(after)
    if mode == "asymmetric":
        return index / scale
    if mode == "align_corners":
        return index * (before - 1) / (length - 1) if length > 1 else index * 0.0
    if mode == "pytorch_half_pixel" and length <= 1:
        return index * 0.0
    places = (index + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return places + before / 2 * (1 - after / length)
    return places


def _along(n: OnnxNode, x: SSAValue, axis: int, mode: str, places: Array) -> SSAValue:
    before = shape_of(x)[axis]
    if mode == "nearest":
        return _nearest(n, x, axis, places)
    if mode == "linear":
        return interpolate(n, x, axis, linear_weights(before, places))
    n.expect("exclude_outside", n.integer("exclude_outside", 0), 0)
    coefficient = n.number("cubic_coeff_a", -0.75)
    return interpolate(n, x, axis, cubic_weights(before, places, coefficient))


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
