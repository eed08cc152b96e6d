"""Convolution as matrix products of the elements in windows and the kernel (im2col).

For each tile of the result, the elements of its windows are copied to the workspace,
one row for each position, and multiplied with the kernel into the result. If they are
a matrix in memory already (1x1 kernels), nothing is copied.

Which dimensions are batch, feature or spatial, and what the groups divide, changes only
strides here. All arrays are seen as `image[g, b, s..., i]`, `kernel[g, k..., i, o]` and
`out[g, b, t..., o]`, in which

    out[g, b, t, o] = sum over k, i of image[g, b, t * stride + k * dilation + base, i]
                                       * kernel[g, k, i, o]

for each spatial dimension, with zeros outside the image. A gradient's dilated image
(`lhs_dilation`) has holes that no product needs. The positions are therefore divided
into sets that meet the same elements of the window, and each set is a convolution
without holes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

import numpy as np

from ....dialects.dtypes import Array, DType
from ....dialects.tgraph.base import Shape
from ....dialects.tgraph.reducing import ConvolutionOp
from ....dialects.tgraph.windows import WindowDimension
from ....support.arrays import strided
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, fill, tiles, try_reshape
from ..contraction import by_labels
from .base import check_types, kernel
from .dot import is_blasable, multiplied_in

COLUMNS = 1 << 19
"""The elements of windows that are multiplied at a time (2 MiB of f32)."""

PLACES = 256
"""The minimum positions to multiply at a time, however large the kernel is."""


@dataclass(frozen=True)
class Spatial:
    """How the positions and the window of one spatial dimension meet the image."""

    places: slice
    """The positions that this object describes, of all positions."""
    window: slice
    """The elements of the window that meet no holes at these positions."""
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
    spatial = op.spatial
    image = by_labels(inputs[0], image_labels, "b" + spatial + "f")
    kernel = by_labels(inputs[1], kernel_labels, spatial + "io")
    out = by_labels(outs[0], out_labels, "b" + spatial + "f")
    dtype = multiplied_in(out.dtype, inputs, prod(kernel.shape[:-1]))
    check_types(op, np.matmul, *[dtype] * 3)
    window = op.window(inputs[1].shape)
    parts = list(product(*map(without_holes, window, out.shape[1:-1])))
    image = _divided(image, 0 if op.batch_group_count.value.data > 1 else -1, op.groups)
    kernel, out = _divided(kernel, -1, op.groups), _divided(out, -1, op.groups)
    calls: list[Call] = []
    for dims in parts:
        places = tuple(dim.places for dim in dims)
        entries = tuple(dim.window for dim in dims)
        mark = scratch.mark
        calls += _convolve(
            image, kernel[:, *entries, ...], out[:, :, *places, :], dims, dtype, scratch
        )
        scratch.mark = mark
    return calls


def _divided(x: Array, axis: int, count: int) -> Array:
    """`x` with `count` equal parts along `axis` as a new first dimension."""
    axis %= x.ndim
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :])
    view = try_reshape(x, shape)
    assert view is not None  # splits one dimension into two
    return np.moveaxis(view, axis, 0)


def without_holes(window: WindowDimension, places: int) -> Iterator[Spatial]:
    """The sets of positions that meet the same elements of the window."""
    size, stride, low, _, holes, dilation = window
    place_step = holes // gcd(stride, holes)
    window_step = holes // gcd(dilation, holes)
    for place in range(min(place_step, places)):
        at = place * stride - low
        hits = (
            k for k in range(min(window_step, size)) if (at + k * dilation) % holes == 0
        )
        first = next(hits, size)  # an empty window gives zeros
        yield Spatial(
            slice(place, None, place_step),
            slice(first, None, window_step),
            stride * place_step // holes,
            dilation * window_step // holes,
            (at + first * dilation) // holes,
        )


def _convolve(
    image: Array,
    kernel: Array,
    out: Array,
    dims: Sequence[Spatial],
    dtype: DType,
    scratch: Scratch,
) -> list[Call]:
    """The calls of one convolution without holes. Sums are kept in `dtype`."""
    if out.size == 0:
        return []
    if kernel.size == 0:
        return fill(out, np.zeros((), out.dtype))
    product_ = _Product(image, kernel, out, dims, dtype, scratch)
    calls = product_.prepare_kernel()
    for places, window in product_.parts():
        calls += product_.multiply(places, window)
    return calls


class _Product:
    """A convolution as a matrix product, and the parts that it is divided into.

    The rows of the left matrix are the positions (batch and spatial). Its columns, and
    the rows of the right matrix, are the window (spatial and input feature). Both are
    in the order in which result and kernel lie in memory. Each group is a separate
    product. If the result's features lie between the dimensions of the positions, each
    index of the outer of these dimensions is a separate product, too.
    """

    def __init__(
        self,
        image: Array,
        kernel: Array,
        out: Array,
        dims: Sequence[Spatial],
        dtype: DType,
        scratch: Scratch,
    ):
        rank = len(dims)
        self.image, self.dims, self.dtype, self.scratch = image, dims, dtype, scratch
        self.groups = len(out)
        # Windows are copied in long runs if an image has the features of one group.
        self.is_regrouped = self.groups > 1 and prod(kernel.shape[1:-2]) > 1
        self.place_order = _by_stride(out, range(1, rank + 2))
        self.window_order = _by_stride(kernel, range(1, rank + 2))
        self.out = out.transpose([0, *self.place_order, rank + 2])
        self.kernel = kernel.transpose([0, *self.window_order, rank + 2])
        feature = abs(out.strides[-1])
        outer = [d for d in self.place_order if abs(out.strides[d]) > feature]
        has_inner = any(out.shape[d] > 1 for d in self.place_order[len(outer) :])
        self.batches = len(outer) if has_inner and out.shape[-1] > 1 else 0

    def prepare_kernel(self) -> list[Call]:
        """Makes the kernel a matrix that BLAS can read."""
        matrix = self._matrix(self.kernel)
        if matrix is not None and matrix.dtype == self.dtype and is_blasable(matrix):
            return []
        buffer = self.scratch.take(self.kernel.shape, self.dtype)
        source, self.kernel = self.kernel, buffer
        return copy(buffer, source)

    def _matrix(self, kernel: Array) -> Array | None:
        """A view of part of the kernel as matrices, by groups and batches, or None."""
        features = kernel.shape[-1]
        window = kernel.size // (self.groups * features)
        return try_reshape(kernel, (self.groups, 1, window, features))

    def parts(self) -> Iterator[tuple[tuple[slice, ...], Sequence[tuple[slice, ...]]]]:
        """Parts of the positions, each with the parts of the window to sum over."""
        places, window = self.out.shape[1:-1], self.kernel.shape[1:-1]
        all_places, all_window = _whole(places), _whole(window)
        if not self.is_regrouped and not self._is_padded(all_places, all_window):
            seen, _ = self._window_view(all_places, all_window)
            if self._as_matrices(seen) is not None:
                yield all_places, [all_window]
                return
        columns = COLUMNS // self.groups
        at_once = min(prod(places), max(PLACES, columns // prod(window)))
        for part in tiles(places, at_once):
            count = prod(s.stop - s.start for s in part)
            yield part, list(tiles(window, columns // count))

    def multiply(
        self, places: tuple[slice, ...], windows: Sequence[tuple[slice, ...]]
    ) -> list[Call]:
        """The calls for the result at `places`, summed over parts of the window."""
        start = self.scratch.mark
        out = self.out[:, *places, ...]
        target = self._target(out)
        is_copied = target is None
        if target is None:
            _, *sizes, features = out.shape
            counts = prod(sizes[: self.batches]), prod(sizes[self.batches :])
            target = self.scratch.take((self.groups, *counts, features), self.dtype)
        calls: list[Call] = []
        for window in windows:
            mark = self.scratch.mark
            seen, made = self._window_view(places, window)
            columns, copied = self._columns(seen)
            matrix = self._matrix(self.kernel[:, *window, ...])
            assert matrix is not None
            calls += [*made, *copied]
            if window is windows[0]:
                calls.append((np.matmul, (columns, matrix, target)))
            else:
                summand = self.scratch.take(target.shape, self.dtype)
                calls.append((np.matmul, (columns, matrix, summand)))
                calls.append((np.add, (target, summand, target)))
            self.scratch.mark = mark
        if is_copied:
            calls += copy(out, target.reshape(out.shape))
        self.scratch.mark = start
        return calls

    def _target(self, out: Array) -> Array | None:
        """A view of `out` as matrices for BLAS, by groups and batches, or None."""
        if out.dtype != self.dtype:
            return None
        groups, *sizes, features = out.shape
        outer, inner = prod(sizes[: self.batches]), prod(sizes[self.batches :])
        in_memory = np.moveaxis(out, -1, self.batches + 1)
        if self.batches or abs(out.strides[-1]) > out.itemsize:
            target = try_reshape(in_memory, (groups, outer, features, inner))
            target = None if target is None else target.swapaxes(2, 3)
        else:
            target = try_reshape(out, (groups, outer, inner, features))
        return target if target is not None and is_blasable(target) else None

    def _bounds(
        self, places: tuple[slice, ...], window: tuple[slice, ...]
    ) -> tuple[list[slice], list[slice], list[slice]]:
        """Slices of the positions and of the window, by dimension (batch or feature
        first, then spatial), and of the part of the image that they cover, which may
        extend outside."""
        rank = len(self.dims)
        by_place = [places[self.place_order.index(d)] for d in range(1, rank + 2)]
        # The window's dimensions are spatial, then feature.
        by_window = [window[self.window_order.index(d)] for d in range(1, rank + 2)]
        spans = [
            slice(
                t.start * dim.stride + k.start * dim.dilation + dim.base,
                (t.stop - 1) * dim.stride + (k.stop - 1) * dim.dilation + dim.base + 1,
            )
            for t, k, dim in zip(by_place[1:], by_window[:-1], self.dims, strict=True)
        ]
        return by_place, by_window, [by_place[0], *spans, by_window[-1]]

    def _is_padded(self, places: tuple[slice, ...], window: tuple[slice, ...]) -> bool:
        """Whether the windows extend outside the image."""
        _, _, spans = self._bounds(places, window)
        return any(
            span.start < 0 or span.stop > size
            for span, size in zip(spans, self.image.shape[1:], strict=True)
        )

    def _window_view(
        self, places: tuple[slice, ...], window: tuple[slice, ...]
    ) -> tuple[Array, list[Call]]:
        """A view of the elements in windows, by groups, positions and window."""
        by_place, by_window, spans = self._bounds(places, window)
        calls: list[Call] = []
        if self.is_regrouped or self._is_padded(places, window):
            box, calls = self._padded(spans)
        else:
            box = self.image[:, *spans, ...]
        spatial = box.strides[2:-1]
        seen = strided(
            box,
            [len(box), *(s.stop - s.start for s in (*by_place, *by_window))],
            [
                *box.strides[:2],
                *(s * dim.stride for s, dim in zip(spatial, self.dims, strict=True)),
                *(s * dim.dilation for s, dim in zip(spatial, self.dims, strict=True)),
                box.strides[-1],
            ],
            writeable=False,
        )
        count = len(places)
        order = [0, *self.place_order, *(count + d for d in self.window_order)]
        return seen.transpose(order), calls

    def _padded(self, spans: Sequence[slice]) -> tuple[Array, list[Call]]:
        """A copy of part of the image, by groups, with zeros outside the image."""
        order = [0, *_by_stride(self.image, range(1, self.image.ndim))]
        sizes = [self.groups, *(span.stop - span.start for span in spans)]
        shape = [sizes[d] for d in order]
        buffer = self.scratch.take(tuple(shape), self.image.dtype)
        box = buffer.transpose([order.index(d) for d in range(len(order))])
        inside = [
            slice(max(span.start, 0), max(span.start, 0, min(span.stop, size)))
            for span, size in zip(spans, self.image.shape[1:], strict=True)
        ]
        to = [
            slice(s.start - span.start, s.stop - span.start)
            for s, span in zip(inside, spans, strict=True)
        ]
        calls = fill(box, np.zeros((), box.dtype))
        part = self.image[:, *inside, ...]
        return box, [*calls, *(copy(box[:, *to, ...], part) if part.size else ())]

    def _shape(self, seen: Array) -> tuple[int, int, int, int]:
        """The numbers of groups, batches, positions and window elements of `seen`."""
        groups, *sizes = seen.shape
        count = len(self.place_order)
        return (
            groups,
            prod(sizes[: self.batches]),
            prod(sizes[self.batches : count]),
            prod(sizes[count:]),
        )

    def _as_matrices(self, seen: Array) -> Array | None:
        """A view of `seen` as matrices that BLAS can read, or None."""
        if seen.dtype != self.dtype:
            return None
        view = try_reshape(seen, self._shape(seen))
        return view if view is not None and is_blasable(view) else None

    def _columns(self, seen: Array) -> tuple[Array, list[Call]]:
        """`seen` as matrices: a view, or a copy in the workspace.

        In a copy, the positions or the window come last, whichever are closer in the
        image.
        """
        view = self._as_matrices(seen)
        if view is not None:
            return view, []
        groups, batches, places, window = self._shape(seen)
        count = len(self.place_order) + 1
        if _run(seen, range(count, seen.ndim)) <= _run(seen, range(1, count)):
            buffer = self.scratch.take(seen.shape, self.dtype)
            columns = buffer.reshape(groups, batches, places, window)
            return columns, copy(buffer, seen)
        order = [
            *range(self.batches + 1),
            *range(count, seen.ndim),
            *range(self.batches + 1, count),
        ]
        swapped = seen.transpose(order)
        buffer = self.scratch.take(swapped.shape, self.dtype)
        columns = buffer.reshape(groups, batches, window, places).swapaxes(2, 3)
        return columns, copy(buffer, swapped)


def _whole(shape: Shape) -> tuple[slice, ...]:
    return tuple(slice(0, size) for size in shape)


def _run(x: Array, dims: Sequence[int]) -> tuple[int, int]:
    """The stride and negated size of the last of `dims`: smaller ones copy faster."""
    last = max((d for d in dims if x.shape[d] > 1), default=dims[-1])
    return abs(x.strides[last]), -x.shape[last]


def _by_stride(x: Array, dims: Sequence[int]) -> list[int]:
    """The dimensions in descending order of strides."""
    return sorted(dims, key=lambda d: -abs(x.strides[d]))
