"""Writes a program to a file, with its calls as data."""

import ctypes
import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from types import BuiltinMethodType, EllipsisType, FunctionType, MethodWrapperType
from typing import Any, cast
from zipfile import ZipFile, ZipInfo

import numpy as np

from ...dialects.diagnostics import LocatedError, name_of
from ...support.arrays import Array, address
from ...support.files import whole_file
from ...support.slots import Input, Result, Slot
from ...version import VERSION
from ..backends.jit import records
from ..backends.jit.llvm import compiler
from ..backends.jit.slices import Sliced
from ..backends.jit.team import team
from ..backends.numpy.functions import Starts
from ..backends.onednn.library import library
from ..backends.onednn.primitives import (
    Description,
    Execution,
    Layout,
    Operand,
    Wanted,
)
from ..calls import HostCallback
from ..program.compiled import CompiledProgram, OperationStep
from ..program.steps import MemoryBlock, View
from .names import CONTROLS, FORMAT, FUNCTIONS, MANIFEST, is_of_numpy, method

ALIGNED = 16
"""In bytes: constants keep their address modulo this number."""


def save(
    path: Path,
    program: CompiledProgram,
    inputs: Sequence[Input],
    results: Sequence[Result],
    bound: Mapping[int, Array],
    flush_subnormals: bool,
) -> None:
    """Writes a program that has not been called. `bound` has the arrays of inputs that
    are bound in advance; `flush_subnormals` is the option of `Executable`. Bound
    parameters, whose memory does not move, are saved as constants, and are no inputs of
    the saved program.

    Raises `LocatedError` for an operation with calls that cannot be written; `OSError`.
    """
    writer = _Writer(program)
    calls = [call for step in program.steps for call in writer.step(step)]
    kept = [n for n in range(len(inputs)) if program.inputs[n].moves]
    numbers = {n: index for index, n in enumerate(kept)}
    manifest = {
        "format": FORMAT,
        "tensorplan": VERSION,
        "inputs": [
            _slot(inputs[n])
            | {"variable": inputs[n].is_variable, "donated": inputs[n].is_donated}
            | {"memory": writer.known[program.inputs[n]]}
            for n in kept
        ],
        "results": [
            _slot(result)
            | {"input": None if result.input is None else numbers[result.input]}
            | {"at": writer.place(program.results[n])}
            for n, result in enumerate(results)
        ],
        "bound": [[numbers[n], writer.value(array)] for n, array in bound.items()],
        "calls": calls,
        "flush_subnormals": flush_subnormals,
        "primitives": writer.primitives,
        "functions": writer.functions,
        **writer.needed(),
    }
    manifest["memories"], constants = writer.memories()
    files = {MANIFEST: json.dumps(manifest).encode()}
    files |= {f"code/{name}.o": code for name, code in writer.objects.items()}
    files |= {f"constants/{n}.npy": _npy(data) for n, data in enumerate(constants)}
    _write(path, files)


def _slot(slot: Slot) -> dict[str, object]:
    return {"shape": slot.shape, "dtype": slot.dtype.name}


def _npy(data: Array) -> bytes:
    stream = BytesIO()
    np.lib.format.write_array(stream, data, allow_pickle=False)
    return stream.getvalue()


