"""ONNX's LSTM, GRU and RNN → a `tgraph.while` for each direction.

    W x + bias    for all steps, one product before the loop
    loop:         gates of step t = that row + R h; the new state; h into row t of Y

The state and Y, which the loop carries, are therefore updated in place. If sequences
have lengths, a step past the end of a sequence keeps its state, and its row of Y is
zero. The last state of an empty sequence is zero, whatever its initial state, as in
onnxruntime. If there are no steps, all last states are zero.

With 8-bit weights (DynamicQuantizeLSTM), both products are computed in integers: x has
one scale for all steps, and h has one for each step. The ranges for these scales cover
the numbers that onnxruntime passes to the products: the steps of x up to the end of the
longest sequence, and the previous step's row of Y for h.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, TensorType, i32, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import ints, with_shape
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ..builder import shape_of, type_of
from ..formulas import clamp, compare
from ..indices import reverse_sequence
from ..operators import Known, Value
from ..unsupported import Unsupported
from . import elementwise
from .control import Loop
from .node import Conversion, OnnxNode
from .quantized_products import dynamic_product, signed

Values = Sequence[SSAValue]

_COUNTER = TensorType(i32, [])


@dataclass(frozen=True)
class _Cell:
    """The data of one direction that all steps share.

    `products` are the products with R, one per group of gates. `bias` is the recurrent
    bias of the new gate of a GRU with `linear_before_reset`.
    """

    products: Sequence["Product"]
    functions: Sequence["_Function"]
    bias: SSAValue | None = None
    peepholes: Values = ()
    lengths: SSAValue | None = None
    """The lengths of sequences, for quantized products only: they read h as zero in the
    steps after `length`."""

    def activated(self, n: OnnxNode, which: int, gate: SSAValue) -> SSAValue:
        """Applies activation `which` to a gate, clamped to `clip`.

        `clip` does not apply to the state of an LSTM, as in onnxruntime.
        """
        limit = n.number("clip", 0.0)
        if limit:
            gate = clamp(n, gate, -limit, limit)
        return self.functions[which](n, gate)

    def peeped(
        self, n: OnnxNode, which: int, gate: SSAValue, state: SSAValue
    ) -> SSAValue:
        """Adds the product of peephole and LSTM state to a gate, if there is one."""
        if not self.peepholes:
            return gate
        seen = n.apply(e.MultiplyOp, self.peepholes[which], state)
        return n.apply(e.AddOp, gate, seen)


Product = Callable[[OnnxNode, SSAValue], SSAValue]
"""Multiplies rows (x or h) by a matrix of weights, for a sum in the gates."""

Step = Callable[[OnnxNode, _Cell, SSAValue, Values], Values]
"""A step: the cell, its row of products, the state (h first) → the new state."""


@dataclass(frozen=True)
class _Kind:
    """A kind of cell: its step, the number of gates of each of its products with h, the
    number of its states, and its default activations."""

    step: Step
    gates: Sequence[int]
    states: int
    functions: Sequence[str]


def _gates(n: OnnxNode, x: SSAValue, h: SSAValue, product: Product) -> SSAValue:
    return n.apply(e.AddOp, x, product(n, h))


def _split(n: OnnxNode, x: SSAValue, axis: int, count: int) -> Values:
    size = shape_of(x)[axis] // count
    return [n.part(x, axis, k * size, (k + 1) * size) for k in range(count)]


def _rnn_step(n: OnnxNode, cell: _Cell, x: SSAValue, state: Values) -> Values:
    return [cell.activated(n, 0, _gates(n, x, state[0], cell.products[0]))]


def _lstm_step(n: OnnxNode, cell: _Cell, x: SSAValue, state: Values) -> Values:
    h, c = state
    enter, leave, forget, new = _split(n, _gates(n, x, h, cell.products[0]), 1, 4)
    enter, forget = cell.peeped(n, 0, enter, c), cell.peeped(n, 2, forget, c)
    enter = cell.activated(n, 0, enter)
    if n.integer("input_forget", 0):
        forget = n.apply(e.SubtractOp, 1, enter)
    else:
        forget = cell.activated(n, 0, forget)
    kept = n.apply(e.MultiplyOp, forget, c)
    c = n.apply(e.AddOp, kept, n.apply(e.MultiplyOp, enter, cell.activated(n, 1, new)))
    leave = cell.activated(n, 0, cell.peeped(n, 1, leave, c))
    return [n.apply(e.MultiplyOp, leave, cell.functions[2](n, c)), c]


def _gru_step(n: OnnxNode, cell: _Cell, x: SSAValue, state: Values) -> Values:
    (h,) = state
    size = shape_of(h)[1]
    of_gates, of_new = cell.products
    gates = _gates(n, n.part(x, 1, 0, 2 * size), h, of_gates)
    update, reset = (cell.activated(n, 0, g) for g in _split(n, gates, 1, 2))
    x_new = n.part(x, 1, 2 * size, 3 * size)
    if cell.bias is not None:  # linear_before_reset
        inner = n.apply(e.AddOp, of_new(n, h), cell.bias)
        new = n.apply(e.AddOp, x_new, n.apply(e.MultiplyOp, reset, inner))
    else:
        new = _gates(n, x_new, n.apply(e.MultiplyOp, reset, h), of_new)
    new = cell.activated(n, 1, new)
    moved = n.apply(e.MultiplyOp, update, n.apply(e.SubtractOp, h, new))
    return [n.apply(e.AddOp, new, moved)]


_Function = Callable[[OnnxNode, SSAValue], SSAValue]


def _affine(n: OnnxNode, x: SSAValue) -> SSAValue:
    scaled = n.apply(e.MultiplyOp, x, n.number("alpha", 1.0))
    return n.apply(e.AddOp, scaled, n.number("beta", 0.0))


def _scaled_tanh(n: OnnxNode, x: SSAValue) -> SSAValue:
    inner = n.apply(e.MultiplyOp, x, n.number("beta", 1.0))
    return n.apply(e.MultiplyOp, n.emit(e.TanhOp, inner), n.number("alpha", 1.0))


def _thresholded_relu(n: OnnxNode, x: SSAValue) -> SSAValue:
    over = compare(n, x, "GT", n.number("alpha", 1.0))
    return n.apply(e.SelectOp, over, x, n.splat(0, type_of(x)))


def _operator(name: str) -> _Function:
    """The activation that the ONNX operator of this name computes."""

    def apply(n: OnnxNode, x: SSAValue) -> SSAValue:
        (y,) = elementwise.CONVERSIONS[name](replace(n, inputs=[x]))
        return cast(SSAValue, y)

    return apply


_FUNCTIONS: Mapping[str, tuple[_Function, Sequence[str]]] = {
    "Affine": (_affine, ("alpha", "beta")),
    "Elu": (_operator("Elu"), ("alpha",)),
    "HardSigmoid": (_operator("HardSigmoid"), ("alpha", "beta")),
    "LeakyRelu": (_operator("LeakyRelu"), ("alpha",)),
    "Relu": (_operator("Relu"), ()),
    "ScaledTanh": (_scaled_tanh, ("alpha", "beta")),
    "Sigmoid": (_operator("Sigmoid"), ()),
    "Softplus": (_operator("Softplus"), ()),
    "Softsign": (_operator("Softsign"), ()),
    "Tanh": (_operator("Tanh"), ()),
    "ThresholdedRelu": (_thresholded_relu, ("alpha",)),
}
"""The activations, each with the attributes that it takes: the next number of
`activation_alpha` or of `activation_beta`."""


def _functions(
    n: OnnxNode, usual: Sequence[str], directions: int
) -> Sequence[Sequence[_Function]]:
    """The activations of the gates, for each direction.

    An activation takes the next numbers of `activation_alpha` and `activation_beta`, or
    its operator's defaults.
    """
    given = [name.decode() for name in n.attributes.get("activations", [])]
    names = given or [*usual] * directions
    if len(names) != directions * len(usual):
        expected = f"{len(usual)} for each direction"
        raise Unsupported(f"with activations {names}, expected {expected}")
    numbers = {
        kind: iter(n.attributes.get(f"activation_{kind}", []))
        for kind in ("alpha", "beta")
    }
    functions: list[_Function] = []
    for name in names:
        n.expect("activations", name, *_FUNCTIONS)
        function, takes = _FUNCTIONS[name]
        own = {k: v for k in takes if (v := next(numbers[k], None)) is not None}
        functions.append(_with(function, own))
    size = len(usual)
    return [functions[k * size : (k + 1) * size] for k in range(directions)]


def _with(function: _Function, attributes: Mapping[str, float]) -> _Function:
    return lambda n, x: function(replace(n, attributes=attributes), x)


def _scan(
    n: OnnxNode,
    step: Step,
    cell: _Cell,
    x: SSAValue,
    state: Values,
    lengths: SSAValue | None,
) -> tuple[SSAValue, Values]:
    """Returns h after each step, and the last state. `x` has a row for each step."""
    steps, batch, width = shape_of(x)
    size = shape_of(state[0])[1]
    rows = n.splat(0, with_shape(type_of(x), [steps, batch, size]))
    if steps == 0:
        return rows, [n.splat(0, type_of(s)) for s in state]
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

    def within(direction: str, lengths: SSAValue) -> SSAValue:
        """Compares the step's number with `lengths`, as batch x hidden size."""
        counts = body.broadcast_in_dim(count, [batch], [])
        inside = compare(body, counts, direction, lengths)
        return body.broadcast_in_dim(inside, [batch, size], [0])

    seen = state
    if cell.lengths is not None:
        h = body.apply(e.SelectOp, within("LE", cell.lengths), state[0], 0)
        seen = [h, *state[1:]]
    following = step(body, cell, body.reshape(row, [batch, width]), seen)
    h = following[0]
    if lengths is not None:
        inside = within("LT", lengths)
        h = body.apply(e.SelectOp, inside, h, body.splat(0, type_of(h)))
        following = [
            body.apply(e.SelectOp, inside, new, old)
            for new, old in zip(following, state, strict=True)
        ]
    new_row = body.reshape(h, [1, batch, size])
    y = body.emit(DynamicUpdateSliceOp, y, new_row, count, zero, zero)
    _, y, *state = loop.close(
        [body.apply(e.AddOp, count, 1), y, *following],
        lambda n, values: compare(n, values[0], "LT", steps),
    )
    return y, state


