"""ONNX's LSTM, GRU and RNN → a `tgraph.while` for each direction.

    W x + bias    for all steps, one product before the loop
    loop:         gates of step t = that row + R h; the new state; h into row t of Y

so that what the loop carries (state and Y) is updated in place.
"""

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, i32, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import ints, with_shape
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ..builder import shape_of, type_of
from ..formulas import compare
from ..operators import Value
from ..unsupported import Unsupported
from .control import Loop
from .node import Conversion, OnnxNode

Values = Sequence[SSAValue]

Step = Callable[[OnnxNode, SSAValue, Values, Values], Values]
"""A step: its row of products, the state (h first), R and so on → the new state."""

_COUNTER = TensorType(i32, [])


def _gates(n: OnnxNode, x: SSAValue, h: SSAValue, weight: SSAValue) -> SSAValue:
    return n.apply(e.AddOp, x, n.dot(h, weight, ([1], [1])))


def _split(n: OnnxNode, x: SSAValue, axis: int, count: int) -> Values:
    size = shape_of(x)[axis] // count
    return [n.part(x, axis, k * size, (k + 1) * size) for k in range(count)]


def _rnn_step(n: OnnxNode, x: SSAValue, state: Values, weights: Values) -> Values:
    return [n.emit(e.TanhOp, _gates(n, x, state[0], weights[0]))]


def _lstm_step(n: OnnxNode, x: SSAValue, state: Values, weights: Values) -> Values:
    h, c = state
    *gates, new = _split(n, _gates(n, x, h, weights[0]), 1, 4)
    enter, leave, forget = (n.emit(e.LogisticOp, gate) for gate in gates)
    kept = n.apply(e.MultiplyOp, forget, c)
    entered = n.apply(e.MultiplyOp, enter, n.emit(e.TanhOp, new))
    c = n.apply(e.AddOp, kept, entered)
    return [n.apply(e.MultiplyOp, leave, n.emit(e.TanhOp, c)), c]


def _gru_step(n: OnnxNode, x: SSAValue, state: Values, weights: Values) -> Values:
    (h,) = state
    weight, *inner_bias = weights
    size = shape_of(h)[1]
    w_gates = n.part(weight, 0, 0, 2 * size)
    w_new = n.part(weight, 0, 2 * size, 3 * size)
    gates = _gates(n, n.part(x, 1, 0, 2 * size), h, w_gates)
    update, reset = (n.emit(e.LogisticOp, g) for g in _split(n, gates, 1, 2))
    x_new = n.part(x, 1, 2 * size, 3 * size)
    if inner_bias:  # linear_before_reset
        inner = n.apply(e.AddOp, n.dot(h, w_new, ([1], [1])), inner_bias[0])
        new = n.apply(e.AddOp, x_new, n.apply(e.MultiplyOp, reset, inner))
    else:
        new = _gates(n, x_new, n.apply(e.MultiplyOp, reset, h), w_new)
    new = n.emit(e.TanhOp, new)
    moved = n.apply(e.MultiplyOp, update, n.apply(e.SubtractOp, h, new))
    return [n.apply(e.AddOp, new, moved)]


def _scan(
    n: OnnxNode, step: Step, x: SSAValue, state: Values, weights: Values
) -> tuple[SSAValue, Values]:
    """h after each step, and the last state; `x` has a row for each step."""
    steps, batch, width = shape_of(x)
    size = shape_of(state[0])[1]
    rows = n.splat(0, with_shape(type_of(x), [steps, batch, size]))
    loop = Loop(n)
    count, y, *state = map(loop.carry, [n.splat(0, _COUNTER), rows, *state])
    body, one = loop.body, [1, batch, width]
    zero = body.splat(0, _COUNTER)
    row = body.emit(
        DynamicSliceOp,
        *(x, count, zero, zero),
        type=with_shape(type_of(x), one),
        slice_sizes=ints(one),
    )
    state = step(body, body.reshape(row, [batch, width]), state, weights)
    new_row = body.reshape(state[0], [1, batch, size])
    y = body.emit(DynamicUpdateSliceOp, y, new_row, count, zero, zero)
    _, y, *state = loop.close(
        [body.apply(e.AddOp, count, 1), y, *state],
        lambda n, values: compare(n, values[0], "LT", steps),
    )
    return y, state


