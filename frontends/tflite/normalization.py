"""Converts L2 normalization and local response normalization.

For integers, LiteRT's reference kernel shifts the sum of squares by an even number of
bits, and computes its inverse square root by Newton's method, in 28 bits. Results have
7 fraction bits. The conversion uses arithmetic on 64-bit integers.
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import shape_of
from ..operators import Value
from ..unsupported import Unsupported
from ..windows import SpatialWindow, reduce_window
from ..written import Writer
from .elementwise import expect_numbers
from .fixed_point import BITS, Term, limited, product, shifted
from .node import Conversion, TFLiteNode

_SHORTEST = 1e-6
"""The least divisor for a vector of floats."""

_STEPS = 5
"""The number of steps of Newton's method."""

_POINT = 28
"""The fraction bits of its numbers, which are from -8 to 8."""

_HALF_ROOT = 1518500250
"""sqrt(2) / 2, in 31 bits."""

_RESULT_BITS = 7


def _inverse_root(x: Term) -> tuple[Term, Term]:
    """1 / sqrt(x) for integers: a 31-bit number, and the right shift to apply to it."""
    is_large = x >= (1 << 29)
    number = shifted(x, 2).where(is_large, x)
    zeros = number.apply(e.CountLeadingZerosOp) - 32
    pairs = shifted(zeros - 1, 1) - 1
    number = number.apply(e.ShiftLeftOp, pairs * 2)
    shift = x.of(12).where(is_large, 11) - pairs
    half = shifted(shifted(number, 1) + 1, 1)
    root = x.of(1 << _POINT)
    for _ in range(_STEPS):
        cube = product(product(root, root), root) * (1 << 6)
        more = product(root, 3 << (_POINT - 1)) - product(half, cube)
        root = more * (1 << 3)
    root = product(root, _HALF_ROOT)
    left = (-shift).apply(e.MaximumOp, 0)
    root = root.apply(e.ShiftLeftOp, left)
    is_least = x.compare("LE", 1)
    most = x.of((1 << BITS) - 1)
    return most.where(is_least, root), x.of(0).where(is_least, shift + left)


def _of_integers(n: TFLiteNode, axis: int) -> SSAValue:
    if n.tensor(0).dtype.name != "int8":
        raise Unsupported(f"with quantized elements of type {n.tensor(0).kind}")
    x = n.centered(0)
    squares = n.reduce("add", n.apply(e.MultiplyOp, x, x), [axis], keep=True)
    term = Writer(n).term
    root, shift = _inverse_root(term(n.convert(squares, i64)))

    def along(x: Term) -> Term:
        return term(n.broadcast(x.value, shape_of(n.value(0))))

    left = along((_RESULT_BITS - shift).apply(e.MaximumOp, 0))
    right = along((shift - _RESULT_BITS).apply(e.MaximumOp, 0))
    steps = term(n.convert(x, i64)).apply(e.ShiftLeftOp, left)
    y = product(steps, along(root))
    # Divides by a power of two, which may be 1, and rounds, ties away from 0.
    half = shifted(y.of(1).apply(e.ShiftLeftOp, right), 1)
    down = shifted(y, 63).where(right.compare("GT", 0))
    y = shifted(y + half + down, right)
    return limited(n, y.value, -128, 127)


def _l2_normalize(n: TFLiteNode) -> Sequence[Value]:
    x = n.value(0)
    axis = len(shape_of(x)) - 1
    if n.is_quantized:
        return [_of_integers(n, axis)]
    total = n.reduce("add", n.apply(e.MultiplyOp, x, x), [axis], keep=True)
    length = n.apply(e.MaximumOp, n.emit(e.SqrtOp, total), _SHORTEST)
    return [n.activated(n.apply(e.DivideOp, x, length))]


def _by_neighbors(n: TFLiteNode) -> Sequence[Value]:
    """x / (bias + alpha * the sum of squares of neighboring channels) ^ beta"""
    expect_numbers(n)
    x, radius = n.value(0), n.option("Radius")
    ones = [1]
    window = SpatialWindow([2 * radius + 1], ones, ones, [radius], [radius])
    squares = n.apply(e.MultiplyOp, x, x)
    near = reduce_window(n, "add", squares, window, len(shape_of(x)) - 1)
    divisor = n.apply(e.MultiplyOp, near, n.option("Alpha"))
    divisor = n.apply(e.AddOp, divisor, n.option("Bias"))
    return [n.apply(e.DivideOp, x, n.apply(e.PowerOp, divisor, n.option("Beta")))]


CONVERSIONS: Mapping[str, Conversion] = {
    "L2_NORMALIZATION": _l2_normalize,
    "LOCAL_RESPONSE_NORMALIZATION": _by_neighbors,
}
