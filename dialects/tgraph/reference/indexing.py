"""Operations whose indices are computed: gathers, scatters, dynamic slices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from ...dtypes import Array
from .. import indexing
from ..base import Shape, TensorOp
from .results import Evaluate, result_shape


def _gather(op: indexing.GatherOp, x: Array, indices: Array) -> Array:
    result = np.empty(result_shape(op), x.dtype)
    sizes = op.slice_sizes.get_values()
    numbers = op.dimension_numbers
    in_order = _batch_first(result, numbers)
    for place, start in _starts(indices, numbers, x.ndim):
        clamped = [
            min(max(at, 0), size - length)
            for at, size, length in zip(start, x.shape, sizes, strict=True)
        ]
        taken = x[tuple(slice(a, a + n) for a, n in zip(clamped, sizes, strict=True))]
        in_order[place] = taken.squeeze(numbers.omitted)
    return result


_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "replace": lambda old, new: new,
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def _scatter(op: indexing.ScatterOp, x: Array, indices: Array, updates: Array) -> Array:
    result = x.copy()
    numbers = op.dimension_numbers
    in_order = _batch_first(updates, numbers)
    for place, start in _starts(indices, numbers, x.ndim):
        update = np.expand_dims(in_order[place], numbers.omitted)
        ends = [a + n for a, n in zip(start, update.shape, strict=True)]
        if min(start, default=0) < 0 or any(map(int.__gt__, ends, x.shape)):
            continue
        window = tuple(map(slice, start, ends))
        result[window] = _COMBINE[op.kind.data](result[window], update)
    return result


def _starts(
    indices: Array, numbers: indexing.DimensionNumbers, rank: int
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """The position of each index vector, and the operand's index that it gives."""
    if numbers.vector == indices.ndim:
        indices = indices[..., None]
    vectors = np.moveaxis(indices, numbers.vector, -1)
    for place in product(*map(range, vectors.shape[:-1])):
        start = [0] * rank
        for dim, index in zip(numbers.indexed, vectors[place].tolist(), strict=True):
            start[dim] = index
        for dim, batching in numbers.batching.items():
            start[dim] = place[batching]
        yield place, start


def _batch_first(x: Array, numbers: indexing.DimensionNumbers) -> Array:
    """A view with the dimensions of the index vectors before those of the window."""
    return x.transpose([*numbers.batch(x.ndim), *numbers.window])


def _clamped(starts: Sequence[Array], x: Shape, part: Shape) -> tuple[slice, ...]:
    """The slices of a part of `x` with these starts, after clamping."""
    numbers = (
        min(max(int(start), 0), size - width)
        for start, size, width in zip(starts, x, part, strict=True)
    )
    return tuple(slice(n, n + width) for n, width in zip(numbers, part, strict=True))


def _dynamic_slice(op: indexing.DynamicSliceOp, x: Array, *starts: Array) -> Array:
    return x[_clamped(starts, x.shape, op.slice_sizes.get_values())].copy()


def _dynamic_update_slice(
    op: indexing.DynamicUpdateSliceOp, x: Array, update: Array, *starts: Array
) -> Array:
    result = x.copy()
    result[_clamped(starts, x.shape, update.shape)] = update
    return result


EVALUATIONS: Mapping[type[TensorOp], Evaluate] = {
    indexing.GatherOp: _gather,
    indexing.ScatterOp: _scatter,
    indexing.DynamicSliceOp: _dynamic_slice,
    indexing.DynamicUpdateSliceOp: _dynamic_update_slice,
}
