"""Memref IR made ready to run: where each value lies, and the steps that compute.

An arena, a `memref.alloc` that `memref.view`s take parts of (level 3), is that of its
device's pool. Any other `memref.alloc` (level 2) is served by the pool's allocator,
once, in program order: it may have the memory of what has been deallocated before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
)
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import AnyMemRef, Shape, TensorOp, is_static
from tensorplan.runtime.allocators import NULL, OutOfMemoryError
from tensorplan.runtime.dtypes import Array, DType, constant, numpy_dtype
from tensorplan.runtime.kernels import Call, compile_call
from tensorplan.runtime.pool import ALIGNMENT, Pool, Scratch
from tensorplan.runtime.signature import Signature

DEAD = 0xFF
"""Fills buffers before their first and after their last access: NaN in every float."""

UNUSED = 0xA5
"""Fills what no buffer of an arena covers."""

_NOTHING = np.empty(0, np.uint8)


class PlanViolation(RuntimeError):
    """Memory was written that belongs to no buffer."""


@dataclass(eq=False)
class Memory:
    """A block that buffers lie in: a pool, a constant, or an argument's array."""

    bytes: Array
    is_constant: bool = False


@dataclass(eq=False)
class Buffer:
    """The part of a memory that one allocation (or view of an arena) is. In bytes."""

    memory: Memory
    start: int
    size: int

    @property
    def bytes(self) -> Array:
        return self.memory.bytes[self.start : self.start + self.size]


@dataclass(frozen=True)
class View:
    """An array in a buffer. Offset and strides are in bytes."""

    buffer: Buffer
    dtype: DType
    shape: Shape
    offset: int
    strides: Shape

    def array(self) -> Array:
        buffer = self.buffer
        return np.ndarray(
            self.shape,
            self.dtype,
            buffer.memory.bytes,
            buffer.start + self.offset,
            self.strides,
        )


@dataclass(eq=False)
class Step:
    """Makes the calls of an operation, for the memory that arguments are bound to."""

    make: Callable[[], list[Call]]
    arguments: frozenset[SSAValue] = frozenset()
    """The arguments whose memory the calls touch."""
    scratch: Scratch | None = None
    calls: list[Call] = field(default_factory=list[Call])
    workspace: Pool | None = None
    """What `scratch` gave the calls views of, if they use any."""

    def remake(self) -> None:
        self.calls = self.make()
        used = self.scratch is not None and self.scratch.is_used
        self.workspace = self.scratch.pool if self.scratch and used else None

    @property
    def is_outdated(self) -> bool:
        """Whether the workspace has moved since the calls were made."""
        return self.workspace is not None and (
            self.scratch is None or self.workspace is not self.scratch.pool
        )


