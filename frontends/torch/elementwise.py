"""Converts ATen's elementwise operations to tgraph."""

from collections.abc import Callable, Mapping, Sequence
from math import log, pi
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, Signedness, f32, f64, i1
from xdsl.ir import Attribute, SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import TensorOp, element_bytes
from ...dialects.tgraph.elements import AnyInteger, is_complex, real_element
from ..builder import TensorBuilder, type_of
from ..formulas import (
    at_least_f32,
    bits_of,
    clamp,
    compare,
    floor_divide,
    gelu,
    is_negative,
    modulo,
    next_after,
    positive_or,
    reciprocal,
)
from ..loops import Loop
from ..unsupported import Unsupported
from ..written import written_out
from .call import AtenCall, Conversion, Results


def _emitted(op_type: type[TensorOp]) -> Conversion:
    return lambda c: c.emit(op_type, c.tensor())


def _formula(function: Callable[[AtenCall, SSAValue], SSAValue]) -> Conversion:
    return lambda c: function(c, c.tensor())


def _binary(op_type: type[TensorOp]) -> Conversion:
    return lambda c: c.apply(op_type, c.tensor(), c.operand("other"))


def _compared(direction: str) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        element = c.common("self", "other")
        return compare(
            c, c.tensor("self", element), direction, c.operand("other", element)
        )

    return convert


def _truth(c: AtenCall, name: str) -> SSAValue:
    """Whether elements are not zero."""
    x = c[name]
    return x if type_of(x).element_type == i1 else compare(c, x, "NE", 0)


def _logical(op_type: type[TensorOp]) -> Conversion:
    return lambda c: c.apply(op_type, _truth(c, "self"), _truth(c, "other"))


def _logical_not(c: AtenCall) -> SSAValue:
    return c.emit(e.NotOp, _truth(c, "self"))


def _scaled(c: AtenCall, x: Any, factor: float) -> Any:
    if factor == 1:
        return x
    if not isinstance(x, SSAValue):
        return x * factor
    return c.apply(e.MultiplyOp, cast(SSAValue, x), factor)


def _add(c: AtenCall) -> SSAValue:
    other = _scaled(c, c.operand("other"), c["alpha"])
    return c.apply(e.OrOp if c.element == i1 else e.AddOp, c.tensor(), other)


def _multiply_add(c: AtenCall) -> SSAValue:
    product = c.apply(e.MultiplyOp, c.tensor("a"), c.operand("b"))
    return c.apply(e.AddOp, product, c.operand("c"))


def _subtract(c: AtenCall) -> SSAValue:
    other = _scaled(c, c.operand("other"), c["alpha"])
    return c.apply(e.SubtractOp, c.tensor(), other)


def _truncated(b: TensorBuilder, x: SSAValue) -> SSAValue:
    if not isinstance(type_of(x).element_type, AnyFloat):
        return x
    whole = b.emit(e.FloorOp, b.emit(e.AbsOp, x))
    return b.apply(e.MultiplyOp, whole, b.emit(e.SignOp, x))


def _divide(c: AtenCall) -> SSAValue:
    mode = c.get("rounding_mode")
    if mode == "floor":
        return floor_divide(c, c.tensor(), c.tensor("other"))
    quotient = c.apply(e.DivideOp, c.tensor(), c.operand("other"))
    return _truncated(c, quotient) if mode == "trunc" else quotient


def _power(c: AtenCall) -> SSAValue:
    """A power. As in PyTorch's kernels, exponents that are frequent in models become
    products, quotients or roots."""
    x, exponent = c.tensor(), c["exponent"]
    if exponent in (0.5, -0.5):
        return c.emit(e.SqrtOp if exponent > 0 else e.RsqrtOp, x)
    if exponent == -1:
        return c.apply(e.DivideOp, 1, x)
    if exponent in (2, -2, 3):
        square = c.apply(e.MultiplyOp, x, x)
        if exponent == -2:
            return c.apply(e.DivideOp, 1, square)
        return square if exponent == 2 else c.apply(e.MultiplyOp, square, x)
    return c.apply(e.PowerOp, x, c.operand("exponent"))


