"""Functions of 16-bit numbers, as LiteRT's reference kernels compute them: between the
entries of a table, by a straight line."""

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
"""Of the range of 16-bit numbers, and how many numbers have one entry, in bits."""


def wide(n: TFLiteNode, x: SSAValue) -> Term:
    """Integers in 32 bits."""
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
    """The function's values, `per_unit` for 1, as 16-bit numbers, for those that stand
    for the range from `low` to `high`, which have the precision of the computation.

    Half of the error in the middle of a step is taken off where the step begins.
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
    slopes = table[1:] - table[:-1]  # of 16 bits, too
    below, slope = _taken(n, table[:-1], index), _taken(n, slopes, index)
    return below + shifted(slope * rest + (1 << (_STEP_BITS - 1)), _STEP_BITS)


def _rounded(x: Array) -> Array:
    return nearest(x).astype(x.dtype)


def of_reals(n: TFLiteNode, function: Callable[[Array], Array]) -> SSAValue:
    """A function of floats in double precision as one of 16-bit numbers: LiteRT makes
    the table in single precision."""
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
"""Of the table of the logistic function, and how many of them lie between 0 and 1."""


def sigmoid(n: TFLiteNode, *, is_tanh: bool) -> SSAValue:
    """The logistic function, or tanh(x) = 2 * logistic(2x) - 1, of the first input."""
    _expect_no_zero_points(n)
    tensor = n.tensor(0)
    bits = 8 if is_tanh else 9  # of a place between two entries
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
    """In 16 bits. Half of what a straight line lacks in the middle of a step is added
    where the step begins."""
    halves = np.arange(2 * _ENTRIES + 1) / (2 * _PER_UNIT)
    values = (1 << 16) / (1 + np.exp(-halves))
    lacking = values[1::2] - (values[:-1:2] + values[2::2]) / 2
    table = np.rint(values[:-1:2] + lacking / 2).astype(np.int32)
    table[-1] = (1 << 16) - 1
    return table


def _in_steps(scale: float, most: int) -> tuple[int, int]:
    """What numbers are multiplied with, and by how many bits they are shifted down
    then, so that they count 1/24 of an entry's place: 4096 * 3 for 1.

    A scale that is a power of two is exact: 3 * 2^k, with k from 0 to `most`.
    """
    exponent = np.log2(scale)
    power = round(exponent)
    if abs(exponent - power) < 1e-3 and 0 <= power + 12 <= most:
        return 3 << (power + 12), 0
    factor, shift = scale * 4096 * 3, 0
    while factor <= _SHORT.max / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return int(factor), shift
