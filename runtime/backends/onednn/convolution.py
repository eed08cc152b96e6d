"""Convolutions by oneDNN: forward convolutions, and gradients of convolutions.

StableHLO writes all three convolutions of a training step as one operation with
dimension numbers. A convolution over a dilated image, or with a reversed kernel, is the
gradient with respect to the data. A convolution whose "kernel" is larger than its
result is the gradient with respect to the weights, of a transposed convolution if the
image is dilated. oneDNN computes each of the three only by its own primitive. Constant
weights are converted to oneDNN's layout once, all other weights in each run.

A convolution in which each position of the result sees one position of the image, or
the whole image, is a matrix product. oneDNN computes it as a product if the weights are
large compared with the images, because a product need not convert the weights to
another layout.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from ....dialects.tgraph.reducing import ConvolutionOp
from ....support.arrays import Array, Shape
from ...calls import Call
from ...pool import Scratch
from ..arrays import alike, copy, try_reshape
from ..contraction import by_labels, operands
from ..parts import LANES, Slices, divisions
from .division import implementations, in_parts, in_turns, peak, turns
from .dot import product
from .epilogue import Epilogue
from .library import Refused
from .primitives import (
    ATTRIBUTES,
    ENGINE,
    SOURCE,
    SOURCE_GRADIENT,
    TARGET,
    TARGET_GRADIENT,
    WEIGHTS,
    WEIGHTS_GRADIENT,
    Attributes,
    Description,
    Layout,
    added,
    compiled,
    describe,
    describe_any,
    is_reorder,
    moved,
)

MANY = 4
"""A result is divided by rows only if it has at least this many times as many positions
as the window has elements.
"""

FEATURES = 64
"""Turns by features have a multiple of this number of features. Convolutions of 4x4 to
28x28 positions and 256 to 1,024 features, with windows of 3x3, then take 0.75 to 1.06
of the time.
"""

LESS = 0.35
"""The share of the scratch memory that turns by features may need. Others are gradients
of weights for which each turn converts large images again, and takes up to 1.16 of the
time."""

DIRECT, INFERENCE = 1, 96
"""`dnnl_convolution_direct`, `dnnl_forward_inference`."""


def convolution(
    op: ConvolutionOp,
    inputs: Sequence[Array],
    out: Array,
    epilogue: Epilogue,
    scratch: Scratch,
) -> list[Call]:
    """The calls of a convolution. Raises `Refused` if oneDNN has no such primitive, or
    only its reference implementation."""
    if not 1 <= out.ndim - 2 <= 3:
        raise Refused
    mark = scratch.mark
    with suppress(Refused):
        return _product(op, inputs, out, epilogue, scratch)
    scratch.mark = mark

    def whole(block: Slices, scratch: Scratch) -> list[Call]:
        image, kernel = operands(op, inputs, block)
        image, low = _rows(op, image, kernel, block)
        calls = _part(op, image, kernel, low, out[block], block, epilogue, scratch)
        has_rows = block[op.labels[2].index("0")] != slice(None)
        if has_rows and any(is_reorder(function) for function, _ in calls):
            raise Refused  # each part would convert all weights to another layout
        return calls

    def part(block: Slices, scratch: Scratch) -> list[Call]:
        makes = [
            partial(whole, x) for x in _turns(op, inputs, out, block, whole, scratch)
        ]
        return in_turns(makes, scratch)

    return in_parts(part, _divisions(op, inputs, out, scratch.threads), scratch)


def _product(
    op: ConvolutionOp,
    inputs: Sequence[Array],
    out: Array,
    epilogue: Epilogue,
    scratch: Scratch,
) -> list[Call]:
    """The convolution as a product of matrices that are views. Raises `Refused` if it
    is not such a product, or would be slower."""
    spatial = op.multiplied(*(x.shape for x in (*inputs[:2], out)))
    if spatial is None or any(map(_is_flipped, inputs)):
        raise Refused
    points, sums = spatial

    def matrix(x: Array, labels: str, rows: str, columns: str) -> Array:
        ordered = by_labels(x, labels, rows + columns)
        sizes = ordered.shape[: len(rows)], ordered.shape[len(rows) :]
        view = try_reshape(ordered, tuple(map(prod, sizes)))
        if view is None:
            raise Refused
        return view

    labels, kernel_labels, out_labels = op.labels
    by_stride = sorted(labels, key=lambda x: -inputs[0].strides[labels.index(x)])
    rows = "".join(x for x in by_stride if x in "b" + points)
    summed = "".join(x for x in by_stride if x in "f" + sums)
    image = matrix(inputs[0], labels, rows, summed)
    kernel = matrix(inputs[1], kernel_labels, summed.replace("f", "i"), points + "o")
    target = matrix(out, out_labels, rows, sums + "f")
    is_along = image.strides[1] == image.itemsize
    weights, other = (kernel, target) if is_along else (target, kernel)
    is_large = 2 * weights.size >= image.size + other.size
    if scratch.constant(inputs[1]) or not is_large or 1 in target.shape:
        raise Refused  # products with vectors: see dot.py

    def after(block: Slices) -> Attributes:
        return epilogue.attributes(
            lambda x: matrix(x, out_labels, rows, sums + "f")[block]
        )

    return product(image, kernel, target, scratch, after)


def _divisions(
    op: ConvolutionOp, inputs: Sequence[Array], out: Array, threads: int
) -> Sequence[Sequence[Slices]]:
    """Divides batches or features: those of the larger operand, if there are enough.
    Divides rows rather than features that are contiguous in memory."""
    whole = [[(slice(None),) * out.ndim]]
    if op.batch_group_count.value.data > 1:
        return whole  # batches compute different features
    has_holes = any(hole > 1 for hole in op.lhs_dilation.get_values())
    if has_holes and _is_of_weights(op, inputs[1], out):
        return whole  # parts would not run concurrently, as each ends with a copy
    batch, features, rows = (op.labels[2].index(label) for label in "bf0")
    sides = [(batch, 1), *([(features, LANES)] if op.groups == 1 else [])]
    image, kernel = inputs
    summed = kernel.size // kernel.shape[op.labels[1].index("o")]
    ordered = sides if image.size >= kernel.size else sides[::-1]
    if out.strides[features] == out.itemsize and _has_rows(op, kernel, out):
        ordered = [(batch, 1), (rows, 1), *sides[1:]]
    return divisions(out.shape, dict(ordered), summed, threads)


def _turns(
    op: ConvolutionOp,
    inputs: Sequence[Array],
    out: Array,
    block: Slices,
    make: Callable[[Slices, Scratch], list[Call]],
    scratch: Scratch,
) -> Sequence[Slices]:
    """Divides a block of the result so that `make` needs less scratch memory: by images
    if these are converted to other layouts, or else by features if weights are.

    Each turn by images converts the weights again, so it has no fewer bytes of images.
    Images that are summed are divided by `_of_weights`. Each turn by features converts
    the weights of these, and reads all images.
    """
    kernel, whole = inputs[1], partial(make, block)
    if op.batch_group_count.value.data > 1:
        return [block]
    batch, features = (op.labels[2].index(label) for label in "bf")
    spans = [range(n)[part] for n, part in zip(out.shape, block, strict=True)]
    images, groups = len(spans[batch]), 0
    if not scratch.constant(kernel):
        bytes = (inputs[0].nbytes + out.nbytes) * images // out.shape[batch]
        images = min(images, bytes // max(kernel.nbytes, 1))
        groups = len(spans[features]) // FEATURES if op.groups == 1 else 0
    if _is_of_weights(op, kernel, out):
        images = 0
    for dim, unit, most in (batch, 1, images), (features, FEATURES, groups):
        count = turns(whole, most, scratch)
        if count == 1:
            continue
        span = spans[dim]
        step = -(-len(span) // (count * unit)) * unit
        found = [
            (*block[:dim], slice(at, min(at + step, span.stop)), *block[dim + 1 :])
            for at in span[::step]
        ]
        makes = [partial(make, each) for each in found]
        saves = dim == batch or peak(makes, scratch) <= LESS * peak([whole], scratch)
        if saves and implementations(makes, scratch) == implementations(
            [whole], scratch
        ):
            return found
    return [block]


def _is_of_weights(op: ConvolutionOp, kernel: Array, out: Array) -> bool:
    """Whether the window is larger than the result, as in gradients with respect to
    weights."""
    window = by_labels(kernel, op.labels[1], "oi" + op.spatial)
    result = by_labels(out, op.labels[2], "bf" + op.spatial)
    return prod(window.shape[2:]) > prod(result.shape[2:])


def _has_rows(op: ConvolutionOp, kernel: Array, out: Array) -> bool:
    """Whether oneDNN's forward primitive can compute some rows of the result from some
    rows of the image."""
    window = by_labels(kernel, op.labels[1], "oi" + op.spatial)
    places = by_labels(out, op.labels[2], "bf" + op.spatial).shape[2:]
    return (
        all(hole == 1 for hole in op.lhs_dilation.get_values())
        and min(op.padding_low.get_values()) >= 0
        and not _is_flipped(window)
        and MANY * prod(window.shape[2:]) <= prod(places)
    )


def _rows(
    op: ConvolutionOp, image: Array, kernel: Array, block: Slices
) -> tuple[Array, Sequence[int]]:
    """The rows of the image that a block of the result depends on, and the low padding
    of each dimension."""
    low = op.padding_low.get_values()
    image_labels, _, out_labels = op.labels
    rows = block[out_labels.index("0")]
    if rows == slice(None):
        return image, low
    where = [slice(None)] * image.ndim
    along = image_labels.index("0")
    window = op.window(kernel.shape)[0]
    window, where[along] = window.over(rows, image.shape[along])
    return image[*where, ...], (window.low, *low[1:])


def _part(
    op: ConvolutionOp,
    image: Array,
    kernel: Array,
    low: Sequence[int],
    out: Array,
    block: Slices,
    epilogue: Epilogue,
    scratch: Scratch,
) -> list[Call]:
    """The calls for a block of the result, `out`. `low` is the low padding of the
    image. Only the forward primitive supports an epilogue."""
    image_labels, kernel_labels, out_labels = op.labels
    image = _as_images(image, image_labels, "bf")
    kernel = _as_images(kernel, kernel_labels, "oi")
    target = _as_images(out, out_labels, "bf")
    rank = target.ndim - 2
    added = (1,) * (rank - len(low))
    low = (*(0 for _ in added), *low)
    strides = (*added, *op.window_strides.get_values())
    holes = (*added, *op.lhs_dilation.get_values())
    dilation = (*added, *op.rhs_dilation.get_values())
    has_holes = any(hole > 1 for hole in holes)
    batches, is_plain = op.batch_group_count.value.data, epilogue.is_empty
    is_of_weights = op.groups == batches and prod(kernel.shape[2:]) > prod(
        target.shape[2:]
    )
    if is_of_weights and not is_plain:
        raise Refused
    is_transposed = is_of_weights and batches == 1 and has_holes
    if is_transposed and all(step == 1 for step in dilation):
        # with the operands exchanged, the holes are strides, and the result is flipped
        reach = zip(target.shape[2:], strides, low, strict=True)
        padding = [(size - 1) * step - at for size, step, at in reach]
        source, result = kernel.swapaxes(0, 1), image.swapaxes(0, 1)
        source, copied = _not_flipped(source, scratch)
        flipped = alike(target, target.dtype, scratch)
        window = _window(source, flipped, result, holes, strides, padding)
        calls = [*copied, *_of_weights(source, flipped, result, window, scratch)]
        return [*calls, *copy(target[:, :, *[slice(None, None, -1)] * rank], flipped)]
    is_flipped = op.groups == 1 and is_plain and _is_flipped(kernel)
    if (has_holes or is_flipped) and all(s == 1 for s in strides):
        if not is_plain or batches > 1:
            raise Refused
        weights = kernel[:, :, *[slice(None, None, -1)] * rank]
        reach = zip(weights.shape[2:], dilation, low, strict=True)
        padding = [(size - 1) * step - at for size, step, at in reach]
        window = _window(target, weights, image, holes, dilation, padding)
        weights = _in_groups(weights, op.groups).swapaxes(-2 - rank, -1 - rank)
        result, plain = target, Attributes()
        if block[op.labels[2].index("f")] != slice(None):
            # oneDNN takes up to a fifth longer if features are apart in memory
            result = alike(target, target.dtype, scratch)
        calls = _calls(_BY_DATA, result, weights, image, window, plain, scratch)
        return calls if result is target else [*calls, *moved(result, target)]
    if has_holes:
        raise Refused
    if is_of_weights:
        source, result = image.swapaxes(0, 1), kernel.swapaxes(0, 1)
        weights = target.swapaxes(0, 1)
        window = _window(source, weights, result, dilation, strides, low)
        weights = _in_groups(weights, batches)
        return _of_weights(source, weights, result, window, scratch)
    if batches > 1:
        raise Refused
    window = _window(image, kernel, target, strides, dilation, low)
    kernel = _in_groups(kernel, op.groups)
    attributes = epilogue.attributes(lambda x: _as_images(x[block], out_labels, "bf"))
    return _calls(_FORWARD, image, kernel, target, window, attributes, scratch)


def _in_groups(weights: Array, groups: int) -> Array:
    """Weights with a dimension of groups, if there are several, before the outputs."""
    if groups == 1:
        return weights
    return weights.reshape(groups, -1, *weights.shape[1:])


def _as_images(x: Array, labels: str, first: str) -> Array:
    """`x` with the dimensions `first` first. A signal becomes an image of one row,
    because oneDNN has kernels for images that it lacks for signals, mainly for groups.
    """
    ordered = by_labels(x, labels, first + "012"[: x.ndim - 2])
    return np.expand_dims(ordered, 2) if x.ndim == 3 else ordered


def _is_flipped(x: Array) -> bool:
    return any(
        stride < 0 < size - 1 for stride, size in zip(x.strides, x.shape, strict=True)
    )


@dataclass(frozen=True)
class _Window:
    """The spatial parameters of a convolution, in oneDNN's form."""

    strides: Sequence[int]
    dilation: Sequence[int]
    low: Sequence[int]
    high: Sequence[int]

    def arguments(self) -> Sequence[Shape]:
        """oneDNN's dilation counts the elements that are skipped."""
        between = [step - 1 for step in self.dilation]
        return [tuple(x) for x in (self.strides, between, self.low, self.high)]


