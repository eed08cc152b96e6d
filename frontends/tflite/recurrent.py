"""Converts recurrent layers, whose states are variables.

    W x + bias    for all steps, one product before the loop
    loop:         gates of step t = that row + R h; the new state; h into row t

A conversion returns the operator's output, followed by the new states. Products of
floats and 8-bit weights are computed in floats; LiteRT quantizes the floats first.

A bidirectional layer is two layers, of which one reads and writes the rows in reverse.

Does not: convert LSTMs of integers, or bidirectional layers with a second input.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, i16, i32, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import ints
from ..builder import shape_of
from ..formulas import clamp, compare, normalized
from ..loops import Loop, Values, read_row, rows_like, write_row
from ..operators import Value
from ..unsupported import Unsupported
from .fixed_point import expect_8_bits, limited, range_of, scaled
from .node import Conversion, TFLiteNode
from .reading import Tensor

Step: TypeAlias = Callable[[TFLiteNode, SSAValue, Values], Values]
"""The states after a step, given its row and prior states; the first is the output."""

_TANH = 4


def _activated(n: TFLiteNode, x: SSAValue) -> SSAValue:
    if n.option("FusedActivationFunction") == _TANH:
        return n.emit(e.TanhOp, x)
    return n.activated(x)


def _expect_floats(n: TFLiteNode) -> None:
    if n.is_quantized:
        raise Unsupported("with quantized elements")


def _joined(n: TFLiteNode, parts: Values) -> SSAValue:
    if len(parts) == 1:
        return parts[0]
    return n.emit(shaping.ConcatenateOp, *parts, dimension=IntegerAttr(0, i64))


def _by_steps(
    n: TFLiteNode,
    weights: Sequence[int],
    biases: Sequence[int],
    states: Sequence[int],
    step: Step,
) -> Sequence[Value]:
    """A layer with a loop over time; `weights` and `biases` are those of its gates."""
    x, is_time_first = n.value(0), bool(n.option("TimeMajor"))
    x = x if is_time_first else n.transpose(x, [1, 0, 2])
    weight = _joined(n, [n.real(index) for index in weights])
    rows = n.dot(x, weight, ([2], [1]))
    if biases:
        rows = n.apply(e.AddOp, rows, _joined(n, [n.value(index) for index in biases]))
    initial = [n.value(index) for index in states]
    steps = shape_of(rows)[0]
    loop = Loop(n)
    place = loop.carry(n.splat(0, TensorType(i32, [])))
    y = loop.carry(rows_like(n, initial[0], 0, steps))
    state = [loop.carry(value) for value in initial]
    body = loop.body
    following = step(body, read_row(body, rows, 0, place), state)
    y = write_row(body, y, 0, place, following[0])
    _, y, *state = loop.close(
        [body.apply(e.AddOp, place, 1), y, *following],
        lambda n, values: compare(n, values[0], "LT", steps),
    )
    return [y if is_time_first else n.transpose(y, [1, 0, 2]), *state]


def _rnn(n: TFLiteNode) -> Sequence[Value]:
    _expect_floats(n)
    recurrent = n.real(2)

    def step(n: TFLiteNode, row: SSAValue, state: Values) -> Values:
        product = n.dot(state[0], recurrent, ([1], [1]))
        return [_activated(n, n.apply(e.AddOp, row, product))]

    return _by_steps(n, [1], [3], [4], step)


_INPUT, _FORGET, _CELL, _OUTPUT = range(4)
"""The gates, in the order of weights and biases."""

_LEAST_VARIANCE = 1e-8


def _lstm(n: TFLiteNode) -> Sequence[Value]:
    """Without weights of its own, the input gate is 1 - the forget gate."""
    _expect_floats(n)
    gates = range(_INPUT if n.has(1) else _FORGET, _OUTPUT + 1)
    is_normalized = n.has(21)
    recurrent = _joined(n, [n.real(5 + gate) for gate in gates])
    peepholes = {
        gate: n.real(index)
        for gate, index in ((_INPUT, 9), (_FORGET, 10), (_OUTPUT, 11))
        if n.has(index)
    }
    scales = {gate: n.real(20 + gate) for gate in gates if is_normalized}
    biases = {gate: n.value(12 + gate) for gate in gates}
    projection = n.real(16) if n.has(16) else None
    more = n.value(17) if n.has(17) else None

    def clipped(n: TFLiteNode, x: SSAValue, option: str) -> SSAValue:
        limit = n.option(option)
        return clamp(n, x, -limit, limit) if limit > 0 else x

    def step(n: TFLiteNode, row: SSAValue, state: Values) -> Values:
        h, cell = state
        size = shape_of(cell)[1]
        sums = n.apply(e.AddOp, row, n.dot(h, recurrent, ([1], [1])))

        def own(gate: int, cell: SSAValue) -> SSAValue:
            first = (gate - gates[0]) * size
            x = n.part(sums, 1, first, first + size)
            if gate in peepholes:
                seen = n.apply(e.MultiplyOp, cell, peepholes[gate])
                x = n.apply(e.AddOp, x, seen)
            if is_normalized:
                x, _, _ = normalized(n, x, [1], _LEAST_VARIANCE)
                x = n.apply(e.MultiplyOp, x, scales[gate])
                x = n.apply(e.AddOp, x, biases[gate])
            return _activated(n, x) if gate == _CELL else n.emit(e.LogisticOp, x)

        forget = own(_FORGET, cell)
        if _INPUT in gates:
            entry = own(_INPUT, cell)
        else:
            entry = n.apply(e.SubtractOp, 1, forget)
        fresh = n.apply(e.MultiplyOp, entry, own(_CELL, cell))
        cell = n.apply(e.AddOp, n.apply(e.MultiplyOp, forget, cell), fresh)
        cell = clipped(n, cell, "CellClip")
        h = n.apply(e.MultiplyOp, own(_OUTPUT, cell), _activated(n, cell))
        if projection is not None:
            h = n.dot(h, projection, ([1], [1]))
            h = h if more is None else n.apply(e.AddOp, h, more)
            h = clipped(n, h, "ProjClip")
        return [h, cell]

    before = [] if is_normalized else [12 + gate for gate in gates]
    return _by_steps(n, [1 + gate for gate in gates], before, [18, 19], step)


def _in_both_directions(
    layer: Conversion, forward: Sequence[int], backward: Sequence[int]
) -> Conversion:
    """Two layers, with these inputs of the operator as the inputs after the first. The
    inputs after those of both layers are the auxiliary input and its weights."""
    auxiliary = max(*forward, *backward) + 1

    def convert(n: TFLiteNode) -> Sequence[Value]:
        if any(n.has(index) for index in range(auxiliary, len(n.inputs))):
            raise Unsupported("with an auxiliary input")
        time = ints([0 if n.option("TimeMajor") else 1])
        outputs: list[SSAValue] = []
        states: list[Value] = []
        for indices in (forward, backward):
            x = n.value(0)
            if indices is backward:
                x = n.emit(shaping.ReverseOp, x, dimensions=time)
            inputs: list[Value | None] = [x, *(n.inputs[index] for index in indices)]
            tensors = [n.tensors[0], *(n.tensors[index] for index in indices)]
            output, *state = layer(replace(n, inputs=inputs, tensors=tensors))
            y = n.materialize(output)
            if indices is backward:
                y = n.emit(shaping.ReverseOp, y, dimensions=time)
            outputs.append(y)
            states += state
        if n.option("MergeOutputs"):
            along = IntegerAttr(2, i64)
            outputs = [n.emit(shaping.ConcatenateOp, *outputs, dimension=along)]
        return [*outputs, *states]

    return convert


def _ratio(n: TFLiteNode, first: int, second: int, whole: Tensor) -> np.float64:
    """The factor from the scale of a product to another scale."""
    scales = (np.float64(n.tensor(index).scale) for index in (first, second))
    return prod(scales) / np.float64(whole.scale)


def _svdf(n: TFLiteNode) -> Sequence[Value]:
    """One step of a layer of filters that keep their last outputs as a memory.

    A result is the sum of the memories of `Rank` filters, times weights.
    """
    filters, memory = n.tensor(2).shape
    rank = n.option("Rank")
    batch, _ = shape_of(n.value(0))
    state = n.reshape(n.value(4), [batch, filters, memory])
    if n.is_quantized:
        expect_8_bits(n)
        sums = n.dot(n.centered(0), n.convert(n.value(1), i32), ([1], [1]))
        entry = scaled(n, sums, _ratio(n, 0, 1, n.tensor(4)))
        entry = n.convert(clamp(n, entry, -(1 << 15), (1 << 15) - 1), i16)
    else:
        entry = n.dot(n.value(0), n.real(1), ([1], [1]))
    last = [n.part(state, 2, 1, memory), n.reshape(entry, [batch, filters, 1])]
    state = n.emit(shaping.ConcatenateOp, *last, dimension=IntegerAttr(2, i64))
    wide, weights = state, n.real(2)
    if n.is_quantized:
        wide, weights = n.convert(state, i32), n.convert(n.value(2), i32)
    weighted = n.apply(e.MultiplyOp, wide, weights)
    weighted = n.reshape(weighted, [batch, filters // rank, rank, memory])
    y = n.reduce("add", weighted, [2, 3])
    if n.has(3):
        y = n.apply(e.AddOp, y, n.value(3))
    if n.is_quantized:
        y = scaled(n, y, _ratio(n, 2, 4, n.results[0]))
        y = limited(n, y, *range_of(n, None, None))
    else:
        y = _activated(n, y)
    return [y, n.reshape(state, [batch, filters * memory])]


CONVERSIONS: Mapping[str, Conversion] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _in_both_directions(
        _lstm, [*range(1, 18), 35, 36], [*range(18, 35), 37, 38]
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": _in_both_directions(_rnn, range(1, 5), range(5, 9)),
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn,
}
