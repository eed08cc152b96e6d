"""Functions that NumPy's kernels use and NumPy lacks. Knows no IR."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from math import prod
from types import ModuleType
from typing import NamedTuple, cast

import numpy as np

from ....support.arrays import Array, Shape
from ...calls import Call

INDEX = np.dtype(np.intp)


class Starts(NamedTuple):
    """The positions in the operand at which the slices of index vectors start.

    The last dimension of `vectors` is the entries of each index vector, which are
    positions along the operand's dimensions `dims`. `batching` maps each operand
    dimension that is batched with the index vectors to the dimension of `vectors`.
    """

    vectors: Array
    dims: Sequence[int]
    batching: Mapping[int, int]

    @property
    def shape(self) -> Sequence[int]:
        return self.vectors.shape[:-1]

    @property
    def entries(self) -> Sequence[Array]:
        """The entries of all index vectors, for each of `dims`."""
        return [self.vectors[..., position] for position in range(len(self.dims))]


def _start(at: Starts, place: tuple[int, ...], rank: int) -> list[int]:
    start = [0] * rank
    for dim, other in at.batching.items():
        start[dim] = place[other]
    for dim, index in zip(at.dims, at.vectors[place].tolist(), strict=True):
        start[dim] = index
    return start


def copy_slices(
    operand: Array,
    at: Starts,
    limits: Mapping[int, int],
    sizes: Sequence[int],
    out: Array,
) -> None:
    for place in np.ndindex(*at.shape):
        start = _start(at, place, operand.ndim)
        clamped = [min(max(index, 0), limits[d]) for d, index in enumerate(start)]
        window = tuple(slice(a, a + n) for a, n in zip(clamped, sizes, strict=True))
        out[place] = operand[window]


def _part(starts: Sequence[Array], whole: Array, sizes: Shape) -> tuple[slice, ...]:
    """The slices of `sizes` in `whole`, at `starts` clamped to the array."""
    parts: list[slice] = []
    for start, size, width in zip(starts, whole.shape, sizes, strict=True):
        first = min(max(int(start), 0), size - width)
        parts.append(slice(first, first + width))
    return tuple(parts)


def take_part(x: Array, starts: Sequence[Array], out: Array) -> None:
    out[...] = x[_part(starts, x, out.shape)]


def put_part(out: Array, starts: Sequence[Array], update: Array) -> None:
    out[_part(starts, out, update.shape)] = update


def combine_elements(
    flat: Array, shape: Shape, at: Starts, updates: Array, combine: np.ufunc | None
) -> None:
    """Combines elements of `flat` with `updates`. Allocates a few arrays with one
    number for each index vector."""
    numbers = np.zeros(at.shape, INDEX)
    is_inside = np.ones(at.shape, bool)
    for dim, other in at.batching.items():
        along = [1] * len(at.shape)
        along[other] = -1
        rows = np.arange(at.shape[other]) * prod(shape[dim + 1 :])
        numbers += rows.reshape(along)
    for dim, source in zip(at.dims, at.entries, strict=True):
        entry = source.astype(INDEX)
        is_inside &= (entry >= 0) & (entry < shape[dim])
        numbers += entry * prod(shape[dim + 1 :])
    kept, new = numbers[is_inside], updates[is_inside]
    if combine is None:
        flat[kept] = new
    else:
        combine.at(flat, kept, new)


def combine_slices(
    out: Array, at: Starts, updates: Array, combine: np.ufunc | None
) -> None:
    sizes = updates.shape[len(at.shape) :]
    limits = [size - n for size, n in zip(out.shape, sizes, strict=True)]
    for place in np.ndindex(*at.shape):
        start = _start(at, place, out.ndim)
        if any(not 0 <= a <= limit for a, limit in zip(start, limits, strict=True)):
            continue
        window = out[*(slice(a, a + n) for a, n in zip(start, sizes, strict=True)), ...]
        if combine is None:
            window[...] = updates[place]
        else:
            combine(window, updates[place], out=window)


def take_sorted(
    keys: Array,
    is_descending: bool,
    packed: Array | None,
    columns: Sequence[Array],
    results: Sequence[Array],
) -> None:
    """Sorts stably along the last dimension by `keys`, and writes the first elements to
    `results`, as many as these have. Overwrites the keys.

    packed: an int64 array with the shape of the keys, for `order_packed`; None for
        other keys, whose order is allocated.
    """
    count, size = results[0].shape[-1], keys.shape[-1]
    if not results[0].size:
        return
    if packed is not None:
        order = order_packed(keys, is_descending, packed, count)
    elif is_descending:  # equal elements keep their order
        order = size - 1 - np.argsort(keys[..., ::-1], -1, "stable")[..., ::-1]
    else:
        order = np.argsort(keys, -1, "stable")
    order = order[..., :count]
    pairs = list(zip(columns, results, strict=True))
    for column, result in pairs:
        if not column.flags.c_contiguous:
            result[...] = np.take_along_axis(column, order, -1)
    rows = cast(Array, np.arange(0, keys.size, size))
    np.add(order, rows.reshape(*keys.shape[:-1], 1), out=order)
    for column, result in pairs:
        if column.flags.c_contiguous:
            column.reshape(-1).take(order, out=result, mode="clip")


def order_packed(keys: Array, is_descending: bool, packed: Array, count: int) -> Array:
    """The indices of the first `count` elements in each row's order, in `packed`.

    A key of at most 32 bits and the index of its element fit in one 64-bit integer.
    Equal elements therefore keep their order without a stable sort, and NumPy sorts
    such integers with vector instructions. As in NumPy's order, a NaN comes after all
    other keys.
    """
    if keys.dtype.kind == "f":
        is_nan = np.isnan(keys)
        np.add(keys, 0, out=keys)  # -0 equals 0
        keys = keys.view(np.int32)
        np.bitwise_xor(keys, 0x7FFFFFFF, out=keys, where=keys < 0)
        keys[is_nan] = 0x7FFFFFFF
    elif keys.dtype == np.uint32:
        np.bitwise_xor(keys, 0x80000000, out=keys)
        keys = keys.view(np.int32)
    size = keys.shape[-1]
    packed[...] = keys
    if is_descending:
        np.invert(packed, out=packed)  # -1 - key
    np.left_shift(packed, 32, out=packed)
    np.bitwise_or(packed, cast(Array, np.arange(size)), out=packed)
    first = packed[..., :count]
    if count < size:
        packed.partition(count - 1, -1)
    first.sort(-1)
    np.bitwise_and(first, 0xFFFFFFFF, out=first)
    return packed


PART = 1 << 18
"""The bytes of rows that are transformed at once, because their result is allocated."""


@cache
def _fourier() -> ModuleType | None:
    """SciPy's transforms, which vectorize over rows; None without SciPy."""
    try:
        return import_module("scipy.fft")
    except ImportError:
        return None


