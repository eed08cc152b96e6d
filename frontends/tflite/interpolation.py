"""Functions of 16-bit integers, interpolated linearly between the entries of a table,
as in LiteRT's reference kernels.
"""

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.terms import Term as AnyTerm
from ..unsupported import Unsupported
from ..written import Writer
from .fixed_point import nearest, shifted
from .node import TFLiteNode

Term = AnyTerm[SSAValue]

_SHORT = np.iinfo(np.int16)
_STEPS, _STEP_BITS = 512, 7
"""The number of steps in the 16-bit range, and the width of a step in bits."""


def wide(n: TFLiteNode, x: SSAValue) -> Term:
    """Converts integers to 32 bits."""
    return Writer(n).term(n.convert(x, i32))


def _taken(n: TFLiteNode, table: Array, index: Term) -> Term:
    return wide(n, n.take(n.constant(table), index.value, 0))


def interpolated(
    n: TFLiteNode,
    x: Term,
    function: Callable[[Array], Array],
    low: float | np.float32,
    high: float | np.float32,
    per_unit: float | np.float32 = 1 << 15,
) -> Term:
    """`function` of `x`, whose 16-bit range represents `low` to `high`.

    The result has `per_unit` for 1. The types of `low` and `high` set the precision.
    Half of the interpolation error in the middle of a step is subtracted at its start.
    """
    step = (high - low) / _STEPS
    numbers = np.arange(_STEPS, dtype=np.asarray(low).dtype)
    at, after = low + numbers * step, low + (numbers + 1) * step
    values, middles, nexts = (
        function(x) * per_unit for x in (at, at + step / 2, after)
    )
    entries = _rounded(values)
    error = _rounded((nexts + entries) / 2) - _rounded(middles)
    last = _rounded(function(np.asarray([high])) * per_unit)
    entries = np.append(entries - _rounded(error / 2), last)
    table = np.clip(entries, _SHORT.min, _SHORT.max).astype(np.int16)
    index = shifted(x, _STEP_BITS) + _STEPS // 2
    rest = x & ((1 << _STEP_BITS) - 1)
    slopes = table[1:] - table[:-1]  # also in 16 bits
    below, slope = _taken(n, table[:-1], index), _taken(n, slopes, index)
    return below + shifted(slope * rest + (1 << (_STEP_BITS - 1)), _STEP_BITS)


def _rounded(x: Array) -> Array:
    return nearest(x).astype(x.dtype)


def of_reals(n: TFLiteNode, function: Callable[[Array], Array]) -> SSAValue:
    """Converts a function in double precision to one of 16-bit integers.

    The table is made in single precision, as in LiteRT.
    """
    _expect_no_zero_points(n)
    source, result = n.tensor(0), n.results[0]
    low, high = (source.scale * np.float32(x) for x in (_SHORT.min, _SHORT.max))
    least, most = (result.scale * np.float32(x) for x in (_SHORT.min, _SHORT.max))

    def single(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(np.float32)

    per_unit = np.float32(1 << 16) / (most - least)
    with np.errstate(all="ignore"):
        y = interpolated(n, wide(n, n.value(0)), single, low, high, per_unit)
    return n.convert(y.value, i16)


def _expect_no_zero_points(n: TFLiteNode) -> None:
    if n.tensor(0).zeros.any() or n.results[0].zeros.any():
        raise Unsupported("with zero points of 16-bit numbers")


_ENTRIES, _PER_UNIT = 256, 24
"""The number of entries in the table of the logistic function: total and per unit."""


def sigmoid(n: TFLiteNode, *, is_tanh: bool) -> SSAValue:
    """The logistic function, or tanh(x) = 2 * logistic(2x) - 1, of the first input."""
    _expect_no_zero_points(n)
    tensor = n.tensor(0)
    bits = 8 if is_tanh else 9  # of the position between two entries
    multiplier, shift = _in_steps(float(tensor.scale), most=int(is_tanh))
    x = wide(n, n.value(0)) * multiplier
    x = shifted(x + ((1 << shift) >> 1), shift) if shift else x
    size = abs(x)
    index = shifted(size, bits)
    is_far = index >= _ENTRIES - 1
    index = index.apply(e.MinimumOp, _ENTRIES - 2)
    table = _logistic_table()
    below, above = _taken(n, table, index), _taken(n, table, index + 1)
    y = below * (1 << bits) + (above - below) * (size & ((1 << bits) - 1))
    end = ((1 << 16) - 1) << bits if is_tanh else ((1 << 15) - 1) << (bits + 1)
    y = y.of(end).where(is_far, y)
    half = 1 << (bits + 15)
    middle, dropped = (half, bits) if is_tanh else (0, bits + 1)
    nudge = 1 << (dropped - 1)
    positive = y + (nudge - middle)
    negative = (half * (1 if is_tanh else 2) + nudge - 1) - y
    y = positive.where(x >= 0, negative)
    return n.convert(shifted(y, dropped).value, i16)


def _logistic_table() -> Array:
    """Entries in 16 bits. Half of the interpolation error in the middle of a step is
    added at its start.
    """
    halves = np.arange(2 * _ENTRIES + 1) / (2 * _PER_UNIT)
    values = (1 << 16) / (1 + np.exp(-halves))
    lacking = values[1::2] - (values[:-1:2] + values[2::2]) / 2
    table = np.rint(values[:-1:2] + lacking / 2).astype(np.int32)
    table[-1] = (1 << 16) - 1
    return table


def _in_steps(scale: float, most: int) -> tuple[int, int]:
    """The multiplier and the right shift that convert numbers to steps, 4096 * 3 for 1.

    A scale that is a power of two is exact: the multiplier is 3 * 2^k, with k from 0 to
    `most`.
    """
    exponent = np.log2(scale)
    power = round(exponent)
    if abs(exponent - power) < 1e-3 and 0 <= power + 12 <= most:
        return 3 << (power + 12), 0
    factor, shift = scale * 4096 * 3, 0
    while factor <= _SHORT.max / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return int(factor), shift