Weights = Callable[[OnnxNode, int, int, Sequence[int]], Sequence[Product]]
"""Makes the products with an input of weights, from the index of the input, the number
of the direction, and the number of rows of each product."""


def _floats(
    n: OnnxNode, index: int, number: int, rows: Sequence[int]
) -> Sequence[Product]:
    weight = _own(n, n.value(index), number)
    parts = zip(accumulate(rows, initial=0), accumulate(rows), strict=False)
    return [_multiplied(n.part(weight, 0, low, high)) for low, high in parts]


def _multiplied(weight: SSAValue) -> Product:
    return lambda n, x: n.dot(x, weight, ([len(shape_of(x)) - 1], [1]))


def _integers(
    n: OnnxNode, index: int, number: int, rows: Sequence[int]
) -> Sequence[Product]:
    """8-bit weights, which are transposed. Inputs 8 to 11 are their scales and zero
    points."""
    assert len(rows) == 1
    scale, zero = 6 + 2 * index, 7 + 2 * index
    n = signed(n, index, zero)
    weight, scales = (_own(n, n.value(at), number) for at in (index, scale))
    zeros = n.given(zero)
    if isinstance(zeros, Known):
        own: Value = Known(zeros.array[number])
    else:
        own = _own(n, zeros, number)
    return [dynamic_product(n, weight, scales, own)]


