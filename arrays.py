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
