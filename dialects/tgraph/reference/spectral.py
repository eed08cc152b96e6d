"""Fourier transforms."""

import numpy as np

from ...dtypes import Array
from .. import spectral
from .results import result_dtype, result_shape


def fft(op: spectral.FftOp, x: Array) -> Array:
    """Computes the definition, `sum of x[k] exp(-2 pi i j k / n)`, in f64."""
    kind, length = op.fft_type.data, op.length.get_values()
    if kind == "IRFFT":  # the missing frequencies are conjugates of given ones
        rest = x.copy()
        for axis in range(-len(length), 0):
            rest = np.roll(np.flip(rest, axis), 1, axis) if axis < -1 else rest
        mirrored = np.flip(rest, -1)[..., (length[-1] + 1) % 2 : -1].conj()
        x = np.concatenate([x, mirrored], -1)
        x[..., 0] = (x[..., 0] + rest[..., 0].conj()) / 2
    for axis, size in zip(range(-len(length), 0), length, strict=True):
        angles = np.outer(np.arange(size), np.arange(size)) * (2j * np.pi / size)
        matrix = np.exp(angles) / size if kind.startswith("I") else np.exp(-angles)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix, -1, axis)
    result = x[..., : result_shape(op)[-1]]
    return (np.real(result) if kind == "IRFFT" else result).astype(result_dtype(op))
