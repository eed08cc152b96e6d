"""ONNX operations that move elements or return shapes → tgraph."""

from collections.abc import Mapping, Sequence
from math import ceil, prod

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import IntegerAttr, i32, i64

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import with_element
from ..builder import arange, axis_of, element_type, shape_of, type_of
from ..formulas import compare, triangle
from ..indices import take_ranges, tile
from ..operators import Known, Value
from ..unsupported import Unsupported
from .node import Conversion, OnnxNode
from .reading import array_of


def _shape(n: OnnxNode) -> Sequence[Value]:
    x = n.inputs[0]
    shape = x.array.shape if isinstance(x, Known) else shape_of(n.value(0))
    end = n.integer("end", len(shape))
    return [Known(np.array(shape[n.integer("start", 0) : end], np.int64))]


def _size(n: OnnxNode) -> Sequence[Value]:
    return [Known(np.array(prod(shape_of(n.value(0))), np.int64))]


def _reshape(n: OnnxNode) -> Sequence[Value]:
    x, target = n.value(0), n.known_integers(1)
    shape = shape_of(x)
    if not n.integer("allowzero", 0):
        target = [shape[d] if size == 0 else size for d, size in enumerate(target)]
    if -1 in target:
        rest = prod(size for size in target if size != -1)
        target[target.index(-1)] = prod(shape) // rest if rest else 0
    return [n.reshape(x, target)]