class Program:
    """The memory and the steps of a function.

    Raises `LocatedError` for IR that the runtime cannot run: operations without a
    kernel, sizes that are not static, views that reach out of their buffer, arguments
    that are written and not marked so.
    """

    def __init__(
        self,
        module: ModuleOp,
        signature: Signature,
        sanitize: bool,
        pools: Sequence[Pool] = (),
        allocator: str = "bfc",
        native: bool = True,
    ):
        """`pools` are those to share; devices without get one with `allocator`."""
        function = signature.function
        self._sanitize = sanitize
        self._native = native
        self.steps: list[Step] = []
        self.arguments: dict[SSAValue, Memory] = {}
        """By function argument. Who binds one sets its `bytes` and remakes steps."""
        self._scratches: dict[str, Scratch] = {}
        self._views: dict[SSAValue, View] = {}
        self._indices: dict[SSAValue, int] = {}
        self._arenas: set[Buffer] = set()
        self._accesses: dict[Buffer, int] = {}  # the last step of each buffer
        self._deallocations: list[tuple[Buffer, int]] = []  # the last step before each
        self._globals = {
            op.sym_name.data: op for op in module.ops if isinstance(op, memref.GlobalOp)
        }
        self._globals_memory: dict[str, Memory] = {}
        self._regions: dict[tuple[str, int], Memory] = {}  # of allocators
        self._allocated: dict[Buffer, tuple[Pool, int]] = {}  # where from
        self._held: set[Buffer] = set()  # of those, not yet deallocated
        self._read_only = {s.value for s in signature.inputs if not s.is_variable}

        block = function.body.block
        for argument in block.args:
            view = self._contiguous(argument, function)
            self._views[argument] = view
            self.arguments[argument] = view.buffer.memory
        given = {pool.device: pool for pool in pools}
        self._pools: dict[str, Pool] = {}
        for op in block.ops:
            if isinstance(op, memref.AllocOp | memref.AllocaOp):
                device = _device(op.memref.type)
                pool = given.get(device) or Pool(device, 0, allocator=allocator)
                self._pools.setdefault(device, pool)
        self._arena_memories = {device: Memory(_NOTHING) for device in self._pools}
        self._reserve(block.ops)
        self.follow_pools()
        try:
            for op in block.ops:
                self._add(op)
        finally:
            for buffer in self._allocated:
                self._release(buffer)
        if sanitize:
            results = [s.value for s in signature.results if s.input is None]
            self._poison(results)
        for step in self.steps:
            step.remake()
        for step in self.steps:
            if step.is_outdated:
                step.remake()

    @property
    def scratch_bytes(self) -> int:
        return sum(scratch.bytes for scratch in self._scratches.values())

    @property
    def pools(self) -> Sequence[Pool]:
        """One for each device, in order of first use."""
        return list(self._pools.values())

    def view(self, value: SSAValue) -> View:
        return self._views[value]

    def follow_pools(self) -> bool:
        """Whether an arena has moved, as another program needed a larger one. The
        caller has to remake the steps."""
        has_moved = False
        for device, memory in self._arena_memories.items():
            if memory.bytes is not self._pools[device].memory:
                memory.bytes = self._pools[device].memory
                has_moved = True
        return has_moved

    # Memory

    def _contiguous(self, argument: SSAValue, op: Operation) -> View:
        """A view of new memory, without gaps."""
        type = cast(AnyMemRef, argument.type)
        if not isinstance(argument.type, MemRefType) or not isinstance(
            type.layout, NoneAttr
        ):
            raise LocatedError(
                f"argument has type {type}, expected a memref without layout: "
                "the executor runs bufferized programs",
                op,
            )
        size = _size(type, op)
        buffer = Buffer(Memory(Pool(_device(type), size).memory), 0, size)
        return _layout(buffer, type, op)

    def _reserve(self, ops: Iterable[Operation]) -> None:
        """Gives each arena its part of that of its device's pool."""
        sizes: dict[str, int] = {}
        for op in ops:
            if not isinstance(op, memref.AllocOp | memref.AllocaOp):
                continue
            users = (use.operation for use in op.memref.uses)
            if not any(isinstance(user, memref.ViewOp) for user in users):
                continue
            type = op.memref.type
            device, size, alignment = _device(type), _size(type, op), _alignment(op)
            start = -(-sizes.get(device, 0) // alignment) * alignment
            sizes[device] = start + size
            self._pools[device].reserve(sizes[device], alignment)
            buffer = Buffer(self._arena_memories[device], start, size)
            self._views[op.memref] = _layout(buffer, type, op)

    def _allocate(self, op: memref.AllocOp | memref.AllocaOp) -> View:
        """A view of memory from the allocator."""
        type = op.memref.type
        device, size = _device(type), _size(type, op)
        pool = self._pools[device]
        label = f"%{op.memref.name_hint}" if op.memref.name_hint else ""
        try:
            address = pool.allocator.allocate(
                size, alignment=_alignment(op), label=label
            )
        except (OutOfMemoryError, ValueError) as error:
            raise LocatedError(str(error), op) from None
        if address == NULL:
            return _layout(Buffer(Memory(_NOTHING), 0, 0), type, op)
        start, region = pool.region(address)
        memory = self._regions.setdefault((device, start), Memory(region))
        buffer = Buffer(memory, address - start, size)
        self._allocated[buffer] = pool, address
        self._held.add(buffer)
        return _layout(buffer, type, op)

    def _release(self, buffer: Buffer) -> None:
        if buffer in self._held:
            self._held.remove(buffer)
            pool, address = self._allocated[buffer]
            pool.allocator.deallocate(address)

    def _global(self, op: memref.GetGlobalOp) -> View:
        name = op.name_.string_value()
        if name not in self._globals_memory:
            definition = self._globals.get(name)
            value = None if definition is None else definition.initial_value
            if not isinstance(value, DenseIntOrFPElementsAttr):
                raise LocatedError(f"no memref.global @{name} with a dense value", op)
            dtype = numpy_dtype(value.get_element_type(), op)
            elements = np.ascontiguousarray(constant(value, dtype))
            self._globals_memory[name] = Memory(
                elements.reshape(-1).view(np.uint8), is_constant=True
            )
        memory = self._globals_memory[name]
        buffer = Buffer(memory, 0, memory.bytes.size)
        return _layout(buffer, op.memref.type, op)

    def _arena_view(self, op: memref.ViewOp) -> View:
        source = self._views[op.source].buffer
        offset = self._indices.get(op.byte_shift)
        type = op.result.type
        if offset is None:
            raise LocatedError("offset of memref.view is not a constant", op)
        size = _size(type, op)
        if not 0 <= offset <= source.size - size:
            raise LocatedError(
                f"memref.view takes bytes {offset} to {offset + size} of a buffer of "
                f"{source.size} bytes",
                op,
            )
        self._arenas.add(source)
        buffer = Buffer(source.memory, source.start + offset, size)
        return _layout(buffer, type, op)

    # Steps

    def _add(self, op: Operation) -> None:
        if isinstance(op, memref.AllocOp | memref.AllocaOp):
            if op.memref not in self._views:
                self._views[op.memref] = self._allocate(op)
        elif isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            self._indices[op.result] = op.value.value.data
        elif isinstance(op, memref.ViewOp):
            self._views[op.result] = self._arena_view(op)
        elif isinstance(op, memref.GetGlobalOp):
            self._views[op.memref] = self._global(op)
        elif isinstance(
            op,
            memref.ReinterpretCastOp
            | memref.SubviewOp
            | memref.CastOp
            | memref.CollapseShapeOp
            | memref.ExpandShapeOp,
        ):
            # The result's type states the layout, relative to the same buffer.
            buffer = self._views[op.operands[0]].buffer
            type = cast(AnyMemRef, op.results[0].type)
            self._views[op.results[0]] = _layout(buffer, type, op)
        elif isinstance(op, TensorOp):
            self._add_step(op, op.inputs, op.outs)
        elif isinstance(op, memref.CopyOp):
            self._add_step(op, (op.source,), (op.destination,))
        elif isinstance(op, memref.DeallocOp):
            buffer = self._views[op.memref].buffer
            self._deallocations.append((buffer, len(self.steps) - 1))
            if not self._sanitize:  # else nobody else gets it: late use shows
                self._release(buffer)
        elif not isinstance(op, ReturnOp):
            raise LocatedError(f"{op.name} has no kernel", op)

    def _add_step(
        self, op: Operation, inputs: Sequence[SSAValue], outs: Sequence[SSAValue]
    ) -> None:
        if not outs:
            raise LocatedError(f"{op.name} is on tensors, expected memrefs", op)
        sources = [self._views[value] for value in inputs]
        targets = [self._views[value] for value in outs]
        by_memory = {memory: value for value, memory in self.arguments.items()}
        for target in targets:
            memory = target.buffer.memory
            if memory.is_constant:
                raise LocatedError(f"{op.name} writes a constant", op)
            if by_memory.get(memory) in self._read_only:
                raise LocatedError(
                    f"{op.name} writes an argument, expected it to have the attribute "
                    "tgraph.variable or tgraph.result",
                    op,
                )
        device = _device(cast(AnyMemRef, outs[0].type))
        scratch = self._scratches.setdefault(device, Scratch(device))
        for view in (*sources, *targets):
            self._accesses[view.buffer] = len(self.steps)

        def make() -> list[Call]:
            inputs = [v.array() for v in sources]
            outs = [v.array() for v in targets]
            return compile_call(op, inputs, outs, scratch, self._native)

        touched = [view.buffer.memory for view in (*sources, *targets)]
        arguments = frozenset(by_memory[m] for m in touched if m in by_memory)
        self.steps.append(Step(make, arguments, scratch))

    # Poison

    def _poison(self, results: Sequence[SSAValue]) -> None:
        """Adds steps that make wrong use of memory show."""
        kept = {self._views[value].buffer for value in results}
        argument_memories = set(self.arguments.values())
        dying: dict[int, list[Buffer]] = {}
        for buffer, last in (*self._deallocations, *self._accesses.items()):
            memory = buffer.memory
            if not (
                buffer in kept
                or buffer in self._arenas
                or memory.is_constant
                or memory in argument_memories
            ):
                dying.setdefault(last, []).append(buffer)
        steps = [Step(self._poison_pools)]
        for value in results:
            if value in self.arguments:
                steps.append(_fill(self._views[value].buffer, value))
        for index, step in enumerate(self.steps):
            steps.append(step)
            steps.extend(_fill(buffer) for buffer in dying.get(index, ()))
        self.steps = [*steps, Step(lambda: [(_check_unused, (self._gaps(),))])]

    def _poison_pools(self) -> list[Call]:
        calls: list[Call] = [(pool.memory.fill, (DEAD,)) for pool in self.pools]
        calls += [(gap.fill, (UNUSED,)) for _, _, gap in self._gaps()]
        calls += [(buffer.bytes.fill, (DEAD,)) for buffer in self._allocated]
        return calls

    def _gaps(self) -> Sequence[tuple[str, int, Array]]:
        """What no buffer covers: device, offset, bytes."""
        gaps: list[tuple[str, int, Array]] = []
        for pool in self.pools:
            buffers = {
                view.buffer
                for view in self._views.values()
                if view.buffer.memory is self._arena_memories[pool.device]
            } - self._arenas
            end = 0
            spans = sorted((b.start, b.start + b.size) for b in buffers)
            for start, stop in [*spans, (pool.bytes, pool.bytes)]:
                if start > end:
                    gaps.append((pool.device, end, pool.memory[end:start]))
                end = max(end, stop)
        return gaps


def _fill(buffer: Buffer, argument: SSAValue | None = None) -> Step:
    arguments = frozenset[SSAValue](() if argument is None else (argument,))
    return Step(lambda: [(buffer.bytes.fill, (DEAD,))], arguments)


def _check_unused(gaps: Sequence[tuple[str, int, Array]]) -> None:
    for device, offset, gap in gaps:
        if (changed := gap != UNUSED).any():
            raise PlanViolation(
                f"byte {offset + int(changed.argmax())} of the pool on {device} was "
                "written, which belongs to no buffer"
            )


def _alignment(op: memref.AllocOp | memref.AllocaOp) -> int:
    return max(ALIGNMENT, op.alignment.value.data if op.alignment else 1)


def _device(type: AnyMemRef) -> str:
    space = type.memory_space
    if isinstance(space, StringAttr):
        return space.data
    return "cpu:0" if isinstance(space, NoneAttr) else str(space)


def _size(type: AnyMemRef, op: Operation) -> int:
    """Bytes of a buffer of this type."""
    if not is_static(type) or not isinstance(type.layout, NoneAttr):
        raise LocatedError(
            f"buffer has type {type}, expected static sizes and no layout", op
        )
    return prod(type.get_shape()) * numpy_dtype(type.element_type, op).itemsize


def _layout(buffer: Buffer, type: AnyMemRef, op: Operation) -> View:
    """The view of a buffer that a type describes.

    Raises `LocatedError` if it is not static, or does not lie in the buffer.
    """
    shape, strides, offset = type.get_shape(), type.get_strides(), type.get_offset()
    if not is_static(type) or strides is None or None in strides or offset is None:
        raise LocatedError(
            f"{op.name} gives {type}, expected static sizes, strides and offset", op
        )
    dtype = numpy_dtype(type.element_type, op)
    steps = tuple(dtype.itemsize * cast(int, stride) for stride in strides)
    start = offset * dtype.itemsize
    view = View(buffer, dtype, shape, start, steps)
    if 0 in shape:
        return view
    reach = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    first = start + sum(r for r in reach if r < 0)
    last = start + sum(r for r in reach if r > 0) + dtype.itemsize
    if first < 0 or last > buffer.size:
        raise LocatedError(
            f"{op.name} reaches bytes {first} to {last} of a buffer of {buffer.size} "
            "bytes",
            op,
        )
    return view