def _write(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes the whole file or none. The same program gives the same bytes."""
    with whole_file(path) as stream, ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(ZipInfo(name), data)


class _Unsavable(Exception):
    """An object in a call that the file format cannot represent."""


class _Writer:
    """Converts calls to data, and collects the functions and memories that they use."""

    def __init__(self, program: CompiledProgram):
        self.functions: dict[str, str] = {}
        """The object file's name for each native function, by digest."""
        self.objects: dict[str, bytes] = {}
        """Machine code by the name of its object file."""
        self.primitives: list[object] = []
        self.known: dict[MemoryBlock, int] = {}
        """The index of each memory whose contents are not saved."""
        self._numbers: dict[Description, int] = {}
        self._spans: list[tuple[int, int, int]] = []
        self._memories: list[dict[str, object]] = []
        self._loose: list[tuple[int, int, list[Any]]] = []
        self._kept: list[object] = []
        """Keeps the arrays alive whose addresses are in `_loose`."""
        memory = program.memory
        for index, argument in enumerate(memory.arguments):
            if argument.home is not None:
                kind = {"argument": index, "device": argument.device}
                self.known[argument] = self._add(kind, argument.bytes)
        for device, arena in memory.arena_memories.items():
            pool = next(pool for pool in memory.pools if pool.device == device)
            kind = {"arena": device, "alignment": pool.alignment}
            self.known[arena] = self._add(kind, arena.bytes)
        for block in (*(m.bytes for m in memory.regions), *program.scratch_memories):
            self._add({}, block)
        self._spans.sort()

    def _add(self, kind: Mapping[str, object], data: Array) -> int:
        number = len(self._memories)
        start = address(data)
        if data.nbytes:
            self._spans.append((start, start + data.nbytes, number))
        self._memories.append({**kind, "bytes": data.nbytes})
        return number

    def step(self, step: Any) -> list[object]:
        calls = step.make()
        self._kept.append(calls)
        try:
            return self.value(calls)["list"]
        except _Unsavable as error:
            op = step.op if isinstance(step, OperationStep) else None
            name = "the program" if op is None else name_of(op)
            message = f"{name} cannot be saved: its calls have {error}"
            raise LocatedError(message, op) from None

    def place(self, result: MemoryBlock | View) -> object:
        if isinstance(result, MemoryBlock):
            return {"memory": self.known[result]}
        return self.value(result.array())

    def needed(self) -> dict[str, object]:
        """What the calls require: a version of oneDNN, features of the processor."""
        needed: dict[str, object] = {}
        if self.primitives:
            needed["oneDNN"] = library().version
        if self.functions:
            self.function(compiler().function(records.TAPE))
            needed["processor"] = list(compiler().host)
        return needed

    def memories(self) -> tuple[list[dict[str, object]], list[Array]]:
        """All memories, and the contents of constant memories."""
        memories, constants = self._memories.copy(), list[Array]()
        numbers: dict[tuple[int, int], int] = {}
        spans = _merged([(start, end) for start, end, _ in self._loose])
        for start, _, place in self._loose:
            first, end = spans[bisect_right(spans, (start, math.inf)) - 1]
            before = first % ALIGNED
            if (first, end) not in numbers:
                numbers[first, end] = len(memories)
                memories.append({"constant": len(constants)})
                constants.append(_bytes_at(first, end, before))
            place[0] = numbers[first, end]
            place[1] += start - first + before
        return memories, constants

    # Values of calls

    def value(self, value: object) -> Any:
        """`value` as JSON. Raises `_Unsavable`."""
        match value:
            case np.generic():
                number = cast(Any, value)
                return {"number": [number.dtype.name, number.tobytes().hex()]}
            case None | bool() | int() | float() | str():
                return value
            case np.ndarray():
                return {"array": self._array(cast(Array, value))}
            case records.Tape():
                return {"tape": [self.value(x) for x in value.records]}
            case records.Control():
                self.function(value.function)
                (name,) = (x for x in CONTROLS if CONTROLS[x] == value.text)
                parts = value.arrays[0], *value.tapes
                return {"control": [name, *map(self.value, parts)]}
            case records.Parallel():
                self.function(value.function)
                self.function(team().work)
                parts = (self.value(tuple(tape.records)) for tape in value.tapes)
                return {"parallel": [value.members, *parts]}
            case Sliced():
                self.function(value.function)
                for part in value.slices:
                    self._add({}, cast(Array, part.stand_in.base))
                self._spans.sort()
                slices = [tuple(part) for part in value.slices]
                return {"sliced": [self.value(slices), self.value(value.records)]}
            case records.ArrayRecord():
                digest = self.function(value.function)
                arrays = [self.value(x) for x in value.arrays]
                return {"native": [digest, arrays, *value.others]}
            case Execution():
                self.function(value.function)
                return {"primitive": self._execution(value)}
            case Starts():
                return {"starts": [self.value(x) for x in value]}
            case tuple():
                return [self.value(x) for x in cast(tuple[object, ...], value)]
            case list():
                return {"list": [self.value(x) for x in cast(list[object], value)]}
            case dict():
                table = cast(dict[object, object], value)
                return {"table": [[self.value(k), self.value(table[k])] for k in table]}
            case slice():
                part = cast(Any, value)
                return {"slice": [part.start, part.stop, part.step]}
            case EllipsisType():
                return {"ellipsis": []}
            case complex():
                return {"complex": [value.real, value.imag]}
            case np.dtype():
                return {"dtype": cast(Any, value).name}
            case _:
                return self._function(value)

    def _function(self, value: object) -> object:
        match value:
            case partial():
                parts = value.func, value.args, value.keywords
                return {"partial": [self.value(x) for x in parts]}
            case _ if is_of_numpy(value):
                return {"numpy": cast(Any, value).__name__}
            case BuiltinMethodType() | MethodWrapperType():
                try:
                    method(value.__self__, value.__name__)
                except ValueError as error:
                    raise _Unsavable(str(error)) from None
                return {"method": [self.value(value.__self__), value.__name__]}
            case FunctionType() if FUNCTIONS.get(value.__name__) is value:
                return {"function": value.__name__}
            case HostCallback():
                raise _Unsavable("a Python function, which a file cannot hold")
            case FunctionType():
                raise _Unsavable(f"the function {value.__qualname__}")
            case _:
                raise _Unsavable(f"a {type(value).__name__}")

    def _array(self, array: Array) -> list[object]:
        strides = None if array.flags.c_contiguous else list(array.strides)
        place: list[Any] = [None, 0, array.dtype.name, list(array.shape), strides]
        if not array.size:
            return place
        start = end = address(array)
        for size, stride in zip(array.shape, array.strides, strict=True):
            start += min(0, (size - 1) * stride)
            end += max(0, (size - 1) * stride)
        end += array.itemsize
        place[1] = address(array) - start
        at = bisect_right(self._spans, (start, math.inf)) - 1
        if at >= 0 and end <= self._spans[at][1]:
            first, _, number = self._spans[at]
            place[:2] = number, address(array) - first
            return place
        self._loose.append((start, end, place))
        return place

    def function(self, function: Any) -> str:
        """Records a native function, and returns its digest."""
        name, self.objects[name] = function.code
        self.functions[function.digest] = name
        return function.digest

    def _execution(self, execution: Execution) -> list[object]:
        operands = {
            str(kind): self._operand(operand)
            for kind, operand in execution.operands.items()
        }
        return [self._primitive(execution.description), operands]

    def _operand(self, operand: Operand) -> list[object]:
        is_packed = operand.packed is not None
        array = operand.array if operand.packed is None else operand.packed
        return [self._layout(operand.layout), self.value(array), is_packed]

    def _primitive(self, description: Description) -> int:
        if description not in self._numbers:
            arguments = [self._layout(x) for x in description.arguments]
            post_ops = [[self._layout(x) for x in op] for op in description.post_ops]
            self._numbers[description] = len(self.primitives)
            self.primitives.append([description.kind, arguments, post_ops])
        return self._numbers[description]

    def _layout(self, value: Any) -> Any:
        match value:
            case Layout():
                return {"layout": [value.shape, value.element, value.strides]}
            case Wanted():
                return {"wanted": [self._primitive(value.primitive), value.kind]}
            case _:
                return value


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges spans that overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _bytes_at(start: int, end: int, before: int) -> Array:
    """The bytes from `start` to `end`, after `before` zeros."""
    data = ctypes.string_at(start, end - start)
    return np.frombuffer(bytes(before) + data, np.uint8)
