"""The reference for linear algebra: NumPy's functions, and textbook algorithms.

G. H. Golub and C. F. Van Loan, "Matrix Computations", 2013, with the signs of LAPACK.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dtypes import Array, numpy_dtype
from .. import matrices as m
from ..base import TensorOp


def evaluate_matrices(op: m.MatrixOp, inputs: Sequence[Array]) -> list[Array]:
    """Factors one matrix at a time; NaN for matrices that have no such factors."""
    types = op.declared
    results = [np.empty(t.get_shape(), numpy_dtype(t.element_type, op)) for t in types]
    for place in np.ndindex(inputs[0].shape[:-2]):
        try:
            factors = _FACTORS[type(op)](op, *(x[place] for x in inputs))
            values = [factors[number] for number in op.numbers]
        except np.linalg.LinAlgError:
            values = [_undefined(x) for x in results]
        for result, value in zip(results, values, strict=True):
            result[place] = value
    return results


def _undefined(x: Array) -> complex:
    return complex(np.nan, np.nan) if x.dtype.kind == "c" else np.nan


def _cholesky(op: m.CholeskyOp, x: Array) -> Sequence[Array]:
    return [np.linalg.cholesky(x, upper=not op.lower.value.data)]


def _triangular_solve(op: m.TriangularSolveOp, a: Array, b: Array) -> Sequence[Array]:
    a = np.tril(a) if op.lower.value.data else np.triu(a)
    if op.unit_diagonal.value.data:
        np.fill_diagonal(a, 1)
    if op.transpose_a.data != "NO_TRANSPOSE":
        a = a.T.conj() if op.transpose_a.data == "ADJOINT" else a.T
    if op.left_side.value.data:
        return [np.linalg.solve(a, b)]
    return [np.linalg.solve(a.T, b.T).T]


def _lu(op: m.LuOp, x: Array) -> Sequence[Array]:
    x = x.copy()
    pivots: list[int] = []
    order = np.arange(len(x))
    for k in range(min(x.shape)):
        size = np.abs(np.real(x)) + np.abs(np.imag(x))
        row = k + int(np.argmax(size[k:, k]))
        x[[k, row]], order[[k, row]] = x[[row, k]], order[[row, k]]
        if x[k, k] != 0:
            x[k + 1 :, k] /= x[k, k]
        x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
        pivots.append(row + 1)
    return [x, np.array(pivots), order]


def _qr(op: m.QrOp, x: Array) -> Sequence[Array]:
    """Applies reflections that make each column real on the diagonal, and zero below
    it."""
    x = x.copy()
    scales = np.zeros(min(x.shape), x.dtype)
    for k in range(len(scales)):
        norm, scales[k], v = _reflection(x[k:, k])
        x[k:, k:] -= scales[k].conj() * np.outer(v, v.conj() @ x[k:, k:])
        x[k, k], x[k + 1 :, k] = norm, v[1:]
    return [x, scales]


def _reflection(column: Array) -> tuple[complex, complex, Array]:
    """The reflection `1 - scale v v^H`, with first element 1 in `v`, whose adjoint
    makes a column real in its first element, and zero below. Returns this element,
    `scale` and `v`."""
    first, below = column[0], column[1:]
    if not below.any() and not first.imag:
        return first, 0, np.eye(1, len(column), dtype=column.dtype)[0]
    norm = -np.copysign(np.linalg.norm(column), first.real)
    v = np.concatenate([[1], below / (first - norm)]).astype(column.dtype)
    return norm, (norm - first) / norm, v


def _hessenberg(op: m.HessenbergOp, x: Array) -> Sequence[Array]:
    """Applies reflections from both sides, as in a QR factorization of the rows below
    the first."""
    x = x.copy()
    scales = np.zeros(len(x) - 1, x.dtype)
    for k in range(len(scales)):
        below = slice(k + 1, None)
        norm, scales[k], v = _reflection(x[below, k])
        x[:, below] -= scales[k] * np.outer(x[:, below] @ v, v.conj())
        x[below, below] -= scales[k].conj() * np.outer(v, v.conj() @ x[below, below])
        x[k + 1, k], x[k + 2 :, k] = norm, v[1:]
    return [x, scales]


def _schur(op: m.SchurOp, x: Array) -> Sequence[Array]:
    """An orthonormal basis of the eigenvectors, one after the other. For a real matrix,
    the real and the imaginary part span the space of a pair of eigenvectors."""
    values, vectors = np.linalg.eig(x)
    if x.dtype.kind != "c":
        second = np.zeros(len(x), bool)
        second[np.flatnonzero(np.imag(values) > 0) + 1] = True
        vectors = np.where(second, np.imag(vectors), np.real(vectors))
    z = np.linalg.qr(vectors)[0].astype(x.dtype)
    return [z.conj().T @ x @ z, z]


def _householder_product(
    op: m.HouseholderProductOp, x: Array, scales: Array
) -> Sequence[Array]:
    result = np.eye(*x.shape, dtype=x.dtype)
    for k in reversed(range(len(scales))):
        v = np.concatenate([np.zeros(k), [1], x[k + 1 :, k]]).astype(x.dtype)
        result -= scales[k] * np.outer(v, v.conj() @ result)
    return [result]


def _eigh(op: m.EighOp, x: Array) -> Sequence[Array]:
    values, vectors = np.linalg.eigh(x, "L" if op.lower.value.data else "U")
    return [vectors, values]


def _eig(op: m.EigOp, x: Array) -> Sequence[Array]:
    """Left eigenvectors are right eigenvectors of the adjoint, in the same order."""
    values, right = np.linalg.eig(x)
    left = np.linalg.inv(right).conj().T
    return [values, left / np.linalg.norm(left, axis=0), right]


def _svd(op: m.SvdOp, x: Array) -> Sequence[Array]:
    return np.linalg.svd(x, full_matrices=bool(op.full_matrices.value.data))


_FACTORS: Mapping[type[TensorOp], Callable[..., Any]] = {
    m.CholeskyOp: _cholesky,
    m.EigOp: _eig,
    m.EighOp: _eigh,
    m.HessenbergOp: _hessenberg,
    m.HouseholderProductOp: _householder_product,
    m.LuOp: _lu,
    m.QrOp: _qr,
    m.SchurOp: _schur,
    m.SvdOp: _svd,
    m.TriangularSolveOp: _triangular_solve,
}