def _recurrent(step: Step, gates: int, states: int) -> Conversion:
    def convert(n: OnnxNode) -> Sequence[Value]:
        _check(n, states)
        layout = n.integer("layout", 0)
        x = n.value(0)
        x = n.transpose(x, [1, 0, 2]) if layout else x
        start = [n.value(5 + k) if n.has(5 + k) else None for k in range(states)]
        if layout:
            start = [s and n.transpose(s, [1, 0, 2]) for s in start]
        first = n.text("direction", "forward")
        directions = {"bidirectional": ["forward", "reverse"]}.get(first, [first])
        ys: list[SSAValue] = []
        ends: list[list[SSAValue]] = [[] for _ in range(states)]
        for number, direction in enumerate(directions):
            y, last = _direction(n, step, gates, number, x, start, direction)
            steps, batch, size = shape_of(y)
            shape = [batch, steps, 1, size] if layout else [steps, 1, batch, size]
            y = n.transpose(y, [1, 0, 2]) if layout else y
            ys.append(n.reshape(y, shape))
            for end, value in zip(ends, last, strict=True):
                one = [batch, 1, size] if layout else [1, batch, size]
                end.append(n.reshape(value, one))
        results = [_joined(n, ys, 2 if layout else 1)]
        results += [_joined(n, end, layout) for end in ends]
        return results[: n.outputs]

    return convert


def _check(n: OnnxNode, states: int) -> None:
    n.expect("clip", n.number("clip", 0.0), 0.0)
    n.expect("input_forget", n.integer("input_forget", 0), 0)
    if n.has(7):
        raise Unsupported("with peepholes")
    usual = {1: ["Sigmoid", "Tanh"], 2: ["Sigmoid", "Tanh", "Tanh"]}[states]
    if n.op_type == "RNN":
        usual = ["Tanh"]
    activations = [a.decode() for a in n.attributes.get("activations", [])]
    count = len(activations) // len(usual)
    if activations != usual * count:
        raise Unsupported(f"with activations {activations}, expected {usual}")
    steps = shape_of(n.value(0))[1 if n.integer("layout", 0) else 0]
    if n.has(4) and set(n.known_integers(4)) != {steps}:
        raise Unsupported("with sequences of different lengths")


def _direction(
    n: OnnxNode,
    step: Step,
    gates: int,
    number: int,
    x: SSAValue,
    start: Sequence[SSAValue | None],
    direction: str,
) -> tuple[SSAValue, Values]:
    """Y as steps x batch x hidden size, and the last state."""

    def own(value: SSAValue) -> SSAValue:
        part = n.part(value, 0, number, number + 1)
        return n.reshape(part, shape_of(value)[1:])

    weights = [own(n.value(2))]
    size = shape_of(weights[0])[1]
    row = n.dot(x, own(n.value(1)), ([2], [1]))
    before_reset = bool(n.integer("linear_before_reset", 0))
    bias, inner = _biases(n, own(n.value(3)) if n.has(3) else None, gates, size)
    if bias is not None and inner is not None:
        if before_reset:
            weights.append(n.part(inner, 0, 2 * size, 3 * size))
            inner = n.pad(n.part(inner, 0, 0, 2 * size), [0], [size])
        row = n.apply(e.AddOp, row, n.apply(e.AddOp, bias, inner))
    elif before_reset:
        weights.append(n.splat(0, with_shape(type_of(x), [size])))
    nothing = with_shape(type_of(x), [shape_of(x)[1], size])
    state = [n.splat(0, nothing) if s is None else own(s) for s in start]
    if direction != "reverse":
        return _scan(n, step, row, state, weights)
    y, state = _scan(n, step, _turned(n, row), state, weights)
    return _turned(n, y), state


def _biases(
    n: OnnxNode, biases: SSAValue | None, gates: int, size: int
) -> tuple[SSAValue | None, SSAValue | None]:
    """What is added to W x, and to R h."""
    if biases is None:
        return None, None
    half = gates * size
    return n.part(biases, 0, 0, half), n.part(biases, 0, half, 2 * half)


def _turned(n: OnnxNode, x: SSAValue) -> SSAValue:
    return n.emit(shaping.ReverseOp, x, dimensions=ints([0]))


def _joined(n: OnnxNode, parts: Values, axis: int) -> SSAValue:
    if len(parts) == 1:
        return parts[0]
    dimension = IntegerAttr(axis, i64)
    return n.emit(shaping.ConcatenateOp, *parts, dimension=dimension)


CONVERSIONS: Mapping[str, Conversion] = {
    "GRU": _recurrent(_gru_step, 3, 1),
    "LSTM": _recurrent(_lstm_step, 4, 2),
    "RNN": _recurrent(_rnn_step, 1, 1),
}
