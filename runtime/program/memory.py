"""Lays out the values of a function in arguments, arenas, allocations, and views.

An arena is a `memref.alloc` with `memref.view`s of parts of it (level 3); it lies in
the arena of its device's pool. The pool's allocator serves any other `memref.alloc`
(level 2) once, in program order, and may reuse the memory of buffers that were
deallocated before.
"""

from collections.abc import Sequence
from dataclasses import replace
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
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects.diagnostics import LocatedError
from ...dialects.dtypes import constant, numpy_dtype
from ...dialects.memory import is_buffer
from ...dialects.tgraph.base import AnyMemRef, is_static
from ...dialects.tgraph.signature import Signature, is_number
from ...planning.arena import solve_arena
from ...planning.problem import Buffer, Problem
from ..allocators import NULL, OutOfMemoryError
from ..pool import ALIGNMENT, Pool
from ..prepacking import Prepacked
from ..runnable import device_of
from .program import Memory
from .steps import MemoryBlock, MemoryRange, View

_NOTHING = np.empty(0, np.uint8)


class NotEnoughMemoryError(LocatedError, MemoryError):
    """This machine has too little memory for a program."""


class ProgramMemory(Memory):
    """The memory of a function, and the position of each value in it.

    Raises `LocatedError` for sizes that are not static and for views that exceed their
    buffer; `NotEnoughMemoryError` if this machine has too little memory.
    """

    def __init__(
        self,
        module: ModuleOp,
        signature: Signature,
        pools: Sequence[Pool],
        allocator: str,
        like: "ProgramMemory | None",
    ):
        """Shares `pools`; devices without one get a new pool with `allocator`. Shares
        the constants of `like`, the memory of the same module."""
        function = signature.function
        given = {pool.device: pool for pool in pools}
        own: dict[str, Pool] = {}
        for op in function.walk():
            if isinstance(op, memref.AllocOp | memref.AllocaOp):
                device = device_of(op.memref.type)
                pool = given.get(device) or Pool(device, 0, allocator=allocator)
                own.setdefault(device, pool)
        super().__init__(own)
        self.views: dict[SSAValue, View] = {}
        """The view of each memref, and of each scalar that is read or computed."""
        self.arenas: set[MemoryRange] = set()
        """The parts of pools that `memref.view`s take buffers from."""
        self.allocated_arenas: list[tuple[MemoryRange, int, int]] = []
        """The function's arenas, with the positions of the operations that allocate and
        free them."""
        self._indices: dict[SSAValue, int] = {}
        self._globals = {
            op.sym_name.data: op for op in module.ops if isinstance(op, memref.GlobalOp)
        }
        self.constants: dict[str, MemoryBlock] = (
            {} if like is None else like.constants.copy()
        )
        self._regions: dict[tuple[str, int], MemoryBlock] = {}  # of allocators
        self._allocated: dict[MemoryRange, tuple[Pool, int]] = {}  # with addresses
        self._held: dict[
            MemoryRange, Block | None
        ] = {}  # live buffers, with the block of their `memref.alloc`
        for argument in function.body.block.args:
            view = self._contiguous(argument, function)
            self.views[argument] = view
            self.arguments.append(view.buffer.memory)
        self._reserve(function.body.block)
        self.follow_pools()

    @property
    def regions(self) -> Sequence[MemoryBlock]:
        """The allocators' regions that the program uses."""
        return list(self._regions.values())

    def place(self, op: Operation) -> bool:
        """Records where the results of `op` lie. Returns False if `op` does more than
        define them, so that it needs a step."""
        match op:
            case memref.AllocOp() | memref.AllocaOp():
                if op.memref not in self.views:
                    self.views[op.memref] = self._allocate(op)
            case arith.ConstantOp(value=IntegerAttr(value=number)):
                self._indices[op.result] = number.data
            case memref.ViewOp():
                self.views[op.result] = self._arena_view(op)
            case memref.GetGlobalOp():
                self.views[op.memref] = self._global(op)
            case memref.ExtractStridedMetaDataOp():
                whole = replace(self.views[op.source], shape=(), offset=0, strides=())
                self.views[op.base_buffer] = whole
            case _ if is_buffer(op):
                self.views[op.results[0]] = self._argument_view(op)
            case (
                memref.ReinterpretCastOp()
                | memref.SubviewOp()
                | memref.CastOp()
                | memref.CollapseShapeOp()
                | memref.ExpandShapeOp()
            ):
                # The result's type states the layout, relative to the same buffer.
                buffer = self.views[op.operands[0]].buffer
                type = cast(AnyMemRef, op.results[0].type)
                self.views[op.results[0]] = layout_of(buffer, type, op)
            case _:
                return False
        return True

    def free(self, op: memref.DeallocOp) -> None:
        """Returns a buffer to its allocator, unless `op` is in a branch or loop and the
        buffer was allocated outside: there, the buffer may still be in use elsewhere.
        """
        buffer = self.views[op.memref].buffer
        if self._held.get(buffer) is op.parent:
            self._release(buffer)

    def free_all(self) -> None:
        for buffer in self._allocated:
            self._release(buffer)

    def _contiguous(self, argument: BlockArgument, op: Operation) -> View:
        """A view of new memory, without gaps; for a number, too."""
        type = cast(AnyMemRef, argument.type)
        if is_number(type):
            type = MemRefType(type, ())
        elif not isinstance(argument.type, MemRefType) or not isinstance(
            type.layout, NoneAttr
        ):
            raise LocatedError(
                f"argument has type {type}, expected a memref without layout: "
                "the executor runs bufferized programs",
                op,
            )
        size = size_of(type, op)
        device = device_of(type)
        name = f"argument {argument.index}"
        try:
            bytes = Pool(device, size).memory
            memory = MemoryBlock(bytes, name, device, home=bytes)
        except MemoryError as error:
            raise NotEnoughMemoryError(f"{name} is too large: {error}", op) from None
        return layout_of(MemoryRange(memory, 0, size, _name(argument)), type, op)

    def _reserve(self, block: Block) -> None:
        """Reserves a part of the pool's memory for each arena of the function. Arenas
        that are not allocated at the same time share bytes."""
        by_device: dict[str, list[tuple[memref.AllocOp | memref.AllocaOp, Buffer]]] = {}
        position = {op: number for number, op in enumerate(block.ops)}
        for op in block.ops:
            if not isinstance(op, memref.AllocOp | memref.AllocaOp):
                continue
            users = [use.operation for use in op.memref.uses]
            if not any(isinstance(user, memref.ViewOp) for user in users):
                continue
            frees = [position.get(u) for u in users if isinstance(u, memref.DeallocOp)]
            (end,) = frees if len(frees) == 1 else (None,)
            end = len(position) if end is None else end
            size = size_of(op.memref.type, op)
            span = Buffer(_name(op.memref), size, position[op], end, _alignment(op))
            by_device.setdefault(device_of(op.memref.type), []).append((op, span))
        for device, arenas in by_device.items():
            plan = solve_arena(Problem([span for _, span in arenas]))
            memory = self.arena_memories[device]
            self.arena_bytes[device] = plan.peak
            for (op, span), start in zip(arenas, plan.offsets, strict=True):
                try:
                    self._pools[device].reserve(plan.peak, span.alignment)
                except MemoryError as error:
                    message = f"the arena on {device} is too large: {error}"
                    raise NotEnoughMemoryError(message, op) from None
                buffer = MemoryRange(memory, start, span.size, span.id)
                self.allocated_arenas.append((buffer, span.start, span.end))
                self.views[op.memref] = layout_of(buffer, op.memref.type, op)

    def _allocate(self, op: memref.AllocOp | memref.AllocaOp) -> View:
        """A view of memory from the pool's allocator."""
        type = op.memref.type
        device, size = device_of(type), size_of(type, op)
        pool = self._pools[device]
        name = _name(op.memref)
        try:
            address = pool.allocator.allocate(
                size, alignment=_alignment(op), label=name
            )
        except OutOfMemoryError as error:
            raise NotEnoughMemoryError(str(error), op) from None
        except ValueError as error:
            raise LocatedError(str(error), op) from None
        if address == NULL:
            nothing = MemoryRange(MemoryBlock(_NOTHING, "nothing", device), 0, 0)
            return layout_of(nothing, type, op)
        start, region = pool.region(address)
        memory = self._regions.setdefault(
            (device, start), MemoryBlock(region, f"a region on {device}", device)
        )
        buffer = MemoryRange(memory, address - start, size, name)
        self._allocated[buffer] = pool, address
        self._held[buffer] = op.parent
        return layout_of(buffer, type, op)

    def _release(self, buffer: MemoryRange) -> None:
        if buffer in self._held:
            del self._held[buffer]
            pool, address = self._allocated[buffer]
            pool.allocator.deallocate(address)

    def _global(self, op: memref.GetGlobalOp) -> View:
        name = op.name_.string_value()
        if name not in self.constants:
            definition = self._globals.get(name)
            value = None if definition is None else definition.initial_value
            if not isinstance(value, DenseIntOrFPElementsAttr):
                raise LocatedError(f"no memref.global @{name} with a dense value", op)
            dtype = numpy_dtype(value.get_element_type(), op)
            elements = np.ascontiguousarray(constant(value, dtype))
            bytes = elements.reshape(-1).view(np.uint8)
            self.constants[name] = MemoryBlock(
                bytes, f"constant @{name}", prepacked=Prepacked(bytes)
            )
        memory = self.constants[name]
        buffer = MemoryRange(memory, 0, memory.bytes.size, f"@{name}")
        return layout_of(buffer, op.memref.type, op)

    def _arena_view(self, op: memref.ViewOp) -> View:
        source = self.views[op.source].buffer
        offset = self._indices.get(op.byte_shift)
        type = op.result.type
        if offset is None:
            raise LocatedError("the offset of memref.view is not a constant", op)
        size = size_of(type, op)
        if not 0 <= offset <= source.size - size:
            raise LocatedError(
                f"memref.view accesses bytes [{offset}, {offset + size}) of a "
                "buffer of "
                f"{source.size} bytes",
                op,
            )
        self.arenas.add(source)
        start = source.start + offset
        name = _name(op.result)
        buffer = MemoryRange(source.memory, start, size, name, arena=source)
        return layout_of(buffer, type, op)

    def _argument_view(self, op: Operation) -> View:
        """A view of a buffer in an argument's memory."""
        source = self.views[op.operands[0]].buffer
        type = cast(AnyMemRef, op.results[0].type)
        view = layout_of(source, type, op)
        size = prod(view.shape) * view.dtype.itemsize
        start = source.start + view.offset
        name = _name(op.results[0])
        buffer = MemoryRange(source.memory, start, size, name, source.start)
        return layout_of(buffer, type, op)


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else ""


