"""Elementwise operations, conversions and comparisons."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...dtypes import Array, between
from .. import elementwise
from ..base import TensorOp
from .results import Evaluate, result_dtype


def _trunc_divide(a: int, b: int) -> int:
    """As in XLA: -1 for a division by zero."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _trunc_remainder(a: int, b: int) -> int:
    """As in XLA: the dividend for a division by zero."""
    return a if b == 0 else a - b * _trunc_divide(a, b)


def _integer_power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def _on_integers(
    function: Callable[[int, int], int], on_floats: Callable[[Array, Array], Array]
) -> Callable[[Array, Array], Array]:
    """Computes integers one element at a time; results wrap around."""

    def evaluate(x: Array, y: Array) -> Array:
        if x.dtype.kind not in "iu":
            return on_floats(x, y)
        pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
        mask = (1 << 8 * x.dtype.itemsize) - 1
        bits = [function(int(a), int(b)) & mask for a, b in pairs]
        unsigned = np.array(bits, f"uint{8 * x.dtype.itemsize}").reshape(x.shape)
        return unsigned.view(x.dtype)

    return evaluate


def _clamp(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _quotient(x: Array, y: Array) -> Array:
    """Divides; complex numbers as in C, where NumPy's infinities and zeros give NaN."""
    result = np.divide(x, y)
    if x.dtype.kind == "c":
        for place in np.ndindex(x.shape):
            result[place] = _complex_quotient(x[place], y[place], result[place])
    return result


def _complex_quotient(x: Any, y: Any, quotient: Any) -> Any:
    """A complex quotient by annex G.5.1 of the C standard."""
    if y == 0:
        scale, product = np.copysign(np.inf, y.real), x
    elif not (np.isnan(quotient.real) and np.isnan(quotient.imag)):
        return quotient
    elif np.isfinite(x) and np.isinf(y):
        scale, product = 0, x * np.conj(_direction(y))
    elif np.isinf(x) and np.isfinite(y):
        scale, product = np.inf, _direction(x) * np.conj(y)
    else:
        return quotient
    return complex(scale * product.real, scale * product.imag)


def _direction(x: Any) -> complex:
    """Each part that is infinite becomes 1, others 0, with their signs."""
    real, imaginary = (np.copysign(np.isinf(part), part) for part in (x.real, x.imag))
    return complex(real, imaginary)


def _logistic(x: Array) -> Array:
    return _quotient(np.ones_like(x), 1 + np.exp(-x))


def _expm1(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.expm1(x)
    return _complex(np.real(np.expm1(x)), np.imag(np.exp(x)))


def _log1p(x: Array) -> Array:
    """log(1 + x); for complex numbers near 0 from `|1 + x|^2 - 1`."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    excess = np.real(x) * (2 + np.real(x)) + np.imag(x) ** 2
    far = np.log(np.abs(1 + x))
    size = np.where(np.abs(excess) < 0.5, np.log1p(excess) / 2, far)
    return _complex(size, np.angle(1 + x))


def _rsqrt(x: Array) -> Array:
    return _quotient(np.ones_like(x), np.sqrt(x))


def _on_numbers(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Computes one element at a time."""

    def evaluate(x: Array) -> Array:
        results = [function(float(number)) for number in x.ravel()]
        return np.array(results).reshape(x.shape)

    return evaluate


def _round_nearest_afz(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)


def _bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def _complex(real: Array, imaginary: Array) -> Array:
    result = real.astype(np.result_type(real.dtype, 1j))
    result.imag = imaginary
    return result


def _popcnt(x: Array) -> Array:
    return np.bitwise_count(_bits(x))


def _count_leading_zeros(x: Array) -> Array:
    lengths = [int(n).bit_length() for n in _bits(x).ravel().tolist()]
    return 8 * x.dtype.itemsize - np.array(lengths).reshape(x.shape)


def _shifted(
    function: Callable[[Array, Array], Array], kind: str
) -> Callable[[Array, Array], Array]:
    """Shifts bits as signed ("i") or unsigned ("u") integers.

    A shift by more bits than there are shifts out all bits but the sign.
    """

    def shift(x: Array, amount: Array) -> Array:
        width = 8 * x.dtype.itemsize
        wide = _bits(x).astype("u8") if kind == "u" else x.view(f"i{width // 8}")
        rest = np.minimum(_bits(amount), width - 1).astype(wide.dtype)
        shifted = function(wide, rest)
        if kind == "u":
            shifted = np.where(_bits(amount) >= width, 0, shifted)
        return shifted.astype(f"u{width // 8}").view(x.dtype)

    return shift


_ELEMENTWISE: Mapping[type[TensorOp], Callable[..., Array]] = {
    elementwise.AbsOp: np.abs,
    elementwise.AddOp: np.add,
    elementwise.AndOp: np.bitwise_and,
    elementwise.Atan2Op: np.arctan2,
    elementwise.CbrtOp: np.cbrt,
    elementwise.CeilOp: np.ceil,
    elementwise.ClampOp: _clamp,
    elementwise.ComplexOp: _complex,
    elementwise.CosineOp: np.cos,
    elementwise.CountLeadingZerosOp: _count_leading_zeros,
    elementwise.DivideOp: _on_integers(_trunc_divide, _quotient),
    elementwise.ErfOp: _on_numbers(math.erf),
    elementwise.ErfcOp: _on_numbers(math.erfc),
    elementwise.ExponentialMinusOneOp: _expm1,
    elementwise.ExponentialOp: np.exp,
    elementwise.FloorOp: np.floor,
    elementwise.ImagOp: np.imag,
    elementwise.IsFiniteOp: np.isfinite,
    elementwise.LogOp: np.log,
    elementwise.LogPlusOneOp: _log1p,
    elementwise.LogisticOp: _logistic,
    elementwise.MaximumOp: np.maximum,
    elementwise.MinimumOp: np.minimum,
    elementwise.MultiplyOp: np.multiply,
    elementwise.NegateOp: np.negative,
    elementwise.NotOp: np.invert,
    elementwise.OrOp: np.bitwise_or,
    elementwise.PopcntOp: _popcnt,
    elementwise.PowerOp: _on_integers(_integer_power, np.power),
    elementwise.RealOp: np.real,
    elementwise.RemainderOp: _on_integers(_trunc_remainder, np.fmod),
    elementwise.RoundNearestAfzOp: _round_nearest_afz,
    elementwise.RoundNearestEvenOp: np.rint,
    elementwise.RsqrtOp: _rsqrt,
    elementwise.SelectOp: np.where,
    elementwise.ShiftLeftOp: _shifted(np.left_shift, "u"),
    elementwise.ShiftRightArithmeticOp: _shifted(np.right_shift, "i"),
    elementwise.ShiftRightLogicalOp: _shifted(np.right_shift, "u"),
    elementwise.SignOp: np.sign,
    elementwise.SineOp: np.sin,
    elementwise.SqrtOp: np.sqrt,
    elementwise.SubtractOp: np.subtract,
    elementwise.TanOp: np.tan,
    elementwise.TanhOp: np.tanh,
    elementwise.XorOp: np.bitwise_xor,
}


def _elementwise(op: TensorOp, *inputs: Array) -> Array:
    return np.asarray(_ELEMENTWISE[type(op)](*inputs), result_dtype(op))


_COMPARE: Mapping[str, Callable[..., Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(op: elementwise.CompareOp, x: Array, y: Array) -> Array:
    return _COMPARE[op.direction.data](x, y)


def _convert(op: elementwise.ConvertOp, x: Array) -> Array:
    dtype = result_dtype(op)
    if (first := between(x.dtype, dtype)) is not None:
        x = x.astype(first)
    return x != 0 if dtype.kind == "b" else x.astype(dtype)


def _bitcast_convert(op: elementwise.BitcastConvertOp, x: Array) -> Array:
    return x.view(result_dtype(op))


EVALUATIONS: Mapping[type[TensorOp], Evaluate] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    elementwise.CompareOp: _compare,
    elementwise.ConvertOp: _convert,
    elementwise.BitcastConvertOp: _bitcast_convert,
}
