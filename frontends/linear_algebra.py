"""Linear algebra that frontends share: factorizations, and what follows from them."""

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph import matrices as m
from ..dialects.tgraph.base import with_element
from ..dialects.tgraph.shaping import IotaOp
from .builder import TensorBuilder, shape_of, type_of
from .formulas import compare, conjugate, matmul, triangle


def factored(
    b: TensorBuilder, op_type: type[m.MatrixOp], x: SSAValue, **properties: Any
) -> list[SSAValue]:
    """All results of a factorization."""
    given = {**op_type.DEFAULTS, **properties}
    probe = op_type([x], result_types=[x.type] * 3, properties=given)
    types = probe.result_types_of([type_of(x)])
    probe.erase()
    return list(b.emit_all(op_type, [x], types, [], **given))


def identity(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Identity matrices, as many and as large as x."""
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
    """-1 for an odd number of exchanges of rows, otherwise 1."""
    last = len(shape_of(pivots)) - 1
    own = b.emit(IotaOp, type=type_of(pivots), dimension=IntegerAttr(last, i64))
    moved = compare(b, pivots, "NE", b.apply(e.AddOp, own, 1))
    signs = b.apply(e.SelectOp, moved, b.splat(-1, type_of(like)), 1)
    return b.reduce("multiply", signs, [last])


def determinant(b: TensorBuilder, packed: SSAValue, pivots: SSAValue) -> SSAValue:
    """The determinants of matrices, from what `tgraph.lu` makes of them."""
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
    """`q x`, or `x q` unless `left`, with `q` of what `tgraph.qr` gives, or its
    adjoint.

    With the vectors `v` and the scales `d`, `q = 1 - v t v'`. Here `t` is
    `d (1 + u d)^-1`, and `u` is what `v' v` has above its diagonal (the compact WY
    representation of Schreiber and Van Loan, 1989). The square `q` is not made.
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
