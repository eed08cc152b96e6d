"""Operations with a region on single elements: reductions and sorts."""

import math
from collections.abc import Sequence
from functools import cmp_to_key

import numpy as np
from xdsl.ir import Region, SSAValue

from ...dtypes import Array, numpy_dtype
from .. import bodies
from ..base import TensorOp
from ..structure import yielded
from .evaluation import evaluate


def _on_elements(region: Region, inputs: Sequence[Array]) -> list[Array]:
    """The values that a region yields for each element of arrays of equal shape."""
    shape = inputs[0].shape
    values = dict[SSAValue, Array](zip(region.block.args, inputs, strict=True))
    for op in region.block.ops:
        if isinstance(op, TensorOp):
            result = evaluate(op, [values[value] for value in op.inputs])
            values[op.result] = np.broadcast_to(result, shape)
    return [values[value] for value in yielded(region)]


def _with_positions(op: bodies.ElementsOp, inputs: Sequence[Array]) -> Sequence[Array]:
    """All tensors: the inputs, and the indices for those in `positions`."""
    result = list(inputs)
    for number in op.numbered:
        type = op.declared[number].element_type
        shape, along = inputs[0].shape, op.along[0]
        lined = [-1 if d == along else 1 for d in range(len(shape))]
        places = np.arange(shape[along], dtype=numpy_dtype(type, op)).reshape(lined)
        result.insert(number, np.broadcast_to(places, shape))
    return result


def reduce_by(op: bodies.ReduceByOp, inputs: Sequence[Array]) -> list[Array]:
    """Combines one element at a time, in row-major order."""
    inputs = _with_positions(op, inputs)
    count = len(inputs) // 2
    dims = op.dimensions.get_values()
    kept = [d for d in range(inputs[0].ndim) if d not in dims]
    number = math.prod(inputs[0].shape[d] for d in dims)
    rows = [
        x.transpose([*sorted(dims), *kept]).reshape(number, *(x.shape[d] for d in kept))
        for x in inputs[:count]
    ]
    state = [
        np.full(x.shape[1:], start)
        for x, start in zip(rows, inputs[count:], strict=True)
    ]
    for elements in zip(*rows, strict=True):
        state = _on_elements(op.body, [*state, *elements])
    return state


def sort(op: bodies.SortOp, inputs: Sequence[Array]) -> list[Array]:
    axis = op.dimension.value.data
    inputs = _with_positions(op, inputs)
    columns = [np.moveaxis(x, axis, -1) for x in inputs]
    results = [
        np.empty(t.get_shape(), x.dtype)
        for t, x in zip(op.declared, inputs, strict=True)
    ]
    for place in np.ndindex(*columns[0].shape[:-1]):
        column = [x[place] for x in columns]

        def compare(i: int, j: int, column: Sequence[Array] = column) -> int:
            pairs = [x[k] for x in column for k in (i, j)]
            if _on_elements(op.comparator, pairs)[0]:
                return -1
            pairs = [x[k] for x in column for k in (j, i)]
            return int(_on_elements(op.comparator, pairs)[0])

        order = sorted(range(len(column[0])), key=cmp_to_key(compare))
        for x, result in zip(column, results, strict=True):
            np.moveaxis(result, axis, -1)[place] = x[order[: result.shape[axis]]]
    return results
