"""Asks the backends in turn; the first one that has calls for an operation computes it.

    onednn   contractions
    native   elementwise operations, reductions and groups; what is a contraction in a
             group, by onednn or numpy
    numpy    all operations

Copies that NumPy would make in between are native, too, for every backend.
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
    """The calls that compute `outs` from `inputs`, as `op` says: by the first backend
    that has some, or by NumPy unless `native`.

    Raises `LocatedError` for an operation, or types of elements, without a kernel.
    """
    kernel_of(op)  # refuses what no backend knows, were it on empty arrays
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
    """All that decides which kernels compute a program on this machine."""
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