def _alignment(op: memref.AllocOp | memref.AllocaOp) -> int:
    return max(ALIGNMENT, op.alignment.value.data if op.alignment else 1)


def size_of(type: AnyMemRef, op: Operation) -> int:
    """The bytes of a buffer of this type."""
    if not is_static(type) or not isinstance(type.layout, NoneAttr):
        raise LocatedError(
            f"buffer has type {type}, expected static sizes and no layout", op
        )
    return prod(type.get_shape()) * numpy_dtype(type.element_type, op).itemsize


def layout_of(buffer: MemoryRange, type: AnyMemRef, op: Operation) -> View:
    """The view of `buffer` that `type` describes.

    Raises `LocatedError` if the type is not static, or the view exceeds the buffer.
    """
    shape, strides, offset = type.get_shape(), type.get_strides(), type.get_offset()
    if not is_static(type) or strides is None or None in strides or offset is None:
        raise LocatedError(
            f"{op.name} gives {type}, expected static sizes, strides and offset", op
        )
    dtype = numpy_dtype(type.element_type, op)
    steps = tuple(dtype.itemsize * cast(int, stride) for stride in strides)
    start = offset * dtype.itemsize
    if buffer.origin is not None:
        start -= buffer.start - buffer.origin
    view = View(buffer, dtype, shape, start, steps)
    if 0 in shape:
        return view
    reach = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    first = start + sum(r for r in reach if r < 0)
    last = start + sum(r for r in reach if r > 0) + dtype.itemsize
    if first < 0 or last > buffer.size:
        raise LocatedError(
            f"{op.name} accesses bytes [{first}, {last}) of a buffer of {buffer.size} "
            "bytes",
            op,
        )
    return view
