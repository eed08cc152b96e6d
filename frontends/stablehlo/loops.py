"""Converts operations to loops: chlo.scan, and scatter by any body."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i32, i64
from xdsl.ir import SSAValue

from ...dialects.sizes.symbolic import Symbolic
from ...dialects.tgraph import elementwise, shaping
from ...dialects.tgraph.base import ints, with_shape
from ...dialects.tgraph.indexing import GatherOp, ScatterOp
from ..builder import TensorBuilder, shape_of, type_of
from ..formulas import compare
from ..loops import Loop, read_row, rows_like, write_row
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values

_COUNT = TensorType(i32, [])


def _begin_loop(b: TensorBuilder) -> tuple[Loop[TensorBuilder], SSAValue]:
    """A new loop, and the number of its iteration."""
    loop = Loop(b)
    return loop, loop.carry(b.splat(0, _COUNT))


def _end_loop(
    loop: Loop[TensorBuilder], count: int, number: SSAValue, following: Values
) -> list[SSAValue]:
    """Closes a loop of `count` iterations; returns the final carried values."""
    _, *results = loop.close(
        [loop.body.apply(elementwise.AddOp, number, 1), *following],
        lambda b, values: compare(b, values[0], "LT", count),
    )
    return results


def _scan(c: Conversion) -> Values:
    """The body's first results are stacked to results; the others are carried."""
    count, _ = c.integers("operandSegmentSizes")
    scanned, initial = c.inputs[:count], c.inputs[count:]
    axis = c.number_in("dimension", 0)
    length = shape_of(scanned[0])[axis]
    if isinstance(length, Symbolic):
        raise Unsupported("with a symbolic size")
    b = TensorBuilder(c.into, c.op.location)
    loop, number = _begin_loop(b)
    body, place = loop.body, number
    if c.number_in("is_reverse", 0):
        last = body.splat(length - 1, _COUNT)
        place = body.apply(elementwise.SubtractOp, last, number)
    carried = [loop.carry(value) for value in initial]
    rows = [read_row(body, x, axis, place) for x in scanned]
    block = c.op.regions[0].block
    scope = dict[SSAValue, SSAValue](zip(block.args, [*rows, *carried], strict=True))
    results = c.block(block, scope, body.into)
    made = results[: len(results) - len(carried)]
    stacked = [
        write_row(body, loop.carry(rows_like(b, row, axis, length)), axis, place, row)
        for row in made
    ]
    states = _end_loop(loop, length, number, [*results[len(made) :], *stacked])
    return [*states[len(carried) :], *states[: len(carried)]]


def scatter_by(c: Conversion, fields: Mapping[str, Sequence[int]]) -> Values:
    """Scatters by a body: gathers the windows, applies the body, and writes them back.

    If indices may repeat, the windows are processed one by one in a loop.
    """
    number = len(c.op.results)
    operands, updates = c.inputs[:number], c.inputs[number + 1 :]
    shapes = [shape_of(value) for value in c.inputs]
    if any(isinstance(size, Symbolic) for shape in shapes for size in shape):
        raise Unsupported("with symbolic sizes, by more than one operation")
    b = TensorBuilder(c.into, c.op.location)
    vectors, to_operand, dropped = _vectors(b, c.inputs[number], fields)
    windows = fields.get("update_window_dims", ())
    ordered = [_rows(b, x, windows) for x in updates]
    count, *window = shape_of(ordered[0])
    properties: Mapping[str, Any] = {
        "kind": StringAttr("replace"),
        "update_window_dims": ints(range(1, len(window) + 1)),
        "inserted_window_dims": ints(sorted(dropped)),
        "scatter_dims_to_operand_dims": ints(to_operand),
        "index_vector_dim": IntegerAttr(1, i64),
    }

    def step(b: TensorBuilder, old: Values, at: SSAValue, new: Values) -> Values:
        present = [_windows(b, x, at, window, to_operand, dropped) for x in old]
        made = replace(c, into=b.into).applied(0, [*present, *new])
        return [
            b.emit(ScatterOp, x, at, value, **properties)
            for x, value in zip(old, made, strict=True)
        ]

    if c.number_in("unique_indices", 0) or count < 2:
        return step(b, operands, vectors, ordered)
    loop, place = _begin_loop(b)
    body = loop.body
    carried = [loop.carry(value) for value in operands]
    at, *new = (
        body.reshape(read_row(body, x, 0, place), [1, *shape_of(x)[1:]])
        for x in (vectors, *ordered)
    )
    return _end_loop(loop, count, place, step(body, carried, at, new))


def _vectors(
    b: TensorBuilder, indices: SSAValue, fields: Mapping[str, Sequence[int]]
) -> tuple[SSAValue, list[int], list[int]]:
    """The index vectors as rows, extended by batch indices; the dimensions of the
    operand that they index; and the dimensions that windows lack.
    """
    (vector_dim,) = fields.get("index_vector_dim", (0,))
    rank = len(shape_of(indices))
    if vector_dim == rank:
        indices = b.reshape(indices, [*shape_of(indices), 1])
    else:
        others = [d for d in range(rank) if d != vector_dim]
        indices = b.transpose(indices, [*others, vector_dim])
    batching = fields.get("input_batching_dims", ())
    column = with_shape(type_of(indices), [*shape_of(indices)[:-1], 1])
    numbers = [
        b.iota(column, dim - (dim > vector_dim))
        for dim in fields.get("scatter_indices_batching_dims", ())
    ]
    if numbers:
        last = IntegerAttr(len(shape_of(indices)) - 1, i64)
        indices = b.emit(shaping.ConcatenateOp, indices, *numbers, dimension=last)
    *batch, length = shape_of(indices)
    to_operand = [*fields.get("scatter_dims_to_operand_dims", ()), *batching]
    dropped = [*fields.get("inserted_window_dims", ()), *batching]
    return b.reshape(indices, [prod(batch), length]), to_operand, dropped


def _rows(b: TensorBuilder, updates: SSAValue, windows: Sequence[int]) -> SSAValue:
    """The updates with a window in each row."""
    shape = shape_of(updates)
    batch = [d for d in range(len(shape)) if d not in windows]
    ordered = b.transpose(updates, [*batch, *windows])
    count = prod(shape[d] for d in batch)
    return b.reshape(ordered, [count, *(shape[d] for d in windows)])


def _windows(
    b: TensorBuilder,
    x: SSAValue,
    at: SSAValue,
    window: Sequence[int],
    to_operand: Sequence[int],
    dropped: Sequence[int],
) -> SSAValue:
    """The current contents of the windows."""
    sizes = iter(window)
    slices = [1 if d in dropped else next(sizes) for d in range(len(shape_of(x)))]
    return b.emit(
        GatherOp,
        x,
        at,
        offset_dims=ints(range(1, len(window) + 1)),
        collapsed_slice_dims=ints(sorted(dropped)),
        operand_batching_dims=ints(()),
        start_indices_batching_dims=ints(()),
        start_index_map=ints(to_operand),
        index_vector_dim=IntegerAttr(1, i64),
        slice_sizes=ints(slices),
    )


CONVERSIONS: Mapping[str, Converter] = {"chlo.scan": _scan}