def transform(name: str, x: Array, out: Array, axis: int) -> None:
    """A Fourier transform. `out` may be `x`. `rfft` and `irfft` are along the last
    dimension. Without SciPy, NumPy 1 allocates the result. SciPy allocates the result
    if the input or the output is real."""
    library = _fourier()
    if library is None:
        function = getattr(np.fft, name)
        size = out.shape[axis] if name == "irfft" else None
        if np.lib.NumpyVersion(np.__version__) < "2.0.0":
            out[...] = function(x, size, axis)
        else:
            function(x, size, axis, out=out)
    elif x.dtype == out.dtype:
        if out is not x:
            out[...] = x
        made = getattr(library, name)(out, axis=axis, overwrite_x=True)
        if not np.may_share_memory(made, out):
            out[...] = made
    else:
        _transform_rows(getattr(library, name), x, out)


def _transform_rows(function: Callable[..., Array], x: Array, out: Array) -> None:
    """Transforms along the last dimension; its size is that of the real side."""
    size = max(x.shape[-1], out.shape[-1])
    if not (x.flags.c_contiguous and out.flags.c_contiguous):
        out[...] = function(x, size)
        return
    x, out = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
    rows = max(PART // (size * x.itemsize), 1)
    for row in range(0, len(out), rows):
        out[row : row + rows] = function(x[row : row + rows], size)


def call_unbuffered(calls: Sequence[Call]) -> None:
    """Runs calls without NumPy's buffers. From NumPy 2.3 on, an operand with one number
    per row is copied to a buffer of the maximum size, unless that is smaller than a
    row."""
    size = np.setbufsize(16)
    try:
        for function, arguments in calls:
            function(*arguments)
    finally:
        np.setbufsize(size)
