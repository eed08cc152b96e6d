"""Gradients of complex numbers and Fourier transforms.

As in JAX, the gradient with respect to z = x + iy has the gradient with respect to x as
its real part, and that with respect to y, negated, as its imaginary part. The rule of a
holomorphic operation is therefore that for real numbers, and the rule of a linear
operation is its transpose, without conjugation.
"""

from math import prod

from xdsl.dialects.builtin import StringAttr

from ....dialects.tgraph import elementwise as ew
from ....dialects.tgraph.base import with_element, with_shape
from ....dialects.tgraph.elements import real_element
from ....dialects.tgraph.spectral import FftOp
from .site import GradientSite, Term, gradient_of, shape_of, site_of, type_of
from .writing import pad


@gradient_of(ew.ComplexOp)
def _complex(site: GradientSite[ew.ComplexOp], index: int) -> Term:
    real, imaginary = parts(site.g)
    return -imaginary if index else real


@gradient_of(ew.RealOp)
def _real(site: GradientSite[ew.RealOp], index: int) -> Term:
    return complex_of(site.g, site.g.of(0.0))


@gradient_of(ew.ImagOp)
def _imaginary(site: GradientSite[ew.ImagOp], index: int) -> Term:
    return complex_of(site.g.of(0.0), -site.g)


def parts(x: Term) -> tuple[Term, Term]:
    """The real and the imaginary part."""
    type = with_element(type_of(x), real_element(x.element))
    real, imaginary = (
        site_of(x).emit(op, x, type=type) for op in (ew.RealOp, ew.ImagOp)
    )
    return real, imaginary


def complex_of(real: Term, imaginary: Term) -> Term:
    return site_of(real).emit(ew.ComplexOp, real, imaginary)


@gradient_of(FftOp)
def _fft(site: GradientSite[FftOp], index: int) -> Term:
    """The matrix of a transform is symmetric. `RFFT` leaves out frequencies, whose
    gradients are zero. `IRFFT` uses most frequencies twice."""
    kind, sizes = site.op.fft_type.data, site.op.length
    length = sizes.get_values()
    if kind in ("FFT", "IFFT"):
        return site.emit(FftOp, site.g, fft_type=site.op.fft_type, length=sizes)
    zeros = [0] * len(shape_of(site.g))
    if kind == "RFFT":
        high = [*zeros[1:], length[-1] - shape_of(site.g)[-1]]
        wide = pad(site.g, zeros, high, zeros)
        whole = site.emit(FftOp, wide, fft_type=StringAttr("FFT"), length=sizes)
        return parts(whole)[0]
    found = site.emit(FftOp, site.g, fft_type=StringAttr("RFFT"), length=sizes)
    real, imaginary = parts(found)
    times = _times_read(site, real, length[-1])
    scale = times * (1.0 / prod(length))
    return complex_of(real * scale, -(imaginary * scale))


def _times_read(site: GradientSite[FftOp], like: Term, size: int) -> Term:
    """The number of frequencies that each one represents in the transform of `size`
    real numbers: one for the first, and for the last if `size` is even; else two."""
    rank, count = len(shape_of(like)), shape_of(like)[-1]
    ends = {0, size // 2} if size % 2 == 0 else {0}
    inner = count - len(ends)
    type = with_shape(type_of(like), [*shape_of(like)[:-1], inner])
    ones = like.of(1.0)
    if inner <= 0:
        return ones
    zeros = [0] * rank
    low, high = [*zeros[1:], 1], [*zeros[1:], len(ends) - 1]
    return ones + pad(site.splat(1.0, type), low, high, zeros)
