"""Elementwise operations on values, with the meaning that `dialects/reference/` gives.

None stands for what is not supported here: the NumPy kernel then decides, and refuses
what has no meaning.
"""

from collections.abc import Callable, Mapping, Sequence

from tensorplan.dialects.dtypes import DType, is_float
from tensorplan.dialects.tgraph import elementwise as ops
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.runtime.backends.native import math
from tensorplan.runtime.backends.native.code import Value
from tensorplan.runtime.backends.native.elements import converted, rounded


def better(kind: str, dtype: DType, x: Value, y: Value) -> Value:
    """The `maximum` or `minimum`; `y` if either is NaN."""
    sign = "o" if x.is_float else "s" if dtype.kind == "i" else "u"
    is_better = x.compare(sign + ("gt" if kind == "maximum" else "lt"), y)
    return x.code.select(is_better, x, y)


def maximum(dtype: DType, x: Value, y: Value) -> Value:
    return _extreme("maximum", dtype, x, y)


def minimum(dtype: DType, x: Value, y: Value) -> Value:
    return _extreme("minimum", dtype, x, y)


def _extreme(kind: str, dtype: DType, x: Value, y: Value) -> Value:
    """NaN if either is NaN."""
    if y.number is not None:
        x, y = y, x
    result = better(kind, dtype, x, y)
    if not x.is_float or (x.number is not None and x.number == x.number):
        return result
    return x.code.select(x.is_nan, x, result)


def _add(dtype: DType, x: Value, y: Value) -> Value:
    return x | y if dtype.kind == "b" else x + y


def _multiply(dtype: DType, x: Value, y: Value) -> Value:
    return x & y if dtype.kind == "b" else x * y


def _divide(dtype: DType, x: Value, y: Value) -> Value:
    """Of integers, as XLA: -1 for a division by zero; out of range it wraps around."""
    if x.is_float:
        return x / y
    code = x.code
    by_zero = y.compare("eq", 0)
    quotient = code.binary(_signed("div", dtype), x, _divisor(dtype, x, y, by_zero))
    return code.select(by_zero, -1, quotient)


def _remainder(dtype: DType, x: Value, y: Value) -> Value:
    """Of integers, as XLA: the dividend for a division by zero."""
    if x.is_float:
        return math.remainder(x, y)
    code = x.code
    by_zero = y.compare("eq", 0)
    rest = code.binary(_signed("rem", dtype), x, _divisor(dtype, x, y, by_zero))
    return code.select(by_zero, x, rest)


def _signed(name: str, dtype: DType) -> str:
    return ("s" if dtype.kind == "i" else "u") + name


def _divisor(dtype: DType, x: Value, y: Value, by_zero: Value) -> Value:
    """One where the processor would trap."""
    unsafe = by_zero
    if dtype.kind == "i":
        lowest = -(1 << (8 * dtype.itemsize - 1))
        unsafe = unsafe | (y.compare("eq", -1) & x.compare("eq", lowest))
    return x.code.select(unsafe, 1, y)


def _power(dtype: DType, x: Value, y: Value) -> Value:
    if x.is_float:
        return math.power(x, y)
    code = x.code
    bits = 8 * dtype.itemsize
    factor = x
    result = code.select((y & 1).compare("ne", 0), x, 1)
    inverse = code.select(x.compare("eq", -1), result, code.number(0, x.element))
    inverse = code.select(x.compare("eq", 1), 1, inverse)
    for bit in range(1, bits):
        factor = factor * factor
        is_set = (y & (1 << bit)).compare("ne", 0)
        result = code.select(is_set, result * factor, result)
    if dtype.kind == "u":
        return result
    return code.select(y.compare("slt", 0), inverse, result)


def _abs(dtype: DType, x: Value) -> Value:
    if x.is_float:
        return x.call("fabs")
    return x if dtype.kind == "u" else x.code.select(x.compare("slt", 0), -x, x)


def _sign(dtype: DType, x: Value) -> Value:
    code = x.code
    if x.is_float:
        result = code.select(x.compare("oeq", 0.0), 0.0, x)
        result = code.select(x.compare("ogt", 0.0), 1.0, result)
        return code.select(x.compare("olt", 0.0), -1.0, result)
    one = code.number(1, x.element)
    result = code.select(x.compare("ne", 0), one, 0)
    return result if dtype.kind == "u" else code.select(x.compare("slt", 0), -1, result)