def _own(n: OnnxNode, value: SSAValue, number: int) -> SSAValue:
    """The slice of an input for direction `number`."""
    return n.reshape(n.part(value, 0, number, number + 1), shape_of(value)[1:])


def _recurrent(kind: _Kind, *, is_quantized: bool = False) -> Conversion:
    states = kind.states
    weights = _integers if is_quantized else _floats

    def convert(n: OnnxNode) -> Sequence[Value]:
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
        functions = _functions(n, kind.functions, len(directions))
        lengths = _lengths(n, shape_of(x)[0])
        if lengths is not None and is_quantized:
            x = _until_last_end(n, x, lengths)
        for number, direction in enumerate(directions):
            cell, row, state = _cell(
                *(n, kind, weights, number, x, start, functions[number])
            )
            if is_quantized:
                cell = replace(cell, lengths=lengths)
            y, last = _run(n, kind.step, cell, row, state, lengths, direction)
            if lengths is not None:
                last = [_unless_empty(n, value, lengths) for value in last]
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


def _lengths(n: OnnxNode, steps: int) -> SSAValue | None:
    """The lengths of the sequences, or None if all of them have every step."""
    if not n.has(4):
        return None
    given = n.given(4)
    if isinstance(given, Known) and (given.array == steps).all():
        return None
    return n.convert(n.value(4), i32)


