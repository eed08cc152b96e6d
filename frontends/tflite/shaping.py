"""Converts operations that move elements."""

from collections.abc import Mapping, Sequence
from math import ceil, prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import ints
from ..builder import (
    arange,
    axis_of,
    broadcast_shapes,
    shape_of,
    type_of,
)
from ..indices import take_ranges, tile
from ..operators import Known, Value
from ..unsupported import Unsupported
from .elementwise import expect_one_scale
from .node import Conversion, TFLiteNode


def _reshape(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    if n.has(1) and isinstance(n.inputs[1], Known):
        shape = n.known_integers(1)
    elif n.options is not None and n.option("NewShapeLength"):
        shape = [int(size) for size in n.option("NewShapeAsNumpy")]
    else:
        shape = list(n.results[0].shape)
    if -1 in shape:
        rest = prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = prod(shape_of(x)) // rest
    return [n.reshape(x, shape)]


def _squeeze(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    dims = [d for d, size in enumerate(shape) if size == 1]
    if n.options is not None and n.option("SqueezeDimsLength"):
        dims = [axis_of(int(d), len(shape)) for d in n.option("SqueezeDimsAsNumpy")]
    return [n.reshape(x, [size for d, size in enumerate(shape) if d not in dims])]


def _expand_dims(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    shape = list(shape_of(x))
    shape.insert(axis_of(n.known_integers(1)[0], len(shape) + 1), 1)
    return [n.reshape(x, shape)]


def _transpose(n: TFLiteNode) -> Sequence[Value]:
    rank = len(shape_of(n.value(0)))
    order = [axis_of(axis, rank) for axis in n.known_integers(1)]
    return [n.transpose(n.value(0), order)]


def _concatenated(n: TFLiteNode, values: Sequence[SSAValue], axis: int) -> SSAValue:
    if len(values) == 1:
        return values[0]
    dimension = IntegerAttr(axis, i64)
    return n.emit(shaping.ConcatenateOp, *values, dimension=dimension)


def _concatenate(n: TFLiteNode) -> Sequence[Value]:
    indices = range(len(n.inputs))
    expect_one_scale(n, *indices)
    values = [n.value(index) for index in indices]
    axis = axis_of(n.option("Axis"), len(shape_of(values[0])))
    result = _concatenated(n, values, axis)
    return [result if n.is_quantized else n.activated(result)]


def _pack(n: TFLiteNode) -> Sequence[Value]:
    indices = range(len(n.inputs))
    expect_one_scale(n, *indices)
    values = [n.value(index) for index in indices]
    shape = list(shape_of(values[0]))
    axis = axis_of(n.option("Axis"), len(shape) + 1)
    shape.insert(axis, 1)
    return [_concatenated(n, [n.reshape(x, shape) for x in values], axis)]


def _unpack(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    axis = axis_of(n.option("Axis"), len(shape))
    kept = [*shape[:axis], *shape[axis + 1 :]]
    return [
        n.reshape(n.part(x, axis, index, index + 1), kept)
        for index in range(shape[axis])
    ]


def _parts(n: TFLiteNode, x: SSAValue, axis: int, sizes: Sequence[int]) -> list[Value]:
    ends = np.cumsum(sizes).tolist()
    return [
        n.part(x, axis, end - size, end) for size, end in zip(sizes, ends, strict=True)
    ]


def _split(n: TFLiteNode) -> Sequence[Value]:
    """The first input is the axis."""
    x, count = n.value(1), len(n.results)
    axis = axis_of(n.known_integers(0)[0], len(shape_of(x)))
    return _parts(n, x, axis, [shape_of(x)[axis] // count] * count)


def _split_by_sizes(n: TFLiteNode) -> Sequence[Value]:
    x, sizes = n.value(0), n.known_integers(1)
    axis = axis_of(n.known_integers(2)[0], len(shape_of(x)))
    if -1 in sizes:
        known = sum(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = shape_of(x)[axis] - known
    return _parts(n, x, axis, sizes)


def _slice(n: TFLiteNode) -> Sequence[Value]:
    x, starts, sizes = n.value(0), n.known_integers(1), n.known_integers(2)
    limits = [
        whole if size == -1 else start + size
        for whole, start, size in zip(shape_of(x), starts, sizes, strict=True)
    ]
    return [n.slice(x, starts, limits)]


def _strided_slice(n: TFLiteNode) -> Sequence[Value]:
    """Each mask has a bit per entry: whether it starts or ends at the bounds of the
    dimension, is an ellipsis, adds a dimension, or selects a single index.
    """
    x = n.value(0)
    sizes = list(shape_of(x))
    begins, ends, steps = (n.known_integers(index) for index in (1, 2, 3))
    if n.option("Offset"):
        raise Unsupported("with ends that are offsets")

    def is_in(mask: str, entry: int) -> bool:
        return bool(n.option(mask) >> entry & 1)

    added = [entry for entry in range(len(begins)) if is_in("NewAxisMask", entry)]
    taken: list[range] = []
    shape: list[int] = []
    for entry, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if is_in("EllipsisMask", entry):
            later = [e for e in range(entry + 1, len(begins)) if e not in added]
            count = len(sizes) - len(taken) - len(later)
            shape += sizes[len(taken) : len(taken) + count]
            taken += map(range, sizes[len(taken) : len(taken) + count])
        elif entry in added:
            shape.append(1)
        elif is_in("ShrinkAxisMask", entry):
            index = axis_of(begin, sizes[len(taken)])
            taken.append(range(index, index + 1))
        else:
            first = None if is_in("BeginMask", entry) else begin
            last = None if is_in("EndMask", entry) else end
            taken.append(range(sizes[len(taken)])[first:last:step])
            shape.append(len(taken[-1]))
    shape += sizes[len(taken) :]
    taken += map(range, sizes[len(taken) :])
    return [n.reshape(take_ranges(n, x, taken), shape)]


def _pad(n: TFLiteNode) -> Sequence[Value]:
    """Pads with zeros, or with a given number."""
    expect_one_scale(n, 0)
    x = n.value(0)
    low, high = n.known(1).T.tolist()
    if n.has(2):
        return [n.pad(x, low, high, n.reshape(n.value(2), ()))]
    zero = n.results[0].zero if n.is_quantized else 0
    return [n.pad(x, low, high, n.full(zero, type_of(x).element_type, ()))]


def _mirror_pad(n: TFLiteNode) -> Sequence[Value]:
    """Pads with mirrored elements, including the edge if `Mode` is set."""
    x, repeats = n.value(0), bool(n.option("Mode"))
    for axis, (low, high) in enumerate(n.known(1).tolist()):
        if low or high:
            places = np.pad(
                arange(shape_of(x)[axis]),
                (low, high),
                "symmetric" if repeats else "reflect",
            )
            x = n.take(x, n.constant(places.astype(np.int32)), axis)
    return [x]


def _broadcast(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    return [n.broadcast(x, broadcast_shapes(shape_of(x), n.known_integers(1)))]


def _tile(n: TFLiteNode) -> Sequence[Value]:
    return [tile(n, n.value(0), n.known_integers(1))]


def _fill(n: TFLiteNode) -> Sequence[Value]:
    return [n.broadcast(n.reshape(n.value(1), ()), n.known_integers(0))]


def _zeros(n: TFLiteNode) -> Sequence[Value]:
    return [n.splat(0, type_of(n.value(0)))]


def _as_result(n: TFLiteNode, numbers: Sequence[int] | Array) -> Sequence[Value]:
    return [Known(np.array(numbers, n.results[0].dtype))]


def _shape(n: TFLiteNode) -> Sequence[Value]:
    return _as_result(n, shape_of(n.value(0)))


def _rank(n: TFLiteNode) -> Sequence[Value]:
    return _as_result(n, np.array(len(shape_of(n.value(0)))))


def _range(n: TFLiteNode) -> Sequence[Value]:
    start, limit, step = (n.known(index).item() for index in range(3))
    return _as_result(n, start + step * arange(max(ceil((limit - start) / step), 0)))


def _depth_to_space(n: TFLiteNode) -> Sequence[Value]:
    x, block = n.value(0), n.option("BlockSize")
    batch, height, width, depth = shape_of(x)
    rest = depth // block**2
    apart = n.reshape(x, [batch, height, width, block, block, rest])
    apart = n.transpose(apart, [0, 1, 3, 2, 4, 5])
    return [n.reshape(apart, [batch, height * block, width * block, rest])]


def _space_to_depth(n: TFLiteNode) -> Sequence[Value]:
    x, block = n.value(0), n.option("BlockSize")
    batch, height, width, depth = shape_of(x)
    h, w = height // block, width // block
    apart = n.reshape(x, [batch, h, block, w, block, depth])
    apart = n.transpose(apart, [0, 1, 3, 2, 4, 5])
    return [n.reshape(apart, [batch, h, w, depth * block**2])]


def _space_to_batch(n: TFLiteNode) -> Sequence[Value]:
    """Moves blocks of the spatial dimensions into the batch dimension."""
    x, blocks, pads = n.value(0), n.known_integers(1), n.known(2).tolist()
    zero = n.tensor(0).zero if n.is_quantized else 0
    around = n.full(zero, type_of(x).element_type, ())
    after = len(shape_of(x)) - len(blocks) - 1
    low, high = ([0, *(pad[end] for pad in pads), *[0] * after] for end in (0, 1))
    x = n.pad(x, low, high, around)
    batch, *sizes = shape_of(x)
    rank = len(blocks)
    space = [size // block for size, block in zip(sizes, blocks, strict=False)]
    pairs = [part for pair in zip(space, blocks, strict=True) for part in pair]
    x = n.reshape(x, [batch, *pairs, *sizes[rank:]])
    inner, outer = range(2, 2 * rank + 1, 2), range(1, 2 * rank, 2)
    x = n.transpose(x, [*inner, 0, *outer, *range(2 * rank + 1, 2 * rank + 1 + after)])
    return [n.reshape(x, [batch * prod(blocks), *space, *sizes[rank:]])]


def _batch_to_space(n: TFLiteNode) -> Sequence[Value]:
    x, blocks, crops = n.value(0), n.known_integers(1), n.known(2).tolist()
    batch, *sizes = shape_of(x)
    rank, images = len(blocks), batch // prod(blocks)
    x = n.reshape(x, [*blocks, images, *sizes])
    order = [axis for d in range(rank) for axis in (rank + 1 + d, d)]
    x = n.transpose(x, [rank, *order, *range(2 * rank + 1, rank + 1 + len(sizes))])
    whole = [size * block for size, block in zip(sizes, blocks, strict=False)]
    x = n.reshape(x, [images, *whole, *sizes[rank:]])
    starts, limits = [0] * (len(sizes) + 1), list(shape_of(x))
    for d, (low, high) in enumerate(crops, 1):
        starts[d], limits[d] = low, limits[d] - high
    return [n.slice(x, starts, limits)]


def _reverse(n: TFLiteNode) -> Sequence[Value]:
    expect_one_scale(n, 0)
    x = n.value(0)
    axes = sorted(axis_of(axis, len(shape_of(x))) for axis in n.known_integers(1))
    return [n.emit(shaping.ReverseOp, x, dimensions=ints(axes))]


def _shape_of_both(n: TFLiteNode) -> Sequence[Value]:
    """The shape to which tensors of two shapes are broadcast."""
    return _as_result(n, broadcast_shapes(n.known_integers(0), n.known_integers(1)))


def _diagonal(n: TFLiteNode) -> Sequence[Value]:
    """Matrices that are zero except for a diagonal."""
    expect_one_scale(n, 0)
    diagonal = n.value(0)
    *batch, size = shape_of(diagonal)
    zeros = n.full(0, type_of(diagonal).element_type, [*batch, size, size])
    return [_with_diagonal(n, zeros, diagonal)]


def _set_diagonal(n: TFLiteNode) -> Sequence[Value]:
    expect_one_scale(n, 0, 1)
    return [_with_diagonal(n, n.value(0), n.value(1))]


def _with_diagonal(n: TFLiteNode, x: SSAValue, diagonal: SSAValue) -> SSAValue:
    *batch, rows, columns = shape_of(x)
    size = min(rows, columns)
    wide = n.pad(
        diagonal, [0] * len(shape_of(diagonal)), [*[0] * len(batch), columns - size]
    )
    wide = n.reshape(wide, [*batch, 1, columns])
    eye = n.constant(np.eye(rows, columns, dtype=bool))
    return n.apply(e.SelectOp, eye, wide, x)


CONVERSIONS: Mapping[str, Conversion] = {
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BROADCAST_ARGS": _shape_of_both,
    "BROADCAST_TO": _broadcast,
    "CONCATENATION": _concatenate,
    "DEPTH_TO_SPACE": _depth_to_space,
    "EXPAND_DIMS": _expand_dims,
    "FILL": _fill,
    "MATRIX_DIAG": _diagonal,
    "MATRIX_SET_DIAG": _set_diagonal,
    "MIRROR_PAD": _mirror_pad,
    "PACK": _pack,
    "PAD": _pad,
    "PADV2": _pad,
    "RANGE": _range,
    "RANK": _rank,
    "RESHAPE": _reshape,
    "REVERSE_V2": _reverse,
    "SHAPE": _shape,
    "SLICE": _slice,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPLIT": _split,
    "SPLIT_V": _split_by_sizes,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "UNPACK": _unpack,
    "ZEROS_LIKE": _zeros,
}
