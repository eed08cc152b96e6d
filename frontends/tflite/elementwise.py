"""Converts elementwise operations, including quantization."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from math import erf, inf
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import TensorOp
from ..builder import element_type, shape_of
from ..formulas import clamp, compare, floor_divide, gelu, modulo, positive_or
from ..operators import Value
from ..unsupported import Unsupported
from ..written import Writer, magnitude
from .fixed_point import (
    BITS,
    ONE,
    expect_8_bits,
    factored,
    half,
    limited,
    nearest,
    on_reals,
    product,
    range_of,
    reciprocal,
    round_away,
    saturated,
    scaled,
    shifted,
    table,
)
from .interpolation import of_reals, sigmoid
from .node import Conversion, TFLiteNode

# Quantization


def _quantize(n: TFLiteNode) -> Sequence[Value]:
    """Rounds floats, ties away from 0, and rescales integers."""
    result = n.results[0]
    if n.tensor(0).is_quantized:
        ratio = np.float64(n.tensor(0).scale) / np.float64(result.scale)
        return [saturated(n, scaled(n, n.centered(0), ratio))]
    x = n.convert(n.value(0), f32)
    steps = n.apply(e.DivideOp, x, n.along(result, result.scales))
    steps = n.emit(e.RoundNearestAfzOp, steps)
    if result.zeros.any():
        steps = n.apply(e.AddOp, steps, n.along(result, result.zeros))
    return [n.convert(clamp(n, steps, *range_of(n, None, None)), _element(n))]


def _fake_quantize(n: TFLiteNode) -> Sequence[Value]:
    """Rounds floats to a number of steps in a range, in f32, as in LiteRT.

    The range is shifted so that zero is one of the steps.
    """
    expect_numbers(n)
    low, high, bits = (n.option(name) for name in ("Min", "Max", "NumBits"))
    if n.option("NarrowRange"):
        raise Unsupported("with a narrow range")
    if not 2 <= bits <= 16 or not 0 < high - low < inf:
        raise Unsupported(
            f"with {bits} bits from {low} to {high}, expected 2 to 16 bits and a range"
        )
    low, high, last = np.array([low, high, (1 << bits) - 1], np.float32)
    step = (high - low) / last
    zero = np.float32(nearest(np.clip([-low / step], 0, last))[0])
    low, high = -zero * step, (last - zero) * step
    x = clamp(n, n.value(0), float(low), float(high))
    x = n.apply(e.SubtractOp, x, float(low))
    x = n.apply(e.MultiplyOp, x, float(np.float32(1) / step))
    x = n.apply(e.MultiplyOp, n.emit(e.RoundNearestAfzOp, x), float(step))
    return [n.apply(e.AddOp, x, float(low))]


def _dequantize(n: TFLiteNode) -> Sequence[Value]:
    return [n.convert(n.real(0), _element(n))]


def _element(n: TFLiteNode) -> Attribute:
    return element_type(n.results[0].dtype)


# Operations on two tensors

_SUM_BITS, _LONG_SUM_BITS = 20, 15
"""The number of bits by which operands of a sum are shifted left before they are
scaled, for 8-bit and for 16-bit integers."""


def _sum(op: type[TensorOp]) -> Conversion:
    """Rescales operands to twice the larger scale, then to that of the result."""

    def convert(n: TFLiteNode) -> Sequence[Value]:
        if not n.is_quantized:
            return [n.activated(n.apply(op, n.value(0), n.value(1)))]
        _expect_other_scales(n)
        whole = 2 * max(np.float64(n.tensor(index).scale) for index in (0, 1))
        bits = _LONG_SUM_BITS if n.results[0].dtype == np.int16 else _SUM_BITS
        a, b = _in_steps(n, whole, bits)
        factor = whole / ((1 << bits) * np.float64(n.results[0].scale))
        return [saturated(n, scaled(n, n.apply(op, a, b), factor))]

    return convert


def _expect_other_scales(n: TFLiteNode) -> None:
    """Rejects 16-bit integers whose scales are all powers of two: LiteRT shifts them,
    unless an option disables that.
    """
    scales = np.array([t.scale for t in (n.tensor(0), n.tensor(1), n.results[0])])
    exponents = np.log2(scales.astype(np.float64))
    are_powers = np.abs(exponents - np.rint(exponents)).max() < 1e-3
    if n.results[0].dtype == np.int16 and are_powers:
        if n.options is None or n.option("PotScaleInt16"):
            raise Unsupported("with scales of INT16 that are powers of two")


def _in_steps(n: TFLiteNode, whole: float, bits: int) -> list[SSAValue]:
    """Both operands in steps of `whole`, shifted left by `bits`."""
    return [
        scaled(
            n,
            n.apply(e.MultiplyOp, n.centered(index), 1 << bits),
            np.float64(n.tensor(index).scale) / whole,
        )
        for index in (0, 1)
    ]


def _multiply(n: TFLiteNode) -> Sequence[Value]:
    if not n.is_quantized:
        return [n.activated(n.apply(e.MultiplyOp, n.value(0), n.value(1)))]
    product = n.apply(e.MultiplyOp, n.centered(0), n.centered(1))
    # in single precision, as in LiteRT
    factor = n.tensor(0).scale * n.tensor(1).scale / n.results[0].scale
    return [saturated(n, scaled(n, product, factor))]


def _divide(n: TFLiteNode) -> Sequence[Value]:
    """Multiplies 8-bit integers by a reciprocal in 31 bits.

    If the result is shifted by more than 31 bits, and therefore near 0, LiteRT's result
    depends on its C++ compiler.
    """
    if not n.is_quantized:
        return _binary(e.DivideOp)(n)
    expect_8_bits(n)
    shape, term = n.results[0].shape, Writer(n).term
    a, b = (
        term(n.broadcast(n.convert(n.centered(index), i64), shape)) for index in (0, 1)
    )
    a, b = (-a).where(b < 0, a), abs(b)
    # Both are shifted left as far as 32 bits allow.
    signs = (a ^ shifted(a, 63)).apply(e.CountLeadingZerosOp) - 33
    zeros = b.apply(e.CountLeadingZerosOp) - 32
    inverse = reciprocal(b.apply(e.ShiftLeftOp, zeros) - (ONE + 1))
    quotient = product(a.apply(e.ShiftLeftOp, signs), inverse)
    scales = n.tensor(0).scale / (n.tensor(1).scale * n.results[0].scale)
    number, exponent = (int(part) for part in factored(scales))
    bits = signs - zeros + (BITS - exponent)
    bits = bits.apply(e.MaximumOp, 0).apply(e.MinimumOp, 2 * BITS)
    steps = product(quotient, number)
    steps = shifted(steps + half(bits) + shifted(steps, 63), bits)
    return [saturated(n, steps.value)]


_SQUARE_BITS = 7


def _squared_difference(n: TFLiteNode) -> Sequence[Value]:
    if not n.is_quantized:
        difference = n.apply(e.SubtractOp, n.value(0), n.value(1))
        return [n.apply(e.MultiplyOp, difference, difference)]
    expect_8_bits(n)
    whole = 2 * max(np.float64(n.tensor(index).scale) for index in (0, 1))
    difference = n.apply(e.SubtractOp, *_in_steps(n, whole, _SQUARE_BITS))
    square = n.apply(e.MultiplyOp, difference, difference)
    unit = (1 << 2 * _SQUARE_BITS) * np.float64(n.results[0].scale)
    return [saturated(n, scaled(n, square, whole * whole / unit))]


def _binary(op: type[TensorOp]) -> Conversion:
    """An operation on floats, or on integers that are not quantized."""

    def convert(n: TFLiteNode) -> Sequence[Value]:
        expect_numbers(n)
        return [n.activated(n.apply(op, n.value(0), n.value(1)))]

    return convert


def _floor_divide(n: TFLiteNode) -> Sequence[Value]:
    """Divides floats in double precision, as in LiteRT."""
    expect_numbers(n)
    x, y = n.value(0), n.value(1)
    if isinstance(_element(n), AnyFloat):
        x, y = n.convert(x, f64), n.convert(y, f64)
    return [n.convert(floor_divide(n, x, y), _element(n))]


def _floor_modulo(n: TFLiteNode) -> Sequence[Value]:
    expect_numbers(n)
    return [modulo(n, n.value(0), n.value(1))]


def _add_all(n: TFLiteNode) -> Sequence[Value]:
    expect_numbers(n)
    values = [n.value(index) for index in range(len(n.inputs))]
    return [reduce(partial(n.apply, e.AddOp), values)]


def _shift_right(n: TFLiteNode) -> Sequence[Value]:
    """Shifts right; the number of bits is clamped from 0 to the width minus 1."""
    expect_numbers(n)
    dtype = n.results[0].dtype
    bits = clamp(n, n.value(1), 0, 8 * dtype.itemsize - 1)
    is_signed = dtype.kind == "i"
    op = e.ShiftRightArithmeticOp if is_signed else e.ShiftRightLogicalOp
    return [n.apply(op, n.value(0), bits)]


def expect_numbers(n: TFLiteNode) -> None:
    tensors = [tensor for tensor in (*n.tensors, *n.results) if tensor]
    for tensor in tensors:
        if tensor.is_quantized:
            raise Unsupported(f"with quantized elements of type {tensor.kind}")


def _extreme(op: type[TensorOp]) -> Conversion:
    """A maximum or minimum, also of quantized integers of one scale."""

    def convert(n: TFLiteNode) -> Sequence[Value]:
        expect_one_scale(n, 0, 1)
        return [n.apply(op, n.value(0), n.value(1))]

    return convert


def expect_one_scale(n: TFLiteNode, *inputs: int) -> None:
    """Rejects inputs whose quantization differs from that of the result."""
    result = n.results[0]
    for index in inputs:
        own = n.tensor(index)
        if (result.is_quantized or own.is_quantized) and (
            not np.array_equal(own.scales, result.scales) or own.zero != result.zero
        ):
            raise Unsupported(
                f"with different scales of {own.name!r} and {result.name!r}"
            )


_COMPARED_BITS = 8
"""The number of bits by which 8-bit integers of different scales are shifted left
before they are compared.
"""


def _compare(direction: str) -> Conversion:
    def convert(n: TFLiteNode) -> Sequence[Value]:
        a, b = n.tensor(0), n.tensor(1)
        if not a.is_quantized or (a.scale, a.zero) == (b.scale, b.zero):
            return [compare(n, n.value(0), direction, n.value(1))]
        if {a.dtype.itemsize, b.dtype.itemsize} != {1}:
            raise Unsupported(f"with different scales of {a.name!r} and {b.name!r}")
        own, other = (
            scaled(
                n,
                n.apply(e.MultiplyOp, n.centered(index), 1 << _COMPARED_BITS),
                np.float64(tensor.scale),
            )
            for index, tensor in enumerate((a, b))
        )
        return [compare(n, own, direction, other)]

    return convert


# Operations on one tensor


def _unary(
    on_floats: Callable[[TFLiteNode, SSAValue], SSAValue],
    of_reals: Callable[[Array], Array],
) -> Conversion:
    """Applies `on_floats` to floats, and a table of `of_reals` to 8-bit integers."""

    def convert(n: TFLiteNode) -> Sequence[Value]:
        if n.is_quantized:
            return [table(n, on_reals(n, of_reals))]
        return [on_floats(n, n.value(0))]

    return convert


def _op(op: type[TensorOp]) -> Callable[[TFLiteNode, SSAValue], SSAValue]:
    return lambda n, x: n.emit(op, x)


def _abs(n: TFLiteNode) -> Sequence[Value]:
    if not n.is_quantized:
        return [n.emit(e.AbsOp, n.value(0))]
    size = n.emit(e.AbsOp, n.centered(0))
    return [saturated(n, scaled(n, size, n.tensor(0).scale / n.results[0].scale))]


def _relu(low: float | None, high: float | None) -> Conversion:
    def convert(n: TFLiteNode) -> Sequence[Value]:
        if n.is_quantized:
            factor = n.tensor(0).scale / n.results[0].scale
            steps = scaled(n, n.centered(0), factor)
            return [limited(n, steps, *range_of(n, low, high))]
        x = n.value(0)
        if high is None:
            return [n.apply(e.MaximumOp, x, 0)]
        return [clamp(n, x, low or 0, high)]

    return convert


def _leaky_relu(n: TFLiteNode) -> Sequence[Value]:
    x, alpha = n.value(0), np.float32(n.option("Alpha"))
    if not n.is_quantized:
        return [positive_or(n, x, n.apply(e.MultiplyOp, x, float(alpha)))]
    source, result = n.tensor(0), n.results[0]
    identity = source.scale / result.scale
    below = source.scale * alpha / result.scale

    def function(numbers: Array) -> Array:
        x = numbers - source.zero
        return result.zero + np.where(
            x >= 0, scaled_array(x, identity), scaled_array(x, below)
        )

    return [table(n, function)]


def scaled_array(x: Array, real: np.floating[Any]) -> Array:
    """The result of `scaled` for an array."""
    number, exponent = (int(part) for part in factored(real))
    shifted = x.astype(np.int64) << max(exponent, 0)
    return rounding_shift((shifted * number + (1 << 30)) >> 31, max(-exponent, 0))


def rounding_shift(x: Array, bits: int) -> Array:
    """Divides by 2^bits and rounds, ties away from 0."""
    half = (1 << bits) >> 1
    return (x + np.where(x < 0, max(half - 1, 0), half)) >> bits


def _prelu(n: TFLiteNode) -> Sequence[Value]:
    if not n.is_quantized:
        x = n.value(0)
        return [positive_or(n, x, n.apply(e.MultiplyOp, x, n.value(1)))]
    expect_8_bits(n)
    x, below = n.centered(0), n.apply(e.MultiplyOp, n.centered(0), n.centered(1))
    first, second, result = (t.scale for t in (n.tensor(0), n.tensor(1), n.results[0]))
    is_positive = compare(n, x, "GE", 0)
    x, below = scaled(n, x, first / result), scaled(n, below, first * second / result)
    return [
        limited(n, n.apply(e.SelectOp, is_positive, x, below), *range_of(n, None, None))
    ]


def _hard_swish(n: TFLiteNode) -> Sequence[Value]:
    if n.is_quantized:
        return [table(n, _hard_swish_of_integers(n))]
    x = n.value(0)
    gate = clamp(n, n.apply(e.AddOp, x, 3), 0, 6)
    return [n.apply(e.DivideOp, n.apply(e.MultiplyOp, x, gate), 6)]


_STEP_BITS = 7  # the number of bits by which steps are shifted left
_SHORT = np.iinfo(np.int16)


def _hard_swish_of_integers(n: TFLiteNode) -> Callable[[Array], Array]:
    """The input times a gate from 0 to 1, both in 15 bits, rounded as in LiteRT."""
    source, result = n.tensor(0), n.results[0]
    unit = np.float32(1 / (1 << _STEP_BITS)) * source.scale
    scale, shift = _short_factor(unit / result.scale)
    slope, up = _short_factor(unit / np.float32(3 / (1 << 15)))
    if shift > 0:
        raise Unsupported("with a result scale that is too small")

    def function(numbers: Array) -> Array:
        x = (numbers - source.zero) << _STEP_BITS
        gate = np.clip(x << max(up - 1, 0), _SHORT.min, _SHORT.max)
        gate = _short_product(gate, slope)
        if up > 0:
            gate = np.clip(gate << 1, _SHORT.min, _SHORT.max)
        gate = (rounding_shift(gate, max(-up, 0)) + (1 << 15)) >> 1
        product = gate * _short_product(x, scale)
        product = np.sign(product) * (np.abs(product) >> 15)
        return rounding_shift(product, -shift) + result.zero

    return function


def _short_factor(real: np.floating[Any]) -> tuple[int, int]:
    """A factor as a 15-bit number and an exponent."""
    number, exponent = (int(part) for part in factored(real))
    return min((number + (1 << 15)) >> 16, _SHORT.max), exponent


def _short_product(a: Array, b: int) -> Array:
    return (a * b + (1 << 14)) >> 15


def _gelu(n: TFLiteNode) -> Sequence[Value]:
    approximate = bool(n.option("Approximate"))

    def function(x: Array) -> Array:
        if approximate:
            inner = np.float32(0.7978845608028654) * (x + np.float32(0.044715) * x**3)
            return np.float32(0.5) * x * (1 + np.tanh(inner))
        found = [0.5 * a * (1 + erf(a * 0.5**0.5)) for a in x.astype(float)]
        return np.array(found, np.float32)

    if n.is_quantized:
        return [table(n, on_reals(n, function))]
    return [gelu(n, n.value(0), approximate)]


def _sqrt(n: TFLiteNode) -> Sequence[Value]:
    """Square roots of quantized integers are rounded down; negative ones count as 0."""
    if not n.is_quantized:
        return [n.emit(e.SqrtOp, n.value(0))]
    source, result = n.tensor(0), n.results[0]

    def function(numbers: Array) -> Array:
        x = source.scale * np.maximum(numbers - source.zero, 0).astype(np.float32)
        return np.floor(np.sqrt(x) / result.scale).astype(np.int64) + result.zero

    return [table(n, function)]


_ROOT_BITS = 20


def _rsqrt(n: TFLiteNode) -> Sequence[Value]:
    """For quantized integers, computes 1 / sqrt(x) in 20 bits, then rescales it."""
    if not n.is_quantized:
        return [n.emit(e.RsqrtOp, n.value(0))]
    source, result = n.tensor(0), n.results[0]
    unit = np.sqrt(source.scale) * result.scale * np.float64(1 << _ROOT_BITS)

    def function(numbers: Array) -> Array:
        x = np.maximum(numbers - source.zero, 1)  # avoids roots of negative numbers
        roots = round_away((1 << _ROOT_BITS) / np.sqrt(x))
        highest = np.iinfo(result.dtype).max
        found = scaled_array(roots, 1 / unit) + result.zero
        return np.where(numbers == source.zero, highest, found)

    return [table(n, function)]


def _with_16_bits(
    on_8_bits: Conversion, on_16_bits: Callable[[TFLiteNode], SSAValue]
) -> Conversion:
    def convert(n: TFLiteNode) -> Sequence[Value]:
        if n.is_quantized and n.tensor(0).dtype == np.int16:
            return [on_16_bits(n)]
        return on_8_bits(n)

    return convert


def _sqrt_of_16_bits(n: TFLiteNode) -> SSAValue:
    """Square roots, computed without a table and rounded down as in `_sqrt`."""
    root = n.emit(e.SqrtOp, n.apply(e.MaximumOp, n.real(0), 0))
    steps = n.apply(e.DivideOp, root, float(n.results[0].scale))
    return limited(n, n.convert(steps, i32), *range_of(n, None, None))


def _exp_of_16_bits(n: TFLiteNode) -> SSAValue:
    return of_reals(n, np.exp)


def _log_of_16_bits(n: TFLiteNode) -> SSAValue:
    least = _SHORT.min * float(n.results[0].scale)
    return of_reals(n, lambda x: np.where(x > 0, np.log(x), least))


def _rsqrt_of_16_bits(n: TFLiteNode) -> SSAValue:
    most = _SHORT.max * float(n.results[0].scale)
    return of_reals(n, lambda x: np.where(x > 0, 1 / np.sqrt(x), most))


def _logistic(x: Array) -> Array:
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def _cast(n: TFLiteNode) -> Sequence[Value]:
    return [n.convert(n.value(0), _element(n))]


def _select(n: TFLiteNode) -> Sequence[Value]:
    """A condition of rank 1 selects rows."""
    condition, rank = n.value(0), len(n.tensor(1).shape)
    if len(shape_of(condition)) == 1:
        condition = n.reshape(condition, [*shape_of(condition), *[1] * (rank - 1)])
    return _selected(n, condition)


def _select_by_elements(n: TFLiteNode) -> Sequence[Value]:
    return _selected(n, n.value(0))


def _selected(n: TFLiteNode, condition: SSAValue) -> Sequence[Value]:
    expect_one_scale(n, 1, 2)
    return [n.apply(e.SelectOp, condition, n.value(1), n.value(2))]


def _sign(n: TFLiteNode) -> Sequence[Value]:
    expect_numbers(n)
    return [n.emit(e.SignOp, n.value(0))]


def _square(n: TFLiteNode, x: SSAValue) -> SSAValue:
    return n.apply(e.MultiplyOp, x, x)


CONVERSIONS: Mapping[str, Conversion] = {
    "ABS": _abs,
    "ADD": _sum(e.AddOp),
    "ADD_N": _add_all,
    "ATAN2": _binary(e.Atan2Op),
    "BITWISE_XOR": _binary(e.XorOp),
    "CAST": _cast,
    "CEIL": _unary(_op(e.CeilOp), np.ceil),
    "COMPLEX_ABS": lambda n: [magnitude(n, n.value(0))],
    "COS": _unary(_op(e.CosineOp), np.cos),
    "DEQUANTIZE": _dequantize,
    "DIV": _divide,
    "ELU": _unary(
        lambda n, x: positive_or(n, x, n.emit(e.ExponentialMinusOneOp, x)),
        lambda x: np.where(x < 0, np.expm1(x), x),
    ),
    "EQUAL": _compare("EQ"),
    "EXP": _with_16_bits(_unary(_op(e.ExponentialOp), np.exp), _exp_of_16_bits),
    "FAKE_QUANT": _fake_quantize,
    "FLOOR": _unary(_op(e.FloorOp), np.floor),
    "FLOOR_DIV": _floor_divide,
    "FLOOR_MOD": _floor_modulo,
    "GELU": _gelu,
    "GREATER": _compare("GT"),
    "GREATER_EQUAL": _compare("GE"),
    "HARD_SWISH": _hard_swish,
    "IMAG": lambda n: [n.emit(e.ImagOp, n.value(0))],
    "LEAKY_RELU": _leaky_relu,
    "LESS": _compare("LT"),
    "LESS_EQUAL": _compare("LE"),
    "LOG": _with_16_bits(_unary(_op(e.LogOp), np.log), _log_of_16_bits),
    "LOGICAL_AND": _binary(e.AndOp),
    "LOGICAL_NOT": _unary(_op(e.NotOp), np.logical_not),
    "LOGICAL_OR": _binary(e.OrOp),
    "LOGISTIC": _with_16_bits(
        _unary(_op(e.LogisticOp), _logistic), lambda n: sigmoid(n, is_tanh=False)
    ),
    "MAXIMUM": _extreme(e.MaximumOp),
    "MINIMUM": _extreme(e.MinimumOp),
    "MUL": _multiply,
    "NEG": _unary(_op(e.NegateOp), np.negative),
    "NOT_EQUAL": _compare("NE"),
    "POW": _binary(e.PowerOp),
    "PRELU": _prelu,
    "QUANTIZE": _quantize,
    "REAL": lambda n: [n.emit(e.RealOp, n.value(0))],
    "RELU": _relu(0, None),
    "RELU6": _relu(0, 6),
    "RELU_0_TO_1": _relu(0, 1),
    "RELU_N1_TO_1": _relu(-1, 1),
    "RIGHT_SHIFT": _shift_right,
    "ROUND": _unary(_op(e.RoundNearestEvenOp), np.rint),
    "RSQRT": _with_16_bits(_rsqrt, _rsqrt_of_16_bits),
    "SELECT": _select,
    "SELECT_V2": _select_by_elements,
    "SIGN": _sign,
    "SIN": _unary(_op(e.SineOp), np.sin),
    "SQRT": _with_16_bits(_sqrt, _sqrt_of_16_bits),
    "SQUARE": _unary(_square, np.square),
    "SQUARED_DIFFERENCE": _squared_difference,
    "SUB": _sum(e.SubtractOp),
    "TANH": _with_16_bits(
        _unary(_op(e.TanhOp), np.tanh), lambda n: sigmoid(n, is_tanh=True)
    ),
}