def _round(c: AtenCall) -> SSAValue:
    c.expect("decimals", 0)
    x = c.tensor()
    return c.emit(e.RoundNearestEvenOp, x) if isinstance(c.element, AnyFloat) else x


def _rounded(op_type: type[TensorOp]) -> Conversion:
    """The conversion to `op_type`, which returns integers unchanged."""

    def convert(c: AtenCall) -> SSAValue:
        x = c.tensor()
        return c.emit(op_type, x) if isinstance(c.element, AnyFloat) else x

    return convert


def _clamp(c: AtenCall) -> SSAValue:
    x = c.tensor()
    if c.get("min") is not None:
        x = c.apply(e.MaximumOp, x, c.operand("min"))
    if c.get("max") is not None:
        x = c.apply(e.MinimumOp, x, c.operand("max"))
    return x


def _hardtanh(c: AtenCall) -> SSAValue:
    return clamp(c, c.tensor(), c["min_val"], c["max_val"])


def _where(c: AtenCall) -> SSAValue:
    return c.apply(e.SelectOp, c["condition"], c.tensor(), c.tensor("other"))


def _leaky_relu(c: AtenCall) -> SSAValue:
    x = c.tensor()
    return positive_or(c, x, c.apply(e.MultiplyOp, x, c["negative_slope"]))


def _elu(c: AtenCall) -> SSAValue:
    x = c.tensor()
    inner = _scaled(c, x, c["input_scale"])
    grown = c.emit(e.ExponentialMinusOneOp, inner)
    negative = _scaled(c, grown, c["alpha"])
    return _scaled(c, positive_or(c, x, negative), c["scale"])


def _gelu(c: AtenCall) -> SSAValue:
    return gelu(c, c.tensor(), c["approximate"] == "tanh")


def _is_infinite(c: AtenCall) -> SSAValue:
    x = c["self"]
    return compare(c, c.emit(e.AbsOp, x), "EQ", float("inf"))


def _is_nan(c: AtenCall) -> SSAValue:
    return compare(c, c["self"], "NE", c["self"])


def _written(name: str) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        names = ("self", "other") if "other" in c.arguments else ("self",)
        given = (c.broadcast(c.tensor(name), c.shape) for name in names)
        return written_out(c, name, *given)

    return convert


def _polygamma(c: AtenCall) -> SSAValue:
    x = c.tensor()
    return written_out(c, "polygamma", c.splat(c["n"], type_of(x)), x)


def _copy_sign(c: AtenCall) -> SSAValue:
    size = c.emit(e.AbsOp, c.tensor())
    negative = is_negative(c, c.tensor("other"))
    return c.apply(e.SelectOp, negative, c.emit(e.NegateOp, size), size)


_FIELDS: Mapping[Attribute, tuple[int, int]] = {f32: (23, 8), f64: (52, 11)}
"""The bits of the fraction and of the exponent of a float."""


def _mantissa_and_exponent(c: AtenCall) -> Results:
    """`frexp`, on the bits of floats. Subnormal numbers are scaled first."""
    x = at_least_f32(c, c["self"])
    fraction, width = _FIELDS[type_of(x).element_type]
    most = (1 << width) - 1
    size = c.emit(e.AbsOp, x)
    is_subnormal = compare(c, size, "LT", 2.0 ** (2 - (1 << (width - 1))))
    scale = c.apply(e.SelectOp, is_subnormal, c.splat(2.0**fraction, type_of(x)), 1)
    bits = bits_of(c, c.apply(e.MultiplyOp, x, scale))
    field = c.apply(e.ShiftRightLogicalOp, bits, fraction)
    field = c.apply(e.AndOp, field, most)
    bias = (most >> 1) - 1
    shift = c.splat(bias + fraction, type_of(bits))
    shift = c.apply(e.SelectOp, is_subnormal, shift, bias)
    exponent = c.apply(e.SubtractOp, field, shift)
    others = c.apply(e.AndOp, bits, ~(most << fraction))
    half = c.apply(e.OrOp, others, bias << fraction)
    mantissa = c.emit(e.BitcastConvertOp, half, type=type_of(x))
    is_zero = compare(c, x, "EQ", 0)
    is_whole = c.apply(e.OrOp, is_zero, compare(c, field, "EQ", most))  # inf and NaN
    return [
        c.convert(c.apply(e.SelectOp, is_whole, x, mantissa), c.element),
        c.convert(c.apply(e.SelectOp, is_whole, 0, exponent), c.types[1].element_type),
    ]


