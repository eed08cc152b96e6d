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
from .fixed_point import round_away, shifted
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
    n: TFLiteNode, x: Term, function: Callable[[Array], Array], low: float, high: float
) -> Term:
    """The function's values, which are from -1 to 1, in 15 bits, for 16-bit numbers
    that stand for the range from `low` to `high`.

    Half of the error in the middle of a step is taken off where the step begins.
    """
    step = (high - low) / _STEPS
    at = low + np.arange(_STEPS + 1) * step
    values, middles = (function(x) * (1 << 15) for x in (at, at[:-1] + step / 2))
    entries = round_away(values)
    between = round_away((values[1:] + entries[:-1]) / 2)
    error = between - round_away(middles)
    entries[:-1] -= round_away(error / 2)
    table = np.clip(entries, _SHORT.min, _SHORT.max).astype(np.int16)
    index = shifted(x, _STEP_BITS) + _STEPS // 2
    rest = x & ((1 << _STEP_BITS) - 1)
    below, above = _taken(n, table, index), _taken(n, table, index + 1)
    return below + shifted((above - below) * rest + (1 << (_STEP_BITS - 1)), _STEP_BITS)


_ENTRIES, _PER_UNIT = 256, 24
"""Of the table of the logistic function, and how many of them lie between 0 and 1."""


def sigmoid(n: TFLiteNode, *, is_tanh: bool) -> SSAValue:
    """The logistic function, or tanh(x) = 2 * logistic(2x) - 1, of the first input."""
    tensor, result = n.tensor(0), n.results[0]
    if tensor.zeros.any() or result.zeros.any():
        raise Unsupported("with zero points of 16-bit numbers")
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
