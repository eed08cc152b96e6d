"""Detects invalid memory accesses: implements `Executable(..., sanitize=True)`.

Faults in the program's own steps follow from the positions of their views. The
sanitizer checks these once, when the program is prepared, byte by byte and in program
order (`_Uses`):

- a read of bytes that nothing has written, or that another buffer has overwritten;
- a use of a buffer after the `memref.dealloc` of the buffer or of its arena;
- an output that partly overlaps an input of the same operation, or coincides with one
  although the operation cannot compute in place;
- a result that is not written, or not completely;
- a buffer whose offset is not a multiple of its arena's alignment.

Faults in kernels show only at run time (`_Watch`). The sanitizer keeps a second copy of
all pools. After each operation, it copies the outputs there and compares the pools:
they differ if the operation has written anything else. To reveal reads of anything but
inputs, it poisons memory with NaN for floats and -1 for integers: 0xFF in every byte of
a buffer before its first and after its last access, and 0xA5 in the red zones, the
bytes of an arena that no buffer covers. The layout is the planned one.

A run takes about 1.3 to 2.5 times the CPU time, and the pools take twice the memory.

Not detected: writes to the caller's memory around arguments; faults in unplanned
workspaces of kernels; reads of poison by a kernel with correct results; and reads that
are wrong only after some branches, which plan-check finds.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np
from xdsl.dialects.memref import AllocOp, CopyOp, ViewOp
from xdsl.ir import Operation

from ..dialects.diagnostics import LocatedError, name_of, place_of
from ..dialects.dtypes import Array
from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.signature import Signature
from .calls import Call
from .program.compiled import CompiledProgram, OperationStep
from .program.steps import MemoryBlock, MemoryRange, Step, View

DEAD = 0xFF
UNUSED = 0xA5

_CHUNK = 1 << 16  # bytes compared at once: they stay in the cache
_NOBODY = -1


class PlanViolation(LocatedError):
    """An operation makes an invalid memory access."""

    def __init__(self, message: str, op: Operation, buffer: str, step: int):
        """`buffer` is the name of the buffer concerned or, if it has none, its
        position. `step` is the index of `op` in its block, as `plan-check` counts."""
        super().__init__(message, op)
        self.op = op
        self.buffer = buffer
        self.step = step


def sanitize(program: CompiledProgram, signature: Signature) -> None:
    """Checks a program's steps, and adds run-time checks to them.

    Raises `PlanViolation` for faults that do not depend on the kernels.
    """
    views = program.memory.views
    kept = {number: views[value] for number, value in enumerate(signature.holders)}
    inputs = zip(signature.inputs, signature.arguments, strict=True)
    given = [views[value] for slot, value in inputs if slot.is_written]
    block = signature.function.body.block
    numbers = {op: number for number, op in enumerate(block.ops)}
    uses = _Uses(program, kept.values(), given, numbers)
    uses.check_steps()
    for op in block.ops:
        if isinstance(op, ViewOp):
            uses.check_alignment(op)
    end = block.last_op
    assert end is not None
    for number, view in kept.items():
        uses.check_read(view, end, f"result {number} is")
    results = [v for n, v in kept.items() if signature.results[n].input is None]
    _Watch(program, numbers).install(results)


def _title(buffer: MemoryRange) -> str:
    place = f"bytes [{buffer.start}, {buffer.stop}) of {buffer.memory.name}"
    return f"{buffer.name} ({place})" if buffer.name else f"the buffer in {place}"


def _pool_memories(program: CompiledProgram) -> Sequence[MemoryBlock]:
    return [*program.memory.arena_memories.values(), *program.memory.regions]


class _Uses:
    """Replays all memory accesses in program order."""

    def __init__(
        self,
        program: CompiledProgram,
        kept: Iterable[View],
        given: Iterable[View],
        numbers: Mapping[Operation, int],
    ):
        """`kept` are the results, live to the end; `given` are the writable inputs."""
        self._program = program
        self._numbers = numbers
        arguments = set(program.memory.arguments)
        written = {v.buffer.memory for v in (*kept, *given)} & arguments
        # For each byte of each memory, the number of its owner: the buffer that was
        # written there last, or a set of buffers if that depends on a branch.
        self._owners = {
            memory: np.full(memory.bytes.size, _NOBODY, np.int32)
            for memory in (*_pool_memories(program), *written)
        }
        self._numbers_of: dict[frozenset[MemoryRange], int] = {}
        for view in given:
            self._owned(view)[...] = self._number(frozenset([view.buffer]))
        self._dead: set[MemoryRange] = set()
        self._done: list[Step] = []

    def check_steps(self) -> None:
        deallocations: dict[int, list[MemoryRange]] = {}
        for buffer, count in self._program.deallocations:
            deallocations.setdefault(count, []).append(buffer)
        for index, step in enumerate(self._program.steps):
            for buffer in deallocations.get(index, ()):
                self._deallocate(buffer)
            self._check(step)
        for buffer in deallocations.get(len(self._done), ()):
            self._deallocate(buffer)

    def check_alignment(self, op: ViewOp) -> None:
        arena = op.source.owner
        if not isinstance(arena, AllocOp) or arena.alignment is None:
            return
        alignment = arena.alignment.value.data
        buffer = self._program.memory.views[op.result].buffer
        offset = buffer.start - self._program.memory.views[op.source].buffer.start
        if offset % alignment:
            raise self._violation(
                f"{{}} has offset {offset}, expected a multiple of {alignment}",
                op,
                buffer,
            )

    def _deallocate(self, buffer: MemoryRange) -> None:
        self._dead.add(buffer)
        if buffer.memory in self._owners:
            self._owners[buffer.memory][buffer.start : buffer.stop] = _NOBODY

    def _check(self, step: Step) -> None:
        assert isinstance(step, OperationStep)
        name = self._name(step.op)
        for view in step.reads:
            self._check_alive(view, step.op, f"{name} reads")
            self.check_read(view, step.op, f"{name} reads")
        for view in step.writes:
            self._check_alive(view, step.op, f"{name} writes")
            self._check_in_place(view, step)
        self._write(step)
        self._done.append(step)

    def _write(self, step: Step) -> None:
        """Makes the buffers that a step writes own their bytes. Any of its regions may
        run last."""
        if not step.regions:
            for view in step.writes:
                if view.buffer.memory in self._owners:
                    self._owned(view)[...] = self._number(frozenset([view.buffer]))
            return
        parts = self._parts_of(step.writes)
        before = [part.copy() for part in parts]
        after: list[list[Array]] = []
        for steps in step.regions:
            for part, owners in zip(parts, before, strict=True):
                part[...] = owners
            for inner in steps:
                self._write(inner)
            after.append([part.copy() for part in parts])
        for part, *outcomes in zip(parts, *after, strict=True):
            part[...] = self._either(outcomes)

    def _parts_of(self, views: Iterable[View]) -> list[Array]:
        """The owners of all bytes from the first to the last view, by memory."""
        spans: dict[MemoryBlock, tuple[int, int]] = {}
        for buffer in (view.buffer for view in views):
            if buffer.memory in self._owners:
                start, stop = spans.get(buffer.memory, (buffer.start, buffer.stop))
                spans[buffer.memory] = min(start, buffer.start), max(stop, buffer.stop)
        return [self._owners[m][start:stop] for m, (start, stop) in spans.items()]

    def _either(self, outcomes: Sequence[Array]) -> Array:
        """The owners if any of `outcomes` may hold: where they differ, the union of the
        buffers."""
        first = outcomes[0].copy()
        differ = np.any([owners != first for owners in outcomes], axis=0)
        if differ.any():
            columns = np.array([owners[differ] for owners in outcomes])
            kinds, which = np.unique(columns, axis=1, return_inverse=True)
            numbers = [
                self._number(frozenset(chain(*map(self._holders, map(int, kind)))))
                for kind in kinds.T
            ]
            first[differ] = np.array(numbers, np.int32)[which.reshape(-1)]
        return first

    def _number(self, buffers: frozenset[MemoryRange]) -> int:
        return self._numbers_of.setdefault(buffers, len(self._numbers_of))

    def _holders(self, number: int) -> frozenset[MemoryRange]:
        """The buffers that may have been written last, for an owner's number."""
        return frozenset() if number == _NOBODY else list(self._numbers_of)[number]

    def _check_alive(self, view: View, op: Operation, does: str) -> None:
        part: MemoryRange | None = view.buffer
        while part is not None:
            if part in self._dead:
                what = f"{does} {{}} after it was freed"
                raise self._violation(what, op, view.buffer)
            part = part.arena

    def check_read(self, view: View, op: Operation, does: str) -> None:
        """Checks that each byte was last written through the view's buffer."""
        buffer = view.buffer
        if buffer.memory not in self._owners:
            return
        owners = self._owned(view)
        if (owners == self._numbers_of.get(frozenset([buffer]))).all():
            return
        allowed = [n for holders, n in self._numbers_of.items() if buffer in holders]
        wrong = np.flatnonzero(~np.isin(owners, allowed))
        if not wrong.size:
            return
        at = int(wrong[0])
        place = np.arange(len(self._owners[buffer.memory]))
        byte = int(_bytes_of(view, place).reshape(-1)[at])
        writer = self._writer(buffer.memory, byte)
        done = f"overwritten by {writer}" if writer else "never written"
        why = f"byte {byte} was {done}"
        raise self._violation(f"{does} {{}}, but {why}", op, buffer)

    def _check_in_place(self, out: View, step: Step) -> None:
        """Checks that an output coincides with an input only if the operation can
        compute in place, and overlaps no input otherwise."""
        assert isinstance(step, OperationStep)
        op = step.op
        if isinstance(op, TensorOp):
            views = self._program.memory.views
            allowed = [views[op.inputs[n]] for n in op.overwritable()]
        elif isinstance(op, CopyOp):
            allowed = step.reads
        else:  # a loop or branch, which contains many operations
            return
        for view in step.reads:
            if view.buffer.memory is not out.buffer.memory or not _share(view, out):
                continue
            is_same = (view.buffer.start + view.offset, view.shape, view.strides) == (
                out.buffer.start + out.offset,
                out.shape,
                out.strides,
            )
            if not (is_same and view in allowed):
                raise self._violation(
                    f"{self._name(op)} writes {_title(out.buffer)} over its input {{}}",
                    op,
                    view.buffer,
                )

    def _owned(self, view: View) -> Array:
        return _bytes_of(view, self._owners[view.buffer.memory])

    def _writer(self, memory: MemoryBlock, byte: int) -> str | None:
        """The last operation that wrote a byte, and its buffer's name; or None."""
        holders = self._holders(int(self._owners[memory][byte]))
        for step in reversed(self._done):
            for view in step.writes:
                if view.buffer in holders and isinstance(step, OperationStep):
                    place = place_of(step.op)
                    where = f" at {place}" if place else ""
                    return f"{self._name(step.op)}{where}, in {_title(view.buffer)}"
        return None

    def _name(self, op: Operation) -> str:
        return f"{name_of(op)} (step {self._numbers[op]})"

    def _violation(
        self, message: str, op: Operation, buffer: MemoryRange
    ) -> PlanViolation:
        text = message.format(_title(buffer))
        title = buffer.name or _title(buffer)
        return PlanViolation(text, op, title, self._numbers[op])


