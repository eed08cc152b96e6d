"""Elementwise operations that NumPy computes by a ufunc, or in a few calls.

Formulas (`tensorplan.dialects.tgraph.formulas`) express all others in these.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ....dialects.dtypes import Array, DType, between
from ....dialects.tgraph import elementwise as ops
from ....dialects.tgraph.formulas import (
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    INTEGER,
    Forms,
)
from ...calls import Call, assign
from ..arrays import copy, same_memory
from . import special
from .base import ufunc_call

TILE = 1 << 16
"""The elements of a tile: measured best of 2^12 to 2^18 (f32, 1 MiB of L2 cache)."""


@dataclass(frozen=True)
class Operand:
    """An array to read, and its value if that is a constant number."""

    array: Array
    splat: Array | None = None


Temporary: TypeAlias = Callable[[DType], Array]
"""Returns an uninitialized array of the output's shape, valid within one form."""

Emit: TypeAlias = Callable[[Sequence[Operand], Array, Temporary], list[Call]]
"""`(inputs, out, temporary) -> calls`; `out` may be the memory of any input."""

COMPARISONS: Mapping[str, np.ufunc] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def by_ufunc(function: np.ufunc) -> Emit:
    is_extreme = function in (np.maximum, np.minimum)

    def emit(inputs: Sequence[Operand], out: Array, _: Temporary) -> list[Call]:
        arrays = [_spread(x, out) if is_extreme else x.array for x in inputs]
        return [ufunc_call(function, *arrays, out)]

    return emit


def _spread(operand: Operand, like: Array) -> Array:
    """An array for a constant. With a scalar operand, NumPy's maximum and minimum use
    no vector instructions and take five times as long."""
    if operand.splat is None or like.size > TILE:
        return operand.array
    constants = _constants(operand.splat.tobytes(), operand.splat.dtype)
    return constants[: like.size].reshape(like.shape)


@lru_cache(16)
def _constants(value: bytes, dtype: DType) -> Array:
    return np.full(TILE, np.frombuffer(value, dtype))


def copied(inputs: Sequence[Operand], out: Array, temporary: Temporary) -> list[Call]:
    return copy(out, inputs[0].array)


def recast(inputs: Sequence[Operand], out: Array, temporary: Temporary) -> list[Call]:
    return copy(out, inputs[0].array.view(out.dtype))


def converted(
    inputs: Sequence[Operand], out: Array, temporary: Temporary
) -> list[Call]:
    x = inputs[0].array
    if out.dtype.kind == "b":
        return [(np.not_equal, (x, np.zeros((), x.dtype), out))]
    if (first := between(x.dtype, out.dtype)) is not None:
        made = temporary(first)
        return [*copy(made, x), *copy(out, made)]
    return copy(out, x)


_LARGEST_INTEGER = 8
"""In bytes."""


def selected(inputs: Sequence[Operand], out: Array, temporary: Temporary) -> list[Call]:
    """Selects by bit operations, because NumPy's masked copies take ten times as long.

    With a mask of all bits or none: `((x ^ y) & mask) ^ y`.
    """
    condition, on_true, on_false = inputs
    if out.itemsize > _LARGEST_INTEGER:
        arrays = [condition.array, on_true.array, on_false.array]
        return [(assign, (np.where, arrays, out))]
    if same_memory(on_true.array, on_false.array):
        return copy(out, on_true.array)
    if _all_bits_zero(on_false):
        return keep_where(condition.array, on_true.array, out, temporary)
    bits = np.dtype(f"i{out.itemsize}")
    mask, calls = _mask(condition.array, bits, temporary)
    x, y, z = (a.view(bits) for a in (on_true.array, on_false.array, out))
    if _all_bits_zero(on_true) or same_memory(out, on_false.array):
        calls.append((np.invert, (mask, mask)))
        x, y = y, x
    if _all_bits_zero(on_true):
        return [*calls, (np.bitwise_and, (x, mask, z))]
    return [
        *calls,
        (np.bitwise_xor, (x, y, z)),
        (np.bitwise_and, (z, mask, z)),
        (np.bitwise_xor, (z, y, z)),
    ]


def keep_where(
    condition: Array, x: Array, out: Array, temporary: Temporary
) -> list[Call]:
    """Sets `out` to `x` where the condition holds, and to zero elsewhere."""
    bits = np.dtype(f"i{x.itemsize}")
    mask, calls = _mask(condition, bits, temporary)
    return [*calls, (np.bitwise_and, (x.view(bits), mask, out.view(bits)))]


