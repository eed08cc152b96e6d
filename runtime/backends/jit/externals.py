"""LAPACK's and BLAS's routines for native code: SciPy's, which brings both.

LLVM IR declares them as `lapack.NAME`, by the names that LAPACK has for the types of
elements. All arguments are addresses, as in Fortran.
"""

import ctypes
import re
from collections.abc import Collection
from functools import cache
from importlib import import_module
from typing import Any

PREFIX = "lapack."


def declared_in(code: bytes) -> Collection[str]:
    """The names that an object file has of such routines."""
    found = re.findall(rf"\b{re.escape(PREFIX)}(\w+)".encode(), code)
    return sorted({name.decode() for name in found})


@cache
def address_of(name: str) -> int:
    """Where a routine is, as Cython programs find it. Raises `ImportError` without
    SciPy, or where that has no such routine."""
    modules: list[Any] = [
        import_module(f"scipy.linalg.cython_{library}")
        for library in ("lapack", "blas")
    ]
    for module in modules:
        if (capsule := module.__pyx_capi__.get(name)) is not None:
            return _pointer()(capsule, _name()(capsule))
    raise ImportError(f"SciPy has no {name}")


@cache
def _name() -> Any:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.argtypes, function.restype = [ctypes.py_object], ctypes.c_char_p
    return function


@cache
def _pointer() -> Any:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.argtypes = [ctypes.py_object, ctypes.c_char_p]
    function.restype = ctypes.c_void_p
    return function