def _window(
    source: Array,
    kernel: Array,
    target: Array,
    strides: Sequence[int],
    dilation: Sequence[int],
    low: Sequence[int],
) -> _Window:
    """The window of the forward convolution of these arrays, with the high padding that
    they imply."""
    high: list[int] = []
    for d, (stride, step, before) in enumerate(
        zip(strides, dilation, low, strict=True)
    ):
        span = (target.shape[d + 2] - 1) * stride + (kernel.shape[d + 2] - 1) * step + 1
        after = span - source.shape[d + 2] - before
        if before < 0 or after <= -stride:  # some elements are in no window
            raise Refused
        high.append(max(0, after))
    return _Window(strides, dilation, low, high)


@dataclass(frozen=True)
class _Direction:
    """One of oneDNN's three convolutions: its name, its arguments before, between and
    after the common ones, and the roles of its arrays."""

    name: str
    first: Sequence[int]
    bias: Sequence[None]
    hint: Sequence[None]
    image: int
    weights: int
    result: int


_FORWARD = _Direction(
    "forward", (INFERENCE, DIRECT), (None,), (), SOURCE, WEIGHTS, TARGET
)
_BY_DATA = _Direction(
    *("backward_data", (DIRECT,), (), (None,)),
    *(SOURCE_GRADIENT, WEIGHTS, TARGET_GRADIENT),
)
_BY_WEIGHTS = _Direction(
    *("backward_weights", (DIRECT,), (None,), (None,)),
    *(SOURCE, WEIGHTS_GRADIENT, TARGET_GRADIENT),
)


