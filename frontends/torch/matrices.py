"""Converts ATen's linear algebra, complex numbers and Fourier transforms to tgraph.

The status that a LAPACK routine returns (`info`) is 0 for success. For a singular
matrix it is the number of the first zero on the diagonal of U, and for a matrix that is
not positive definite the order of the matrix.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import numpy_dtype
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import matrices as m
from ...dialects.tgraph.base import ints, with_element
from ...dialects.tgraph.elements import is_complex, real_element
from ...dialects.tgraph.matrices import NO, YES
from ...dialects.tgraph.shaping import ConcatenateOp
from ...dialects.tgraph.spectral import FftOp
from ..builder import TensorBuilder, broadcast_shapes, shape_of, type_of
from ..formulas import compare, conjugate, matmul, triangle
from ..indices import take_along
from ..linear_algebra import (
    adjoint_of,
    determinant,
    diagonal_of,
    factored,
    identity,
    matrix_exponential,
    parity,
    permutation,
)
from ..unsupported import Unsupported
from ..written import magnitude
from .call import AtenCall, Conversion, Results

# Linear algebra


def _status(c: AtenCall, packed: SSAValue, number: int) -> SSAValue | None:
    """Result `number`, the status of an LU factorization; None without users."""
    if number not in c.used:
        return None
    diagonal = diagonal_of(c, packed)
    *batch, count = shape_of(diagonal)
    numbers = c.iota(with_element(type_of(diagonal), i32), len(batch))
    numbers = c.apply(e.AddOp, numbers, 1)
    is_zero = compare(c, diagonal, "EQ", 0)
    numbers = c.apply(e.SelectOp, is_zero, numbers, count + 1)
    first = c.reduce("minimum", numbers, [len(batch)])
    is_regular = compare(c, first, "GT", count)
    return c.apply(e.SelectOp, is_regular, 0, first)


def _cholesky(c: AtenCall) -> Results:
    factor = c.emit(m.CholeskyOp, c["self"], lower=NO if c["upper"] else YES)
    if 1 not in c.used:
        return [factor, None]
    total = diagonal_of(c, factor)
    total = c.reduce("add", total, [len(shape_of(total)) - 1])
    order = c.splat(shape_of(factor)[-1], c.types[1])
    return [factor, c.apply(e.SelectOp, compare(c, total, "NE", total), order, 0)]


def _solved(c: AtenCall, a: SSAValue, b: SSAValue) -> tuple[SSAValue, list[SSAValue]]:
    """The solution of `a x = b`, and the factors of `a`."""
    factors = factored(c, m.LuOp, a)
    order = c.reshape(factors[2], [*shape_of(factors[2]), 1])
    x = take_along(c, b, c.broadcast(order, shape_of(b)), len(shape_of(b)) - 2)
    x = c.emit(m.TriangularSolveOp, factors[0], x, type=type_of(x), unit_diagonal=YES)
    return (
        c.emit(m.TriangularSolveOp, factors[0], x, type=type_of(x), lower=NO),
        factors,
    )


def _solve(c: AtenCall) -> Results:
    a, b = c["A"], c["B"]
    is_vector = len(shape_of(b)) == 1 or shape_of(b) == shape_of(a)[:-1]
    c.expect("left", True)
    b = c.reshape(b, [*shape_of(b), 1]) if is_vector else b
    b = c.broadcast(b, [*shape_of(a)[:-1], shape_of(b)[-1]])
    x, factors = _solved(c, a, b)
    return [c.reshape(x, c.shape), *factors[:2], _status(c, factors[0], 3)]


def _inverse(c: AtenCall) -> Results:
    a = c["A"]
    x, factors = _solved(c, a, identity(c, a))
    return [x, _status(c, factors[0], 1)]


def _lu_factor(c: AtenCall) -> Results:
    packed, pivots, _ = factored(c, m.LuOp, c["A"])
    return [packed, pivots, _status(c, packed, 2)]


def _factored_for_determinant(c: AtenCall) -> Sequence[SSAValue]:
    """The LU factors, which the gradient reads. As in PyTorch, they are the factors of
    the transposed matrix if the matrix is real and contiguous."""
    x = c["A"]
    if c.examples["A"].is_contiguous() and not is_complex(type_of(x).element_type):
        x = adjoint_of(c, x)
    return factored(c, m.LuOp, x)


def _determinant(c: AtenCall) -> Results:
    packed, pivots, _ = _factored_for_determinant(c)
    return [determinant(c, packed, pivots), packed, pivots]


def _log_determinant(c: AtenCall) -> Results:
    packed, pivots, _ = _factored_for_determinant(c)
    diagonal = diagonal_of(c, packed)
    last = len(shape_of(diagonal)) - 1
    signs = c.reduce("multiply", c.emit(e.SignOp, diagonal), [last])
    sizes = c.reduce("add", c.emit(e.LogOp, c.emit(e.AbsOp, diagonal)), [last])
    sign = c.apply(e.MultiplyOp, signs, parity(c, pivots, diagonal))
    return [sign, sizes, packed, pivots]


def _lu_solve(c: AtenCall) -> SSAValue:
    """The solution of `a x = b`, or of `x a = b` if `left` is false, given the LU
    factors of `a`. If `adjoint` is true, the adjoint of `a` replaces `a`."""
    packed, x, is_left = c["LU"], c["B"], c["left"]
    is_adjoint = c["adjoint"] == is_left
    x = x if is_left else adjoint_of(c, x)  # a' x' = b'
    batch = list(broadcast_shapes(shape_of(packed)[:-2], shape_of(x)[:-2]))
    packed = c.broadcast(packed, [*batch, *shape_of(packed)[-2:]])
    x = c.broadcast(x, [*batch, *shape_of(x)[-2:]])
    order = permutation(c, c["pivots"], inverse=is_adjoint)
    order = c.broadcast(c.reshape(order, [*shape_of(order), 1]), shape_of(x))
    lower = {"lower": YES, "unit_diagonal": YES}
    upper = {"lower": NO, "unit_diagonal": NO}
    if is_adjoint:
        for side in (upper, lower):
            x = _triangle_solved(c, packed, x, transpose_a=_ADJOINT, **side)
        x = take_along(c, x, order, len(batch))
    else:
        x = take_along(c, x, order, len(batch))
        for side in (lower, upper):
            x = _triangle_solved(c, packed, x, **side)
    return x if is_left else adjoint_of(c, x)


_ADJOINT = StringAttr("ADJOINT")


def _triangle_solved(c: AtenCall, a: SSAValue, x: SSAValue, **sides: Any) -> SSAValue:
    return c.emit(m.TriangularSolveOp, a, x, type=type_of(x), **sides)


def _eigh(c: AtenCall) -> Results:
    lower = YES if c["UPLO"] == "L" else NO
    vectors, values = factored(c, m.EighOp, c["A"], lower=lower)
    return [values, vectors if c["compute_v"] else None]


def _qr(c: AtenCall) -> Results:
    """A reduced QR factorization."""
    c.expect("mode", "reduced", "r")
    x = c["A"]
    packed, scales = factored(c, m.QrOp, x)
    *batch, rows, columns = shape_of(x)
    fewer = min(rows, columns)
    nothing = [0] * len(batch)
    starts = [*nothing, 0, 0]
    left = c.slice(packed, starts, [*batch, rows, fewer], [1] * len(starts))
    q = c.emit(m.HouseholderProductOp, left, scales, type=type_of(left))
    r = c.slice(packed, starts, [*batch, fewer, columns], [1] * len(starts))
    return [q, triangle(c, r, 0, upper=True)]


def _triangular(c: AtenCall) -> SSAValue:
    return c.emit(
        m.TriangularSolveOp,
        c["self"],
        c["B"],
        type=c.type,
        left_side=YES if c["left"] else NO,
        lower=NO if c["upper"] else YES,
        unit_diagonal=YES if c["unitriangular"] else NO,
    )


def _svd(c: AtenCall) -> Results:
    full = YES if c["full_matrices"] else NO
    u, s, vh = factored(c, m.SvdOp, c["A"], full_matrices=full)
    return [u, s, vh] if c["compute_uv"] else [None, s, None]


def _pseudo_inverse(c: AtenCall) -> SSAValue:
    """The pseudoinverse. Singular values up to the tolerances `rtol` and `atol` count
    as 0."""
    x = c["self"]
    if is_complex(type_of(x).element_type) or c["hermitian"]:
        raise Unsupported("on complex or Hermitian matrices")
    u, s, vh = factored(c, m.SvdOp, x)
    *batch, rows, columns = shape_of(x)
    rank = len(batch)
    epsilon = float(np.finfo(numpy_dtype(type_of(x).element_type)).eps)
    rtol, atol = c["rtol"], c["atol"]
    if isinstance(rtol, SSAValue) or isinstance(atol, SSAValue):
        raise Unsupported("with tolerances that are tensors")
    if rtol is None:
        rtol = 0.0 if atol else epsilon * max(rows, columns)
    largest = c.reduce("maximum", s, [rank], keep=True)
    least = c.apply(e.MultiplyOp, largest, rtol)
    least = c.apply(e.MaximumOp, least, atol or 0.0)
    kept = compare(c, s, "GT", least)
    ratio = c.apply(e.DivideOp, c.splat(1, type_of(s)), s)
    scale = c.apply(e.SelectOp, kept, ratio, 0)
    scale = c.reshape(scale, [*batch, 1, min(rows, columns)])
    order = [*range(rank), rank + 1, rank]
    left = c.apply(e.MultiplyOp, c.transpose(vh, order), scale)
    return matmul(c, left, c.transpose(u, order))


def _distances(c: AtenCall) -> SSAValue:
    """The distances between all rows of two matrices, by the norm of order p."""
    x, y = c["x1"], c["x2"]
    *batch, rows, width = shape_of(x)
    x = c.reshape(x, [*batch, rows, 1, width])
    y = c.reshape(y, [*shape_of(y)[:-2], 1, shape_of(y)[-2], width])
    return _norm(c, c.apply(e.SubtractOp, x, y))


def _distances_inside(c: AtenCall) -> SSAValue:
    """The distances between each row of a matrix and the rows after it."""
    x = c["self"]
    rows = np.triu_indices(shape_of(x)[0], 1)
    ends = [c.take(x, c.constant(numbers), 0) for numbers in rows]
    return _norm(c, c.apply(e.SubtractOp, *ends))


def _norm(c: AtenCall, x: SSAValue) -> SSAValue:
    """The norm of order p along the last dimension."""
    p, last = c["p"], len(shape_of(x)) - 1
    difference = c.emit(e.AbsOp, x)
    if p == float("inf"):
        return c.reduce("maximum", difference, [last])
    if p == 0:
        apart = c.convert(compare(c, difference, "NE", 0), c.element)
        return c.reduce("add", apart, [last])
    if p == 1:
        return c.reduce("add", difference, [last])
    powers = c.apply(e.PowerOp, difference, float(p))
    if p == 2:
        powers = c.apply(e.MultiplyOp, difference, difference)
    total = c.reduce("add", powers, [last])
    return c.emit(e.SqrtOp, total) if p == 2 else c.apply(e.PowerOp, total, 1 / p)


# Complex numbers


def _part(op_type: type[e.PartOp], x: SSAValue, c: TensorBuilder) -> SSAValue:
    return c.emit(op_type, x, type=with_element(type_of(x), _real(x)))


def _real(x: SSAValue) -> Any:
    return real_element(type_of(x).element_type)


def _view_as_real(c: AtenCall) -> SSAValue:
    x = c["self"]
    shape = [*shape_of(x), 1]
    parts = [c.reshape(_part(kind, x, c), shape) for kind in (e.RealOp, e.ImagOp)]
    return c.emit(ConcatenateOp, *parts, dimension=IntegerAttr(len(shape) - 1, i64))


def _view_as_complex(c: AtenCall) -> SSAValue:
    x = c["self"]
    last = len(shape_of(x)) - 1
    parts = [c.reshape(c.part(x, last, n, n + 1), c.shape) for n in range(2)]
    return c.emit(e.ComplexOp, *parts)


def _absolute(c: AtenCall) -> SSAValue:
    x = c["self"]
    if is_complex(type_of(x).element_type):
        return magnitude(c, x)
    return c.emit(e.AbsOp, x)


# Fourier transforms


def _transformed(
    c: AtenCall, x: SSAValue, kind: str, axes: list[int], size: int | None = None
) -> SSAValue:
    """Fourier transforms of `x` along each of `axes`, in this order."""
    rank = len(shape_of(x))
    for axis in axes:
        order = [d for d in range(rank) if d != axis] + [axis]
        moved = c.transpose(x, order)
        length = [size or shape_of(moved)[-1]]
        y = c.emit(FftOp, moved, fft_type=StringAttr(kind), length=ints(length))
        x = c.transpose(y, [order.index(d) for d in range(rank)])
    return x


def _scaled(c: AtenCall, x: SSAValue, count: int, *, inverse: bool) -> SSAValue:
    """Applies PyTorch's normalization to a transform `x`: none for 0, division by the
    root of `count` for 1, and by `count` for 2. If `inverse`, `x` has been divided by
    `count` already."""
    power = {0: 0.0, 1: -0.5, 2: -1.0}[c["normalization"]] + inverse
    if power == 0:
        return x
    return c.apply(e.MultiplyOp, x, c.splat(float(count) ** power, type_of(x)))


def _count(c: AtenCall, x: SSAValue) -> int:
    return prod(shape_of(x)[axis] for axis in c.axes())


def _complex_to_complex(c: AtenCall) -> SSAValue:
    x, is_forward = c["self"], c["forward"]
    y = _transformed(c, x, "FFT" if is_forward else "IFFT", c.axes())
    return _scaled(c, y, _count(c, x), inverse=not is_forward)


def _real_to_complex(c: AtenCall) -> SSAValue:
    x, axes = c["self"], c.axes()
    count = _count(c, x)
    if c["onesided"]:
        y = _transformed(c, x, "RFFT", axes[-1:])
        y = _transformed(c, y, "FFT", axes[:-1])
    else:
        y = _transformed(c, c.convert(x, c.element), "FFT", axes)
    return _scaled(c, y, count, inverse=False)


def _complex_to_real(c: AtenCall) -> SSAValue:
    x, axes, size = c["self"], c.axes(), int(c["last_dim_size"])
    half = size // 2 + 1
    last = axes[-1]
    missing = half - shape_of(x)[last]
    if missing < 0:
        x = c.part(x, last, 0, half)
    count = _count(c, x) // half * size
    x = _transformed(c, x, "IFFT", axes[:-1])
    y = _transformed(c, x, "IRFFT", [last], size)
    return _scaled(c, y, count, inverse=True)


CONVERSIONS: Mapping[str, Conversion] = {
    "_cdist_forward": _distances,
    "_conj": lambda c: conjugate(c, c.tensor()),
    "_fft_c2c": _complex_to_complex,
    "_fft_c2r": _complex_to_real,
    "_fft_r2c": _real_to_complex,
    "_linalg_det": _determinant,
    "_linalg_eigh": _eigh,
    "_linalg_slogdet": _log_determinant,
    "_linalg_solve_ex": _solve,
    "_linalg_svd": _svd,
    "_pdist_forward": _distances_inside,
    "abs": _absolute,
    "linalg_cholesky_ex": _cholesky,
    "linalg_inv_ex": _inverse,
    "linalg_lu_factor_ex": _lu_factor,
    "linalg_lu_solve": _lu_solve,
    "linalg_matrix_exp": lambda c: matrix_exponential(c, c["self"]),
    "linalg_pinv": _pseudo_inverse,
    "linalg_qr": _qr,
    "linalg_solve_triangular": _triangular,
    "view_as_complex": _view_as_complex,
    "view_as_real": _view_as_real,
}
