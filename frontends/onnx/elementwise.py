"""ONNX's elementwise operations → tgraph."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from ml_dtypes import finfo
from onnx import helper
from xdsl.dialects.builtin import Float8E8M0FNUType, i1, i32
from xdsl.ir import Attribute, SSAValue

from ...dialects.dtypes import numpy_dtype
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import TensorOp, with_element
from ...dialects.tgraph.elements import is_integer, is_stored
from ..builder import element_type, shape_of, type_of
from ..formulas import clamp, compare, gelu, modulo, positive_or, reciprocal, softplus
from ..operators import Known, Value
from ..unsupported import Unsupported
from ..written import written_out
from .node import Conversion, OnnxNode


def _repeated(op_type: type[TensorOp]) -> Conversion:
    """Converts to a binary operation, which is repeated for more than two inputs."""

    def convert(n: OnnxNode) -> Sequence[Value]:
        result, *others = (n.value(index) for index in range(len(n.inputs)))
        for other in others:
            result = n.apply(op_type, result, other)
        return [result]

    return convert


def _unary(formula: Callable[[OnnxNode, SSAValue], SSAValue]) -> Conversion:
    return lambda n: [formula(n, n.value(0))]


def _compared(direction: str) -> Conversion:
    return lambda n: [compare(n, n.value(0), direction, n.value(1))]


def _leaky_relu(n: OnnxNode, x: SSAValue) -> SSAValue:
    return positive_or(n, x, n.apply(e.MultiplyOp, x, n.number("alpha", 0.01)))


def _prelu(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    return [positive_or(n, x, n.apply(e.MultiplyOp, x, n.value(1)))]


def _elu(n: OnnxNode, x: SSAValue) -> SSAValue:
    grown = n.emit(e.ExponentialMinusOneOp, x)
    return positive_or(n, x, n.apply(e.MultiplyOp, grown, n.number("alpha", 1.0)))


def _selu(n: OnnxNode, x: SSAValue) -> SSAValue:
    alpha = n.number("alpha", 1.6732632423543772)
    grown = n.apply(e.MultiplyOp, n.emit(e.ExponentialMinusOneOp, x), alpha)
    gamma = n.number("gamma", 1.0507009873554805)
    return n.apply(e.MultiplyOp, positive_or(n, x, grown), gamma)


def _softsign(n: OnnxNode, x: SSAValue) -> SSAValue:
    return n.apply(e.DivideOp, x, n.apply(e.AddOp, n.emit(e.AbsOp, x), 1))


def _mish(n: OnnxNode, x: SSAValue) -> SSAValue:
    return n.apply(e.MultiplyOp, x, n.emit(e.TanhOp, softplus(n, x)))


def _hard_sigmoid(n: OnnxNode, x: SSAValue) -> SSAValue:
    scaled = n.apply(e.MultiplyOp, x, n.number("alpha", 0.2))
    return clamp(n, n.apply(e.AddOp, scaled, n.number("beta", 0.5)), 0, 1)


def _hard_swish(n: OnnxNode, x: SSAValue) -> SSAValue:
    gate = n.apply(e.AddOp, n.apply(e.MultiplyOp, x, 1 / 6), 0.5)
    return n.apply(e.MultiplyOp, x, clamp(n, gate, 0, 1))


def _gelu(n: OnnxNode, x: SSAValue) -> SSAValue:
    approximate = n.text("approximate", "none")
    n.expect("approximate", approximate, "none", "tanh")
    return gelu(n, x, approximate == "tanh")


def _power(n: OnnxNode) -> Sequence[Value]:
    """Exponents 0.5, 2 and 3 become a root and products, as models often have them.

    The result has the element type of the base.
    """
    x, exponent = n.value(0), n.scalar(1)
    if exponent == 0.5:
        return [n.emit(e.SqrtOp, x)]
    if exponent in (2, 3):
        square = n.apply(e.MultiplyOp, x, x)
        return [square if exponent == 2 else n.apply(e.MultiplyOp, square, x)]
    powers = n.convert(n.value(1), type_of(x).element_type)
    return [n.apply(e.PowerOp, x, powers)]


def _modulo(n: OnnxNode) -> Sequence[Value]:
    a, b = n.value(0), n.value(1)
    if n.integer("fmod", 0):
        return [n.apply(e.RemainderOp, a, b)]
    return [modulo(n, a, b)]


def _mean(n: OnnxNode) -> Sequence[Value]:
    (total,) = _repeated(e.AddOp)(n)
    assert isinstance(total, SSAValue)
    return [n.apply(e.DivideOp, total, len(n.inputs))]


def _clip(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    if n.has(1):
        x = n.apply(e.MaximumOp, x, n.value(1))
    if n.has(2):
        x = n.apply(e.MinimumOp, x, n.value(2))
    return [x]


def _where(n: OnnxNode) -> Sequence[Value]:
    return [n.apply(e.SelectOp, n.value(0), n.value(1), n.value(2))]


def _cast(n: OnnxNode) -> Sequence[Value]:
    dtype = helper.tensor_dtype_to_np_dtype(n.integer("to", 0))
    return [converted(n, n.value(0), element_type(dtype))]


def _cast_like(n: OnnxNode) -> Sequence[Value]:
    return [converted(n, n.value(0), type_of(n.value(1)).element_type)]


def converted(n: OnnxNode, x: SSAValue, element: Attribute) -> SSAValue:
    """Converts `x` to the type `element`.

    Floats beyond the range of f8 become its largest number, unless `saturate` is 0. Of
    numbers beyond the range of i4, the lowest bits remain.
    """
    if not is_stored(element) or is_integer(type_of(x).element_type):
        return n.convert(x, element)
    if is_integer(element):
        return n.convert(n.convert(x, i32), element)
    if isinstance(element, Float8E8M0FNUType):
        n.expect("round_mode", n.text("round_mode", "up"), "nearest")
    elif n.integer("saturate", 1):
        largest = float(cast(Any, finfo)(numpy_dtype(element)).max)
        x = clamp(n, x, -largest, largest)
    return n.convert(x, element)


def _bit_shift(n: OnnxNode) -> Sequence[Value]:
    x, y = n.value(0), n.value(1)
    direction = n.text("direction", "")
    n.expect("direction", direction, "LEFT", "RIGHT")
    if direction == "LEFT":
        return [n.apply(e.ShiftLeftOp, x, y)]
    is_unsigned = numpy_dtype(type_of(x).element_type).kind == "u"
    right = e.ShiftRightLogicalOp if is_unsigned else e.ShiftRightArithmeticOp
    return [n.apply(right, x, y)]


def _bit_cast(n: OnnxNode) -> Sequence[Value]:
    x, dtype = n.value(0), helper.tensor_dtype_to_np_dtype(n.integer("to", 0))
    element = element_type(dtype)
    if type_of(x).element_type == element:
        return [x]
    if i1 in (element, type_of(x).element_type):
        raise Unsupported(f"from {type_of(x).element_type} to {element}")
    return [n.emit(e.BitcastConvertOp, x, type=with_element(type_of(x), element))]


def _is_nan(n: OnnxNode, x: SSAValue) -> SSAValue:
    return compare(n, x, "NE", x)


def _identity(n: OnnxNode) -> Sequence[Value]:
    (value,) = n.inputs
    assert value is not None
    return [value]


def _is_inf(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    signs = [
        compare(n, x, "EQ", sign * float("inf"))
        for sign, name in ((1, "detect_positive"), (-1, "detect_negative"))
        if n.integer(name, 1)
    ]
    if not signs:
        return [compare(n, x, "NE", x)]
    return [signs[0] if len(signs) == 1 else n.apply(e.OrOp, *signs)]


def _dropout(n: OnnxNode) -> Sequence[Value]:
    """Supports inference, and training with a ratio of 0, which drops nothing."""
    if n.has(2) and not (n.has(1) and n.scalar(1) == 0):
        n.expect("training_mode", n.known(2).item(), False)
    x = n.value(0)
    return [x, Known(np.ones(shape_of(x), bool))] if n.outputs > 1 else [x]


_UNARY: Mapping[str, type[TensorOp]] = {
    "Abs": e.AbsOp,
    "BitwiseNot": e.NotOp,
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
    "BitwiseAnd": e.AndOp,
    "BitwiseOr": e.OrOp,
    "BitwiseXor": e.XorOp,
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


_WRITTEN = "Acos Acosh Asin Asinh Atan Atanh Cosh Sinh".split()


def _written(name: str) -> Conversion:
    return _unary(lambda n, x: written_out(n, name, x))


def _emitted(op_type: type[TensorOp]) -> Conversion:
    return lambda n: [n.emit(op_type, n.value(0))]


CONVERSIONS: Mapping[str, Conversion] = {
    **{name: _emitted(op_type) for name, op_type in _UNARY.items()},
    **{name: _repeated(op_type) for name, op_type in _REPEATED.items()},
    **{name: _compared(direction) for name, direction in _DIRECTIONS.items()},
    **{name: _written(name.lower()) for name in _WRITTEN},
    "BitCast": _bit_cast,
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "Dropout": _dropout,
    "Elu": _unary(_elu),
    "Gelu": _unary(_gelu),
    "HardSigmoid": _unary(_hard_sigmoid),
    "HardSwish": _unary(_hard_swish),
    "Identity": _identity,
    "IsInf": _is_inf,
    "IsNaN": _unary(_is_nan),
    "LeakyRelu": _unary(_leaky_relu),
    "Mean": _mean,
    "Mish": _unary(_mish),
    "Mod": _modulo,
    "PRelu": _prelu,
    "Pow": _power,
    "Reciprocal": _unary(reciprocal),
    "Relu": _unary(lambda n, x: n.apply(e.MaximumOp, x, 0)),
    "Selu": _unary(_selu),
    "Softplus": _unary(softplus),
    "Softsign": _unary(_softsign),
    "Where": _where,
}
