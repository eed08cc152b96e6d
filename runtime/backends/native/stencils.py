"""Computes convolutions of one feature in a loop nest: filters of images and signals.

    out[b, t] = sum over k of image[b, t * stride + k * dilation - low] * kernel[k]

A library multiplies matrices of many features. Where the images or the result have one
feature, a loop nest adds up what the window sees for a vector of places, and computes
what follows at once. Where the window reaches into the padding, the image is copied
between zeros first.
"""

from collections.abc import Mapping, Sequence
from math import prod
from operator import mul

import numpy as np
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array, numpy_dtype
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.elementwise import AddOp, MultiplyOp
from ....dialects.tgraph.reducing import ConvolutionOp
from ....support.arrays import strided
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy
from ..contraction import Contraction, by_labels
from .graphs import by_result

MOST = 64
"""Elements that a window sees at most: each has its instructions in the nest."""

ROW = 16
"""Places along the last dimension, from which on a nest is faster."""

FEW = 4
"""Features of the images or the result, up to which a nest is faster than a library, if
the other has one."""


def as_sum(
    op: Contraction, inputs: Sequence[Array], scratch: Scratch
) -> tuple[list[Call], Mapping[SSAValue, TensorOp], Mapping[SSAValue, Array]] | None:
    """The calls that prepare the image; what computes the convolution then, by results,
    and the arrays that this starts from. None where a library is faster."""
    if not isinstance(op, ConvolutionOp) or not _is_for_nest(op, inputs):
        return None
    (result,) = op.results or op.outs
    type = op.declared[0]
    shape = type.get_shape()
    kernel = by_labels(inputs[1], op.labels[1], _spatial(op) + "io")
    image, calls = _windows(op, inputs[0], shape, kernel.shape[:-1], scratch)
    behind = (None,) * (len(shape) - 1 - op.labels[2].index("f"))
    block = Block()
    factors: dict[SSAValue, Array] = {}
    ops: list[TensorOp] = []
    for at in np.ndindex(kernel.shape[:-1]):
        pair = [block.insert_arg(type, 0) for _ in range(2)]
        arrays = image[..., *at], np.broadcast_to(kernel[*at][:, *behind], shape)
        factors |= dict(zip(pair, arrays, strict=True))
        ops.append(MultiplyOp(pair, result_types=[type]))
        if len(ops) > 1:
            summed = [made.results[0] for made in ops[-2:]]
            ops.append(AddOp(summed, result_types=[type]))
    return calls, {**by_result(ops[:-1]), result: ops[-1]}, factors


def _is_for_nest(op: ConvolutionOp, inputs: Sequence[Array]) -> bool:
    """Whether there is one feature, and rows of the result have whole vectors."""
    image, kernel = inputs
    types = {numpy_dtype(op.declared[0].element_type, op), *(x.dtype for x in inputs)}
    seen, made = (kernel.shape[op.labels[1].index(label)] for label in "io")
    places = dict(zip(op.labels[2], op.declared[0].get_shape(), strict=True))
    along = [places[label] for label in _spatial(op)]
    return (
        len(types) == 1
        and types <= {np.dtype(np.float32), np.dtype(np.float64)}
        and op.groups == 1
        and all(holes == 1 for holes in op.lhs_dilation.get_values())
        and image.size > 0
        and prod(places.values()) > 0
        and min(seen, made) == 1
        and max(seen, made) <= FEW
        and 0 < kernel.size // made <= MOST
        and along[-1:] >= [ROW]
    )


def _spatial(op: ConvolutionOp) -> str:
    return "".join(map(str, range(len(op.labels[0]) - 2)))


def _windows(
    op: ConvolutionOp,
    image: Array,
    shape: Sequence[int],
    window: Sequence[int],
    scratch: Scratch,
) -> tuple[Array, list[Call]]:
    """For each element of the result the elements that the window sees, in the last
    dimensions, and the calls that copy the image between zeros, where needed."""
    spatial = _spatial(op)
    image = by_labels(image, op.labels[0], "b" + spatial + "f")
    places = dict(zip(op.labels[2], shape, strict=True))
    moves = op.window_strides, op.rhs_dilation, op.padding_low
    before, after, first = [0], [0], [0]
    for size, count, length, stride, apart, low in zip(
        image.shape[1:-1],
        (places[label] for label in spatial),
        window[:-1],
        *(array.get_values() for array in moves),
        strict=True,
    ):
        last = (count - 1) * stride + (length - 1) * apart - low
        before.append(max(low, 0))
        after.append(max(last + 1 - size, 0))
        first.append(max(-low, 0))
    image, calls = _between_zeros(image, [*before, 0], [*after, 0], scratch)
    image = image[*(slice(start, None) for start in first), :]
    strides, apart, _ = (array.get_values() for array in moves)
    batch, *along, feature = image.strides
    steps = dict(zip(spatial, map(mul, strides, along), strict=True))
    steps |= {"b": batch, "f": 0}
    seen = strided(
        image,
        (*shape, *window),
        (*(steps[d] for d in op.labels[2]), *map(mul, apart, along), feature),
    )
    return seen, calls


def _between_zeros(
    image: Array, before: Sequence[int], after: Sequence[int], scratch: Scratch
) -> tuple[Array, list[Call]]:
    """The image with zeros around it."""
    if not any(before) and not any(after):
        return image, []
    sizes = [sum(each) for each in zip(before, image.shape, after, strict=True)]
    padded = scratch.take(tuple(sizes), image.dtype)
    inner = [
        slice(start, start + n) for start, n in zip(before, image.shape, strict=True)
    ]
    calls = copy(padded[*inner], image)
    zero = np.zeros((), image.dtype)
    for dim, part in enumerate(inner):
        around = (slice(None),) * dim
        for side in (slice(0, part.start), slice(part.stop, None)):
            zeros = padded[*around, side]
            if zeros.size:
                calls += copy(zeros, np.broadcast_to(zero, zeros.shape))
    return padded, calls