def _mask(
    condition: Array, bits: DType, temporary: Temporary
) -> tuple[Array, list[Call]]:
    """An integer array with all bits set where the condition holds, else none."""
    mask = temporary(bits)
    narrow = temporary(np.dtype(np.int8)) if bits.itemsize > 1 else mask
    negate = (np.negative, (condition.view(np.int8), narrow))
    return mask, [negate, *copy(mask, narrow)]


def _all_bits_zero(operand: Operand) -> bool:
    return operand.splat is not None and not any(operand.splat.tobytes())


def _shift(function: np.ufunc, kind: str) -> Emit:
    """A shift of the bits as signed ("i") or unsigned ("u") integers."""

    def emit(inputs: Sequence[Operand], out: Array, _: Temporary) -> list[Call]:
        bits = np.dtype(f"{kind}{out.itemsize}")
        x, amount = (operand.array.view(bits) for operand in inputs)
        return [(function, (x, amount, out.view(bits)))]

    return emit


def _computed(function: Callable[..., Array]) -> Emit:
    """A function that allocates its result, for one tile."""

    def emit(inputs: Sequence[Operand], out: Array, _: Temporary) -> list[Call]:
        return [(assign, (function, [operand.array for operand in inputs], out))]

    return emit


def _joined(inputs: Sequence[Operand], out: Array, temporary: Temporary) -> list[Call]:
    real, imaginary = (operand.array for operand in inputs)
    return [*copy(np.real(out), real), *copy(np.imag(out), imaginary)]


def _real(inputs: Sequence[Operand], out: Array, temporary: Temporary) -> list[Call]:
    return copy(out, np.real(inputs[0].array))


def _imag(inputs: Sequence[Operand], out: Array, temporary: Temporary) -> list[Call]:
    return copy(out, np.imag(inputs[0].array))


FORMS: Forms = {
    ops.AbsOp: {ANY: np.absolute},
    ops.AddOp: {ANY: np.add},
    ops.AndOp: {ANY: np.bitwise_and},
    ops.Atan2Op: {ANY: np.arctan2},
    ops.CbrtOp: {ANY: np.cbrt},
    ops.CeilOp: {ANY: np.ceil},
    ops.ComplexOp: {ANY: _joined},
    ops.CosineOp: {ANY: np.cos},
    ops.DivideOp: {COMPLEX: _computed(special.divide), FLOAT: np.divide},
    ops.ErfOp: {FLOAT: _computed(special.erf)},
    ops.ErfcOp: {FLOAT: _computed(special.erfc)},
    ops.ExponentialMinusOneOp: {COMPLEX: _computed(special.expm1), ANY: np.expm1},
    ops.ExponentialOp: {ANY: np.exp},
    ops.FloorOp: {ANY: np.floor},
    ops.ImagOp: {ANY: _imag},
    ops.LogOp: {ANY: np.log},
    ops.LogPlusOneOp: {COMPLEX: _computed(special.log1p), ANY: np.log1p},
    ops.MaximumOp: {ANY: np.maximum},
    ops.MinimumOp: {ANY: np.minimum},
    ops.MultiplyOp: {ANY: np.multiply},
    ops.NegateOp: {ANY: np.negative},
    ops.NotOp: {ANY: np.invert},
    ops.OrOp: {ANY: np.bitwise_or},
    ops.PopcntOp: {BITS: _computed(special.popcnt)},
    ops.PowerOp: {COMPLEX + FLOAT: np.power},
    ops.RealOp: {ANY: _real},
    ops.RemainderOp: {FLOAT: np.fmod},
    ops.RoundNearestEvenOp: {ANY: np.rint},
    ops.ShiftLeftOp: {INTEGER: _shift(np.left_shift, "u")},
    ops.ShiftRightArithmeticOp: {INTEGER: _shift(np.right_shift, "i")},
    ops.ShiftRightLogicalOp: {INTEGER: _shift(np.right_shift, "u")},
    ops.SignOp: {FLOAT + INTEGER: np.sign},
    ops.SineOp: {ANY: np.sin},
    ops.SqrtOp: {ANY: np.sqrt},
    ops.SubtractOp: {ANY: np.subtract},
    ops.TanOp: {ANY: np.tan},
    ops.TanhOp: {ANY: np.tanh},
    ops.XorOp: {ANY: np.bitwise_xor},
}
"""Ufuncs, which check their element types themselves, and emitters."""
