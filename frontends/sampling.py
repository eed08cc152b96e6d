"""Samples images at computed coordinates, for all frontends.

Along each axis, a coordinate reads some neighboring elements (taps) with weights; the
weights of the axes are multiplied. Coordinates are computed in f32 or f64.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph.base import element_bytes
from .builder import TensorBuilder, shape_of, type_of
from .formulas import clamp, compare
from .indices import take_rows


class Tap(NamedTuple):
    element: SSAValue
    """The index of an element along an axis, as a float; it may be out of range."""

    weight: SSAValue


@dataclass(frozen=True)
class GridSampling:
    """How an image is sampled at coordinates from -1 to 1 along each axis."""

    mode: str
    """nearest, linear or cubic."""

    padding: str
    """The elements outside of the image: zeros, border or reflection."""

    aligned: bool
    """Whether -1 and 1 are centers of the first and last element, not their edges."""


def grid_sample(
    b: TensorBuilder, x: SSAValue, grid: SSAValue, how: GridSampling
) -> SSAValue:
    """Samples images (batch x channels x space) at the coordinates in `grid`, whose
    last dimension has a coordinate for each axis, the last axis first.
    """
    grid = precise(b, grid)
    batch, channels, *sizes = shape_of(x)
    places = shape_of(grid)[1:-1]
    axes: list[Sequence[Tap]] = []
    for d, size in enumerate(sizes):
        column = len(sizes) - 1 - d
        place = b.part(grid, len(places) + 1, column, column + 1)
        axes.append(_taps(b, b.reshape(place, [batch, prod(places)]), size, how))
    rows = rows_of(b, x)
    sampled = sample(b, axes, sizes, lambda place: take_rows(b, rows, place))
    result = b.transpose(combined(b, e.AddOp, sampled), [0, 2, 1])
    return b.reshape(result, [batch, channels, *places])


def _taps(
    b: TensorBuilder, place: SSAValue, size: int, how: GridSampling
) -> Sequence[Tap]:
    low, high = (0.0, size - 1.0) if how.aligned else (-0.5, size - 0.5)
    place = _denormalized(b, place, size, how.aligned)
    taps = _MODES[how.mode](b, place)
    if how.padding == "zeros":
        return [zero_outside(b, tap, size) for tap in taps]
    if how.padding == "reflection":
        taps = [Tap(_reflected(b, i, low, high), weight) for i, weight in taps]
    return [Tap(clamp(b, i, 0, size - 1), weight) for i, weight in taps]


def _denormalized(b: TensorBuilder, x: SSAValue, size: int, aligned: bool) -> SSAValue:
    """Maps coordinates from [-1, 1] to element indices; see `GridSampling.aligned`."""
    shifted = b.apply(e.AddOp, x, 1)
    if aligned:
        return b.apply(e.MultiplyOp, b.apply(e.DivideOp, shifted, 2), size - 1)
    scaled = b.apply(e.MultiplyOp, shifted, size)
    return b.apply(e.DivideOp, b.apply(e.SubtractOp, scaled, 1), 2)


def precise(b: TensorBuilder, x: SSAValue) -> SSAValue:
    return b.convert(x, f32) if element_bytes(type_of(x).element_type) < 4 else x


def _nearest(b: TensorBuilder, place: SSAValue) -> Sequence[Tap]:
    return [Tap(b.emit(e.RoundNearestEvenOp, place), b.splat(1, type_of(place)))]


def linear(b: TensorBuilder, place: SSAValue) -> Sequence[Tap]:
    low = b.emit(e.FloorOp, place)
    t = b.apply(e.SubtractOp, place, low)
    far = b.apply(e.SubtractOp, b.splat(1, type_of(t)), t)
    return [Tap(low, far), Tap(b.apply(e.AddOp, low, 1), t)]


def _cubic(b: TensorBuilder, place: SSAValue) -> Sequence[Tap]:
    """Keys' kernel with the coefficient -0.75, evaluated by Horner's rule."""
    low, a = b.emit(e.FloorOp, place), -0.75
    t = b.apply(e.SubtractOp, place, low)
    taps: list[Tap] = []
    for offset, coefficients in (
        (-1, (a, -2 * a, a, 0)),
        (0, (a + 2, -a - 3, 0, 1)),
        (1, (-a - 2, 2 * a + 3, -a, 0)),
        (2, (-a, a, 0, 0)),
    ):
        weight = b.splat(coefficients[0], type_of(t))
        for coefficient in coefficients[1:]:
            weight = b.apply(e.MultiplyOp, weight, t)
            weight = b.apply(e.AddOp, weight, coefficient)
        taps.append(Tap(b.apply(e.AddOp, low, offset), weight))
    return taps


def zero_outside(b: TensorBuilder, tap: Tap, size: int) -> Tap:
    """Clamps the tap to the image, with weight 0 if it was outside."""
    near = clamp(b, tap.element, 0, size - 1)
    inside = compare(b, near, "EQ", tap.element)
    return Tap(near, b.apply(e.SelectOp, inside, tap.weight, zeros(b, tap.weight)))


def zeros(b: TensorBuilder, like: SSAValue) -> SSAValue:
    return b.splat(0, type_of(like))


def _reflected(b: TensorBuilder, place: SSAValue, low: float, high: float) -> SSAValue:
    """A triangle wave: low + |d - 2 range * round(d / (2 range))|, d from `low`."""
    period = 2 * (high - low)
    if not period:
        return b.splat(low, type_of(place))
    distance = b.apply(e.SubtractOp, place, low)
    turns = b.emit(e.RoundNearestEvenOp, b.apply(e.DivideOp, distance, period))
    rest = b.apply(e.SubtractOp, distance, b.apply(e.MultiplyOp, turns, period))
    return b.apply(e.AddOp, b.emit(e.AbsOp, rest), low)


def sample(
    b: TensorBuilder,
    axes: Sequence[Sequence[Tap]],
    sizes: Sequence[int],
    read: Callable[[SSAValue], SSAValue],
) -> Sequence[SSAValue]:
    """The weighted elements, B x K x channels, for each combination of the axes' taps.

    Taps are B x K and in range. `read` returns the elements at row-major indices.
    """
    results: list[SSAValue] = []
    for taps in product(*axes):
        place, weight = b.convert(taps[0].element, i32), taps[0].weight
        for tap, size in zip(taps[1:], sizes[1:], strict=True):
            place = b.apply(e.MultiplyOp, place, size)
            place = b.apply(e.AddOp, place, b.convert(tap.element, i32))
            weight = b.apply(e.MultiplyOp, weight, tap.weight)
        elements = read(place)
        wide = b.broadcast_in_dim(weight, shape_of(elements), [0, 1])
        results.append(
            b.apply(
                e.MultiplyOp, elements, b.convert(wide, type_of(elements).element_type)
            )
        )
    return results


def combined(b: TensorBuilder, op_type: type, values: Sequence[SSAValue]) -> SSAValue:
    result, *others = values
    for other in others:
        result = b.apply(op_type, result, other)
    return result


def rows_of(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Images (batch x channels x space) as batch x elements x channels."""
    batch, channels, *space = shape_of(x)
    return b.transpose(b.reshape(x, [batch, channels, prod(space)]), [0, 2, 1])


_MODES: Mapping[str, Callable[[TensorBuilder, SSAValue], Sequence[Tap]]] = {
    "cubic": _cubic,
    "linear": linear,
    "nearest": _nearest,
}
