"""The matrices that a contraction multiplies, where they lie.

    x: 32x64x64 f32, w: 64x48 f32
    z = tgraph.dot_general %x, %w, summed over dimension 1 of %x and 0 of %w

`x` is no matrix whose rows are its free dimensions, 0 and 2: they have no stride in
common. It is 32 matrices, all of which are multiplied by `w`. A contraction is thus
seen as products of matrices that are views of its operands and of its result; what
follows the product reads arrays in the same arrangement (`Matrices`). An operand is
copied only if no view is a matrix, or if one large product is much faster.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from itertools import product as pairs
from math import prod
from typing import NamedTuple

import numpy as np

from ...dialects.dtypes import Array
from ...dialects.tgraph.base import Shape
from ...dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp
from ...support.arrays import name_of
from ..calls import Call
from ..pool import Scratch
from .arrays import reshaped, try_reshape
from .contraction import Contraction, by_labels

FEWEST = 8
"""Matrices with fewer rows or columns, which are all multiplied by the same one, are
copied into one matrix."""

COPIED = 8
"""They are also copied if the result has this many times their elements."""


def matrices(
    op: DotGeneralOp, inputs: Sequence[Array], side: int, scratch: Scratch
) -> tuple[Array, list[Call]]:
    """The left or right operand as matrices, one for each index of the batch
    dimensions: a view, or else a copy that the returned calls make."""
    order, shape = _as_matrices(op, inputs, side)
    return reshaped(inputs[side].transpose(order), shape, scratch)


def _as_matrices(
    op: DotGeneralOp, inputs: Sequence[Array], side: int
) -> tuple[list[int], Shape]:
    """The order of an operand's dimensions in its matrices, and the matrices' shape."""
    x, batch, contracting = inputs[side], op.batching[side], _sums(op, inputs)[side]
    free = [d for d in range(x.ndim) if d not in batch and d not in contracting]
    parts = (free, contracting) if side == 0 else (contracting, free)
    sizes = (prod(x.shape[d] for d in part) for part in parts)
    order = [*batch, *(d for part in parts for d in part)]
    return order, (*(x.shape[d] for d in batch), *sizes)


def _sums(op: DotGeneralOp, inputs: Sequence[Array]) -> Sequence[Sequence[int]]:
    """The contracting dimensions of both operands, in the order in which the larger
    operand stores them. If the other one stores them in another order, only that one is
    copied."""
    if len(op.contracting[0]) < 2:
        return op.contracting
    larger = 0 if inputs[0].size > inputs[1].size else 1
    steps = inputs[larger].strides
    both = zip(*op.contracting, strict=True)
    ordered = sorted(both, key=lambda dims: -abs(steps[dims[larger]]))
    return [*zip(*ordered, strict=True)]


class Matrices(NamedTuple):
    """A product of matrices whose operands and result are views, one for each index of
    the dimensions before the last two, in which operands may have size 1."""

    lhs: Array
    rhs: Array
    out: Array
    arranged: Callable[[Array], Array | None]
    """An array with the result's shape, arranged as `out` is; None if no view is."""

    @property
    def is_broadcast(self) -> bool:
        """Whether several products have the same operand."""
        return self.lhs.shape[:-2] != self.rhs.shape[:-2]

    def broadcast(self) -> "Matrices":
        """With one matrix of each operand for each matrix of the result."""
        lhs, rhs = (
            np.broadcast_to(x, (*self.out.shape[:-2], *x.shape[-2:]))
            for x in (self.lhs, self.rhs)
        )
        return self._replace(lhs=lhs, rhs=rhs)


