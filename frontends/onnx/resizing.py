"""ONNX's Resize → tgraph: along one axis after the other, by indices or by weights."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from tensorplan.frontends.onnx.node import Conversion, Node, Value, shape_of, type_of
from tensorplan.runtime.dtypes import Array


def _resize(n: Node) -> Sequence[Value]:
    x = n.value(0)
    rank = len(shape_of(x))
    axes = [axis % rank for axis in n.integers("axes", range(rank))]
    mode = n.text("mode", "nearest")
    n.expect("mode", mode, "nearest", "linear")
    policy = n.text("keep_aspect_ratio_policy", "stretch")
    n.expect("keep_aspect_ratio_policy", policy, "stretch")
    n.expect("antialias", n.integer("antialias", 0), 0)
    before = [shape_of(x)[axis] for axis in axes]
    if n.has(3):
        after = n.known_integers(3)
        scales = [b / a for a, b in zip(before, after, strict=True)]
    else:
        scales = [float(scale) for scale in n.known(2)]
        after = [int(a * scale) for a, scale in zip(before, scales, strict=True)]
    for axis, size, scale in zip(axes, after, scales, strict=True):
        if size == shape_of(x)[axis] and scale == 1:
            continue
        places = _places(n, shape_of(x)[axis], size, scale)
        along = _nearest if mode == "nearest" else _linear
        x = along(n, x, axis, places)
    return [x]


def _places(n: Node, before: int, after: int, scale: float) -> Array:
    """Where the new elements along an axis lie among the old ones, of size `after`."""
    mode = n.text("coordinate_transformation_mode", "half_pixel")
    n.expect(
        "coordinate_transformation_mode",
        mode,
        "half_pixel",
        "pytorch_half_pixel",
        "asymmetric",
        "align_corners",
    )
    index = np.arange(after)
    if mode == "asymmetric":
        return index / scale
    if mode == "align_corners":
        return index * ((before - 1) / max(after - 1, 1))
    if mode == "pytorch_half_pixel" and after == 1:
        return index * 0.0
    return (index + 0.5) / scale - 0.5


def _nearest(n: Node, x: SSAValue, axis: int, places: Array) -> SSAValue:
    rounding = n.text("nearest_mode", "round_prefer_floor")
    n.expect("nearest_mode", rounding, *_ROUNDINGS)
    shape = shape_of(x)
    last = shape[axis] - 1
    indices = np.clip(_ROUNDINGS[rounding](places), 0, last).astype(np.int32)
    times = len(places) // shape[axis]
    if not np.array_equal(indices, np.repeat(np.arange(shape[axis]), times)):
        return n.take(x, n.constant(indices), axis)
    apart = [*shape[: axis + 1], times, *shape[axis + 1 :]]
    kept = [d for d in range(len(apart)) if d != axis + 1]
    repeated = n.broadcast_in_dim(x, apart, kept)
    return n.reshape(repeated, [*shape[:axis], len(places), *shape[axis + 1 :]])


def _linear(n: Node, x: SSAValue, axis: int, places: Array) -> SSAValue:
    """A product with the matrix of weights, two in each row."""
    before = shape_of(x)[axis]
    places = np.clip(places, 0, before - 1)
    weights = np.maximum(1 - np.abs(places[:, None] - np.arange(before)), 0)
    matrix = n.constant(weights.astype(np.float32))
    matrix = n.convert(matrix, type_of(x).element_type)
    product = n.dot(matrix, x, ([1], [axis]))
    rank = len(shape_of(x))
    return n.transpose(product, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


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
