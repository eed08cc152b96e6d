"""ONNX's elementwise operations → tgraph."""

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from tensorplan.dialects.tgraph import elementwise as e
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.frontends.onnx.node import (
    Conversion,
    Known,
    Node,
    Value,
    element_type,
    shape_of,
    type_of,
)


def _repeated(op_type: type[TensorOp]) -> Conversion:
    """An operation of two inputs, repeated if there are more."""

    def convert(n: Node) -> Sequence[Value]:
        result, *others = (n.value(index) for index in range(len(n.inputs)))
        for other in others:
            result = n.apply(op_type, result, other)
        return [result]

    return convert


def _unary(formula: Callable[[Node, SSAValue], SSAValue]) -> Conversion:
    return lambda n: [formula(n, n.value(0))]


def compare(n: Node, a: SSAValue, direction: str, b: SSAValue | float) -> SSAValue:
    return n.apply(e.CompareOp, a, b, direction=StringAttr(direction))


def _compared(direction: str) -> Conversion:
    return lambda n: [compare(n, n.value(0), direction, n.value(1))]


def _clamp(n: Node, x: SSAValue, low: float, high: float) -> SSAValue:
    return n.apply(e.ClampOp, n.splat(low, type_of(x)), x, n.splat(high, type_of(x)))


def _positive_or(n: Node, x: SSAValue, other: SSAValue) -> SSAValue:
    return n.apply(e.SelectOp, compare(n, x, "GT", 0), x, other)


def _leaky_relu(n: Node, x: SSAValue) -> SSAValue:
    return _positive_or(n, x, n.apply(e.MultiplyOp, x, n.number("alpha", 0.01)))


def _prelu(n: Node) -> Sequence[Value]:
    x = n.value(0)
    return [_positive_or(n, x, n.apply(e.MultiplyOp, x, n.value(1)))]


def _elu(n: Node, x: SSAValue) -> SSAValue:
    grown = n.emit(e.ExponentialMinusOneOp, x)
    return _positive_or(n, x, n.apply(e.MultiplyOp, grown, n.number("alpha", 1.0)))


def _selu(n: Node, x: SSAValue) -> SSAValue:
    alpha = n.number("alpha", 1.6732632423543772)
    grown = n.apply(e.MultiplyOp, n.emit(e.ExponentialMinusOneOp, x), alpha)
    gamma = n.number("gamma", 1.0507009873554805)
    return n.apply(e.MultiplyOp, _positive_or(n, x, grown), gamma)


def _softplus(n: Node, x: SSAValue) -> SSAValue:
    """log(1 + exp(x)), without overflow."""
    small = n.emit(e.ExponentialOp, n.emit(e.NegateOp, n.emit(e.AbsOp, x)))
    return n.apply(e.AddOp, n.apply(e.MaximumOp, x, 0), n.emit(e.LogPlusOneOp, small))


def _softsign(n: Node, x: SSAValue) -> SSAValue:
    return n.apply(e.DivideOp, x, n.apply(e.AddOp, n.emit(e.AbsOp, x), 1))


def _mish(n: Node, x: SSAValue) -> SSAValue:
    return n.apply(e.MultiplyOp, x, n.emit(e.TanhOp, _softplus(n, x)))


def _hard_sigmoid(n: Node, x: SSAValue) -> SSAValue:
    scaled = n.apply(e.MultiplyOp, x, n.number("alpha", 0.2))
    return _clamp(n, n.apply(e.AddOp, scaled, n.number("beta", 0.5)), 0, 1)


def _hard_swish(n: Node, x: SSAValue) -> SSAValue:
    gate = n.apply(e.AddOp, n.apply(e.MultiplyOp, x, 1 / 6), 0.5)
    return n.apply(e.MultiplyOp, x, _clamp(n, gate, 0, 1))


def _gelu(n: Node, x: SSAValue) -> SSAValue:
    approximate = n.text("approximate", "none")
    n.expect("approximate", approximate, "none", "tanh")
    if approximate == "none":
        curve = n.emit(e.ErfOp, n.apply(e.MultiplyOp, x, sqrt(0.5)))
    else:
        cube = n.apply(e.MultiplyOp, n.apply(e.MultiplyOp, x, x), x)
        bent = n.apply(e.AddOp, x, n.apply(e.MultiplyOp, cube, 0.044715))
        curve = n.emit(e.TanhOp, n.apply(e.MultiplyOp, bent, sqrt(2 / pi)))
    half = n.apply(e.MultiplyOp, x, 0.5)
    return n.apply(e.MultiplyOp, half, n.apply(e.AddOp, curve, 1))


def _reciprocal(n: Node, x: SSAValue) -> SSAValue:
    return n.apply(e.DivideOp, n.splat(1, type_of(x)), x)