def dot_views(op: DotGeneralOp, inputs: Sequence[Array], out: Array) -> Matrices | None:
    """The product of matrices that `op` is, or else the products. If the rows of an
    operand or of the result do not have one stride, as those of `x[:, 1:] @ w`, some
    free dimensions become dimensions of the batch; likewise of the columns. None if
    there are no such views."""
    count = end = len(op.batching[0])
    batch, sums = out.shape[:count], _sums(op, inputs)
    views: list[Array] = []
    runs: list[Sequence[int]] = []
    for x, own, summed in zip(inputs, op.batching, sums, strict=True):
        free = [d for d in range(x.ndim) if d not in own and d not in summed]
        start, end = end, end + len(free)
        steps = [x.strides[d] for d in free], out.strides[start:end]
        runs.append(_runs(out.shape[start:end], *steps))
        terms = prod(x.shape[d] for d in summed)
        ordered = x.transpose([*own, *free, *summed])
        view = try_reshape(ordered, (*batch, *runs[-1], terms))
        if view is None:
            return None
        views.append(view)
    shape = *batch, *runs[0], *runs[1]
    if try_reshape(out, shape) is None:
        return None
    lhs, rhs = views
    places = pairs(*(range(len(sizes)) for sizes in runs))
    made = [_of_runs(lhs, rhs, out, shape, count, *place) for place in places]
    return max(made, key=_preference)


def _runs(shape: Shape, *strides: Sequence[int]) -> Sequence[int]:
    """The sizes after adjacent dimensions are merged that have one stride in all of
    these arrays."""
    dims = [d for d, size in enumerate(shape) if size != 1]
    sizes = [shape[d] for d in dims[:1]] or [1]
    for before, d in pairwise(dims):
        if all(steps[before] == shape[d] * steps[d] for steps in strides):
            sizes[-1] *= shape[d]
        else:
            sizes.append(shape[d])
    return sizes


def _of_runs(
    lhs: Array, rhs: Array, out: Array, shape: Shape, count: int, row: int, column: int
) -> Matrices:
    """The products whose rows are the run `row` of the left operand, and whose columns
    are the run `column` of the right one. `shape` has the runs of both, after `count`
    dimensions of the batch."""
    left, right = lhs.ndim - count - 1, rhs.ndim - count - 1
    inner = count + row, count + left + column
    others = [d for d in range(len(shape)) if d not in inner]
    lhs, rhs = np.moveaxis(lhs, inner[0], -2), np.moveaxis(rhs, count + column, -1)
    lhs = np.expand_dims(lhs, (*range(count + left - 1, count + left + right - 2),))
    rhs = np.expand_dims(rhs, (*range(count, count + left - 1),))
    arranged = partial(_arranged, shape=shape, order=[*others, *inner])
    target = arranged(out)
    assert target is not None
    return Matrices(lhs, rhs, target, arranged)


def _arranged(x: Array, shape: Shape, order: Sequence[int]) -> Array | None:
    view = try_reshape(x, shape)
    return None if view is None else view.transpose(order)


def with_copies(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    out: Array,
    scratch: Scratch,
    is_fast: Callable[[Matrices], bool],
) -> tuple[Matrices, list[Call]] | None:
    """As `dot_views`, with calls that copy operands that are no matrices. An operand
    that is several matrices is also copied into one, unless `is_fast` says that several
    products are as fast, or the result is no matrix either. None if the result has no
    views."""
    left, right = (_as_matrices(op, inputs, side)[1] for side in (0, 1))
    is_whole = try_reshape(out, (*left[:-1], right[-1])) is not None
    mark = scratch.mark
    for copied in (), (1,), (0,), (0, 1):
        scratch.mark = mark
        arrays, made = [*inputs], list[Call]()
        for side in copied:
            arrays[side], calls = _with_matrices(op, inputs, side, scratch)
            made += calls
        views = dot_views(op, arrays, out)
        if views and (not (is_whole and views.is_broadcast) or is_fast(views)):
            return views, made
    scratch.mark = mark
    return None


def _with_matrices(
    op: DotGeneralOp, inputs: Sequence[Array], side: int, scratch: Scratch
) -> tuple[Array, list[Call]]:
    """The left or right operand, of which `matrices` are a view: the operand itself, or
    else a copy that the returned calls make."""
    x, (order, _) = inputs[side], _as_matrices(op, inputs, side)
    copied, made = matrices(op, inputs, side, scratch)
    if not made:
        return x, []
    ordered = copied.reshape([x.shape[d] for d in order])
    return ordered.transpose(np.argsort(order)), made


def _preference(views: Matrices) -> tuple[bool, int]:
    """Libraries read matrices whose rows or columns are contiguous. Of these, they
    multiply large ones fastest."""
    are_dense = all(x.itemsize in x.strides[-2:] for x in views[:3])
    return are_dense, prod(views.out.shape[-2:])


