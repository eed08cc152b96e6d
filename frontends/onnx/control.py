"""ONNX's If, Loop and Scan on values that are computed at run time → tgraph.

Bodies may use all values defined outside. If a loop's results have a row for each
iteration, the number of iterations must be a constant.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import onnx
from xdsl.dialects.builtin import TensorType, i1, i32, i64
from xdsl.ir import Operation, SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import axis_of, shape_of, type_of
from ..formulas import compare
from ..loops import Loop, Values, branch, read_row, rows_like, write_row
from ..operators import Known, Value
from ..unsupported import Unsupported
from .node import OnnxNode

Subgraph: TypeAlias = Callable[
    [onnx.GraphProto, Sequence[Value], list[Operation]], Sequence[Value | None]
]
"""Appends the operations of a graph, on these inputs, and returns the graph's outputs;
an output that is not supported is None."""


def _supported(values: Iterable[Value | None]) -> Sequence[Value] | None:
    values = list(values)
    return None if None in values else cast(list[Value], values)


def _if(n: OnnxNode, subgraph: Subgraph) -> Sequence[Value | None]:
    made: list[tuple[list[Operation], Values]] = []
    for name in ("then_branch", "else_branch"):
        inner = replace(n, into=[])
        outputs = _supported(subgraph(n.attributes[name], [], inner.into))
        if outputs is None:
            return [None] * n.outputs
        results = [inner.materialize(value) for value in outputs]
        made.append((inner.into, results))
    return branch(n, n.value(0), *made)


def _loop(n: OnnxNode, subgraph: Subgraph) -> Sequence[Value | None]:
    """Returns the carried values, then the results with a row for each iteration."""
    limit = n.reshape(n.value(0), []) if n.has(0) else None
    start = n.reshape(n.value(1), []) if n.has(1) else n.splat(1, _FLAG)
    loop = Loop(n)
    count, go_on = loop.carry(n.splat(0, _COUNT)), loop.carry(start)
    states = [loop.carry(n.value(index)) for index in range(2, len(n.inputs))]
    body = loop.body
    outputs = _supported(
        subgraph(n.attributes["body"], [count, go_on, *states], body.into)
    )
    if outputs is None:
        return [None] * n.outputs
    again, *values = outputs
    following = [body.materialize(value) for value in values]
    rows = following[len(states) :]
    stacked: list[SSAValue] = []
    if rows:
        _check_count(n, again is go_on or _is_true(again))
        stacked = _stack(n, loop, int(n.known(0).item()), count, rows)
    following = [
        *(body.apply(e.AddOp, count, 1), body.reshape(body.materialize(again), [])),
        *following[: len(states)],
        *stacked,
    ]

    def more(n: OnnxNode, values: Values) -> SSAValue:
        if limit is None:
            return values[1]
        return n.apply(e.AndOp, values[1], compare(n, values[0], "LT", limit))

    _, _, *results = loop.close(following, more)
    return results


def _is_true(value: Value | None) -> bool:
    return isinstance(value, Known) and bool(value.array.all())


def _check_count(n: OnnxNode, goes_on: bool) -> None:
    """Raises `Unsupported` unless the loop is known to run to its limit."""
    if not goes_on or (n.has(1) and not n.known(1).item()):
        raise Unsupported("with a condition that determines the size of results")


def _stack(
    n: OnnxNode, loop: Loop[OnnxNode], count: int, place: SSAValue, rows: Values
) -> list[SSAValue]:
    """Arrays of `count` rows that the loop carries, with row `place` written."""
    return [
        write_row(loop.body, loop.carry(rows_like(n, row, 0, count)), 0, place, row)
        for row in rows
    ]


def _scan(n: OnnxNode, subgraph: Subgraph) -> Sequence[Value | None]:
    if n.opset < 9:
        raise Unsupported(f"in opset {n.opset}")
    number = n.integer("num_scan_inputs", 0)
    first = len(n.inputs) - number
    scanned = [n.value(index) for index in range(first, len(n.inputs))]
    in_axes = [
        axis_of(axis, len(shape_of(x)))
        for axis, x in zip(
            n.integers("scan_input_axes", [0] * number), scanned, strict=True
        )
    ]
    lengths = [shape_of(x)[d] for d, x in zip(in_axes, scanned, strict=True)]
    length = lengths[0]
    if any(other != length for other in lengths):
        raise Unsupported(f"with inputs of {lengths} rows, expected one number")
    loop = Loop(n)
    body, count = loop.body, loop.carry(n.splat(0, TensorType(i32, [])))
    states = [loop.carry(n.value(index)) for index in range(first)]

    def place(is_backward: int) -> SSAValue:
        last = body.splat(length - 1, type_of(count))
        return body.apply(e.SubtractOp, last, count) if is_backward else count

    turned = n.integers("scan_input_directions", [0] * number)
    taken = [
        read_row(body, x, axis, place(backward))
        for x, axis, backward in zip(scanned, in_axes, turned, strict=True)
    ]
    outputs = _supported(subgraph(n.attributes["body"], [*states, *taken], body.into))
    if outputs is None:
        return [None] * n.outputs
    values = [body.materialize(value) for value in outputs]
    rows = values[first:]
    axes = n.integers("scan_output_axes", [0] * len(rows))
    backwards = n.integers("scan_output_directions", [0] * len(rows))
    stacked: list[SSAValue] = []
    for row, axis, backward in zip(rows, axes, backwards, strict=True):
        axis = axis_of(axis, len(shape_of(row)) + 1)
        result = loop.carry(rows_like(n, row, axis, length))
        stacked.append(write_row(body, result, axis, place(backward), row))
    following = [body.apply(e.AddOp, count, 1), *values[:first], *stacked]
    _, *results = loop.close(
        following, lambda n, values: compare(n, values[0], "LT", length)
    )
    return results


_COUNT, _FLAG = TensorType(i64, []), TensorType(i1, [])

CONTROL: Mapping[str, Callable[[OnnxNode, Subgraph], Sequence[Value | None]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
}
