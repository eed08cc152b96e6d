"""Computes convolutions of one feature in a loop nest: filters of images and signals.

    out[b, t] = sum over k of image[b, t * stride + k * dilation - low] * kernel[k]

A library multiplies matrices of many features. If the images or the result have one
feature, a loop nest sums up the windows of a vector of positions, and fuses the
operations that follow. If the window extends into the padding, the image is first
copied into a buffer with zeros around it.
"""

from collections.abc import Mapping, Sequence
from math import prod
from operator import mul

import numpy as np
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array, numpy_dtype
from ....dialects.tgraph.base import TensorOp, tensor_type_of
from ....dialects.tgraph.elementwise import AddOp, MultiplyOp
from ....dialects.tgraph.reducing import ConvolutionOp
from ....support.arrays import strided
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, surround
from ..contraction import Contraction, by_labels
from .graphs import by_result

MOST = 64
"""The maximum elements of a window: each has its own instructions in the nest."""

ROW = 16
"""The minimum positions along the last dimension for which a nest is faster."""

FEW = 4
"""The maximum features of the images or the result for which a nest is faster than a
library, if the other has one feature.
"""


def as_sum(
    op: Contraction, inputs: Sequence[Array], scratch: Scratch
) -> tuple[list[Call], Mapping[SSAValue, TensorOp], Mapping[SSAValue, Array]] | None:
    """The calls that prepare the image; then the operations of a loop nest that
    computes the convolution, by results, and the arrays of their operands. None if a
    library is faster."""
    if not isinstance(op, ConvolutionOp) or not _is_for_nest(op, inputs):
        return None
    kernel = by_labels(inputs[1], op.labels[1], "o" + op.spatial + "i")
    image, calls = _windows(op, inputs[0], kernel.shape[1:], scratch)
    behind = (None,) * (len(op.labels[2]) - 1 - op.labels[2].index("f"))
    ahead = (slice(None),) * (kernel.ndim - 1)
    factors = image, np.broadcast_to(kernel[:, *behind, *ahead], image.shape)
    return calls, *_written_out(op, *factors)


def _written_out(
    op: ConvolutionOp, image: Array, kernel: Array
) -> tuple[Mapping[SSAValue, TensorOp], Mapping[SSAValue, Array]]:
    """A product and a sum for each element of the window."""
    (result,) = op.results or op.outs
    type = op.declared[0]
    block = Block()
    factors: dict[SSAValue, Array] = {}
    ops: list[TensorOp] = []
    for at in np.ndindex(image.shape[type.get_num_dims() :]):
        pair = [block.insert_arg(type, 0) for _ in range(2)]
        arrays = (factor[..., *at] for factor in (image, kernel))
        factors |= dict(zip(pair, arrays, strict=True))
        ops.append(MultiplyOp(pair, result_types=[type]))
        if len(ops) > 1:
            summed = [made.results[0] for made in ops[-2:]]
            ops.append(AddOp(summed, result_types=[type]))
    return {**by_result(ops[:-1]), result: ops[-1]}, factors


def _is_for_nest(op: ConvolutionOp, inputs: Sequence[Array]) -> bool:
    """Whether a library is slower: for some convolutions of floats without holes."""
    types = {numpy_dtype(op.declared[0].element_type, op), *(x.dtype for x in inputs)}
    return (
        len(types) == 1
        and types <= {np.dtype(np.float32), np.dtype(np.float64)}
        and all(holes == 1 for holes in op.lhs_dilation.get_values())
        and inputs[0].size > 0
        and prod(op.declared[0].get_shape()) > 0
        and _has_one_feature(op, inputs)
    )


def _has_one_feature(op: ConvolutionOp, inputs: Sequence[Array]) -> bool:
    """Whether a side has one feature, and rows of the result have whole vectors."""
    kernel = inputs[1]
    seen, made = (kernel.shape[op.labels[1].index(label)] for label in "io")
    return (
        op.groups == 1
        and min(seen, made) == 1
        and max(seen, made) <= FEW
        and 0 < kernel.size // made <= MOST
        and _result_sizes(op)[-1:] >= [ROW]
    )


def _result_sizes(op: ConvolutionOp) -> list[int]:
    """The positions of the result along each spatial dimension."""
    places = dict(zip(op.labels[2], op.declared[0].get_shape(), strict=True))
    return [places[label] for label in op.spatial]


def _windows(
    op: ConvolutionOp, image: Array, kernel: Sequence[int], scratch: Scratch
) -> tuple[Array, list[Call]]:
    """A view with the elements of the window for each element of the result, in the
    last dimensions; and the calls that copy the image between zeros, if needed.
    `kernel` has the sizes of the window, and the number of input features."""
    spatial = op.spatial
    image = by_labels(image, op.labels[0], "b" + spatial + "f")
    shape = op.declared[0].get_shape()
    places = dict(zip(op.labels[2], shape, strict=True))
    window = op.window(tensor_type_of(op.inputs[1].type).get_shape())
    before, after, first = [0], [0], [0]
    for size, label, dim in zip(image.shape[1:-1], spatial, window, strict=True):
        end = (places[label] - 1) * dim.stride + dim.reach - dim.low
        before.append(max(dim.low, 0))
        after.append(max(end - size, 0))
        first.append(max(-dim.low, 0))
    calls: list[Call] = []
    if any(before) or any(after):
        image, calls = _between_zeros(image, [*before, 0], [*after, 0], scratch)
    image = image[*(slice(start, None) for start in first), :]
    batch, *along, feature = image.strides
    strides = (dim.stride for dim in window)
    apart = (dim.window_dilation for dim in window)
    steps = dict(zip(spatial, map(mul, strides, along), strict=True))
    steps |= {"b": batch, "f": 0}
    seen = strided(
        image,
        (*shape, *kernel),
        (*(steps[d] for d in op.labels[2]), *map(mul, apart, along), feature),
    )
    return seen, calls


def _between_zeros(
    image: Array, before: Sequence[int], after: Sequence[int], scratch: Scratch
) -> tuple[Array, list[Call]]:
    """A copy of the image with zeros around it. The dimension before the last, which
    has the features, is contiguous."""
    *sizes, last, features = map(sum, zip(before, image.shape, after, strict=True))
    padded = scratch.take((*sizes, features, last), image.dtype).swapaxes(-1, -2)
    inner = [
        slice(start, start + n) for start, n in zip(before, image.shape, strict=True)
    ]
    zeros = surround(padded, inner, np.zeros((), image.dtype))
    return padded, [*copy(padded[*inner], image), *zeros]
