"""Tells `plan-workspaces` how much workspace the executor's kernels take.

A kernel is compiled as the executor compiles it, on arrays whose pages are never
touched, and the scratch memory that it takes is counted. Operands that are views of one
buffer share memory, as in a run. Constants and parameters (`tgraph.parameter`) count as
packed where kernels pack them (`prepacking.py`). Of equal operations, such as those of
GPT-2's layers, only one is measured.
"""

from functools import partial
from typing import cast

from xdsl.ir import SSAValue

from ...analysis.functions import is_constant
from ...dialects.diagnostics import LocatedError
from ...dialects.memory import root_of
from ...dialects.structural_keys import StructuralKeys
from ...dialects.tgraph.base import AnyMemRef, TensorOp
from ..allocators.host import aligned_bytes
from ..backends.dispatch import compile_call
from ..pool import ALIGNMENT, Scratch
from ..prepacking import Measured
from .memory import layout_of, size_of
from .steps import MemoryBlock, MemoryRange


class Workspaces:
    """`Workspaces(native, threads)(op)` returns the workspace in bytes of the kernel of
    `op`, an operation on memrefs of static size, with `threads` threads; 0 if it has no
    kernel."""

    def __init__(self, native: bool, threads: int = 1):
        self._native = native
        self._scratch = Scratch("", threads, growth=2)
        self._memory = MemoryBlock(aligned_bytes(0, ALIGNMENT), "operands")
        self._keys = StructuralKeys()
        self._known: dict[object, int] = {}

    def __call__(self, op: TensorOp) -> int:
        key = self._key(op)
        if key not in self._known:
            self._known[key] = self._measured(op)
        return self._known[key]

    def _key(self, op: TensorOp) -> object:
        """A key that is equal for operations whose kernels take the same workspace."""
        roots = [root_of(value) for value in op.operands]
        operands = [
            (self._keys.number(root.type), roots.index(root), is_constant(root))
            for root in roots
        ]
        return self._keys.of(op), *operands

    def _measured(self, op: TensorOp) -> int:
        scratch = self._scratch
        try:
            buffers = self._buffers(op)
            inputs, outs = (
                [
                    layout_of(buffers[root_of(value)], _type(value), op).array()
                    for value in values
                ]
                for values in (op.inputs, op.outs)
            )
            scratch.constants = [
                Measured(buffer.bytes)
                for root, buffer in buffers.items()
                if is_constant(root)
            ]
            compile_call(op, inputs, outs, scratch, self._native)
        except (LocatedError, MemoryError):
            return 0  # the executor reports the error if it runs this
        return scratch.peak

    def _buffers(self, op: TensorOp) -> dict[SSAValue, MemoryRange]:
        """The buffers that contain the operands, one after the other in memory."""
        buffers: dict[SSAValue, MemoryRange] = {}
        end = 0
        for root in map(root_of, op.operands):
            if root not in buffers:
                size = size_of(_type(root), op)
                buffers[root] = MemoryRange(self._memory, end, size)
                end += -(-size // ALIGNMENT) * ALIGNMENT
        if end > self._memory.bytes.size:
            self._memory.array = aligned_bytes(2 * end, ALIGNMENT)
        return buffers


native = partial(Workspaces, True)
numpy = partial(Workspaces, False)
"""`dialects/workspaces.py` refers to these by name."""


def _type(value: SSAValue) -> AnyMemRef:
    return cast(AnyMemRef, value.type)
