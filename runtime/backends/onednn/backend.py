"""oneDNN as a backend: contractions, and elementwise operations that it can fuse."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.fusing import CONTRACTIONS
from ....dialects.tgraph.reducing import DotGeneralOp
from ....support.arrays import Array, DType, name_of
from ...calls import Call
from ...pool import Scratch
from ..contraction import Contraction
from ..jit import llvm
from .convolution import convolution
from .dot import dot, product
from .epilogue import Epilogue
from .library import Refused, library

_COMPUTED = [
    ["float32", "float32", "float32"],
    ["bfloat16", "bfloat16", "float32"],
    ["bfloat16", "bfloat16", "bfloat16"],
]
"""The element types of both operands and of the result."""


def is_available() -> bool:
    """Whether oneDNN can be used in this process."""
    return llvm.is_available() and _is_there()


@cache
def _is_there() -> bool:
    try:
        library()
    except (AttributeError, OSError, Refused):  # missing, too old, or unsupported
        return False
    return True


def calls_of(
    op: Operation, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call] | None:
    """The calls for a contraction. None for other operations, and for contractions for
    which oneDNN has no fast primitive."""
    if not isinstance(op, CONTRACTIONS):
        return None
    return compiled(op, inputs, outs[0], scratch)


def computes(elements: Sequence[DType]) -> bool:
    """Whether oneDNN computes contractions with operands and results of these element
    types. Contractions of 8-bit integers are native (native/integers.py): these take as
    long as oneDNN's with VNNI, and a fraction of the workspace, as oneDNN stores all
    sums in 32 bits."""
    return [name_of(x) for x in elements] in _COMPUTED and is_available()


def compiled(
    op: Contraction,
    inputs: Sequence[Array],
    out: Array,
    scratch: Scratch,
    after: Sequence[TensorOp] = (),
    result: SSAValue | None = None,
    arrays: Mapping[SSAValue, Array] | None = None,
) -> list[Call] | None:
    """The calls for a contraction and the operations `after` it, which compute `result`
    into `out`; None if oneDNN has no fast primitive that computes all of them.

    `arrays` has the other operands of these operations, which have the shape of `out`.
    An operand in the memory of `out` may be overwritten.
    """
    elements = [x.dtype for x in (*inputs, out)]
    if not computes(elements) or any(not x.size for x in (*inputs, out)):
        return None
    if after and out.dtype != np.float32:
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


def matmul(
    lhs: Array, rhs: Array, out: Array, scratch: Scratch
) -> Sequence[Call] | None:
    """The product of matrices of f32; None if oneDNN has no fast primitive for it."""
    if not is_available():
        return None
    mark = scratch.mark
    try:
        return product(lhs, rhs, out, scratch)
    except Refused:
        scratch.mark = mark
        return None