def _calls(
    direction: _Direction,
    image: Array,
    weights: Array,
    result: Array,
    window: _Window,
    attributes: Attributes,
    scratch: Scratch,
) -> list[Call]:
    """Computes one of the three arrays from the two others. If oneDNN has no fast
    primitive for the layouts of the images, the images are converted to other layouts.
    """
    weights, copied = _not_flipped(weights, scratch)
    arrays = {
        direction.image: image,
        direction.weights: weights,
        direction.result: result,
    }

    def described(image: Layout, result: Layout) -> Description:
        return attributes.describe(
            f"convolution_{direction.name}",
            *(ENGINE, *direction.first, image, describe_any(weights)),
            *(*direction.bias, result),
            *(*window.arguments(), *direction.hint, ATTRIBUTES),
        )

    given, wanted = ([d(x) for x in (image, result)] for d in (describe, describe_any))
    both = direction.image, direction.result
    ways = [
        (described(*given), ()),
        (described(wanted[0], given[1]), both[:1]),
        (described(*wanted), both),
    ]
    is_product = _is_product(ways[0][0])
    is_point = prod(weights.shape[2 - result.ndim :]) == 1
    if attributes.sums:  # adds to the result, which keeps its layout
        ways.pop()
    elif is_product and is_point and attributes.post_ops:
        raise Refused  # a product computes post-ops element by element
    if not is_point:
        ways.sort(key=lambda way: _is_product(way[0]))
    for description, others in ways:
        reordered = direction.weights, *others
        with suppress(Refused):
            made = compiled(description, arrays, attributes, scratch, reordered)
            return [*copied, *made]
    raise Refused


