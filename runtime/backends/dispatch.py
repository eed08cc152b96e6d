"""Asks the backends in turn; the first one that returns calls computes an operation.

    native   elementwise operations, reductions and groups; it leaves a contraction in
             a group to onednn or numpy
    onednn   contractions
    numpy    all operations

The copies that NumPy kernels need in between are native, too, for every backend.
"""

import os
from collections.abc import Sequence

from xdsl.ir import Operation

from ...dialects.dtypes import Array
from ..calls import Call
from ..pool import Scratch
from .interface import Backend
from .jit import llvm
from .native.backend import calls_of as native_calls
from .native.backend import with_native_copies
from .numpy.backend import calls_of as numpy_calls
from .numpy.base import kernel_of
from .onednn.backend import calls_of as onednn_calls
from .onednn.backend import is_available
from .onednn.library import library

NATIVE: Sequence[Backend] = (native_calls, onednn_calls)
"""The backends that are asked before NumPy, in this order."""


def compile_call(
    op: Operation,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
    native: bool = True,
) -> list[Call]:
    """The calls that compute `outs` from `inputs` as `op` specifies: by the first
    backend that supports `op`, or by NumPy if `native` is false.

    Raises `LocatedError` for an operation, or element types, without a kernel.
    """
    kernel_of(op)  # raises for unknown operations, even on empty arrays
    scratch.reset()
    if not any(out.size for out in outs):
        return []
    if not native:
        return numpy_calls(op, inputs, outs, scratch)
    for calls_of in NATIVE:
        calls = calls_of(op, inputs, outs, scratch)
        if calls is not None:
            return with_native_copies(calls, scratch)
        scratch.reset()
    return with_native_copies(numpy_calls(op, inputs, outs, scratch), scratch)


def setting() -> str:
    """Everything that decides which kernels compute a program on this machine."""
    found = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(("TENSORPLAN_", "ONEDNN_", "DNNL_"))
        and name != "TENSORPLAN_CACHE"
    ]
    if llvm.is_available():
        found.append(llvm.compiler().setting)
    if is_available():
        found.append(library().version)
    return "\n".join(found)