def _bytes_of(view: View, memory: Array) -> Array:
    """The entries of a view's bytes in `memory`, which has one entry for each byte."""
    width = memory.itemsize
    return np.ndarray(
        (*view.shape, view.dtype.itemsize),
        memory.dtype,
        memory,
        (view.buffer.start + view.offset) * width,
        (*(stride * width for stride in view.strides), width),
    )


def _share(x: View, y: View) -> bool:
    try:
        return np.shares_memory(x.array(), y.array(), max_work=cast(Any, 10_000))
    except np.exceptions.TooHardError:
        return False


def _is_over(x: MemoryRange, y: MemoryRange) -> bool:
    """Whether two buffers share bytes."""
    return x is not y and x.memory is y.memory and x.start < y.stop and y.start < x.stop


class _Watch:
    """Compares all pools with a second copy of them after each operation."""

    def __init__(self, program: CompiledProgram, numbers: Mapping[Operation, int]):
        self._program = program
        self._numbers = numbers
        self._mirrors = {
            memory: MemoryBlock(np.empty(0, np.uint8), memory.name, memory.device)
            for memory in _pool_memories(program)
        }
        self._parts: list[tuple[MemoryBlock, int, Array, Array, Array]] = []
        views = program.memory.views.values()
        self._buffers = list(dict.fromkeys(view.buffer for view in views))

    def install(self, kept: Collection[View]) -> None:
        """Adds run-time checks to the program. Results are `kept` to the end."""
        steps = list(self._program.steps)
        start = [Step(self._start)]
        arguments = self._program.memory.arguments
        start += [_poisoning(v.buffer) for v in kept if v.buffer.memory in arguments]
        for step in start:
            step.remake()
        results = {view.buffer for view in kept}
        last: dict[MemoryRange, Step] = {}
        for step in steps:
            last |= {view.buffer: step for view in (*step.reads, *step.writes)}
        dying: dict[Step, list[MemoryRange]] = {}
        for buffer, step in last.items():
            if buffer in results or buffer.memory not in self._mirrors:
                continue
            if not any(_is_over(view.buffer, buffer) for view in step.writes):
                dying.setdefault(step, []).append(buffer)
        for step in steps:
            step.surround(partial(self._watched, step, dying.get(step, [])))
        self._program.steps[:0] = start

    def _start(self) -> list[Call]:
        """Fills the pools with poison."""
        calls: list[Call] = []
        self._parts = []
        flags = np.empty(_CHUNK, np.bool_)
        for memory, mirror in self._mirrors.items():
            data = memory.bytes
            mirror.array = np.empty_like(data)
            calls += [(data.fill, (DEAD,))]
            calls += [(data[a:b].fill, (UNUSED,)) for a, b in self._gaps(memory)]
            calls += [(mirror.bytes.__setitem__, (..., data))]
            for start in range(0, data.size, _CHUNK):
                x, y = (a[start : start + _CHUNK] for a in (data, mirror.bytes))
                self._parts.append((memory, start, x, y, flags[: x.size]))
        return calls

    def _gaps(self, memory: MemoryBlock) -> Iterator[tuple[int, int]]:
        """The ranges of an arena that no buffer covers. None for an allocator's region,
        as its layout changes."""
        if memory not in self._program.memory.arena_memories.values():
            return
        arenas = self._program.memory.arenas
        buffers = [b for b in self._buffers if b.memory is memory and b not in arenas]
        spans = sorted((b.start, b.stop) for b in buffers)
        end = 0
        for start, stop in (*spans, (memory.bytes.size, memory.bytes.size)):
            if start > end:
                yield end, start
            end = max(end, stop)

    def _watched(
        self, step: Step, dying: Sequence[MemoryRange], calls: list[Call]
    ) -> list[Call]:
        calls = list(calls)
        for view in step.writes:
            if mirrored := self._mirrored(view.buffer):
                copy = replace(view, buffer=mirrored).array()
                calls.append((copy.__setitem__, (..., view.array())))
        calls.append((self._compare, (step,)))
        for buffer in dying:
            mirrored = self._mirrored(buffer)
            assert mirrored is not None
            calls += [(b.bytes.fill, (DEAD,)) for b in (buffer, mirrored)]
        return calls

    def _mirrored(self, buffer: MemoryRange) -> MemoryRange | None:
        mirror = self._mirrors.get(buffer.memory)
        return None if mirror is None else replace(buffer, memory=mirror)

    def _compare(self, step: Step) -> None:
        for memory, start, data, mirror, flags in self._parts:
            if np.not_equal(data, mirror, out=flags).any():
                raise self._violation(step, memory, start + int(flags.argmax()))

    def _violation(self, step: Step, memory: MemoryBlock, byte: int) -> PlanViolation:
        assert isinstance(step, OperationStep)
        holders = [
            buffer
            for buffer in self._buffers
            if buffer.memory is memory
            and buffer.start <= byte < buffer.stop
            and buffer not in self._program.memory.arenas
        ]
        number = self._numbers[step.op]
        where = " or ".join(map(_title, holders)) or "no buffer"
        outs = ", ".join(_title(view.buffer) for view in step.writes)
        return PlanViolation(
            f"{name_of(step.op)} (step {number}) has changed byte {byte} of "
            f"{memory.name}, which is in {where}; expected it to write {outs} only",
            step.op,
            where,
            number,
        )


def _poisoning(buffer: MemoryRange) -> Step:
    arguments = frozenset([buffer.memory])
    return Step(lambda: [(buffer.bytes.fill, (DEAD,))], arguments)