def _until_last_end(n: OnnxNode, x: SSAValue, lengths: SSAValue) -> SSAValue:
    """`x` with zeros in steps past the end of the longest sequence (axis 0: steps)."""
    steps = n.iota(TensorType(i32, [shape_of(x)[0], 1, 1]), 0)
    inside = compare(n, steps, "LT", n.reduce("maximum", lengths, [0]))
    return n.apply(e.SelectOp, inside, x, 0)


def _unless_empty(n: OnnxNode, state: SSAValue, lengths: SSAValue) -> SSAValue:
    """The last state, with zeros in the rows of empty sequences."""
    rows = n.reshape(compare(n, lengths, "GT", 0), [shape_of(state)[0], 1])
    return n.apply(e.SelectOp, rows, state, 0)


def _cell(
    n: OnnxNode,
    kind: _Kind,
    weights: Weights,
    number: int,
    x: SSAValue,
    start: Sequence[SSAValue | None],
    functions: Sequence[_Function],
) -> tuple[_Cell, SSAValue, Values]:
    """A direction's cell, its products with x for all steps, and its initial state."""

    def own(value: SSAValue) -> SSAValue:
        return _own(n, value, number)

    gates = sum(kind.gates)
    size = max(shape_of(n.value(2))[1:]) // gates
    (of_x,) = weights(n, 1, number, [gates * size])
    row = of_x(n, x)
    before_reset = bool(n.integer("linear_before_reset", 0))
    bias, inner = _biases(n, own(n.value(3)) if n.has(3) else None, gates, size)
    of_new = None
    if bias is not None and inner is not None:
        if before_reset:
            of_new = n.part(inner, 0, 2 * size, 3 * size)
            inner = n.pad(n.part(inner, 0, 0, 2 * size), [0], [size])
        row = n.apply(e.AddOp, row, n.apply(e.AddOp, bias, inner))
    elif before_reset:
        of_new = n.splat(0, with_shape(type_of(x), [size]))
    nothing = with_shape(type_of(x), [shape_of(x)[1], size])
    state = [n.splat(0, nothing) if s is None else own(s) for s in start]
    peepholes = _split(n, own(n.value(7)), 0, 3) if n.has(7) else ()
    of_h = weights(n, 2, number, [count * size for count in kind.gates])
    return _Cell(of_h, functions, of_new, peepholes), row, state


def _run(
    n: OnnxNode,
    step: Step,
    cell: _Cell,
    row: SSAValue,
    state: Values,
    lengths: SSAValue | None,
    direction: str,
) -> tuple[SSAValue, Values]:
    """Runs a direction. Returns Y, steps x batch x hidden size, and the last state."""
    n.expect("direction", direction, "forward", "reverse")
    if direction == "forward":
        return _scan(n, step, cell, row, state, lengths)
    y, state = _scan(n, step, cell, _reversed(n, row, lengths), state, lengths)
    return _reversed(n, y, lengths), state


def _biases(
    n: OnnxNode, biases: SSAValue | None, gates: int, size: int
) -> tuple[SSAValue | None, SSAValue | None]:
    """The biases of W x and of R h; None without biases."""
    if biases is None:
        return None, None
    half = gates * size
    return n.part(biases, 0, 0, half), n.part(biases, 0, half, 2 * half)


def _reversed(n: OnnxNode, x: SSAValue, lengths: SSAValue | None) -> SSAValue:
    if lengths is not None:
        return reverse_sequence(n, x, lengths, time=0, batch=1)
    return n.emit(shaping.ReverseOp, x, dimensions=ints([0]))


def _joined(n: OnnxNode, parts: Values, axis: int) -> SSAValue:
    if len(parts) == 1:
        return parts[0]
    dimension = IntegerAttr(axis, i64)
    return n.emit(shaping.ConcatenateOp, *parts, dimension=dimension)


_LSTM = _Kind(_lstm_step, [4], 2, ["Sigmoid", "Tanh", "Tanh"])

CONVERSIONS: Mapping[str, Conversion] = {
    "GRU": _recurrent(_Kind(_gru_step, [2, 1], 1, ["Sigmoid", "Tanh"])),
    "LSTM": _recurrent(_LSTM),
    "RNN": _recurrent(_Kind(_rnn_step, [1], 1, ["Tanh"])),
    "com.microsoft.DynamicQuantizeLSTM": _recurrent(_LSTM, is_quantized=True),
}
