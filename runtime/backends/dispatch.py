"""Asks the backends in turn: the first that has calls for an operation computes it.

    onednn   contractions
    native   elementwise operations, reductions and groups; what is a contraction in a
             group, by onednn or numpy
    numpy    all operations

Copies that NumPy would make in between are native, too, whoever asks for them.
"""

from collections.abc import Sequence

from xdsl.ir import Operation

from ...dialects.dtypes import Array
from ..calls import Call
from ..pool import Scratch
from .interface import Backend
from .native.backend import calls_of as native_calls
from .native.backend import with_native_copies
from .numpy.backend import calls_of as numpy_calls
from .numpy.base import kernel_of
from .onednn.backend import calls_of as onednn_calls

NATIVE: Sequence[Backend] = (onednn_calls, native_calls)
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
