"""Contractions by oneDNN: matrix products and convolutions of f32, bf16, s8 and u8.

library.py       the C library: where it is, its objects
primitives.py    its primitives on arrays
epilogue.py      elementwise operations that a primitive does on the way
dot.py, convolution.py   which primitive computes an operation

Needs the extra `fast` (llvmlite, too: calls are native code). Without it, with
`TENSORPLAN_NATIVE=0`, and for what only oneDNN's reference could compute, the NumPy
kernels do it.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.runtime.pool import Scratch

if TYPE_CHECKING:
    from tensorplan.runtime.backends.numpy.base import Call
    from tensorplan.runtime.backends.numpy.contraction import Contraction


_COMPUTED = [
    ["float32", "float32", "float32"],
    ["bfloat16", "bfloat16", "float32"],
    ["bfloat16", "bfloat16", "bfloat16"],
    ["int8", "int8", "int32"],
    ["uint8", "int8", "int32"],
]
"""The elements of both operands and of the result."""


@cache
def is_available() -> bool:
    """Whether oneDNN can be used in this process."""
    from tensorplan.runtime.backends import native
    from tensorplan.runtime.backends.onednn.library import Refused, library

    if not native.is_available():
        return False
    try:
        library()
    except (AttributeError, OSError, Refused):  # none, an old one, not for this machine
        return False
    return True


def compiled(
    op: "Contraction",
    inputs: Sequence[Array],
    out: Array,
    scratch: Scratch,
    after: Sequence[TensorOp] = (),
    result: SSAValue | None = None,
    arrays: Mapping[SSAValue, Array] | None = None,
) -> "list[Call] | None":
    """The calls for a contraction and the operations `after` it, which give `result`
    into `out`; None if oneDNN has no fast primitive that does all of it.

    `arrays` are what else these operations read, of `out`'s shape; that which is in
    `out`'s memory may be overwritten.
    """
    elements = [x.dtype.name for x in (*inputs, out)]
    if elements not in _COMPUTED or any(not x.size for x in (*inputs, out)):
        return None
    if (after and elements[2] != "float32") or not is_available():
        return None
    from tensorplan.runtime.backends.onednn.convolution import convolution
    from tensorplan.runtime.backends.onednn.dot import dot
    from tensorplan.runtime.backends.onednn.epilogue import Epilogue
    from tensorplan.runtime.backends.onednn.library import Refused, library

    if elements[2] == "int32" and not library().adds_integers():
        return None
    mark = scratch.mark
    try:
        epilogue = Epilogue(op, after, result, arrays or {}, out)
        if isinstance(op, DotGeneralOp):
            return dot(op, inputs, out, epilogue, scratch)
        return convolution(op, inputs, out, epilogue, scratch)
    except Refused:
        scratch.mark = mark
        return None
