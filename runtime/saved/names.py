"""The functions that calls of a saved program may name. Knows no IR.

Native functions are in the file itself; oneDNN's primitives are described there.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ...support.arrays import DType
from .. import calls
from ..backends.jit import records
from ..backends.numpy import functions, lapack, special

FORMAT = 5
"""The version of the file format."""

MANIFEST = "program.json"

FUNCTIONS: Mapping[str, Callable[..., object]] = {
    function.__name__: function
    for function in (
        *(calls.assign, calls.load_number, calls.move, calls.move_elements),
        calls.store_number,
        *(calls.run_for, calls.run_if, calls.run_switch, calls.run_while),
        *(functions.call_unbuffered, functions.combine_elements),
        *(functions.combine_slices, functions.copy_slices),
        *(functions.put_part, functions.take_part, functions.take_sorted),
        functions.transform,
        *(lapack.cholesky, lapack.eig, lapack.eigh, lapack.hessenberg),
        *(lapack.householder_product, lapack.lu, lapack.qr, lapack.schur, lapack.svd),
        lapack.triangular_solve,
        *(special.divide, special.erf, special.erfc, special.expm1),
        *(special.log1p, special.popcnt),
    )
}

CONTROLS = {"if": records.IF, "while": records.WHILE}
"""The names of native code that runs other calls."""

_NUMPY = {np.argmax, np.argmin, np.clip, np.concatenate, np.copyto, np.where}
"""The NumPy functions that calls use, other than ufuncs."""

METHODS: Mapping[type[Any], Collection[str]] = {
    np.ndarray: {"__setitem__", "fill", "take"},
    np.ufunc: {"accumulate", "at", "reduce", "reduceat"},
}


def is_of_numpy(function: object) -> bool:
    return isinstance(function, np.ufunc) or any(function is x for x in _NUMPY)


def of_numpy(name: str) -> Any:
    """The NumPy function `name`. Raises `ValueError` if no call uses it."""
    function = getattr(np, name, None)
    if not is_of_numpy(function):
        raise ValueError(f"numpy.{name} is not a function that programs use")
    return function


def method(of: object, name: str) -> Any:
    """A method of an array or a ufunc. Raises `ValueError` if no call uses it."""
    if name not in METHODS.get(type(of), ()):
        raise ValueError(f"the method {name} of a {type(of).__name__}")
    return getattr(of, name)


def dtype_of(name: str) -> DType:
    """The element type that NumPy or ml_dtypes calls `name`."""
    if re.fullmatch(r"bfloat16|float[468]_e\w+|u?int[24]", name):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    dtype = np.dtype(name)
    if dtype.hasobject or dtype.fields:
        raise ValueError(f"elements of type {name}")
    return dtype
