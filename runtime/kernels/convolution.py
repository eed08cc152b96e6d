"""Convolution as matrix products of what the window sees and the kernel (im2col).

Per tile of the result: the window's elements are copied to the workspace, one row for
each place, and multiplied with the kernel into the result. Where they already lie in
memory as a matrix (1x1 kernels), nothing is copied.

Which dimensions are batch, feature or spatial only changes strides here: all arrays are
seen as `image[b, s..., i]`, `kernel[k..., i, o]` and `out[b, t..., o]`, in which

    out[b, t, o] = sum over k, i of image[b, t * stride + k * dilation + base, i]
                                    * kernel[k, i, o]

for each spatial dimension, with zeros outside the image. A gradient's dilated image
(`lhs_dilation`) has holes that no product needs: the places are split into those that
meet the same elements of the window, and each part is a convolution without holes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

import numpy as np

from tensorplan.dialects.tgraph.reducing import ConvolutionOp
from tensorplan.runtime.dtypes import Array, DType, accumulator
from tensorplan.runtime.kernels.base import (
    Call,
    check_types,
    copy,
    fill,
    kernel,
    tiles,
    try_reshape,
)
from tensorplan.runtime.kernels.dot import for_blas, is_blasable
from tensorplan.runtime.pool import Scratch

COLUMNS = 1 << 19
"""Elements of what the window sees that are multiplied at a time (2 MiB of f32)."""

PLACES = 256
"""Places of the window to multiply at a time at least, however large the kernel."""


@dataclass(frozen=True)
class Spatial:
    """How one spatial dimension's places and window meet the image."""

    places: slice
    """The places that this is about, of all places."""
    window: slice
    """The window's elements that meet no holes there."""
    stride: int
    dilation: int
    base: int


@kernel(ConvolutionOp)
def convolution(
    op: ConvolutionOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    image_labels, kernel_labels, out_labels = op.labels
    spatial = "".join(str(d) for d in range(len(image_labels) - 2))
    image = _by_labels(inputs[0], image_labels, "b" + spatial + "f")
    kernel = _by_labels(inputs[1], kernel_labels, spatial + "io")
    out = _by_labels(outs[0], out_labels, "b" + spatial + "f")
    dtype = accumulator(out.dtype)
    check_types(op, np.matmul, *(np.empty((1, 1), dtype) for _ in range(3)))
    features = op.feature_group_count.value.data
    batches = op.batch_group_count.value.data
    groups = features * batches
    calls: list[Call] = []
    for group in range(groups):
        kernel_part = _part(kernel, -1, group, groups)
        out_part = _part(out, -1, group, groups)
        image_part = _part(image, 0 if batches > 1 else -1, group, groups)
        for dims in product(*_without_holes(op, kernel.shape, out.shape)):
            places = tuple(dim.places for dim in dims)
            window = tuple(dim.window for dim in dims)
            mark = scratch.mark
            calls += _convolve(
                image_part,
                kernel_part[*window, ...],
                out_part[:, *places, :],
                dims,
                dtype,
                scratch,
            )
            scratch.mark = mark
    return calls


def _by_labels(x: Array, labels: str, order: str) -> Array:
    return x.transpose([labels.index(label) for label in order])


def _part(x: Array, axis: int, index: int, count: int) -> Array:
    """One of `count` equal parts along an axis."""
    size = x.shape[axis] // count
    moved = np.moveaxis(x, axis, 0)[index * size : (index + 1) * size]
    return np.moveaxis(moved, 0, axis)


def _without_holes(
    op: ConvolutionOp, kernel: Sequence[int], out: Sequence[int]
) -> Iterator[list[Spatial]]:
    """For each spatial dimension, the parts of its places that meet the same elements.

    Place t and window element k meet position `(t * stride + k * dilation - low)` of the
    image with holes, and an element of the image where `holes` divides this.
    """
    for d, (stride, low, holes, dilation) in enumerate(
        zip(
            op.window_strides.get_values(),
            op.padding_low.get_values(),
            op.lhs_dilation.get_values(),
            op.rhs_dilation.get_values(),
            strict=True,
        )
    ):
        place_step = holes // gcd(stride, holes)
        window_step = holes // gcd(dilation, holes)
        parts: list[Spatial] = []
        for place in range(min(place_step, out[d + 1])):
            at = place * stride - low
            hits = [
                k
                for k in range(min(window_step, kernel[d]))
                if (at + k * dilation) % holes == 0
            ]
            first = hits[0] if hits else kernel[d]  # a window of nothing gives zeros
            parts.append(
                Spatial(
                    slice(place, None, place_step),
                    slice(first, None, window_step),
                    stride * place_step // holes,
                    dilation * window_step // holes,
                    (at + first * dilation) // holes,
                )
            )
        yield parts


def _convolve(
    image: Array,
    kernel: Array,
    out: Array,
    dims: Sequence[Spatial],
    dtype: DType,
    scratch: Scratch,
) -> list[Call]:
    rank = len(dims)
    if kernel.size == 0:
        return fill(out, np.zeros((), out.dtype))
    # Both sides of the sum in the order in which kernel and result lie in memory.
    place_order = _by_stride(out, range(rank + 1))
    window_order = _by_stride(kernel, range(rank + 1))
    kernel = kernel.transpose([*window_order, rank + 1])
    matrix, calls = _kernel_matrix(kernel, dtype, scratch)
    places = tuple(out.shape[d] for d in place_order)
    whole = _seen(image, out.shape, kernel.shape, window_order, dims, None)
    return calls


def _by_stride(x: Array, dims: Sequence[int]) -> list[int]:
    """The dimensions, the one with the largest stride first."""
    return sorted(dims, key=lambda d: -abs(x.strides[d]))
