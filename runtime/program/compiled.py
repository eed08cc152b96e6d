"""Compiles memref IR to a program: lays out its memory, and makes its steps."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import cast

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
)
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.memory import dma_start
from ...dialects.tgraph.base import STREAM, AnyMemRef, TensorOp
from ...dialects.tgraph.callbacks import Callbacks, HostCallbackOp, function_of
from ...dialects.tgraph.signature import Signature, check_one_block
from ...dialects.tgraph.structure import FusionOp
from ...support.arrays import Array
from ..backends.dispatch import compile_call
from ..backends.jit.records import is_native
from ..backends.jit.subnormals import with_subnormals
from ..calls import Call, HostCallback
from ..pool import Pool, Scratch
from ..runnable import check_devices, device_of
from .control import Control
from .memory import ProgramMemory
from .program import Program
from .steps import COPIES, Arena, MemoryBlock, MemoryRange, Step, View

_NOTHING = np.empty(0, np.uint8)


@dataclass(eq=False)
class OperationStep(Step):
    """A step that computes an operation of the IR."""

    op: Operation = field(kw_only=True)


class CompiledProgram(Program):
    """The memory and the steps of a function.

    Raises `LocatedError` for IR that the runtime cannot run: operations without a
    kernel, devices that this machine does not have, sizes that are not static, views
    that exceed their buffer, or arguments that are written without being marked so.
    Raises `NotEnoughMemoryError` if this machine has too little memory.
    """

    def __init__(
        self,
        module: ModuleOp,
        signature: Signature,
        pools: Sequence[Pool] = (),
        allocator: str = "bfc",
        native: bool = True,
        threads: int = 1,
        callbacks: Callbacks = (),
        like: "CompiledProgram | None" = None,
    ):
        """Shares `pools`; devices without one get a new pool with `allocator`. Shares
        the constants of `like`, a program made from the same module. Kernels use
        `threads`."""
        function = signature.function
        check_one_block(function)
        check_devices(function)
        self._laid_out = ProgramMemory(
            module, signature, pools, allocator, like and like.memory
        )
        super().__init__(self._laid_out)
        self._native = native
        self._callbacks = callbacks
        outside = MemoryBlock(np.zeros(1, np.uint8), "the outside", "cpu:0")
        self._outside = View(MemoryRange(outside, 0, 1), np.dtype(np.uint8), (), 0, ())
        """What callbacks with effects write, so they run in program order."""
        self._threads = threads
        self._control = Control(self)
        self._enclosing: list[tuple[Operation, list[Step]]] = []
        """The loops and branches around an operation, with the steps around each."""
        self.deallocations: list[tuple[MemoryRange, int]] = []
        """Deallocated buffers, each with the number of steps before its
        `memref.dealloc`."""
        arguments = self.memory.arguments
        argument_of = dict[SSAValue, MemoryBlock](
            zip(function.body.block.args, arguments, strict=True)
        )
        self._arguments = frozenset(arguments)
        self.inputs = [argument_of[value] for value in signature.arguments]
        self._read_only = {
            memory
            for slot, memory in zip(signature.inputs, self.inputs, strict=True)
            if not slot.is_written
        }
        starts: list[int] = []
        """The number of steps before each operation."""
        try:
            for op in function.body.block.ops:
                starts.append(len(self.steps))
                self._add(op)
        finally:
            self.memory.free_all()
        starts.append(len(self.steps))
        self.arenas = [
            Arena(arena.memory, arena.start, arena.size, (starts[first], starts[end]))
            for arena, first, end in self.memory.allocated_arenas
        ]
        self.results = [
            argument_of.get(value) or self.memory.views[value]
            for value in signature.holders
        ]

    @property
    def fallbacks(self) -> Counter[str]:
        """The number of operations that run in NumPy or Python, by description."""
        return Counter(
            _described(step.op)
            for step in self._all_steps
            if isinstance(step, OperationStep)
            and not step.regions
            and not is_native(step.calls)
        )

    @property
    def scratch_memories(self) -> Sequence[Array]:
        """The blocks that `scratch_bytes` counts."""
        return [scratch.pool.memory for scratch in self._scratches.values()]

    @property
    def memory(self) -> ProgramMemory:
        return self._laid_out

    def _add(self, op: Operation) -> None:
        if self.memory.place(op):
            return
        if isinstance(op, HostCallbackOp):
            self._add_callback(op)
        elif isinstance(op, TensorOp):
            self._add_step(op, op.inputs, op.outs)
        elif isinstance(op, memref.CopyOp):
            self._add_step(op, (op.source,), (op.destination,))
        elif isinstance(op, memref.DeallocOp):
            buffer = self.memory.views[op.memref].buffer
            self.deallocations.append((buffer, self._steps_before()))
            self.memory.free(op)
        elif not self._control.add(op) and not isinstance(op, ReturnOp):
            raise LocatedError(f"{name_of(op)} has no kernel", op)

    def _steps_before(self) -> int:
        """The number of the function's steps, including the one being made."""
        return len(self._enclosing[0][1]) + 1 if self._enclosing else len(self.steps)

    def steps_of(self, op: Operation) -> list[list[Step]]:
        """The steps of each region of `op`, made but not added to the program."""
        self._enclosing.append((op, self.steps))
        regions: list[list[Step]] = []
        for region in op.regions:
            self.steps = []
            for inner in region.block.ops if region.blocks else ():
                self._add(inner)
            regions.append(self.steps)
        _, self.steps = self._enclosing.pop()
        return regions

    def add_step(
        self,
        op: Operation,
        make: Callable[[], list[Call]],
        reads: Sequence[View],
        writes: Sequence[View],
        regions: Sequence[Sequence[Step]] = (),
        scratch: Scratch | None = None,
    ) -> None:
        """Adds a step. `regions` are the steps of the regions that it runs itself."""
        touched = [view.buffer.memory for view in (*writes, *reads)]
        for memory in touched[: len(writes)]:
            if memory.is_constant:
                raise LocatedError(f"{name_of(op)} writes a constant", op)
            if memory in self._read_only:
                raise LocatedError(
                    f"{name_of(op)} writes an argument, expected it to have the "
                    "attribute tgraph.variable, tgraph.donated or tgraph.result",
                    op,
                )
        arguments = self._arguments.intersection(touched)
        device = next((memory.device for memory in touched if memory.device), "")
        step = OperationStep(
            make,
            frozenset(arguments.union(*(step.arguments for step in chain(*regions)))),
            scratch,
            device,
            COPIES if _is_from_elsewhere(op, reads, writes) else _stream(op),
            reads,
            writes,
            regions,
            op=op,
        )
        self.steps.append(step)
        self._all_steps.append(step)

    def _add_step(
        self, op: Operation, inputs: Sequence[SSAValue], outs: Sequence[SSAValue]
    ) -> None:
        if not outs:
            raise LocatedError(f"{op.name} is on tensors, expected memrefs", op)
        sources = [self.memory.views[value] for value in inputs]
        targets = [self.memory.views[value] for value in outs]
        device = device_of(cast(AnyMemRef, outs[0].type))
        # A loop runs concurrently with the other steps of its devices.
        key = device, self._enclosing[0][0] if self._enclosing else _stream(op)
        scratch = self._scratches.setdefault(key, Scratch(device, self._threads))
        given = op.workspace if isinstance(op, TensorOp) else None
        workspace = [] if given is None else [self.memory.views[given]]

        def make() -> list[Call]:
            inputs = [v.array() for v in sources]
            outs = [v.array() for v in targets]
            memories = dict.fromkeys(view.buffer.memory for view in sources)
            scratch.constants = [m.prepacked for m in memories if m.prepacked]
            scratch.planned = workspace[0].array() if workspace else _NOTHING
            return compile_call(op, inputs, outs, scratch, self._native)

        unread = op.SHAPE_ONLY if isinstance(op, TensorOp) else ()
        reads = [view for n, view in enumerate(sources) if n not in unread]
        self.add_step(op, make, reads, [*targets, *workspace], scratch=scratch)

    def _add_callback(self, op: HostCallbackOp) -> None:
        function = function_of(op, self._callbacks)
        called = HostCallback(with_subnormals(function), partial(_failure, op))
        sources = [self.memory.views[value] for value in op.inputs]
        targets = [self.memory.views[value] for value in op.outs]
        outside = [self._outside] if op.has_side_effect else []

        def make() -> list[Call]:
            arrays = ([v.array() for v in views] for views in (sources, targets))
            return [(called, tuple(arrays))]

        self.add_step(op, make, sources, [*targets, *outside])


def _failure(op: Operation, error: Exception) -> LocatedError:
    name = type(error).__name__
    return LocatedError(f"a function that the program calls raised {name}: {error}", op)


def _described(op: Operation) -> str:
    """The operation's name; for a fusion, with the names of fused operations."""
    if not isinstance(op, FusionOp):
        return name_of(op)
    inner = [x for x in op.body.block.ops if isinstance(x, TensorOp)]
    names = dict.fromkeys(name_of(x) for x in inner if x.operands)
    return f"{name_of(op)} of {', '.join(names)}"


def _stream(op: Operation) -> int:
    stream = op.attributes.get(STREAM)
    return stream.value.data if isinstance(stream, IntegerAttr) else 0


def _is_from_elsewhere(
    op: Operation, reads: Sequence[View], writes: Sequence[View]
) -> bool:
    """Whether `op` copies from another device without naming a stream."""
    is_copy = isinstance(op, memref.CopyOp) or dma_start(op)
    if not is_copy or STREAM in op.attributes:
        return False
    devices = {view.buffer.memory.device for view in (*reads, *writes)}
    return len(devices - {""}) > 1  # constants are everywhere
