"""The error function, population counts, and some functions of complex numbers.

The latter replace NumPy's, which are inexact or overflow. For f32 and smaller, the
error function uses polynomials of Cephes (S. L. Moshier, `ndtrf.c`), accurate to a few
units in the last place. f64 is computed element by element.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ....support.arrays import Array

_ERF = (
    7.853861353153693e-5,
    -8.010193625184903e-4,
    5.188327685732524e-3,
    -2.685381193529856e-2,
    1.128358514861418e-1,
    -3.761262582423300e-1,
    1.128379165726710e0,
)
"""Coefficients of erf(x) / x in x^2, for |x| < 1."""

_ERFC_SMALL = (
    2.326819970068386e-2,
    -1.387039388740657e-1,
    3.687424674597105e-1,
    -5.824733027278666e-1,
    6.210004621745983e-1,
    -4.944515323274145e-1,
    3.404879937665872e-1,
    -2.741127028184656e-1,
    5.638259427386472e-1,
)
"""Coefficients of erfc(x) x exp(x^2) in x^-2, for 1 <= x < 2."""

_ERFC_LARGE = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503e0,
    2.921019019210786e0,
    -1.015265279202700e0,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)
"""Coefficients of erfc(x) x exp(x^2) in x^-2, for x >= 2."""


def popcnt(x: Array) -> Array:
    return np.bitwise_count(x.view(f"u{x.itemsize}"))


def divide(x: Array, y: Array) -> Array:
    """The quotient of complex numbers as in NumPy or, where that is NaN, as in C (annex
    G): a number divided by infinity is 0; infinity divided by a number, and a number
    divided by 0, are infinite."""
    result = np.asarray(x / y)
    is_lost = np.isnan(np.real(result)) & np.isnan(np.imag(result))
    by_zero, vanishes = y == 0, is_lost & np.isfinite(x) & np.isinf(y)
    grows = (is_lost & np.isinf(x) & np.isfinite(y)) | by_zero
    if not (wrong := vanishes | grows).any():
        return result
    product = np.where(by_zero, x, _bounded(x) * np.conj(_bounded(y)))
    scale = np.where(vanishes, 0, np.copysign(np.inf, np.where(by_zero, np.real(y), 1)))
    for part in (np.real, np.imag):
        part(result)[...] = np.where(wrong, scale * part(product), part(result))
    return result


def _bounded(z: Array) -> Array:
    """`z`; for infinite numbers their direction: 1 for each infinite part."""
    real, imaginary = (np.copysign(np.isinf(p), p) for p in (np.real(z), np.imag(z)))
    return np.where(np.isinf(z), real + 1j * imaginary, z)


def expm1(z: Array) -> Array:
    """NumPy's `expm1` with the imaginary part of `exp`: NumPy's own imaginary part is
    NaN where the result is infinite and the imaginary part of `z` is 0."""
    result = np.expm1(z)
    result.imag = np.imag(np.exp(z))
    return result


def log1p(z: Array) -> Array:
    """NumPy's rounds 1 + z first. Near |1 + z| = 1, `|1 + z|^2 - 1` is exact enough."""
    x, y = np.real(z), np.imag(z)
    result, excess = np.log1p(z), x * (2 + x) + y * y
    result.real = np.where(np.abs(excess) < 0.5, np.log1p(excess) / 2, np.real(result))
    return result


def erf(x: Array) -> Array:
    if x.dtype == np.float64:
        return _one_by_one(math.erf, x)
    x = x.astype(np.float32)
    return np.where(np.abs(x) < 1, _near(x), np.copysign(1 - _tail(x), x))


def erfc(x: Array) -> Array:
    if x.dtype == np.float64:
        return _one_by_one(math.erfc, x)
    x = x.astype(np.float32)
    tail = _tail(x)
    return np.where(np.abs(x) < 1, 1 - _near(x), np.where(x < 0, 2 - tail, tail))


def _near(x: Array) -> Array:
    return x * _polynomial(_ERF, x * x)


def _tail(x: Array) -> Array:
    """erfc(|x|) for |x| >= 1."""
    x = np.maximum(np.abs(x), np.float32(1))
    square = x * x
    inverse = 1 / square
    small, large = (_polynomial(p, inverse) for p in (_ERFC_SMALL, _ERFC_LARGE))
    return np.exp(-square) * np.where(x < 2, small, large) / x


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Evaluates a polynomial; the coefficient of the highest power comes first."""
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result *= x
        result += np.float32(coefficient)
    return result


def _one_by_one(function: Callable[[float], float], x: Array) -> Array:
    results = [function(float(number)) for number in x.ravel()]
    return np.array(results).reshape(x.shape)
