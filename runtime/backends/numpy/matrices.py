"""Kernels of linear algebra: LAPACK's routines, with memory for one matrix."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ....dialects.diagnostics import LocatedError
from ....dialects.dtypes import Array
from ....dialects.tgraph import matrices as m
from ....support.extras import missing_extra_message
from ...calls import Call
from ...pool import Scratch
from . import lapack
from .base import kernel


def _flags(op: m.TriangularSolveOp) -> Sequence[int | bool]:
    """BLAS's flags: side, lower, trans_a, diag."""
    return (
        int(not op.left_side.value.data),
        bool(op.lower.value.data),
        m.TRANSPOSES.index(op.transpose_a.data),
        bool(op.unit_diagonal.value.data),
    )


_Routine: TypeAlias = tuple[Callable[..., None], Callable[[Any], Sequence[int | bool]]]

_ROUTINES: Mapping[type[m.MatrixOp], _Routine] = {
    m.CholeskyOp: (lapack.cholesky, lambda op: (bool(op.lower.value.data),)),
    m.EigOp: (lapack.eig, lambda op: ()),
    m.EighOp: (lapack.eigh, lambda op: (bool(op.lower.value.data),)),
    m.HessenbergOp: (lapack.hessenberg, lambda op: ()),
    m.HouseholderProductOp: (lapack.householder_product, lambda op: ()),
    m.LuOp: (lapack.lu, lambda op: ()),
    m.QrOp: (lapack.qr, lambda op: ()),
    m.SchurOp: (lapack.schur, lambda op: ()),
    m.SvdOp: (lapack.svd, lambda op: (bool(op.full_matrices.value.data),)),
    m.TriangularSolveOp: (lapack.triangular_solve, _flags),
}
"""The function for each operation, and its options besides arrays."""


@kernel(*m.MATRIX_OPS)
def matrices(
    op: m.MatrixOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    function, options = _ROUTINES[type(op)]
    solved = inputs[1] if isinstance(op, m.TriangularSolveOp) else inputs[0]
    try:
        lapack.routine("getrf", solved.dtype)
    except ImportError as error:
        raise LocatedError(
            missing_extra_message(f"{op.name} requires SciPy", "linalg", error), op
        ) from None
    rows, columns = solved.shape[-2:]
    work = scratch.take((columns, rows), solved.dtype).T
    factors: list[Array | None] = [None] * op.FACTORS
    for number, out in zip(op.numbers, outs, strict=True):
        factors[number] = out
    return [(function, (*inputs, *factors, work, *options(op)))]
