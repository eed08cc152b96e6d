"""ONNX's Fourier transforms → tgraph: matrix products with constant matrices.

The last dimension has the real and imaginary parts, or size 1 for real numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array, numpy_dtype
from ...dialects.tgraph import elementwise as e
from ..builder import arange, axis_of, check_table, shape_of, type_of
from ..operators import Value
from .node import Conversion, OnnxNode


def _transformed(
    n: OnnxNode, x: SSAValue, axis: int, transform: Callable[[Array], Array]
) -> SSAValue:
    """Applies a linear transformation along an axis, as a matrix product.

    `transform` maps the rows of a matrix. Its results for real and imaginary unit
    vectors are the matrix of the product.
    """
    length, parts = shape_of(x)[axis], shape_of(x)[-1]
    check_table(length, length)
    units = np.eye(length)
    responses: Any = np.stack([transform(units * unit) for unit in (1, 1j)[:parts]])
    check_table(*responses.shape)
    results = [responses]
    if np.iscomplexobj(responses):
        results = [responses.real, responses.imag]
    matrix = np.stack(results, -1).astype(numpy_dtype(type_of(x).element_type))
    last = len(shape_of(x)) - 1
    product = n.dot(x, n.constant(matrix), ([last, axis], [0, 1]))
    order = [*range(axis), last - 1, *range(axis, last - 1), last]
    return n.transpose(product, order)


def _dft(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    rank = len(shape_of(x))
    given = n.integer("axis", 1) if n.opset < 20 else -2
    axis = axis_of(int(n.known(2).item()) if n.has(2) else given, rank)
    inverse, onesided = n.integer("inverse", 0), n.integer("onesided", 0)
    length = shape_of(x)[axis]
    if inverse and onesided:
        length = 2 * (length - 1)
    if n.has(1):
        length = int(n.known(1).item())
    return [_transformed(n, x, axis, _transform(inverse, onesided, length))]


def _transform(inverse: int, onesided: int, length: int) -> Callable[[Array], Array]:
    fft: Any = np.fft
    if onesided and not inverse:  # also for complex numbers, unlike np.fft.rfft

        def half(x: Array) -> Array:
            return fft.fft(x, length)[:, : length // 2 + 1]

        return half
    return partial(
        (fft.irfft if onesided else fft.ifft) if inverse else fft.fft, n=length
    )


def _short_time(n: OnnxNode) -> Sequence[Value]:
    """The transforms of overlapping windows."""
    x, step = n.value(0), int(n.known(1).item())
    if n.has(3):
        size = int(n.known(3).item())
    else:
        (size,) = shape_of(n.value(2))
    frames = (shape_of(x)[1] - size) // step + 1
    check_table(frames, size)
    places = arange(frames)[:, None] * step + arange(size)
    framed = n.take(x, n.constant(places), 1)
    if n.has(2):
        window = n.broadcast_in_dim(n.value(2), shape_of(framed), [2])
        framed = n.apply(e.MultiplyOp, framed, window)
    return [_transformed(n, framed, 2, _transform(0, n.integer("onesided", 1), size))]


CONVERSIONS: Mapping[str, Conversion] = {"DFT": _dft, "STFT": _short_time}
