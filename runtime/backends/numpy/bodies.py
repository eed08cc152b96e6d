"""Kernels of operations whose regions specify the computation on single elements.

Sort and reduction both work on whole arrays: a region is computed for many elements at
a time, like a loop (elementwise.py).

A reduction combines neighbors, then neighbors of the results, and so on, in about
log2(n) rounds. If a sort's region compares the same function of both elements, the
values of this function are keys, which NumPy sorts. Otherwise, a network of
compare-exchange rounds sorts (K. Batcher's odd-even merge sort, 1968); comparing the
elements' indices as well makes it stable.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import cast

import numpy as np
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array, constant, numpy_dtype
from ....dialects.tgraph.base import TensorOp, tensor_type_of
from ....dialects.tgraph.bodies import ReduceByOp, SortOp
from ....dialects.tgraph.elementwise import CompareOp
from ....dialects.tgraph.shaping import ConstantOp
from ....dialects.tgraph.structure import yielded
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, fill, tiles, with_positions
from .base import kernel
from .elementwise import Body, Instruction, loop
from .functions import take_sorted

INDEX = np.dtype(np.intp)

KEYS = 1 << 14
"""The elements of the columns that are sorted at a time, unless one has more."""


def on_elements(
    block: Block,
    inputs: Sequence[Array],
    values: Sequence[SSAValue],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    """Calls that compute `values` of a region for each element of arrays of one shape.

    Outputs must not overlap inputs or each other.
    """
    arguments = dict[SSAValue, Array](zip(block.args, inputs, strict=True))
    calls: list[Call] = []
    mark = scratch.mark
    for value, out in zip(values, outs, strict=True):
        if out.size == 0:
            continue
        if value in arguments:
            calls += copy(out, arguments[value])
        elif isinstance(value.owner, ConstantOp):
            calls += fill(out, constant(value.owner.value, out.dtype))
        else:
            calls += loop(_body(value, arguments), out, scratch)
        scratch.mark = mark
    return calls


def _body(value: SSAValue, arguments: Mapping[SSAValue, Array]) -> Body:
    """The computation of `value` from the arguments."""
    body = Body({}, {}, [])
    instructions: dict[SSAValue, Instruction] = {}

    def visit(value: SSAValue) -> None:
        op = value.owner
        if value in arguments:
            body.leaves[value] = arguments[value]
        elif isinstance(op, ConstantOp):
            dtype = numpy_dtype(op.declared[0].element_type, op)
            body.splats[value] = constant(op.value, dtype)
        elif value not in instructions:
            assert isinstance(op, TensorOp)
            for operand in op.inputs:
                visit(operand)
            instructions[value] = Instruction(op, op.inputs, value)

    visit(value)
    body.instructions = list(instructions.values())
    return body


@kernel(ReduceByOp)
def reduce_by(
    op: ReduceByOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    inputs = with_positions(op, inputs)
    count = len(outs)
    block, results = op.body.block, yielded(op.body)
    dims = sorted(op.dimensions.get_values())
    kept = [d for d in range(inputs[0].ndim) if d not in dims]
    calls: list[Call] = []
    rows: list[Array] = []
    for x, out in zip(inputs[:count], outs, strict=True):
        x = x.transpose([*dims, *kept])
        buffer = scratch.take(x.shape, x.dtype)
        calls += copy(buffer, x)
        rows.append(buffer.reshape(-1, *out.shape))
    size = rows[0].shape[0]
    if size == 0:
        for start, out in zip(inputs[count:], outs, strict=True):
            calls += copy(out, np.broadcast_to(start, out.shape))
        return calls
    shape = outs[0].shape
    others = [scratch.take(((size + 1) // 2, *shape), x.dtype) for x in rows]
    while size > 1:
        half = size // 2
        pairs = [x[side : 2 * half : 2] for side in (0, 1) for x in rows]
        targets = [x[:half] for x in others]
        calls += on_elements(block, pairs, results, targets, scratch)
        if size % 2:
            for x, other in zip(rows, others, strict=True):
                calls += copy(other[half, ...], x[size - 1, ...])
        rows, others = others, rows
        size -= half
    starts = [np.broadcast_to(start, shape) for start in inputs[count:]]
    pairs = [*starts, *(x[0, ...] for x in rows)]
    return [*calls, *on_elements(block, pairs, results, outs, scratch)]


@kernel(SortOp)
def sort(
    op: SortOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    axis = op.dimension.value.data
    inputs = with_positions(op, inputs)
    to = -1 if (key := key_of(op)) else 0
    columns, results = ([np.moveaxis(x, axis, to) for x in xs] for xs in (inputs, outs))
    if key:
        return _sort_by_key(op, *key, columns, results, scratch)
    return _sort_by_network(op, columns, results, scratch)


def key_of(op: SortOp) -> tuple[SSAValue, bool] | None:
    """A function of the first elements whose values are compared, if there is one, and
    whether the order is descending. NumPy sorts such keys with vector instructions
    (`order_packed`), or 8 and 16 bits by radix sort."""
    (condition,) = yielded(op.comparator)
    compare = condition.owner
    if not isinstance(compare, CompareOp) or compare.direction.data not in ("LT", "GT"):
        return None
    first, second = compare.inputs
    arguments = op.comparator.block.args
    number = dict[SSAValue, int](zip(arguments, range(len(arguments)), strict=True))
    is_first = _is_alike(first, second, number, 1)
    if not is_first and not _is_alike(second, first, number, 1):
        return None
    key = first if is_first else second
    return key, (compare.direction.data == "GT") == is_first


def _is_alike(
    a: SSAValue, b: SSAValue, number: Mapping[SSAValue, int], distance: int
) -> bool:
    """Whether `b` is the same function of the second elements as `a` of the first."""
    if a in number or b in number:
        return (
            a in number
            and b in number
            and number[a] % 2 == 0
            and number[b] - number[a] == distance
        )
    x, y = a.owner, b.owner
    if isinstance(x, ConstantOp) and isinstance(y, ConstantOp):
        return x.value == y.value
    if not isinstance(x, TensorOp) or not isinstance(y, TensorOp):
        return False
    return (
        x.name == y.name
        and x.properties == y.properties
        and x.result.type == y.result.type
        and all(
            _is_alike(p, q, number, distance)
            for p, q in zip(x.inputs, y.inputs, strict=True)
        )
    )


def _sort_by_key(
    op: SortOp,
    key: SSAValue,
    is_descending: bool,
    columns: Sequence[Array],
    results: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    dtype = numpy_dtype(tensor_type_of(key.type).element_type, op)
    is_short = dtype.kind in "iuf" and dtype.itemsize == 4
    *around, size = columns[0].shape
    calls: list[Call] = []
    for part in tiles(tuple(around), KEYS // max(size, 1)):
        mark = scratch.mark
        some, found = ([x[part] for x in xs] for xs in (columns, results))
        keys = scratch.take(some[0].shape, dtype)
        packed = scratch.take(keys.shape, np.dtype(np.int64)) if is_short else None
        pairs = [x for x in some for _ in range(2)]
        calls += on_elements(op.comparator.block, pairs, [key], [keys], scratch)
        calls.append((take_sorted, (keys, is_descending, packed, some, found)))
        scratch.mark = mark
    return calls


def _sort_by_network(
    op: SortOp, columns: Sequence[Array], results: Sequence[Array], scratch: Scratch
) -> list[Call]:
    shape = columns[0].shape
    size, rest = shape[0], shape[1:]
    block, condition = op.comparator.block, yielded(op.comparator)
    numbers = scratch.take(shape, INDEX)
    counted = cast(Array, np.arange(size)).reshape(size, *[1] * len(rest))
    calls = copy(numbers, np.broadcast_to(counted, shape))
    sorted_columns = [scratch.take(shape, x.dtype) for x in columns]
    for x, column in zip(sorted_columns, columns, strict=True):
        calls += copy(x, column)
    everything = [*sorted_columns, numbers]
    most = ((size + 1) // 2, *rest)
    firsts, seconds, spares = (
        [scratch.take(most, x.dtype) for x in everything] for _ in range(3)
    )
    flags = [scratch.take(most, np.dtype(bool)) for _ in range(3)]
    for low, high in _rounds(size):
        a, b, spare = ([x[: len(low)] for x in xs] for xs in (firsts, seconds, spares))
        swaps, keeps, ties = (x[: len(low)] for x in flags)
        for x, first, second in zip(everything, a, b, strict=True):
            calls += [
                (x.take, (low, 0, first, "clip")),
                (x.take, (high, 0, second, "clip")),
            ]
        for left, right, out in ((b, a, swaps), (a, b, keeps)):
            pairs = [x for p in zip(left[:-1], right[:-1], strict=True) for x in p]
            calls += on_elements(block, pairs, condition, [out], scratch)
        calls += [
            (np.less, (b[-1], a[-1], ties)),
            (np.greater, (ties, keeps, ties)),  # and not
            (np.logical_or, (swaps, ties, swaps)),
        ]
        for x, first, second, other in zip(everything, a, b, spare, strict=True):
            swap = partial(np.copyto, where=swaps)
            calls += [
                *copy(other, first),
                (swap, (first, second)),
                (swap, (second, other)),
                (x.__setitem__, (low, first)),
                (x.__setitem__, (high, second)),
            ]
    for result, x in zip(results, sorted_columns, strict=True):
        calls += copy(result, x[: len(result)])
    return calls


def _rounds(size: int) -> Iterator[tuple[Array, Array]]:
    """The positions that are compared with each other, round by round."""
    p = 1
    while p < size:
        k = p
        while k >= 1:
            low = [
                i + j
                for j in range(k % p, size - k, 2 * k)
                for i in range(min(k, size - j - k))
                if (i + j) // (2 * p) == (i + j + k) // (2 * p)
            ]
            if low:
                places = np.array(low, INDEX)
                yield places, places + k
            k //= 2
        p *= 2