def _flatten(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    shape, axis = shape_of(x), n.integer("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return [n.reshape(x, [prod(shape[:axis]), prod(shape[axis:])])]


def _squeeze(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    axes = n.axes(1, len(shape))
    if axes is None:
        axes = [d for d, size in enumerate(shape) if size == 1]
    return [n.reshape(x, [size for d, size in enumerate(shape) if d not in axes])]


def _unsqueeze(n: OnnxNode) -> Sequence[Value]:
    x, added = n.value(0), n.known_integers(1)
    shape = list(shape_of(x))
    axes = sorted(axis_of(axis, len(shape) + len(added)) for axis in added)
    if len({*axes}) < len(axes):
        raise Unsupported(f"with axes = {added}, expected different ones")
    for axis in axes:
        shape.insert(axis, 1)
    return [n.reshape(x, shape)]


def _transpose(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    return [n.transpose(x, n.integers("perm", range(len(shape_of(x)))[::-1]))]


def _concat(n: OnnxNode) -> Sequence[Value]:
    values = [n.value(index) for index in range(len(n.inputs))]
    axis = axis_of(n.integer("axis", 0), len(shape_of(values[0])))
    if len(values) == 1:
        return values
    dimension = IntegerAttr(axis, i64)
    return [n.emit(shaping.ConcatenateOp, *values, dimension=dimension)]


def _split(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
    size = shape_of(x)[axis]
    if n.has(1):
        sizes = n.known_integers(1)
    else:
        n.expect("num_outputs", n.integer("num_outputs", n.outputs), n.outputs)
        part = -(-size // n.outputs)
        sizes = [min(part, size - part * index) for index in range(n.outputs)]
    ends = np.cumsum(sizes).tolist()
    return [
        n.part(x, axis, end - size, end) for size, end in zip(sizes, ends, strict=True)
    ]


def _slice(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    starts, ends = n.known_integers(1), n.known_integers(2)
    axes = n.axes(3, len(shape)) or list(range(len(starts)))
    steps = n.known_integers(4) if n.has(4) else [1] * len(starts)
    taken = [range(size) for size in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0:  # ONNX begins at element 0; Python would take none
            start = max(start, -shape[axis])
        taken[axis] = taken[axis][start:end:step]
    return [take_ranges(n, x, taken)]


def _expand(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    return [n.broadcast(x, np.broadcast_shapes(shape_of(x), n.known_integers(1)))]


def _tile(n: OnnxNode) -> Sequence[Value]:
    return [tile(n, n.value(0), n.known_integers(1))]


def _pad(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    rank = len(shape_of(x))
    mode = n.text("mode", "constant")
    n.expect("mode", mode, "constant", "edge", "reflect", "wrap")
    pads = n.known_integers(1)
    axes = n.axes(3, rank) or list(range(rank))
    low, high = [0] * rank, [0] * rank
    for index, axis in enumerate(axes):
        low[axis], high[axis] = pads[index], pads[index + len(axes)]
    if mode == "constant":
        value = n.reshape(n.value(2), ()) if n.has(2) else None
        return [n.pad(x, low, high, value)]
    cut = [[min(pad, 0) for pad in side] for side in (low, high)]
    if any(map(any, cut)):  # negative pads crop first: others repeat what remains
        if any(size + a + b < 0 for size, a, b in zip(shape_of(x), *cut, strict=True)):
            raise Unsupported(f"with pads that crop more than {list(shape_of(x))}")
        x = n.pad(x, cut[0], cut[1])
        low, high = [max(pad, 0) for pad in low], [max(pad, 0) for pad in high]
    for axis in axes:
        if low[axis] or high[axis]:
            places = _padded(mode, shape_of(x)[axis], low[axis], high[axis])
            x = n.take(x, n.constant(places.astype(np.int32)), axis)
    return [x]


def _padded(mode: str, size: int, low: int, high: int) -> Array:
    """The index of the source element at each position of a padded dimension."""
    if not size:
        raise Unsupported(f"with mode = {mode!r} and a dimension of size 0")
    places = arange(low + size + high) - low
    match mode:
        case "edge":
            return np.clip(places, 0, size - 1)
        case "wrap":
            return places % size
        case _:
            places = places % max(2 * size - 2, 1)
            return np.minimum(places, max(2 * size - 2, 1) - places)


def _constant_of_shape(n: OnnxNode) -> Sequence[Value]:
    """For many elements; smaller results are folded."""
    value = np.zeros(1, np.float32)
    if "value" in n.attributes:
        value = array_of(n.attributes["value"], "value")
    return [n.full(value.item(), element_type(value.dtype), n.known_integers(0))]


def _range(n: OnnxNode) -> Sequence[Value]:
    start, limit, delta = (n.known(index).item() for index in range(3))
    places = arange(max(ceil((limit - start) / delta), 0))
    return [Known((start + places * delta).astype(n.known(0).dtype))]


def _trilu(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    k = int(n.known(1).item()) if n.has(1) else 0
    return [triangle(n, x, k, upper=bool(n.integer("upper", 1)))]


def _eye_like(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    element = type_of(x).element_type
    if "dtype" in n.attributes:
        element = element_type(helper.tensor_dtype_to_np_dtype(n.integer("dtype", 1)))
    type = with_element(type_of(x), i32)
    right = n.apply(e.SubtractOp, n.iota(type, 1), n.iota(type, 0))
    return [n.convert(compare(n, right, "EQ", n.integer("k", 0)), element)]


def _depth_to_space(n: OnnxNode) -> Sequence[Value]:
    x, block = n.value(0), n.integer("blocksize", 0)
    batch, depth, height, width = shape_of(x)
    mode = n.text("mode", "DCR")
    n.expect("mode", mode, "DCR", "CRD")
    rest = depth // block**2
    if mode == "DCR":
        apart = n.reshape(x, [batch, block, block, rest, height, width])
        apart = n.transpose(apart, [0, 3, 4, 1, 5, 2])
    else:
        apart = n.reshape(x, [batch, rest, block, block, height, width])
        apart = n.transpose(apart, [0, 1, 4, 2, 5, 3])
    return [n.reshape(apart, [batch, rest, height * block, width * block])]


def _space_to_depth(n: OnnxNode) -> Sequence[Value]:
    x, block = n.value(0), n.integer("blocksize", 0)
    batch, depth, height, width = shape_of(x)
    h, w = height // block, width // block
    mode = n.text("mode", "DCR")
    n.expect("mode", mode, "DCR", "CRD")
    apart = n.reshape(x, [batch, depth, h, block, w, block])
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    apart = n.transpose(apart, order)
    return [n.reshape(apart, [batch, depth * block**2, h, w])]


CONVERSIONS: Mapping[str, Conversion] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "EyeLike": _eye_like,
    "Expand": _expand,
    "Flatten": _flatten,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