def _clamp(dtype: DType, low: Value, x: Value, high: Value) -> Value:
    return minimum(dtype, maximum(dtype, x, low), high)


def _select(dtype: DType, condition: Value, x: Value, y: Value) -> Value:
    return x.code.select(condition, x, y)


def _rsqrt(dtype: DType, x: Value) -> Value:
    root = rounded(x.call("sqrt"), dtype)
    return x.code.number(1.0, x.element) / root


FLOAT, NUMBER, BITS, ANY = "f", "fiu", "biu", "bfiu"
"""The kinds of element type that an operation is defined on."""

UNARY: Mapping[type[TensorOp], tuple[str, Callable[[Value], Value]]] = {
    ops.CeilOp: (FLOAT, lambda x: x.call("ceil")),
    ops.FloorOp: (FLOAT, lambda x: x.call("floor")),
    ops.IsFiniteOp: (FLOAT, lambda x: x.call("fabs").compare("olt", float("inf"))),
    ops.NegateOp: (NUMBER, lambda x: -x),
    ops.NotOp: (BITS, lambda x: ~x),
    ops.RoundNearestEvenOp: (FLOAT, lambda x: x.call("roundeven")),
    ops.SqrtOp: (FLOAT, lambda x: x.call("sqrt")),
}

BINARY: Mapping[type[TensorOp], tuple[str, Callable[[Value, Value], Value]]] = {
    ops.AndOp: (BITS, lambda x, y: x & y),
    ops.OrOp: (BITS, lambda x, y: x | y),
    ops.SubtractOp: (NUMBER, lambda x, y: x - y),
    ops.XorOp: (BITS, lambda x, y: x ^ y),
}

TYPED: Mapping[type[TensorOp], tuple[str, Callable[..., Value]]] = {
    ops.AbsOp: (NUMBER, _abs),
    ops.AddOp: (ANY, _add),
    ops.ClampOp: (ANY, _clamp),
    ops.DivideOp: (NUMBER, _divide),
    ops.MaximumOp: (ANY, maximum),
    ops.MinimumOp: (ANY, minimum),
    ops.MultiplyOp: (ANY, _multiply),
    ops.PowerOp: (NUMBER, _power),
    ops.RemainderOp: (NUMBER, _remainder),
    ops.RsqrtOp: (FLOAT, _rsqrt),
    ops.SelectOp: (ANY, _select),
    ops.SignOp: (NUMBER, _sign),
}
"""`(dtype of the last operand, *operands) -> result`"""

FUNCTIONS: Mapping[type[TensorOp], Callable[[Value], Value]] = {
    ops.CosineOp: math.cosine,
    ops.ExponentialMinusOneOp: math.expm1,
    ops.ExponentialOp: math.exp,
    ops.LogOp: math.natural_log,
    ops.LogPlusOneOp: math.log1p,
    ops.LogisticOp: math.logistic,
    ops.SineOp: math.sine,
    ops.TanhOp: math.tanh,
}

COSTLY = (*FUNCTIONS, ops.DivideOp, ops.PowerOp, ops.RemainderOp, ops.RsqrtOp)
"""Operations whose results are better kept than computed again."""


def evaluate(
    op: TensorOp, dtypes: Sequence[DType], result: DType, values: Sequence[Value]
) -> Value | None:
    """The result's elements, from elements of types `dtypes`."""
    dtype = dtypes[-1]
    kind = FLOAT if is_float(dtype) else dtype.kind
    if isinstance(op, ops.ConvertOp):
        return converted(values[0], dtype, result)
    if isinstance(op, ops.CompareOp):
        return _compare(op.direction.data, dtype, *values)
    if type(op) in FUNCTIONS:
        if kind != FLOAT:
            return None
        return rounded(FUNCTIONS[type(op)](*values), result)
    table = next((t for t in (UNARY, BINARY, TYPED) if type(op) in t), None)
    if table is None or kind not in table[type(op)][0]:
        return None
    emit: Callable[..., Value] = table[type(op)][1]
    value = emit(dtype, *values) if table is TYPED else emit(*values)
    return rounded(value, result) if is_float(result) else value


def _compare(direction: str, dtype: DType, x: Value, y: Value) -> Value:
    name = direction.lower()
    if x.is_float:
        return x.compare("une" if name == "ne" else "o" + name, y)
    if name not in ("eq", "ne"):
        name = ("s" if dtype.kind == "i" else "u") + name
    return x.compare(name, y)
