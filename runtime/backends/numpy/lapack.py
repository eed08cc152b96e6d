"""LAPACK on batches of matrices, through SciPy. This module knows no IR.

`work` holds one matrix in column-major order, as LAPACK expects it; the routine
overwrites it. SciPy allocates any other memory that a routine needs for one matrix. A
matrix that a routine fails on, or that is not finite, gives NaN.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ....support.arrays import Array, DType


def routine(name: str, dtype: DType) -> Callable[..., Any]:
    """A routine of LAPACK, or of BLAS, for elements of this type.

    Raises `ImportError` without SciPy.
    """
    named = {"orgqr": "ungqr", "syevd": "heevd"}.get(name, name)
    name = named if dtype.kind == "c" else name
    letter = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[dtype.str[1:]]
    library = import_module(f"scipy.linalg.{'blas' if name == 'trsm' else 'lapack'}")
    return getattr(library, letter + name)


def _undefine(*factors: Array) -> None:
    """NaN, in imaginary parts, too."""
    for factor in factors:
        is_complex = factor.dtype.kind == "c"
        factor[...] = complex(np.nan, np.nan) if is_complex else np.nan


def cholesky(x: Array, out: Array, work: Array, lower: bool) -> None:
    potrf = routine("potrf", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        out[place], info = potrf(work, lower, overwrite_a=1)
        if info:
            _undefine(out[place])


def triangular_solve(
    a: Array, b: Array, out: Array, work: Array, *flags: int | bool
) -> None:
    """`flags` are those of BLAS: side, lower, trans_a, diag."""
    trsm = routine("trsm", a.dtype)
    for place in np.ndindex(a.shape[:-2]):
        work[...] = b[place]
        out[place] = trsm(1, a[place], work, *flags, overwrite_b=1)


def lu(x: Array, out: Array, pivots: Array, order: Array, work: Array) -> None:
    getrf = routine("getrf", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        out[place], rows, _ = getrf(work, overwrite_a=1)
        pivots[place] = rows + 1
        numbers = list(range(x.shape[-2]))
        for number, row in enumerate(rows):
            numbers[number], numbers[row] = numbers[row], numbers[number]
        order[place] = numbers


def qr(x: Array, out: Array, scales: Array, work: Array) -> None:
    geqrf = routine("geqrf", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        out[place], scales[place], _, _ = geqrf(work, overwrite_a=1)


def householder_product(x: Array, scales: Array, out: Array, work: Array) -> None:
    orgqr = routine("orgqr", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        out[place] = orgqr(work, scales[place], overwrite_a=1)[0]


def eigh(x: Array, vectors: Array, values: Array, work: Array, lower: bool) -> None:
    syevd = routine("syevd", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        _undefine(vectors[place], values[place])
        if np.isfinite(work).all():
            found, columns, info = syevd(work, lower=lower, overwrite_a=1)
            if not info:
                values[place], vectors[place] = found, columns


def eig(x: Array, values: Array, left: Array, right: Array, work: Array) -> None:
    geev = routine("geev", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        _undefine(values[place], left[place], right[place])
        if np.isfinite(work).all():
            *found, of_left, of_right, info = geev(work, overwrite_a=1)
            if not info:
                values[place] = found[0] + 1j * found[1] if found[1:] else found[0]
                left[place] = _complex(of_left, values[place])
                right[place] = _complex(of_right, values[place])


def _complex(vectors: Array, values: Array) -> Array:
    """Of real matrices: a pair's real and imaginary parts are neighbouring columns."""
    if vectors.dtype.kind == "c":
        return vectors
    result = vectors.astype(values.dtype)
    for column in np.flatnonzero(np.imag(values) > 0):
        real, imaginary = vectors[:, column], vectors[:, column + 1]
        result[:, column] = real + 1j * imaginary
        result[:, column + 1] = real - 1j * imaginary
    return result


def svd(x: Array, u: Array, s: Array, vh: Array, work: Array, full: bool) -> None:
    gesdd = routine("gesdd", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        _undefine(u[place], s[place], vh[place])
        if np.isfinite(work).all():
            *found, info = gesdd(work, full_matrices=full, overwrite_a=1)
            if not info:
                u[place], s[place], vh[place] = found
