"""Runs memref programs: compiled once into a flat list of calls, then only called.

Programs are of level 3 (one arena per device, a view at a constant offset for each
buffer) or of level 2 (`memref.alloc`; each gets its own part of the device's pool).

    step     an operation; its calls are made ahead, on views of the memory it works on
    tape     all steps' calls, in program order
    binding  the caller's arrays are the arguments' memory. If a call brings an argument
             in other memory than the last, the steps that touch it are made again

With `sanitize`, memory that holds nothing of use is filled with what is surely wrong:
0xFF in every byte (NaN in every float type, -1 in integers) in buffers before their
first and after their last access, 0xA5 in what no buffer covers, which must still be
there after the run. A sound plan's results are the same; an unsound plan's are not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import (
    AnyMemRef,
    Shape,
    TensorOp,
    device_of,
    is_static,
)
from tensorplan.runtime.dtypes import Array, DType, constant, numpy_dtype
from tensorplan.runtime.kernels import Call, compile_call
from tensorplan.runtime.pool import ALIGNMENT, Pool, Scratch
from tensorplan.runtime.signature import Input, Result, Slot, signature

DEAD = 0xFF
UNUSED = 0xA5

VIEW_OPS = (
    memref.ReinterpretCastOp,
    memref.SubviewOp,
    memref.CastOp,
    memref.CollapseShapeOp,
    memref.ExpandShapeOp,
    memref.MemorySpaceCastOp,
)
"""Their result is the same buffer under the layout that its type states."""


class PlanViolation(RuntimeError):
    """A run with `sanitize` found memory written that belongs to no buffer."""


@dataclass
class Memory:
    """Bytes that buffers and views lie in."""

    bytes: Array
    argument: int | None = None
    """The number of the function argument that it is bound to."""


@dataclass(frozen=True)
class View:
    """An array in a memory. Offset and strides are in bytes."""

    memory: Memory
    dtype: DType
    shape: Shape
    offset: int
    strides: Shape

    def array(self) -> Array:
        return np.ndarray(
            self.shape, self.dtype, self.memory.bytes, self.offset, self.strides
        )


@dataclass
class Step:
    """What makes the calls of an operation, and the arguments that they depend on."""

    make: Callable[[], list[Call]]
    arguments: frozenset[int] = frozenset()
    calls: list[Call] = field(default_factory=list[Call])
    workspace: Pool | None = None
    """The workspace that the calls use."""


class Executable:
    """A memref program, ready to run. Not for use by several threads at a time.

    `executable(*arrays)` takes an array for each input and returns the results in the
    order of the signature (see `tensorplan.runtime.signature`):

    - An input that is a C-contiguous NumPy array of the right type is used where it is;
      it is kept alive until a later call brings another. Others (lists, whatever has
      `__array__`, `__array_interface__` or `__dlpack__`) are seen as arrays without a
      copy if possible.
    - A variable given as such an array, if writable, is updated in place and returned.
      Otherwise a copy is updated and returned.
    - Other results are returned as new arrays, or in the arrays that `out` names.

    Raises `LocatedError` when made from IR that it cannot run, `TypeError` or
    `ValueError` when called with arrays that do not fit.
    """

    def __init__(self, module: ModuleOp, entry: str = "main", *, sanitize: bool = False):
        self._signature = signature(module, entry)
        self._sanitize = sanitize
        program = _Program(module, self._signature.function, self._signature.results)
        self._program = program
        self.pools: Sequence[Pool] = program.pools
        """The devices' memory: `pool.device`, `pool.bytes`."""
        self._steps = program.steps(sanitize)
        self._make(self._steps)
        self._make(s for s in self._steps if program.is_outdated(s))
        self._tape = _tape(self._steps)
        self._bound: list[object] = [None] * len(self.inputs)
        self._returned: list[Array | None] = [None] * len(self.inputs)

    @property
    def inputs(self) -> Sequence[Input]:
        return self._signature.inputs

    @property
    def results(self) -> Sequence[Result]:
        return self._signature.results

    @property
    def scratch_bytes(self) -> int:
        """The size of the kernels' workspaces, on all devices."""
        return sum(s.bytes for s in self._program.scratches.values())
