"""LAPACK on batches of matrices, through SciPy. Knows no IR.

`work` holds one matrix in column-major order, as LAPACK expects; the routine overwrites
it. SciPy allocates any other memory that a routine needs for one matrix. A matrix for
which a routine fails, or that is not finite, gives NaN.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from ....support.arrays import Array, DType

Factor: TypeAlias = Array | None
"""The array for a factor, or None if it is not wanted."""


def name_for(name: str, dtype: DType) -> str:
    """The name of a LAPACK or BLAS routine for elements of this type."""
    unitary = {"orgqr": "ungqr", "syevd": "heevd"}
    named = unitary.get(name, name) if dtype.kind == "c" else name
    return {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[dtype.str[1:]] + named


def routine(name: str, dtype: DType) -> Callable[..., Any]:
    """A routine of LAPACK or BLAS for elements of this type.

    Raises `ImportError` without SciPy.
    """
    library = import_module(f"scipy.linalg.{'blas' if name == 'trsm' else 'lapack'}")
    return getattr(library, name_for(name, dtype))


def nan_of(dtype: DType) -> complex:
    """NaN; for complex numbers, in both parts."""
    return complex(np.nan, np.nan) if dtype.kind == "c" else np.nan


def _store(
    place: tuple[int, ...], factors: Sequence[Factor], found: Sequence[Any] | None
) -> None:
    """Stores the factors of a matrix; NaN if `found` is None."""
    for number, factor in enumerate(factors):
        if factor is None:
            continue
        factor[place] = nan_of(factor.dtype) if found is None else found[number]


def cholesky(x: Array, out: Array, work: Array, lower: bool) -> None:
    potrf = routine("potrf", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        out[place], info = potrf(work, lower, overwrite_a=1)
        if info:
            _store(place, [out], None)


def triangular_solve(
    a: Array, b: Array, out: Array, work: Array, *flags: int | bool
) -> None:
    """`flags` are those of BLAS: side, lower, trans_a, diag."""
    trsm = routine("trsm", a.dtype)
    for place in np.ndindex(a.shape[:-2]):
        work[...] = b[place]
        out[place] = trsm(1, a[place], work, *flags, overwrite_b=1)


def lu(x: Array, out: Factor, pivots: Factor, order: Factor, work: Array) -> None:
    getrf = routine("getrf", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        packed, rows, _ = getrf(work, overwrite_a=1)
        numbers = list(range(x.shape[-2]))
        for number, row in enumerate(rows):
            numbers[number], numbers[row] = numbers[row], numbers[number]
        _store(place, (out, pivots, order), (packed, rows + 1, numbers))


def qr(x: Array, out: Factor, scales: Factor, work: Array) -> None:
    geqrf = routine("geqrf", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        _store(place, (out, scales), geqrf(work, overwrite_a=1)[:2])


def householder_product(x: Array, scales: Array, out: Array, work: Array) -> None:
    orgqr = routine("orgqr", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        out[place] = orgqr(work, scales[place], overwrite_a=1)[0]


def eigh(x: Array, vectors: Factor, values: Factor, work: Array, lower: bool) -> None:
    syevd = routine("syevd", x.dtype)
    asked = vectors is not None
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        found = None
        if np.isfinite(work).all():
            w, v, info = syevd(work, compute_v=asked, lower=lower, overwrite_a=1)
            found = None if info else (v, w)
        _store(place, (vectors, values), found)


def eig(x: Array, values: Factor, left: Factor, right: Factor, work: Array) -> None:
    geev = routine("geev", x.dtype)
    asked = {"compute_vl": left is not None, "compute_vr": right is not None}
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        found = None
        if np.isfinite(work).all():
            *parts, of_left, of_right, info = geev(work, **asked, overwrite_a=1)
            if not info:
                w = parts[0] + 1j * parts[1] if parts[1:] else parts[0]
                pairs = ((left, of_left), (right, of_right))
                found = (w, *(None if f is None else _complex(v, w) for f, v in pairs))
        _store(place, (values, left, right), found)


def hessenberg(x: Array, out: Factor, scales: Factor, work: Array) -> None:
    gehrd = routine("gehrd", x.dtype)
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        _store(place, (out, scales), gehrd(work, overwrite_a=1)[:2])


def schur(x: Array, out: Factor, vectors: Factor, work: Array) -> None:
    gees = routine("gees", x.dtype)
    asked = vectors is not None
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        found = None
        if np.isfinite(work).all():
            t, *_, z, _, info = gees(_none, work, compute_v=asked, overwrite_a=1)
            found = None if info else (t, z)
        _store(place, (out, vectors), found)


def _none(*eigenvalue: float) -> bool:
    """Selects no eigenvalue to come first."""
    return False


def _complex(vectors: Array, values: Array) -> Array:
    """Complex eigenvectors. LAPACK stores the real and the imaginary part of a pair of
    a real matrix in neighboring columns."""
    if vectors.dtype.kind == "c":
        return vectors
    result = vectors.astype(values.dtype)
    for column in np.flatnonzero(np.imag(values) > 0):
        real, imaginary = vectors[:, column], vectors[:, column + 1]
        result[:, column] = real + 1j * imaginary
        result[:, column + 1] = real - 1j * imaginary
    return result


def svd(
    x: Array, u: Factor, s: Factor, vh: Factor, work: Array, full_matrices: bool
) -> None:
    gesdd = routine("gesdd", x.dtype)
    asked = u is not None or vh is not None
    options = {"compute_uv": asked, "full_matrices": full_matrices}
    for place in np.ndindex(x.shape[:-2]):
        work[...] = x[place]
        found = None
        if np.isfinite(work).all():
            *found, info = gesdd(work, **options, overwrite_a=1)
            found = None if info else found
        _store(place, (u, s, vh), found)