def _is_product(description: Description) -> bool:
    """Whether the primitive multiplies matrices. Writing windows side by side for that
    takes longer than converting the image and the result to other layouts."""
    try:
        return "gemm" in description.implementation
    except Refused:
        return False


def _of_weights(
    image: Array, weights: Array, result: Array, window: _Window, scratch: Scratch
) -> list[Call]:
    """Computes the gradient of the weights: in turns, each for some of the images, if
    that takes less scratch memory and the weights have at most half the bytes of a
    turn's images. Each turn after the first adds to the gradient."""
    plain = Attributes()

    def make(turn: slice, target: Array, scratch: Scratch) -> list[Call]:
        given, head = image[turn], result[turn]
        return _calls(_BY_WEIGHTS, given, target, head, window, plain, scratch)

    def make_and_add(turn: slice, scratch: Scratch) -> list[Call]:
        change = alike(weights, weights.dtype, scratch)
        return [*make(turn, change, scratch), *added(change, weights, scratch)]

    every = partial(make, slice(None), weights)
    images = (image.nbytes + result.nbytes) // max(2 * weights.nbytes, 1)
    step = -(-len(image) // turns(every, min(len(image), images), scratch))
    first, *others = (slice(at, at + step) for at in range(0, len(image), step))
    makes = [partial(make, first, weights), *(partial(make_and_add, x) for x in others)]
    if others and implementations(makes, scratch) == implementations([every], scratch):
        return in_turns(makes, scratch)
    return every(scratch)


def _not_flipped(x: Array, scratch: Scratch) -> tuple[Array, list[Call]]:
    """`x`, or a copy in memory order if oneDNN cannot represent its strides. Constants
    are flipped when they are packed."""
    if not _is_flipped(x) or scratch.constant(x):
        return x, []
    buffer = alike(x, x.dtype, scratch)
    return buffer, copy(buffer, x)
