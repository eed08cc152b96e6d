"""NumPy's arrays, as all that compute see them. Knows no IR."""

from ctypes import c_size_t
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]
Shape: TypeAlias = tuple[int, ...]


def address(array: Array) -> int:
    """Where the first element is: `PyArray_DATA` of NumPy's C interface, which
    `__array_interface__` tells in ten times the time."""
    return c_size_t.from_address(id(array) + object.__basicsize__).value


def span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of an array's elements, and after the last."""
    start = address(array)
    if not array.size:
        return start, start
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    last = start + sum(max(r, 0) for r in reach) + array.itemsize
    return start + sum(min(r, 0) for r in reach), last
