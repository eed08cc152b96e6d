"""Convolution, pooling, and interpolation, for all frontends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, f64, i64
from xdsl.ir import SSAValue

from ..dialects.dtypes import Array, identity, numpy_dtype
from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph import shaping
from ..dialects.tgraph.base import ints
from ..dialects.tgraph.elements import is_float
from ..dialects.tgraph.reducing import ConvolutionOp, ReduceWindowOp
from .builder import TensorBuilder, arange, check_table, shape_of, type_of
from .formulas import index_of
from .indices import take_along
from .unsupported import Unsupported


@dataclass(frozen=True)
class SpatialWindow:
    """A window over the spatial dimensions. Each list has an entry per dimension; `low`
    and `high` are the paddings."""

    size: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    low: Sequence[int]
    high: Sequence[int]


def rounded_up(window: SpatialWindow, image: Sequence[int]) -> SpatialWindow:
    """The window with more padding, so that no position is cut off (`ceil_mode`)."""
    high = list(window.high)
    for d, size in enumerate(image):
        stride, low = window.strides[d], window.low[d]
        reach = (window.size[d] - 1) * window.dilations[d] + 1
        places = -(-(size + low + high[d] - reach) // stride) + 1
        if (places - 1) * stride >= size + low:  # it would start in the padding
            places -= 1
        high[d] = (places - 1) * stride + reach - size - low
    return SpatialWindow(
        window.size, window.strides, window.dilations, window.low, high
    )


def same_padding(
    size: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    image: Sequence[int],
) -> SpatialWindow:
    """A window with the padding `SAME`, which has one position per stride of the image.
    The padding is equal at both ends, or one element more at the upper end.
    """
    low: list[int] = []
    high: list[int] = []
    for d, length in enumerate(image):
        reach = (size[d] - 1) * dilations[d] + 1
        places = -(-length // strides[d])
        total = max((places - 1) * strides[d] + reach - length, 0)
        low.append(total // 2)
        high.append(total - total // 2)
    return SpatialWindow(size, strides, dilations, low, high)


def reduce_window(
    b: TensorBuilder, kind: str, x: SSAValue, window: SpatialWindow, first: int = 2
) -> SSAValue:
    """Reduces windows of images whose dimensions from `first` on are spatial."""
    after = len(shape_of(x)) - first - len(window.size)

    def along(others: int, values: Sequence[int]) -> DenseArrayBase:
        return ints([*[others] * first, *values, *[others] * after])

    return b.emit(
        ReduceWindowOp,
        x,
        kind=StringAttr(kind),
        window_dimensions=along(1, window.size),
        window_strides=along(1, window.strides),
        padding_low=along(0, window.low),
        padding_high=along(0, window.high),
        base_dilations=along(1, [1] * len(window.size)),
        window_dilations=along(1, window.dilations),
    )


def argmax_in_windows(
    b: TensorBuilder, x: SSAValue, window: SpatialWindow, *, column_major: bool = False
) -> SSAValue:
    """The index in the image of each window's largest element. Of equal elements, it is
    the index of the first.

    Indices are row-major, or column-major if `column_major`.
    """
    batch, channels, *sizes = shape_of(x)
    steps = np.cumprod([1, *(sizes if column_major else sizes[::-1])])[:-1]
    reads = reads_of(window, sizes)
    number = np.tensordot(steps if column_major else steps[::-1], reads, 1)
    taken, *space = number.shape
    number = number.reshape(taken, -1)
    clipped = [np.clip(r, 0, s - 1) for r, s in zip(reads, sizes, strict=True)]
    flat = np.ravel_multi_index(clipped, sizes).reshape(-1)
    inside = (np.array(clipped) == reads).all(0).reshape(1, 1, taken, -1)
    rows = b.reshape(x, [batch, channels, prod(sizes)])
    values = b.take(rows, b.constant(flat), 2)
    values = b.reshape(values, [batch, channels, *number.shape])
    lowest = identity("maximum", numpy_dtype(type_of(x).element_type)).item()
    kept = b.broadcast(b.constant(inside), shape_of(values))
    values = b.apply(e.SelectOp, kept, values, b.splat(lowest, type_of(values)))
    best = index_of(b, "maximum", values, 2, keep=True)
    numbers = b.constant(np.broadcast_to(number, (1, 1, *number.shape)).copy())
    numbers = b.broadcast(numbers, shape_of(values))
    return b.reshape(take_along(b, numbers, best, 2), [batch, channels, *space])


def reads_of(window: SpatialWindow, image: Sequence[int]) -> Array:
    """The coordinates that windows read, as an array with the dimensions axis, position
    in the window, and positions of the window."""
    rank = len(image)
    reach = [(k - 1) * d for k, d in zip(window.size, window.dilations, strict=True)]
    places = [
        (size + low + high - far - 1) // stride + 1
        for size, low, high, far, stride in zip(
            image, window.low, window.high, reach, window.strides, strict=True
        )
    ]
    check_table(*window.size, *places)
    grid = np.indices([*window.size, *places])
    coordinates = [
        grid[d] * window.dilations[d]
        + grid[rank + d] * window.strides[d]
        - window.low[d]
        for d in range(rank)
    ]
    return np.reshape(coordinates, [rank, prod(window.size), *places])


def average(
    b: TensorBuilder, x: SSAValue, window: SpatialWindow, counted: Sequence[int]
) -> SSAValue:
    """The mean of each window's elements.

    `counted` is the padding that counts as elements: all low ends, then all high ends.
    """
    total = reduce_window(b, "add", x, window)
    return divided_by_counts(b, total, shape_of(x)[2:], window, counted)


def divided_by_counts(
    b: TensorBuilder,
    total: SSAValue,
    image: Sequence[int],
    window: SpatialWindow,
    counted: Sequence[int],
) -> SSAValue:
    """Divides the sum of each window by its number of elements."""
    counts = counts_of(window, image, shape_of(total)[2:], counted)
    if not counts.size:
        return total
    if np.all(counts == counts.flat[0]):
        return b.apply(e.DivideOp, total, float(counts.flat[0]))
    divisors = b.convert(b.constant(counts), type_of(total).element_type)
    return b.apply(e.DivideOp, total, divisors)


def counts_of(
    window: SpatialWindow,
    image: Sequence[int],
    places: Sequence[int],
    pads: Sequence[int],
) -> Array:
    """The number of elements that each window averages; `pads` count as elements."""
    check_table(*places)
    rank = len(places)
    along: list[Array] = []
    for d, size in enumerate(image):
        check_table(places[d], window.size[d])
        starts = arange(places[d]) * window.strides[d] - window.low[d]
        read = starts[:, None] + arange(window.size[d]) * window.dilations[d]
        inside = (read >= -pads[d]) & (read < size + pads[rank + d])
        along.append(inside.sum(axis=1))
    return reduce(np.multiply.outer, along).astype(np.float32)


def convolve(
    b: TensorBuilder,
    x: SSAValue,
    kernel: SSAValue,
    window: SpatialWindow,
    groups: int,
    *,
    images: str = "bf#",
    kernels: str = "oi#",
) -> SSAValue:
    """A convolution. `images` and `kernels` are the orders of dimensions: `#` for
    spatial ones, batch and feature of images, output and input feature of kernels.
    """
    ones = [1] * len(window.size)
    labels = f"{images}_{kernels}->{images}"
    return _convolve(b, x, kernel, labels, window, window.strides, ones, groups)


def _convolve(
    b: TensorBuilder,
    x: SSAValue,
    kernel: SSAValue,
    labels: str,
    window: SpatialWindow,
    strides: Sequence[int],
    image_dilation: Sequence[int],
    groups: int,
) -> SSAValue:
    spatial = "".join(map(str, range(len(window.size))))
    return b.emit(
        ConvolutionOp,
        x,
        kernel,
        dim_labels=StringAttr(labels.replace("#", spatial)),
        window_strides=ints(strides),
        padding_low=ints(window.low),
        padding_high=ints(window.high),
        lhs_dilation=ints(image_dilation),
        rhs_dilation=ints(window.dilations),
        feature_group_count=IntegerAttr(groups, i64),
    )


def convolve_transposed(
    b: TensorBuilder,
    x: SSAValue,
    kernel: SSAValue,
    window: SpatialWindow,
    extra: Sequence[int],
    groups: int = 1,
    *,
    images: str = "bf#",
    kernels: str = "io#",
) -> SSAValue:
    """A convolution with zeros between the elements of `x`, and the kernel reversed.

    The padding of the window is cut off the full result, and `extra` elements are added
    at its end. The orders of dimensions are as in `convolve`. With several groups,
    kernels have the order input, output, space.
    """
    size, rank = window.size, len(window.size)
    reach = [(k - 1) * d for k, d in zip(size, window.dilations, strict=True)]
    padded = SpatialWindow(
        size,
        window.strides,
        window.dilations,
        [far - cut for far, cut in zip(reach, window.low, strict=True)],
        [f - c + more for f, c, more in zip(reach, window.high, extra, strict=True)],
    )
    first = kernels.index("#")
    space = ints(range(first, first + rank))
    turned = b.emit(shaping.ReverseOp, kernel, dimensions=space)
    if groups > 1:  # regroup to input features per group, all output features
        inputs, outputs, *_ = shape_of(kernel)
        turned = b.reshape(turned, [groups, inputs // groups, outputs, *size])
        turned = b.transpose(turned, [1, 0, *range(2, rank + 3)])
        turned = b.reshape(turned, [inputs // groups, groups * outputs, *size])
    ones = [1] * rank
    labels = f"{images}_{kernels}->{images}"
    return _convolve(b, x, turned, labels, padded, ones, window.strides, groups)


def take_places(b: TensorBuilder, x: SSAValue, axis: int, indices: Array) -> SSAValue:
    """Takes elements at known indices along an axis, by a broadcast if each element is
    repeated equally often.
    """
    shape = shape_of(x)
    times = len(indices) // shape[axis]
    if not np.array_equal(indices, np.repeat(arange(shape[axis]), times)):
        return b.take(x, b.constant(indices.astype(np.int32)), axis)
    apart = [*shape[: axis + 1], times, *shape[axis + 1 :]]
    kept = [d for d in range(len(apart)) if d != axis + 1]
    repeated = b.broadcast_in_dim(x, apart, kept)
    return b.reshape(repeated, [*shape[:axis], len(indices), *shape[axis + 1 :]])


def interpolate(b: TensorBuilder, x: SSAValue, axis: int, weights: Array) -> SSAValue:
    """Weighted sums along an axis. `weights` has a row for each new element.

    If rows have few nonzero weights, the sums read only the elements with such weights,
    in place, so a NaN elsewhere has no effect. Otherwise, the sums are a product with
    the matrix of weights.

    Raises `Unsupported` for an integer tensor and weights that are not integers.
    """
    element = type_of(x).element_type
    if not is_float(element) and (weights != np.rint(weights)).any():
        raise Unsupported(f"between elements of type {element}")
    weights = weights.astype(np.float64 if element == f64 else np.float32)
    taps = int((weights != 0).sum(1).max(initial=1))
    if taps <= _MOST_TAPS:
        parts = (_tap(b, x, axis, weights, k) for k in range(taps))
        return reduce(partial(b.apply, e.AddOp), parts)
    matrix = b.convert(b.constant(weights), element)
    product = b.dot(matrix, x, ([1], [axis]))
    rank = len(shape_of(x))
    return b.transpose(product, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


_MOST_TAPS = 8
"""The most weights per row for which elements are read in place. With more, a product
takes less time; it always takes more memory. For an image of 224x224x3, the product
takes 0.17 ms and 62,720 bytes with 8 weights per row (in place: 0.09 ms and 26,884
bytes), and 0.08 ms and 84,672 bytes with 16 (in place: 0.10 ms and 25,088 bytes; on an
AVX-512 processor)."""


def _tap(
    b: TensorBuilder, x: SSAValue, axis: int, weights: Array, number: int
) -> SSAValue:
    """The term `number` of each new element's sum: an element of `x` times its weight.
    If the sum has fewer terms, it is the element of the first term times 0."""
    order = np.argsort(weights == 0, axis=1, kind="stable")
    rows = np.arange(len(weights))
    weight = weights[rows, order[:, number]]
    places = order[rows, np.where(weight == 0, 0, number)]
    taken = take_places(b, x, axis, places)
    own = b.convert(b.constant(weight), type_of(x).element_type)
    return b.apply(
        e.MultiplyOp, taken, b.broadcast_in_dim(own, shape_of(taken), [axis])
    )


def linear_weights(before: int, places: Array) -> Array:
    """The matrix of linear interpolation at `places`. Each row has up to two nonzero
    weights, for the elements before and after the place."""
    check_table(len(places), before)
    places = np.clip(places, 0, before - 1)
    return np.maximum(1 - np.abs(places[:, None] - arange(before)), 0)


def cubic(a: float) -> Callable[[Array], Array]:
    """Keys' kernel with the coefficient `a`, for distances below 2."""

    def kernel(distance: Array) -> Array:
        t = np.abs(distance)
        near = (a + 2) * t**3 - (a + 3) * t**2 + 1
        far = a * (t**3 - 5 * t**2 + 8 * t - 4)
        return np.where(t <= 1, near, np.where(t < 2, far, 0))

    return kernel


def linear(distance: Array) -> Array:
    """The triangle kernel, for distances below 1."""
    return np.maximum(1 - np.abs(distance), 0)


def kernel_weights(
    before: int,
    places: Array,
    kernel: Callable[[Array], Array],
    reach: int,
    *,
    stretch: float = 1.0,
    inside: bool = False,
) -> Array:
    """The matrix of a kernel's weights, with a row for each of `places`.

    Positions outside of the axis read the nearest element, or have no weight if
    `inside`. `stretch` is the factor by which the kernel is widened. The weights of a
    row are normalized if the kernel is widened, or if `inside`.
    """
    check_table(len(places), before)
    floor = np.floor(places).astype(int)
    weights = np.zeros((len(places), before))
    far = int(np.ceil(reach * stretch))
    for offset in range(1 - far, far + 1):
        column = floor + offset
        weight = kernel((places - column) / stretch)
        if inside:
            weight = np.where((column >= 0) & (column < before), weight, 0)
        column = np.clip(column, 0, before - 1)
        np.add.at(weights, (np.arange(len(places)), column), weight)
    if inside or stretch != 1:
        weights /= weights.sum(axis=1, keepdims=True)
    return weights