def _angle(c: AtenCall) -> SSAValue:
    """The angle of numbers in the complex plane: for real ones, 0 or pi, or NaN."""
    x = c["self"]
    if is_complex(type_of(x).element_type):
        real, imaginary = (c.emit(kind, x) for kind in (e.RealOp, e.ImagOp))
        return c.apply(e.Atan2Op, imaginary, real)
    x = c.tensor()
    side = c.apply(e.SelectOp, compare(c, x, "LT", 0), c.splat(pi, type_of(x)), 0)
    return c.apply(e.SelectOp, compare(c, x, "NE", x), x, side)


def _complex(c: AtenCall) -> SSAValue:
    element = real_element(c.element)
    parts = (c.tensor(name, element) for name in ("real", "imag"))
    return c.emit(e.ComplexOp, *(c.broadcast(part, c.shape) for part in parts))


def _divided_log(base: float) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        return c.apply(e.MultiplyOp, c.emit(e.LogOp, c.tensor()), 1 / log(base))

    return convert


def _bits(op_type: type[TensorOp]) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        if not isinstance(c.element, IntegerType):
            raise Unsupported(f"with elements of type {c.element}")
        return c.apply(op_type, c.tensor(), c.operand("other"))

    return convert


def _divisor(c: AtenCall) -> SSAValue:
    """`gcd`, by Euclid's algorithm for all elements, until no remainder is left."""
    loop = Loop(c)
    first, second = (
        loop.carry(c.broadcast(_size(c, name), c.shape)) for name in ("self", "other")
    )
    body = loop.body
    is_left = compare(body, second, "NE", 0)
    divisor = body.apply(e.SelectOp, is_left, second, 1)
    rest = body.apply(e.RemainderOp, first, divisor)
    following = (
        body.apply(e.SelectOp, is_left, second, first),
        body.apply(e.SelectOp, is_left, rest, 0),
    )

    def more(b: TensorBuilder, carried: Sequence[SSAValue]) -> SSAValue:
        return b.reduce("or", compare(b, carried[1], "NE", 0), range(len(c.shape)))

    return loop.close(following, more)[0]


def _multiple(c: AtenCall) -> SSAValue:
    """`lcm`: 0 if one of the numbers is 0."""
    divisor = _divisor(c)
    divisor = c.apply(e.SelectOp, compare(c, divisor, "NE", 0), divisor, 1)
    quotient = c.apply(e.DivideOp, _size(c, "self"), divisor)
    product = c.apply(e.MultiplyOp, quotient, _size(c, "other"))
    # PyTorch computes in 32 bits at least, so the absolute value of a product that
    # exceeds its type is taken before it is cut to fewer bits.
    is_narrow = element_bytes(c.element) < 4
    return product if is_narrow or _is_unsigned(c) else c.emit(e.AbsOp, product)


def _size(c: AtenCall, name: str) -> SSAValue:
    """The absolute value of an integer."""
    return c.tensor(name) if _is_unsigned(c) else c.emit(e.AbsOp, c.tensor(name))


def _is_unsigned(c: AtenCall) -> bool:
    element = c.element
    if not isinstance(element, IntegerType):
        raise Unsupported(f"with elements of type {element}")
    return cast(AnyInteger, element).signedness.data is Signedness.UNSIGNED


