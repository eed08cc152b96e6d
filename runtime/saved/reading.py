"""Reads a program from a file. Knows no IR."""

import json
from collections.abc import Callable, Mapping, Sequence
from ctypes import ArgumentError
from functools import partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, cast
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from ...support.arrays import Array
from ...support.slots import Input, Result
from ...support.threads import available
from ...version import VERSION
from ..allocators.host import aligned_bytes
from ..arguments import Arguments
from ..backends.jit import records
from ..backends.jit.llvm import ObjectFile, compiler, is_available
from ..backends.jit.slices import Slice, Sliced
from ..backends.numpy.functions import Starts
from ..backends.onednn.library import Refused, library
from ..backends.onednn.primitives import (
    Description,
    Execution,
    Layout,
    Operand,
    Wanted,
    packed,
)
from ..callable import CallableProgram
from ..calls import Call
from ..devices.local import local
from ..pool import ALIGNMENT, Pool
from ..prepacking import Prepacked
from ..program.program import Memory, Program
from ..program.steps import Arena, MemoryBlock, MemoryRange, Step, View
from . import names

Files = Mapping[str, bytes]


def load(path: Path) -> CallableProgram:
    """The program in a file that `Executable.save` has written.

    The file's native code runs when the program is called, so load only files that you
    would trust as shared libraries. Raises `OSError` if the file cannot be read, and
    `ValueError` if it is damaged, or was saved by another version or for another
    machine.
    """
    try:
        with ZipFile(path) as archive:
            files = {x.filename: _contents(archive, x) for x in archive.filelist}
        return _program(files)
    except _Elsewhere as error:
        raise ValueError(
            f"{path}: {error}: save the program again on this machine"
        ) from None
    except (
        *(ArgumentError, ArithmeticError, AttributeError, BadZipFile, EOFError),
        *(ImportError, LookupError, MemoryError, RecursionError, Refused, RuntimeError),
        *(TypeError, ValueError),
    ) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: not a saved program, or damaged: {reason}") from None


class _Elsewhere(Exception):
    """A file was saved by another version, or for another machine."""


def _contents(archive: ZipFile, info: ZipInfo) -> bytes:
    if info.compress_type != ZIP_STORED:  # bounds the memory by the file's size
        raise ValueError(f"{info.filename} is compressed")
    return archive.read(info)


def _program(files: Files) -> CallableProgram:
    manifest = json.loads(files[names.MANIFEST])
    _check_version(manifest)
    _check_machine(manifest)
    memory = _SavedMemory(manifest["memories"], files)
    functions = _functions(manifest["functions"], files)
    reader = _Reader(manifest["primitives"], functions, memory.blocks)
    inputs, results, calls = (manifest[x] for x in ("inputs", "results", "calls"))
    program = Program(memory)
    program.inputs = [memory.blocks[slot["memory"]] for slot in inputs]
    program.results = [_result(slot["at"], memory.blocks) for slot in results]
    program.steps = [
        Step(lambda: [reader.call(x) for x in calls], frozenset(memory.arguments))
    ]
    program.arenas = [
        Arena(block, 0, memory.arena_bytes[device], (0, 1))
        for device, block in memory.arena_memories.items()
    ]
    arguments = Arguments(
        program,
        [Input(*_slot(x), x["variable"], False, x["donated"]) for x in inputs],
        [Result(*_slot(slot), slot["input"]) for slot in results],
    )
    runner = local(program, available(), False, manifest["flush_subnormals"])
    made = CallableProgram(program, arguments, runner)
    made.bind({number: reader.value(array) for number, array in manifest["bound"]})
    return made


def _functions(objects_of: Mapping[str, str], files: Files) -> Mapping[str, Any]:
    """The native functions, by digest."""
    objects = {
        name: ObjectFile(name, bytes(files[f"code/{name}.o"]))
        for name in objects_of.values()
    }
    functions = {
        digest: compiler().linked(digest, objects[name])
        for digest, name in objects_of.items()
    }
    try:
        for function in functions.values():  # reports damaged code now
            compiler().link(function)
    except ImportError:
        raise _Elsewhere("it calls LAPACK, which requires the extra linalg") from None
    return functions


