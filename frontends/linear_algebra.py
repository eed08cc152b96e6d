"""Linear algebra for all frontends: factorizations, solvers, matrix functions."""

from functools import partial, reduce
from math import factorial, log
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, f64, i64
from xdsl.ir import SSAValue

from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph import matrices as m
from ..dialects.tgraph.base import with_element
from ..dialects.tgraph.elements import is_complex, real_element
from ..dialects.tgraph.shaping import IotaOp
from .builder import TensorBuilder, shape_of, type_of
from .formulas import clamp, compare, conjugate, matmul, triangle
from .indices import take_along
from .loops import Loop, read_row, rows_like, write_row
from .written import magnitude


def factored(
    b: TensorBuilder, op_type: type[m.MatrixOp], x: SSAValue, **properties: Any
) -> list[SSAValue]:
    """Emits the factorization `op_type` of `x`, and returns all of its results."""
    given = {**op_type.DEFAULTS, **properties}
    probe = op_type([x], result_types=[x.type] * 3, properties=given)
    types = probe.result_types_of([type_of(x)])
    probe.erase()
    return list(b.emit_all(op_type, [x], types, [], **given))


def identity(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Identity matrices with the shape of `x`."""
    rank = len(shape_of(x))
    type = with_element(type_of(x), i64)
    rows, columns = (
        b.emit(IotaOp, type=type, dimension=IntegerAttr(dim, i64))
        for dim in (rank - 2, rank - 1)
    )
    return b.convert(compare(b, rows, "EQ", columns), type_of(x).element_type)


def diagonal_of(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """The diagonals of matrices, as vectors."""
    masked = b.apply(e.MultiplyOp, x, identity(b, x))
    return b.reduce("add", masked, [len(shape_of(x)) - 1])


def parity(b: TensorBuilder, pivots: SSAValue, like: SSAValue) -> SSAValue:
    """The sign of the permutation by the row swaps `pivots`: -1 if the number of swaps
    is odd, or else 1."""
    last = len(shape_of(pivots)) - 1
    own = b.emit(IotaOp, type=type_of(pivots), dimension=IntegerAttr(last, i64))
    moved = compare(b, pivots, "NE", b.apply(e.AddOp, own, 1))
    signs = b.apply(e.SelectOp, moved, b.splat(-1, type_of(like)), 1)
    return b.reduce("multiply", signs, [last])


def permutation(b: TensorBuilder, pivots: SSAValue, *, inverse: bool) -> SSAValue:
    """The order of rows after each row, from the first to the last, was swapped with
    its pivot. If `inverse`, the swaps are applied from the last to the first. The order
    is 0-based, `pivots` are 1-based."""
    *batch, count = shape_of(pivots)
    axis, counter = len(batch), TensorType(i64, [])
    loop = Loop(b)
    k, order = map(loop.carry, (b.splat(0, counter), b.iota(type_of(pivots), axis)))
    body = loop.body
    at = body.apply(e.SubtractOp, count - 1, k) if inverse else k
    own = read_row(body, order, axis, at)
    number = body.apply(e.SubtractOp, read_row(body, pivots, axis, at), 1)
    number = body.reshape(number, [*batch, 1])
    other = body.reshape(take_along(body, order, number, axis), batch)
    is_other = compare(body, body.iota(type_of(order), axis), "EQ", number)
    own = body.reshape(own, [*batch, 1])
    moved = body.apply(e.SelectOp, is_other, own, order)
    moved = write_row(body, moved, axis, at, other)
    _, order = loop.close(
        [body.apply(e.AddOp, k, 1), moved],
        lambda b, values: compare(b, values[0], "LT", count),
    )
    return order


def matrix_exponential(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """The exponentials of matrices, by scaling and squaring.

    Each matrix is halved until its norm is at most 1. Its Taylor polynomial, which is
    then exact up to rounding, is evaluated by the method of Paterson and Stockmeyer
    (1973), which needs few products. The result is squared once per halving.
    """
    *batch, _, _ = shape_of(x)
    axis, element = len(batch), type_of(x).element_type
    absolute = magnitude(b, x) if is_complex(element) else b.emit(e.AbsOp, x)
    norm = b.reduce("maximum", b.reduce("add", absolute, [axis]), [axis])
    halvings = b.apply(e.MultiplyOp, b.emit(e.LogOp, norm), 1 / log(2))
    halvings = clamp(b, b.emit(e.CeilOp, halvings), 0, _MOST_HALVINGS)
    two = b.splat(2, type_of(halvings))
    scale = b.apply(e.PowerOp, two, b.emit(e.NegateOp, halvings))
    scale = b.convert(b.reshape(scale, [*batch, 1, 1]), element)
    result = _taylor(
        b, b.apply(e.MultiplyOp, x, scale), 6 if real_element(element) == f64 else 4
    )

    loop = Loop(b)
    most = b.reduce("maximum", halvings, range(axis))
    k, most, result = map(loop.carry, (b.splat(0, type_of(most)), most, result))
    body = loop.body
    more = compare(body, k, "LT", body.reshape(halvings, [*batch, 1, 1]))
    squared = body.apply(e.SelectOp, more, matmul(body, result, result), result)
    *_, result = loop.close(
        [body.apply(e.AddOp, k, 1), most, squared],
        lambda b, values: compare(b, values[0], "LT", values[1]),
    )
    return result


_MOST_HALVINGS = 1100
"""The limit of halvings. Finite matrices of f64 need fewer; it ends the loop for
matrices with infinite elements, which have no exponential."""


def _taylor(b: TensorBuilder, x: SSAValue, block: int) -> SSAValue:
    """The Taylor polynomial of the exponential, of degree `3 * block`."""
    powers = [identity(b, x), x]
    while len(powers) <= block:
        powers.append(matmul(b, powers[-1], x))

    def part(first: int, count: int) -> SSAValue:
        terms = [
            b.apply(e.MultiplyOp, power, 1 / factorial(first + n))
            for n, power in enumerate(powers[:count])
        ]
        return reduce(partial(b.apply, e.AddOp), terms)

    result = part(2 * block, block + 1)
    for first in (block, 0):
        product = matmul(b, powers[block], result)
        result = b.apply(e.AddOp, product, part(first, block))
    return result


def determinant(b: TensorBuilder, packed: SSAValue, pivots: SSAValue) -> SSAValue:
    """The determinants of matrices, from the results of `tgraph.lu`."""
    diagonal = diagonal_of(b, packed)
    product = b.reduce("multiply", diagonal, [len(shape_of(diagonal)) - 1])
    return b.apply(e.MultiplyOp, product, parity(b, pivots, diagonal))


def adjoint_of(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """The conjugate transposes of matrices."""
    *batch, rows, columns = range(len(shape_of(x)))
    return conjugate(b, b.transpose(x, [*batch, columns, rows]))


def reflected(
    b: TensorBuilder,
    packed: SSAValue,
    scales: SSAValue,
    x: SSAValue,
    *,
    left: bool,
    adjoint: bool,
) -> SSAValue:
    """Multiplies `x` by the factor `q` of `tgraph.qr`, or by the adjoint of `q`.

    The result is `q x` if `left`, or else `x q`. With the vectors `v` and the scales
    `d`, `q = 1 - v t v'`. Here `t` is `d (1 + u d)^-1`, and `u` is the strict upper
    triangle of `v' v` (the compact WY representation of Schreiber and Van Loan, 1989).
    The square matrix `q` is never formed.
    """
    if not left:  # x q = (q' x')'
        turned = adjoint_of(b, x)
        y = reflected(b, packed, scales, turned, left=True, adjoint=not adjoint)
        return adjoint_of(b, y)
    *batch, count = shape_of(scales)
    below = triangle(b, b.part(packed, len(batch) + 1, 0, count), -1, upper=False)
    v = b.apply(e.AddOp, below, identity(b, below))
    across = adjoint_of(b, v)
    column = b.reshape(scales, [*batch, count, 1])
    row = b.reshape(scales, [*batch, 1, count])
    factor = b.apply(e.MultiplyOp, matmul(b, across, v), row)
    y = matmul(b, across, x)
    if adjoint:
        y = b.apply(e.MultiplyOp, conjugate(b, column), y)
    y = b.emit(
        m.TriangularSolveOp,
        factor,
        y,
        type=type_of(y),
        lower=m.NO,
        unit_diagonal=m.YES,
        transpose_a=StringAttr("ADJOINT" if adjoint else "NO_TRANSPOSE"),
    )
    if not adjoint:
        y = b.apply(e.MultiplyOp, column, y)
    return b.apply(e.SubtractOp, x, matmul(b, v, y))


def _size(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Absolute values; for complex numbers, |real| + |imaginary|, as in LAPACK."""
    if not is_complex(type_of(x).element_type):
        return b.emit(e.AbsOp, x)
    type = with_element(type_of(x), real_element(type_of(x).element_type))
    parts = (b.emit(part, x, type=type) for part in (e.RealOp, e.ImagOp))
    return b.apply(e.AddOp, *(b.emit(e.AbsOp, part) for part in parts))


def tridiagonal_solved(
    b: TensorBuilder, lower: SSAValue, diagonal: SSAValue, upper: SSAValue, x: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Solves n x n tridiagonal systems with right sides `x` (batch x n x columns). Also
    returns which matrices are invertible (batch).

    The diagonals are batch x n; the first number of `lower` and the last one of `upper`
    lie outside of the matrix. The method is Gaussian elimination with partial pivoting,
    as in LAPACK's `gtsv`: the pending row has the numbers `p` and `q` and the right
    side `y`, and a finished row has a pivot and two numbers after it.
    """
    *batch, n, _ = shape_of(x)
    axis, counter = len(batch), TensorType(i64, [])
    rows = [b.reshape(v, [*batch, n, 1]) for v in (lower, diagonal, upper)] + [x]
    start = b.splat(0, counter)
    p, q, y = (read_row(b, v, axis, start) for v in rows[1:])

    loop = Loop(b)
    k, p, q, y = map(loop.carry, (b.splat(1, counter), p, q, y))
    stacks = [loop.carry(rows_like(b, row, axis, n)) for row in (p, q, q, y)]
    body = loop.body
    low, middle, high, right = (read_row(body, v, axis, k) for v in rows)
    stays = compare(body, _size(body, p), "GE", _size(body, low))
    pivot = body.apply(e.SelectOp, stays, p, low)
    factor = body.apply(e.DivideOp, body.apply(e.SelectOp, stays, low, p), pivot)
    triangle, left = [pivot], list[SSAValue]()
    zero = body.splat(0, type_of(high))
    for one, other in ((q, middle), (zero, high), (y, right)):
        top = body.apply(e.SelectOp, stays, one, other)
        rest = body.apply(e.SelectOp, stays, other, one)
        product = body.apply(e.MultiplyOp, factor, top)
        triangle.append(top)
        left.append(body.apply(e.SubtractOp, rest, product))
    place = body.apply(e.SubtractOp, k, 1)
    stacked = [
        write_row(body, stack, axis, place, row)
        for stack, row in zip(stacks, triangle, strict=True)
    ]
    _, p, _, y, *stacks = loop.close(
        [body.apply(e.AddOp, k, 1), *left, *stacked],
        lambda b, values: compare(b, values[0], "LT", n),
    )

    end, last = b.splat(n - 1, counter), b.apply(e.DivideOp, y, p)
    pivots, *others, solution = stacks
    pivots = write_row(b, pivots, axis, end, p)
    solution = write_row(b, solution, axis, end, last)
    loop = Loop(b)
    starts = (b.splat(n - 2, counter), last, b.splat(0, type_of(last)), solution)
    k, *found, solution = map(loop.carry, starts)
    body = loop.body
    right = read_row(body, solution, axis, k)
    for stack, value in zip(others, found, strict=True):
        product = body.apply(e.MultiplyOp, read_row(body, stack, axis, k), value)
        right = body.apply(e.SubtractOp, right, product)
    value = body.apply(e.DivideOp, right, read_row(body, pivots, axis, k))
    solution = write_row(body, solution, axis, k, value)
    *_, solution = loop.close(
        [body.apply(e.SubtractOp, k, 1), value, found[0], solution],
        lambda b, values: compare(b, values[0], "GE", 0),
    )
    return solution, b.reduce("and", compare(b, pivots, "NE", 0), [axis, axis + 1])
