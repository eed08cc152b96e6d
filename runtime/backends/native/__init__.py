"""Native code for elementwise operations, reductions and fused groups.

code.py         LLVM IR as text: values, arithmetic, loops
elements.py     element types in memory and in registers
math.py         exp, log, tanh, ... of vectors
operations.py   the elementwise operations
groups.py       what an operation or fusion computes, over one iteration space
nests.py        the loops for that: order, vectors, passes
loops.py        loops to LLVM IR

Contractions are oneDNN's (`tensorplan.runtime.backends.onednn`). The rest needs
llvmlite (the extra `fast`), which is imported when the first function is made.
Without it, for what is not supported, and with `TENSORPLAN_NATIVE=0`, NumPy computes.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.memref import CopyOp
from xdsl.ir import Operation, SSAValue

from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph import shaping
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.elementwise import ElementwiseOp
from tensorplan.dialects.tgraph.fusing import CONTRACTIONS
from tensorplan.dialects.tgraph.reducing import ReduceOp
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.runtime.backends import onednn
from tensorplan.runtime.pool import Scratch

if TYPE_CHECKING:
    from tensorplan.runtime.backends.numpy.base import Call


@cache
def is_available() -> bool:
    """Whether native code can be made in this process."""
    if os.environ.get("TENSORPLAN_NATIVE") == "0":
        return False
    from tensorplan.runtime.backends.jit.llvm import compiler

    try:
        return compiler().has_fma
    except (ImportError, OSError, RuntimeError):
        return False


def compile_native(
    op: Operation, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> "list[Call] | None":
    """Native calls that compute `outs` from `inputs` as `op` says; None if there are
    none, and a NumPy kernel has to do it.

    An output may be the memory of an input that `op.overwritable()` lists.
    """
    if isinstance(op, CONTRACTIONS):
        return onednn.compiled(op, inputs, outs[0], scratch)
    if len(outs) != 1 or not isinstance(op, _SUPPORTED) or not is_available():
        return None
    from tensorplan.runtime.backends.native.kernels import calls_of

    (out,) = outs
    if isinstance(op, CopyOp):
        return calls_of([], op.source, {op.source: inputs[0]}, out, scratch)
    if isinstance(op, FusionOp):
        body = [x for x in op.body.block.ops if isinstance(x, TensorOp)]
        arrays = dict[SSAValue, Array](zip(op.body.block.args, inputs, strict=True))
        return calls_of(body, op.yielded[0], arrays, out, scratch)
    assert isinstance(op, TensorOp)
    arrays = dict[SSAValue, Array](zip(op.inputs, inputs, strict=True))
    return calls_of([op], op.outs[0], arrays, out, scratch)


def with_native_copies(calls: "list[Call]", scratch: Scratch) -> "list[Call]":
    """The same calls, but those that only copy elements are native."""
    if not is_available():
        return calls
    from tensorplan.runtime.backends.native.groups import Unsupported
    from tensorplan.runtime.backends.native.kernels import copy_of

    def translated(call: "Call") -> "Call":
        function, arguments = call
        if function is not np.copyto or len(arguments) != 2:
            return call
        try:
            return copy_of(*arguments, scratch)
        except Unsupported:
            return call

    return [translated(call) for call in calls]


_SUPPORTED = (
    CopyOp,
    ElementwiseOp,
    FusionOp,
    ReduceOp,
    shaping.ConstantOp,
    shaping.DeviceCopyOp,
    shaping.FullLikeOp,
    shaping.IotaOp,
    shaping.ViewOp,
)