_UNARY: Mapping[str, type[TensorOp]] = {
    "bitwise_not": e.NotOp,
    "cos": e.CosineOp,
    "erf": e.ErfOp,
    "erfc": e.ErfcOp,
    "exp": e.ExponentialOp,
    "expm1": e.ExponentialMinusOneOp,
    "log": e.LogOp,
    "log1p": e.LogPlusOneOp,
    "neg": e.NegateOp,
    "rsqrt": e.RsqrtOp,
    "sigmoid": e.LogisticOp,
    "sign": e.SignOp,
    "sin": e.SineOp,
    "sqrt": e.SqrtOp,
    "tan": e.TanOp,
    "tanh": e.TanhOp,
}

_BINARY: Mapping[str, type[TensorOp]] = {
    "atan2": e.Atan2Op,
    "fmod": e.RemainderOp,
    "maximum": e.MaximumOp,
    "minimum": e.MinimumOp,
    "mul": e.MultiplyOp,
}

_DIRECTIONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}

_WRITTEN = {
    **{"special_zeta": "zeta", "erfinv": "erf_inv", "i0": "bessel_i0"},
    **{f"special_{name}": f"bessel_{name}" for name in ("i0e", "i1", "i1e")},
    **{f"special_bessel_{name}": f"bessel_{name}" for name in ("j0", "j1")},
    **{f"special_{name}": name for name in ("erfcx", "ndtri")},
    **{name: name for name in ("acos", "asin", "atan", "cosh", "sinh")},
    **{name: name for name in ("acosh", "asinh", "atanh")},
    **{name: name for name in ("digamma", "hypot", "lgamma")},
}
"""The names of formulas in `written.py`, by PyTorch's names."""

CONVERSIONS: Mapping[str, Conversion] = {
    **{name: _written(ours) for name, ours in _WRITTEN.items()},
    **{name: _emitted(op_type) for name, op_type in _UNARY.items()},
    **{name: _binary(op_type) for name, op_type in _BINARY.items()},
    **{name: _compared(direction) for name, direction in _DIRECTIONS.items()},
    "__lshift__": _bits(e.ShiftLeftOp),
    "__rshift__": _bits(e.ShiftRightArithmeticOp),
    "_to_copy": lambda c: c.tensor(),
    "add": _add,
    "angle": _angle,
    "prims::convert_element_type": lambda c: c.tensor("a"),
    "prims::fma": _multiply_add,
    "bitwise_and": _bits(e.AndOp),
    "bitwise_left_shift": _bits(e.ShiftLeftOp),
    "bitwise_or": _bits(e.OrOp),
    "bitwise_right_shift": _bits(e.ShiftRightArithmeticOp),
    "bitwise_xor": _bits(e.XorOp),
    "ceil": _rounded(e.CeilOp),
    "clamp": _clamp,
    "complex": _complex,
    "copysign": _copy_sign,
    "div": _divide,
    "elu": _elu,
    "floor": _rounded(e.FloorOp),
    "frexp": _mantissa_and_exponent,
    "gcd": _divisor,
    "gelu": _gelu,
    "hardtanh": _hardtanh,
    "isinf": _is_infinite,
    "isnan": _is_nan,
    "lcm": _multiple,
    "leaky_relu": _leaky_relu,
    "log10": _divided_log(10),
    "log2": _divided_log(2),
    "logical_and": _logical(e.AndOp),
    "logical_not": _logical_not,
    "logical_or": _logical(e.OrOp),
    "logical_xor": _logical(e.XorOp),
    "nextafter": lambda c: next_after(c, c.tensor(), c.tensor("other")),
    "polygamma": _polygamma,
    "pow": _power,
    "reciprocal": _formula(reciprocal),
    "relu": lambda c: c.apply(e.MaximumOp, c.tensor(), 0),
    "remainder": lambda c: modulo(c, c.tensor(), c.tensor("other")),
    "round": _round,
    "signbit": lambda c: is_negative(c, c["self"]),
    "sub": _subtract,
    "trunc": _formula(_truncated),
    "where": _where,
}
