"""Converts resizing of images in the order batch, height, width, channel."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ..builder import arange, element_type, shape_of, type_of
from ..formulas import compare
from ..operators import Value
from ..windows import interpolate, linear_weights, take_places
from .elementwise import expect_one_scale
from .node import Conversion, TFLiteNode

_BITS = 10  # fraction bits of a coordinate, for integers


def _axes(n: TFLiteNode) -> list[tuple[int, int, int]]:
    """(axis, size, new size) of the spatial dimensions."""
    sizes = shape_of(n.value(0))[1:3]
    return [
        (axis, before, after)
        for axis, (before, after) in enumerate(
            zip(sizes, n.known_integers(1), strict=True), 1
        )
    ]


def _scale(n: TFLiteNode, before: int, after: int) -> np.float32:
    corners = int(bool(n.option("AlignCorners") and after > 1))
    return np.float32(before - corners) / np.float32(after - corners)


def _nearest(n: TFLiteNode) -> Sequence[Value]:
    expect_one_scale(n, 0)
    x = n.value(0)
    for axis, before, after in _axes(n):
        offset = np.float32(0.5 if n.option("HalfPixelCenters") else 0)
        places = arange(after).astype(np.float32) + offset
        places *= _scale(n, before, after)
        if n.option("AlignCorners"):
            places += np.float32(0.5)
        indices = np.clip(np.floor(places), 0, before - 1)
        x = take_places(n, x, axis, indices.astype(np.int64))
    return [x]


def _bilinear(n: TFLiteNode) -> Sequence[Value]:
    expect_one_scale(n, 0)
    x = n.value(0)
    if n.is_quantized:
        is_short = n.tensor(0).dtype.itemsize > 1  # sums take 36 bits
        return [_between_integers(n, n.convert(x, i64 if is_short else i32))]
    for axis, before, after in _axes(n):
        places = arange(after).astype(np.float32)
        scale = _scale(n, before, after)
        if n.option("HalfPixelCenters"):
            places = (places + np.float32(0.5)) * scale - np.float32(0.5)
        else:
            places = places * scale
        x = interpolate(n, x, axis, linear_weights(before, places))
    return [x]


def _between_integers(n: TFLiteNode, x: SSAValue) -> SSAValue:
    """Coordinates have 10 fraction bits; sums are rounded, ties away from 0."""
    for axis, before, after in _axes(n):
        x = interpolate(n, x, axis, _weights(n, before, after))
    nudge, element = 1 << (2 * _BITS - 1), type_of(x).element_type
    positive = compare(n, x, "GT", 0)
    half = (n.full(number, element, ()) for number in (nudge, -nudge))
    half = n.apply(e.SelectOp, positive, *half)
    whole = n.apply(e.DivideOp, n.apply(e.AddOp, x, half), 1 << 2 * _BITS)
    return n.convert(whole, element_type(n.results[0].dtype))


def _weights(n: TFLiteNode, before: int, after: int) -> Array:
    corners = int(bool(n.option("AlignCorners") and after > 1))
    one, last = 1 << _BITS, after - corners
    scale = (one * (before - corners) + last // 2) // last
    places = arange(after) * scale
    if n.option("HalfPixelCenters"):
        places += scale // 2 - one // 2
    low = np.maximum(np.trunc(places / one).astype(int), 0)
    high = np.minimum(np.trunc((places + one - 1) / one).astype(int), before - 1)
    weights = np.zeros((after, before))
    rows = arange(after)
    np.add.at(weights, (rows, low), one - (places - one * low))
    np.add.at(weights, (rows, high), places - one * low)
    return weights


CONVERSIONS: Mapping[str, Conversion] = {
    "RESIZE_BILINEAR": _bilinear,
    "RESIZE_NEAREST_NEIGHBOR": _nearest,
}
