"""The registry of NumPy's kernels, and calls of ufuncs."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation

from ....dialects.diagnostics import LocatedError
from ....dialects.dtypes import Array, DType
from ...calls import Call
from ...pool import Scratch

Kernel: TypeAlias = Callable[
    [Any, Sequence[Array], Sequence[Array], Scratch], list[Call]
]
"""`(op, inputs, outs, scratch) -> calls`, as in a backend (interface.py)."""

KERNELS: dict[type[Operation], Kernel] = {}
"""The kernel for each operation, or base class of operations, in destination form."""


def kernel(*ops: type[Operation]) -> Callable[[Kernel], Kernel]:
    def register(function: Kernel) -> Kernel:
        KERNELS.update(dict.fromkeys(ops, function))
        return function

    return register


def kernel_of(op: Operation) -> Kernel:
    """The kernel of the operation's class, or of its nearest base class.

    Raises `LocatedError` for an operation without one.
    """
    for kind in type(op).__mro__:
        if kind in KERNELS:
            return KERNELS[kind]
    raise LocatedError(f"{op.name} has no kernel", op)


def ufunc_call(function: np.ufunc, *arrays: Array) -> Call:
    """The call of a ufunc. `arrays` are the inputs, then the output."""
    if function is np.maximum or function is np.minimum:
        # NumPy 2.4 deprecates passing the output of these two by position.
        *inputs, out = arrays
        return partial(function, out=out), tuple(inputs)
    if function is np.negative and arrays[0].dtype.kind == "f":
        # NumPy 2.4 reads wrong elements for some strides of both arrays.
        x, out = arrays
        if not (x.flags.c_contiguous or out.flags.c_contiguous):
            return np.multiply, (x, x.dtype.type(-1), out)
    return function, arrays


def check_types(op: Operation, function: np.ufunc, *dtypes: DType) -> None:
    """Raises `LocatedError` for element types that NumPy would convert first."""
    if not _computes_in(function, dtypes):
        names = ", ".join(map(str, dtypes))
        raise LocatedError(f"{op.name} is not defined on elements of type {names}", op)


@cache
def _computes_in(function: np.ufunc, dtypes: tuple[DType, ...]) -> bool:
    try:
        return function.resolve_dtypes(dtypes) == dtypes
    except TypeError:
        return False
