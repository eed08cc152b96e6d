"""Finds LAPACK's and BLAS's routines for native code, in SciPy.

LLVM IR declares them as `lapack.NAME`, with LAPACK's name for the element type. All
arguments are addresses, as in Fortran.
"""

import re
from collections.abc import Collection
from ctypes import PYFUNCTYPE, c_char_p, c_void_p, py_object, pythonapi
from functools import cache
from importlib import import_module
from typing import Any

PREFIX = "lapack."

_NAME = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
_POINTER = PYFUNCTYPE(c_void_p, py_object, c_char_p)(
    ("PyCapsule_GetPointer", pythonapi)
)


def declared_in(code: bytes) -> Collection[str]:
    """The names of these routines that an object file refers to."""
    found = re.findall(rf"{re.escape(PREFIX)}(\w+)".encode(), code)
    return sorted({name.decode() for name in found})


@cache
def address_of(name: str) -> int:
    """The address of a routine, as Cython programs find it. Raises `ImportError` if
    SciPy is missing or has no such routine."""
    modules: list[Any] = [
        import_module(f"scipy.linalg.cython_{library}")
        for library in ("lapack", "blas")
    ]
    for module in modules:
        if (capsule := module.__pyx_capi__.get(name)) is not None:
            return _POINTER(capsule, _NAME(capsule))
    raise ImportError(f"SciPy has no {name}")
