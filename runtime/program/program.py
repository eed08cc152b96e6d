"""Memref IR made ready to run: the steps that compute, in memory that is laid out."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence, Set
from itertools import chain
from typing import NamedTuple, cast

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
)
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.tgraph.base import STREAM, AnyMemRef, TensorOp
from ...dialects.tgraph.signature import Signature, check_one_block
from ...dialects.tgraph.structure import FusionOp
from ..backends.dispatch import compile_call
from ..backends.interface import Call
from ..backends.jit.records import is_native
from ..pool import Pool, Scratch
from ..runnable import check_devices, device_of
from .control import Control
from .memory import ProgramMemory
from .relocation import Hidden, Relocations, relocated
from .steps import COPIES, MemoryBlock, MemoryRange, Step, View

_NOTHING = np.empty(0, np.uint8)


class Changes(NamedTuple):
    """What is other than before about the arguments of a program."""

    moved: Collection[MemoryBlock]  # now at another address
    renewed: Collection[MemoryBlock]  # with other copies for kernels


class Program:
    """The memory and the steps of a function.

    Raises `LocatedError` for IR that the runtime cannot run: operations without a
    kernel, devices that are not here, sizes that are not static, views that reach out
    of their buffer, arguments that are written and not marked so;
    `NotEnoughMemoryError` for what this machine has no memory for.
    """

    def __init__(
        self,
        module: ModuleOp,
        signature: Signature,
        pools: Sequence[Pool] = (),
        allocator: str = "bfc",
        native: bool = True,
        like: "Program | None" = None,
    ):
        """`pools` are those to share; devices without get one with `allocator`.
        Constants are those of `like`, a program made of the same module."""
        function = signature.function
        check_one_block(function)
        check_devices(function)
        self._native = native
        self.steps: list[Step] = []
        self._all_steps: list[Step] = []  # those in loops and branches, too
        self.memory = ProgramMemory(
            module, signature, pools, allocator, like and like.memory
        )
        self._scratches: dict[tuple[str, Operation | int], Scratch] = {}
        self._relocations: dict[Step, Relocations] = {}
        self._moving = Relocations()
        """All of these together."""
        self._fixed: Sequence[Step] = ()
        self._control = Control(self)
        self._outside: list[tuple[Operation, list[Step]]] = []
        """The loops and branches around an operation, and the steps around these."""
        self.deallocations: list[tuple[MemoryRange, int]] = []
        """Buffers, with the number of steps before their `memref.dealloc`."""
        self._read_only = {s.value for s in signature.inputs if not s.is_variable}
        arguments = self.memory.arguments.items()
        self._argument_in = {memory: value for value, memory in arguments}
        try:
            for op in function.body.block.ops:
                self._add(op)
        finally:
            self.memory.free_all()

    def make(self, steps: Collection[Step] | None = None) -> None:
        """Makes the calls of steps, of all unless some are given."""
        self._make(self.steps if steps is None else steps)
        self._make([step for step in self.steps if step.is_outdated])
        in_use = {step.workspace for step in self._all_steps}
        for scratch in self._scratches.values():
            if scratch.pool not in in_use:
                scratch.release()
        self._fixed = [s for s in self.steps if s.is_fixed and s.arguments]
        self._moving = Relocations()
        for relocations in self._relocations.values():
            self._moving.add(relocations)
        self._moving.move(self._moving_memories())

    def follow(self, changes: Changes) -> bool:
        """Makes the calls follow arguments; returns whether some had to be made anew
        for that."""
        following = [memory for memory in changes.moved if memory.moves]
        self._moving.move(following)
        if not self._fixed and not changes.renewed and following == changes.moved:
            return False
        stale = {*changes.renewed, *(m for m in changes.moved if not m.moves)}
        steps = [
            step
            for step in self.steps
            if not stale.isdisjoint(memories := self._memories_of(step))
            or (step.is_fixed and not memories.isdisjoint(changes.moved))
        ]
        if steps:
            self.make(steps)
        return bool(steps)

    def _memories_of(self, step: Step) -> Set[MemoryBlock]:
        return {self.memory.arguments[value] for value in step.arguments}

    def _moving_memories(self) -> list[MemoryBlock]:
        return [m for m in self.memory.arguments.values() if m.moves]

    def _make(self, steps: Collection[Step]) -> None:
        moving = self._moving_memories()
        now = [memory.array for memory in moving]
        for memory in moving:
            assert memory.home is not None
            memory.array = memory.home
        try:
            for step in steps:
                if not step.is_fixed:
                    self._make_following(step, moving)
        finally:
            for memory, array in zip(moving, now, strict=True):
                memory.array = array
        for step in steps:
            if step.is_fixed:
                self._relocations.pop(step, None)
                step.remake()

    def _make_following(self, step: Step, moving: Sequence[MemoryBlock]) -> None:
        step.remake()
        if not step.arguments:
            return
        try:
            step.calls, self._relocations[step] = relocated(step.calls, moving)
        except Hidden:
            step.is_fixed = True

    @property
    def scratch_bytes(self) -> int:
        """That kernels take while they run, beside planned workspaces."""
        return sum(scratch.bytes for scratch in self._scratches.values())

    @property
    def fallbacks(self) -> Counter[str]:
        """How many operations are left to NumPy, or to Python, by what they compute."""
        return Counter(
            _described(step.op)
            for step in self._all_steps
            if step.op is not None and not step.regions and not is_native(step.calls)
        )

    def _add(self, op: Operation) -> None:
        if self.memory.place(op):
            return
        if isinstance(op, TensorOp):
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
        """How many of the function's steps there are, the one being made included."""
        return len(self._outside[0][1]) + 1 if self._outside else len(self.steps)

    def steps_of(self, op: Operation) -> list[list[Step]]:
        """The steps of each region of an operation, made but not added."""
        self._outside.append((op, self.steps))
        regions: list[list[Step]] = []
        for region in op.regions:
            self.steps = []
            for inner in region.block.ops if region.blocks else ():
                self._add(inner)
            regions.append(self.steps)
        _, self.steps = self._outside.pop()
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
        """Adds a step. `regions` are those that it runs itself."""
        touched = [view.buffer.memory for view in (*writes, *reads)]
        for memory in touched[: len(writes)]:
            if memory.is_constant:
                raise LocatedError(f"{name_of(op)} writes a constant", op)
            if self._argument_in.get(memory) in self._read_only:
                raise LocatedError(
                    f"{name_of(op)} writes an argument, expected it to have the "
                    "attribute tgraph.variable or tgraph.result",
                    op,
                )
        arguments = {
            self._argument_in[memory]
            for memory in touched
            if memory in self._argument_in
        }
        device = next((memory.device for memory in touched if memory.device), "")
        step = Step(
            make,
            frozenset(arguments.union(*(step.arguments for step in chain(*regions)))),
            scratch,
            op,
            device,
            COPIES if _is_from_elsewhere(op, reads, writes) else _stream(op),
            reads,
            writes,
            regions,
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
        # A loop runs by itself beside the other steps of its devices.
        key = device, self._outside[0][0] if self._outside else _stream(op)
        scratch = self._scratches.setdefault(key, Scratch(device))
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


def _described(op: Operation) -> str:
    """An operation's name; for a fusion, those of what it computes."""
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
    """Whether it copies from another device, on no stream that is named."""
    if not isinstance(op, memref.CopyOp) or STREAM in op.attributes:
        return False
    devices = {view.buffer.memory.device for view in (*reads, *writes)}
    return len(devices - {""}) > 1  # constants are everywhere
