"""ONNX's operations on the places in images that windows read → tgraph."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array, identity, numpy_dtype
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import with_shape
from ..builder import check_table, shape_of, type_of
from ..formulas import index_of
from ..indices import put, take_along
from ..windows import SpatialWindow
from .node import Conversion, OnnxNode, Value


def numbers_of_largest(n: OnnxNode, window: SpatialWindow) -> SSAValue:
    """MaxPool's indices: which elements are the largest, the first of equal ones."""
    x, turned = n.value(0), n.integer("storage_order", 0)
    batch, channels, *sizes = shape_of(x)
    steps = np.cumprod([1, *(sizes if turned else sizes[::-1])])[:-1]
    reads = _reads(window, sizes)
    number = np.tensordot(steps if turned else steps[::-1], reads, 1)
    taken, *space = number.shape
    number = number.reshape(taken, -1)
    clipped = [np.clip(r, 0, s - 1) for r, s in zip(reads, sizes, strict=True)]
    flat = np.ravel_multi_index(clipped, sizes).reshape(-1)
    inside = (np.array(clipped) == reads).all(0).reshape(1, 1, taken, -1)
    rows = n.reshape(x, [batch, channels, prod(sizes)])
    values = n.take(rows, n.constant(flat), 2)
    values = n.reshape(values, [batch, channels, *number.shape])
    lowest = identity("maximum", numpy_dtype(type_of(x).element_type)).item()
    kept = n.broadcast(n.constant(inside), shape_of(values))
    values = n.apply(e.SelectOp, kept, values, n.splat(lowest, type_of(values)))
    best = index_of(n, "maximum", values, 2, keep=True)
    numbers = n.constant(np.broadcast_to(number, (1, 1, *number.shape)).copy())
    numbers = n.broadcast(numbers, shape_of(values))
    found = n.reshape(take_along(n, numbers, best, 2), [batch, channels, *space])
    images = np.arange(batch * channels) * prod(sizes)
    return n.apply(
        e.AddOp, found, n.constant(images.reshape(batch, channels, *[1] * len(space)))
    )


def _reads(window: SpatialWindow, image: Sequence[int]) -> Array:
    """The coordinates that windows read: axis x place in the window x places."""
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


def _max_unpool(n: OnnxNode) -> Sequence[Value]:
    """Elements at the places that MaxPool gave, zeros elsewhere."""
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
    """Each element of a block is added to the image at the block's place."""
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
    reads = _reads(window, sizes)
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