def _slot(written: Mapping[str, Any]) -> tuple[Any, Any]:
    return tuple(written["shape"]), names.dtype_of(written["dtype"])


def _check_version(manifest: Mapping[str, Any]) -> None:
    if (found := manifest["format"]) != names.FORMAT:
        raise _Elsewhere(f"it has format {found}, expected {names.FORMAT}")
    if (found := manifest["tensorplan"]) != VERSION:
        raise _Elsewhere(f"it was saved by tensorplan {found}, expected {VERSION}")


def _check_machine(manifest: Mapping[str, Any]) -> None:
    if "processor" in manifest:
        if not is_available():
            raise _Elsewhere("it has native code, which requires the extra fast")
        triple, features = manifest["processor"]
        host = compiler().host
        needed = {x for x in features.split(",") if x.startswith("+")}
        lacking = ", ".join(sorted(needed.difference(host.features.split(","))))
        if triple != host.triple or lacking:
            lacks = f" without {lacking}" if lacking else ""
            raise _Elsewhere(
                f"it was saved for {triple}, but this machine is {host.triple}{lacks}"
            )
    if "oneDNN" in manifest and manifest["oneDNN"] != (found := _library_version()):
        wanted = manifest["oneDNN"]
        raise _Elsewhere(
            f"it was saved with oneDNN {wanted}, but this machine has {found}"
        )


def _library_version() -> str:
    try:
        return library().version
    except (AttributeError, OSError, Refused):
        return "none"


# Memory


class _SavedMemory(Memory):
    """The memories that a file lists."""

    def __init__(self, listed: Sequence[Mapping[str, Any]], files: Files):
        arenas = [x for x in listed if "arena" in x]
        super().__init__(
            {x["arena"]: Pool(x["arena"], x["bytes"], x["alignment"]) for x in arenas}
        )
        self.blocks = [self._block(x, files) for x in listed]
        self.arguments = [block for block in self.blocks if block.home is not None]

    def _block(self, listed: Mapping[str, Any], files: Files) -> MemoryBlock:
        match listed:
            case {"arena": device}:
                return self.arena_memories[device]
            case {"constant": number}:
                return MemoryBlock(_constant(files, number), "a constant")
            case {"argument": number, "device": device, "bytes": size}:
                data = aligned_bytes(size, ALIGNMENT)
                return MemoryBlock(data, f"argument {number}", device, home=data)
            case _:
                return MemoryBlock(aligned_bytes(listed["bytes"], ALIGNMENT), "a block")


def _constant(files: Files, number: int) -> Array:
    """The contents of a constant memory, aligned."""
    stream = BytesIO(files[f"constants/{number}.npy"])
    read: Array = np.lib.format.read_array(stream, allow_pickle=False)
    data = aligned_bytes(read.nbytes, ALIGNMENT)
    data[...] = read
    return data


def _result(at: Mapping[str, Any], blocks: Sequence[MemoryBlock]) -> MemoryBlock | View:
    number: int | None = at.get("memory")
    return _view(at["array"], blocks) if number is None else blocks[number]


_NOWHERE = MemoryBlock(np.empty(0, np.uint8), "nothing")
"""The memory of arrays without elements."""


def _view(place: Sequence[Any], blocks: Sequence[MemoryBlock]) -> View:
    number, offset, name, shape, strides = place
    memory: MemoryBlock = blocks[number] if isinstance(number, int) else _NOWHERE
    buffer = MemoryRange(memory, 0, memory.bytes.size)
    dtype = names.dtype_of(name)
    if strides is None:
        inner = (prod(shape[d + 1 :]) for d in range(len(shape)))
        strides = [size * dtype.itemsize for size in inner]
    return View(buffer, dtype, tuple(shape), offset, tuple(strides))


# Calls


