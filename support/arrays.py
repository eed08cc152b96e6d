"""NumPy arrays: types, addresses and strided views. Knows no IR."""

from collections.abc import Sequence
from ctypes import c_size_t
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]
Shape: TypeAlias = tuple[int, ...]


@cache
def name_of(dtype: DType) -> str:
    """NumPy's name of `dtype`, cached, since NumPy builds the text in each access."""
    return dtype.name


def address(array: Array) -> int:
    """The address of the first element, `PyArray_DATA` in NumPy's C interface.
    `__array_interface__` takes ten times as long."""
    return c_size_t.from_address(id(array) + object.__basicsize__).value


def strided(
    array: Array,
    shape: Sequence[int],
    strides: Sequence[int],
    *,
    writeable: bool = True,
) -> Array:
    """NumPy's `as_strided` for all element types. NumPy's own cannot parse `<f1`, the
    type string of float8_e5m2 in ml_dtypes."""
    is_readable = array.dtype.str != "<f1"
    seen = array if is_readable else array.view(np.uint8)
    view = as_strided(seen, shape, strides, writeable=writeable)
    return view if is_readable else view.view(array.dtype)


def span(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of an array's elements, and after the last."""
    start = address(array)
    if not array.size:
        return start, start
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    last = start + sum(max(r, 0) for r in reach) + array.itemsize
    return start + sum(min(r, 0) for r in reach), last