def _of_planes(
    op: ConvolutionOp, image: Array, kernel: Array, out: Array
) -> Matrices | None:
    """The matrices of a convolution that multiplies the kernel and each image, whose
    features are planes: `out[b, o, xy] = kernel[o, i] * image[b, i, xy]`. None for
    other convolutions, and if a library need not copy images to another layout."""
    spatial = op.multiplied(image.shape, kernel.shape, out.shape)
    first, second, last = op.labels
    if spatial is None or not first[-1].isdigit() or not last[-1].isdigit():
        return None
    points, sums = spatial
    sizes = dict(zip(first, image.shape, strict=True))
    batch, made = sizes["b"], kernel.shape[second.index("o")]
    summed, places = (prod(sizes[label] for label in of) for of in ("f" + sums, points))
    rest = sums + points
    lhs = try_reshape(by_labels(kernel, second, "oi" + rest), (made, summed))
    rhs = try_reshape(by_labels(image, first, "bf" + rest), (batch, summed, places))

    def arranged(x: Array) -> Array | None:
        return try_reshape(by_labels(x, last, "bf" + rest), (batch, made, places))

    target = arranged(out)
    if lhs is None or rhs is None or target is None:
        return None
    return Matrices(lhs[None], rhs, target, arranged)


def summed_views(
    op: Contraction, inputs: Sequence[Array], out: Array
) -> Matrices | None:
    """Matrices of f32 or f64 whose products add up to the result of a convolution, one
    of each operand for each image, and the result as a matrix: for the gradient of the
    weights of a convolution that multiplies planes, `out[i, o]` is the sum over `b` of
    `image[b, i, xy] * gradient[b, o, xy]`. None for other contractions."""
    if not isinstance(op, ConvolutionOp) or not has_floats(inputs, out):
        return None
    image, kernel = inputs
    spatial = op.multiplied(image.shape, kernel.shape, out.shape)
    first, second, last = op.labels
    if spatial is None or not first[-1].isdigit() or not second[-1].isdigit():
        return None
    places = prod(kernel.shape[second.index(label)] for label in op.spatial)
    if spatial[0] or places == 1:
        return None
    images, batch = (image.shape[first.index(label)] for label in "fb")
    made = kernel.shape[second.index("o")]
    lhs = try_reshape(
        by_labels(image, first, "fb" + op.spatial), (images, batch, places)
    )
    rhs = try_reshape(
        by_labels(kernel, second, "io" + op.spatial), (images, made, places)
    )
    is_flipped = last.index("f") < last.index("b")
    order, shape = ("fb", (made, batch)) if is_flipped else ("bf", (batch, made))

    def arranged(x: Array) -> Array | None:
        return try_reshape(by_labels(x, last, order + op.spatial), shape)

    target = arranged(out)
    if lhs is None or rhs is None or target is None:
        return None
    if is_flipped:
        lhs, rhs = rhs, lhs
    return Matrices(lhs, rhs.swapaxes(-1, -2), target, arranged)


def matrix_views(
    op: Contraction, inputs: Sequence[Array], out: Array
) -> Matrices | None:
    """A product as a product, or products, of matrices that are views. None if there
    are no such views, for convolutions that are not products of matrices with planes,
    and for elements other than f32 or f64."""
    if not has_floats(inputs, out):
        return None
    if isinstance(op, ConvolutionOp):
        return _of_planes(op, inputs[0], inputs[1], out)
    views = dot_views(op, inputs, out)
    return views if views and is_wide(views) else None


def has_floats(inputs: Sequence[Array], out: Array) -> bool:
    """Whether all elements are f32, or all are f64."""
    elements = {name_of(x.dtype) for x in (*inputs, out)}
    return elements in ({"float32"}, {"float64"})


def is_wide(views: Matrices) -> bool:
    """Whether several products with the same matrix are as fast as one product with all
    of the other matrices in one. That takes a copy, which is no work beside a result
    that is much larger."""
    if not views.is_broadcast:
        return True
    largest = max(views.lhs.size, views.rhs.size)
    is_small = largest * COPIED <= views.out.size
    return not is_small and min(views.out.shape[-2:]) >= FEWEST