def _power(n: Node) -> Sequence[Value]:
    """The exponents that models have are products; a base keeps its element type."""
    x, exponent = n.value(0), n.scalar(1)
    if exponent == 0.5:
        return [n.emit(e.SqrtOp, x)]
    if exponent in (2, 3):
        square = n.apply(e.MultiplyOp, x, x)
        return [square if exponent == 2 else n.apply(e.MultiplyOp, square, x)]
    powers = n.convert(n.value(1), type_of(x).element_type)
    return [n.apply(e.PowerOp, x, powers)]


def _modulo(n: Node) -> Sequence[Value]:
    """Python's remainder, which has the divisor's sign, unless `fmod` is set."""
    a, b = n.value(0), n.value(1)
    rest = n.apply(e.RemainderOp, a, b)
    if n.integer("fmod", 0):
        return [rest]
    signs_differ = n.apply(e.XorOp, compare(n, rest, "LT", 0), compare(n, b, "LT", 0))
    moved = n.apply(e.AndOp, signs_differ, compare(n, rest, "NE", 0))
    return [n.apply(e.SelectOp, moved, n.apply(e.AddOp, rest, b), rest)]


def _mean(n: Node) -> Sequence[Value]:
    (total,) = _repeated(e.AddOp)(n)
    assert isinstance(total, SSAValue)
    return [n.apply(e.DivideOp, total, len(n.inputs))]


def _clip(n: Node) -> Sequence[Value]:
    x = n.value(0)
    if n.has(1):
        x = n.apply(e.MaximumOp, x, n.value(1))
    if n.has(2):
        x = n.apply(e.MinimumOp, x, n.value(2))
    return [x]


def _where(n: Node) -> Sequence[Value]:
    return [n.apply(e.SelectOp, n.value(0), n.value(1), n.value(2))]


def _cast(n: Node) -> Sequence[Value]:
    dtype = helper.tensor_dtype_to_np_dtype(n.integer("to", 0))
    return [n.convert(n.value(0), element_type(dtype))]


def _cast_like(n: Node) -> Sequence[Value]:
    return [n.convert(n.value(0), type_of(n.value(1)).element_type)]


def _is_nan(n: Node, x: SSAValue) -> SSAValue:
    return compare(n, x, "NE", x)


def _identity(n: Node) -> Sequence[Value]:
    (value,) = n.inputs
    assert value is not None
    return [value]


def _dropout(n: Node) -> Sequence[Value]:
    if n.has(2):
        n.expect("training_mode", n.known(2).item(), False)
    x = n.value(0)
    return [x, Known(np.ones(shape_of(x), bool))] if n.outputs > 1 else [x]


_UNARY: Mapping[str, type[TensorOp]] = {
    "Abs": e.AbsOp,
    "Ceil": e.CeilOp,
    "Cos": e.CosineOp,
    "Erf": e.ErfOp,
    "Exp": e.ExponentialOp,
    "Floor": e.FloorOp,
    "Log": e.LogOp,
    "Neg": e.NegateOp,
    "Not": e.NotOp,
    "Round": e.RoundNearestEvenOp,
    "Sigmoid": e.LogisticOp,
    "Sign": e.SignOp,
    "Sin": e.SineOp,
    "Sqrt": e.SqrtOp,
    "Tan": e.TanOp,
    "Tanh": e.TanhOp,
}

_REPEATED: Mapping[str, type[TensorOp]] = {
    "Add": e.AddOp,
    "And": e.AndOp,
    "Div": e.DivideOp,
    "Max": e.MaximumOp,
    "Min": e.MinimumOp,
    "Mul": e.MultiplyOp,
    "Or": e.OrOp,
    "Sub": e.SubtractOp,
    "Sum": e.AddOp,
    "Xor": e.XorOp,
}

_DIRECTIONS = {
    "Equal": "EQ",
    "Greater": "GT",
    "GreaterOrEqual": "GE",
    "Less": "LT",
    "LessOrEqual": "LE",
}


def _emitted(op_type: type[TensorOp]) -> Conversion:
    return lambda n: [n.emit(op_type, n.value(0))]


CONVERSIONS: Mapping[str, Conversion] = {
    **{name: _emitted(op_type) for name, op_type in _UNARY.items()},
    **{name: _repeated(op_type) for name, op_type in _REPEATED.items()},
    **{name: _compared(direction) for name, direction in _DIRECTIONS.items()},
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "Dropout": _dropout,
    "Elu": _unary(_elu),
    "Gelu": _unary(_gelu),
    "HardSigmoid": _unary(_hard_sigmoid),
    "HardSwish": _unary(_hard_swish),
    "Identity": _identity,
    "IsNaN": _unary(_is_nan),
    "LeakyRelu": _unary(_leaky_relu),
    "Mean": _mean,
    "Mish": _unary(_mish),
    "Mod": _modulo,
    "PRelu": _prelu,
    "Pow": _power,
    "Reciprocal": _unary(_reciprocal),
    "Relu": _unary(lambda n, x: n.apply(e.MaximumOp, x, 0)),
    "Selu": _unary(_selu),
    "Softplus": _unary(_softplus),
    "Softsign": _unary(_softsign),
    "Where": _where,
}