class _Reader:
    """Converts the data that `writing.py` wrote to calls."""

    def __init__(
        self,
        primitives: Sequence[Any],
        functions: Mapping[str, Any],
        blocks: Sequence[MemoryBlock],
    ):
        self._functions = functions
        self._packed = Prepacked(np.empty(0, np.uint8))
        self._descriptions: list[Description] = []
        for kind, arguments, post_ops in primitives:
            operations = tuple(self._parts(op) for op in post_ops)
            made = Description(kind, self._parts(arguments), operations)
            self._descriptions.append(made)
        self._forms: Mapping[str, Callable[..., object]] = {
            "array": lambda *place: _view(place, blocks).array(),
            "complex": complex,
            "control": self._control,
            "dtype": names.dtype_of,
            "ellipsis": lambda: ...,
            "function": names.FUNCTIONS.__getitem__,
            "list": lambda *values: [self.value(x) for x in values],
            "method": self._method,
            "native": self._native,
            "number": self._number,
            "numpy": names.of_numpy,
            "parallel": self._parallel,
            "partial": self._partial,
            "primitive": self._execution,
            "slice": slice,
            "sliced": self._sliced,
            "starts": lambda *parts: Starts(*map(self.value, parts)),
            "table": lambda *pairs: {self.value(k): self.value(x) for k, x in pairs},
            "tape": lambda *calls: records.Tape([self.value(x) for x in calls]),
        }

    def call(self, written: Any) -> Call:
        function, arguments = self.value(written)
        return function, arguments

    def value(self, written: Any) -> Any:
        match written:
            case list():
                return tuple(map(self.value, cast(list[Any], written)))
            case dict():
                ((form, content),) = cast(dict[str, Any], written).items()
                is_list = isinstance(content, list)
                return self._forms[form](*(content if is_list else [content]))
            case _:
                return written

    def _method(self, of: Any, name: str) -> Any:
        return names.method(self.value(of), name)

    def _number(self, name: str, data: str) -> Any:
        return np.frombuffer(bytes.fromhex(data), names.dtype_of(name))[0]

    def _partial(self, *parts: Any) -> Any:
        function, arguments, keywords = map(self.value, parts)
        return partial(function, *arguments, **keywords)

    def _native(
        self, digest: str, arrays: Sequence[Any], *others: int
    ) -> records.ArrayRecord:
        made = [self.value(x) for x in arrays]
        return records.ArrayRecord(self._functions[digest], made, *others)

    def _parallel(self, members: int, *parts: Any) -> records.Parallel:
        made = list(map(self.value, parts))
        return records.Parallel(min(members, available() - 1), made)

    def _sliced(self, slices: Any, made: Any) -> Sliced:
        return Sliced([Slice(*part) for part in self.value(slices)], self.value(made))

    def _control(self, name: str, *parts: Any) -> records.Control:
        return records.Control(names.CONTROLS[name], *map(self.value, parts))

    def _execution(self, number: int, operands: Mapping[str, Any]) -> Execution:
        made = {int(kind): self._operand(*x) for kind, x in operands.items()}
        return Execution(self._descriptions[number], made)

    def _operand(self, layout: Any, array: Any, is_packed: bool) -> Operand:
        where, data = self._part(layout), self.value(array)
        if is_packed:
            return packed(self._packed, data, where)
        size = library().get("memory_desc_get_size", where.descriptor)
        if data.dtype == np.uint8 and size > data.nbytes:
            raise ValueError(f"oneDNN takes {size} bytes, expected {data.nbytes}")
        return Operand(where, data)

    def _parts(self, written: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self._part(x) for x in written)

    def _part(self, written: Any) -> Any:
        """An argument of a primitive's description."""
        match written:
            case list():
                return tuple(cast(list[Any], written))
            case dict():
                ((form, parts),) = cast(dict[str, Any], written).items()
                return (
                    self._wanted(*parts) if form == "wanted" else self._layout(*parts)
                )
            case _:
                return written

    def _wanted(self, number: int, kind: int) -> Wanted:
        return Wanted(self._descriptions[number], kind)

    def _layout(self, shape: Any, element: str, strides: Any) -> Layout:
        steps = None if strides is None else tuple(strides)
        return Layout(tuple(shape), element, steps)
