"""Gradients of linear algebra.

I. Murray, "Differentiation of the Cholesky decomposition", 2016; M. B. Giles, "An
extended collection of matrix derivative results", 2008.
"""

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64

from ....dialects.tgraph.base import ints, with_element
from ....dialects.tgraph.matrices import NO, YES, CholeskyOp, TriangularSolveOp
from ....dialects.tgraph.reducing import DotGeneralOp
from ....dialects.tgraph.shaping import IotaOp
from .site import GradientSite, Term, gradient_of, shape_of, site_of, type_of
from .writing import transpose


@gradient_of(CholeskyOp)
def _cholesky(site: GradientSite[CholeskyOp], index: int) -> Term:
    """The gradient with respect to the triangle that is read; it is zero elsewhere."""
    is_lower = site.op.lower == YES
    factor, g = (x if is_lower else _transposed(x) for x in (site.y, site.g))
    inner = _halved(_product(factor, -2, g, -2))
    left = site.emit(
        TriangularSolveOp, factor, inner, transpose_a=StringAttr("TRANSPOSE")
    )
    both = site.emit(TriangularSolveOp, factor, left, left_side=NO)
    result = _halved(both + _transposed(both))
    return result if is_lower else _transposed(result)


@gradient_of(TriangularSolveOp)
def _triangular_solve(site: GradientSite[TriangularSolveOp], index: int) -> Term:
    op = site.op
    is_transposed = op.transpose_a.data != "NO_TRANSPOSE"
    flipped = "NO_TRANSPOSE" if is_transposed else "TRANSPOSE"
    of_b = site.emit(
        TriangularSolveOp,
        site.x(0),
        site.g,
        left_side=op.left_side,
        lower=op.lower,
        unit_diagonal=op.unit_diagonal,
        transpose_a=StringAttr(flipped),
    )
    if index == 1:
        return of_b
    contracted = -1 if op.left_side == YES else -2
    factors = (
        (of_b, site.y) if (op.left_side == YES) != is_transposed else (site.y, of_b)
    )
    product = _product(factors[0], contracted, factors[1], contracted)
    rows, columns = _places(product)
    if op.lower != YES:
        rows, columns = columns, rows
    is_strict = op.unit_diagonal == YES
    return (-product).where(rows > columns if is_strict else rows >= columns)


def _transposed(x: Term) -> Term:
    *batch, rows, columns = range(len(shape_of(x)))
    return transpose(x, [*batch, columns, rows])


def _product(x: Term, dim: int, y: Term, other: int) -> Term:
    """The product of matrices over a dimension of each, counted from the end."""
    rank = len(shape_of(x))
    batch = ints(range(rank - 2))
    return site_of(x).emit(
        DotGeneralOp,
        x,
        y,
        lhs_batching_dimensions=batch,
        rhs_batching_dimensions=batch,
        lhs_contracting_dimensions=ints([rank + dim]),
        rhs_contracting_dimensions=ints([rank + other]),
    )


def _places(x: Term) -> tuple[Term, Term]:
    """The row and the column of each element."""
    rank = len(shape_of(x))
    type = with_element(type_of(x), i32)
    rows, columns = (
        site_of(x).emit(IotaOp, type=type, dimension=IntegerAttr(dim, i64))
        for dim in (rank - 2, rank - 1)
    )
    return rows, columns


def _halved(x: Term) -> Term:
    """The lower triangle, with half of the diagonal."""
    rows, columns = _places(x)
    below = x.where(rows > columns)
    return (x * 0.5).where(rows.equals(columns), below)
