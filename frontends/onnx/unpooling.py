"""ONNX's MaxUnpool and Col2Im → tgraph: write elements to the places of windows."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from ...dialects.tgraph.base import with_shape
from ..builder import shape_of, type_of
from ..indices import put
from ..operators import Value
from ..windows import SpatialWindow, reads_of
from .node import Conversion, OnnxNode


def _max_unpool(n: OnnxNode) -> Sequence[Value]:
    """Writes elements to the places that MaxPool returned, and zeros elsewhere."""
    x, places = n.value(0), n.value(1)
    batch, channels, *sizes = shape_of(x)
    rank, kernel = len(sizes), n.integers("kernel_shape", [])
    strides = n.integers("strides", [1] * rank)
    pads = n.integers("pads", [0] * (2 * rank))
    full = [
        (size - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d]
        for d, size in enumerate(sizes)
    ]
    shape = [batch, channels, *full]
    count = prod(shape_of(x))
    zeros = n.splat(0, with_shape(type_of(x), [prod(shape)]))
    places, values = n.reshape(places, [count]), n.reshape(x, [count])
    result = n.reshape(put(n, zeros, places, values, 0, "replace"), shape)
    if not n.has(2):
        return [result]
    target = n.known_integers(2)
    high = [size - own for size, own in zip(target, shape, strict=True)]
    return [n.pad(result, [0] * len(shape), high)]


def _column_to_image(n: OnnxNode) -> Sequence[Value]:
    """Adds each element of a block to the image at the place of the block."""
    x, sizes, kernel = n.value(0), n.known_integers(1), n.known_integers(2)
    rank = len(sizes)
    window = SpatialWindow(
        kernel,
        n.integers("strides", [1] * rank),
        n.integers("dilations", [1] * rank),
        n.integers("pads", [0] * (2 * rank))[:rank],
        n.integers("pads", [0] * (2 * rank))[rank:],
    )
    padded = [a + b + c for a, b, c in zip(window.low, sizes, window.high, strict=True)]
    reads = reads_of(window, sizes)
    reads = [axis + low for axis, low in zip(reads, window.low, strict=True)]
    flat = np.ravel_multi_index(reads, padded).reshape(-1)
    batch, columns, _ = shape_of(x)
    channels = columns // prod(kernel)
    zeros = n.splat(0, with_shape(type_of(x), [batch * channels, prod(padded)]))
    updates = n.reshape(x, [batch * channels, len(flat)])
    result = put(n, zeros, n.constant(flat), updates, 1, "add")
    result = n.reshape(result, [batch, channels, *padded])
    cut = [0, 0, *window.low]
    ends = [batch, channels, *map(sum, zip(window.low, sizes, strict=True))]
    return [n.slice(result, cut, ends)]


CONVERSIONS: Mapping[str, Conversion] = {
    "Col2Im": _column_to_image,
    "MaxUnpool": _max_unpool,
}
