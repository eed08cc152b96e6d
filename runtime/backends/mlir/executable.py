"""Runs level-4 programs natively: mlir-opt lowers them, mlir-runner compiles them.

mlir-runner gets a second function. This maps the memory of the arguments from an
inherited file, runs the program once for each byte on stdin, and answers each with a
byte. A program is therefore compiled once and shares memory with this process.
"""

import mmap
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import cast

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer

from ....dialects.diagnostics import LocatedError
from ....dialects.dtypes import Array
from ....dialects.tgraph.base import AnyMemRef, element_bytes
from ....dialects.tgraph.signature import Signature, is_number
from ....support.slots import Input, Result, Slot
from ...runnable import check_devices

PIPELINE = (
    "--symbol-dce",
    "--convert-linalg-to-affine-loops",
    "--affine-loop-invariant-code-motion",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--arith-expand=include-bf16",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-to-llvm",
    "--reconcile-unrealized-casts",
)
"""The passes from level 4, without memory spaces, to the LLVM dialect
(docs/lowering.md).
"""

NEWEST, OLDEST = 40, 19
"""The range of MLIR versions that are searched under names such as `mlir-opt-22`."""

RUNNERS = ("mlir-runner", "mlir-cpu-runner")
"""The second is the former name, used until MLIR 20."""

_ALIGNMENT = 64
_ENTRY = "tensorplan_program"
_ROUND = """\
  func.func @__truncsfbf2(%x: f32) -> bf16 {
    %r = arith.truncf %x : f32 to bf16
    func.return %r : bf16
  }"""
"""The function that LLVM calls where it keeps a bf16 across blocks. libgcc has it from
version 13 on; Debian 12 has an older one. It is expanded to integer operations, as
every `arith.truncf` is.
"""

_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"


@dataclass(frozen=True)
class Tools:
    """The paths of MLIR's programs, of one version."""

    opt: str
    runner: str


def installed() -> Iterator[Tools]:
    """The tools on PATH: without a version suffix, then from the newest version on."""
    for suffix in ("", *(f"-{v}" for v in range(NEWEST, OLDEST - 1, -1))):
        opt = shutil.which(f"mlir-opt{suffix}")
        runners = (shutil.which(name + suffix) for name in RUNNERS)
        runner = next(filter(None, runners), None)
        if opt and runner:
            yield Tools(opt, runner)


def find_tools() -> Tools:
    """The first tools that are `installed`. Raises `LocatedError` if there are none."""
    tools = next(installed(), None)
    if tools is None:
        raise LocatedError(
            "mlir-opt and mlir-runner are not on PATH, expected version "
            f"{OLDEST} or newer (Debian: mlir-22-tools)"
        )
    return tools


class MlirExecutable:
    """A level-4 program without memory spaces, compiled by MLIR.

    `executable(*arrays)` takes and returns arrays as `runtime.executor.Executable`
    does, threads included, but never uses the caller's memory. `signature` is that of
    the program at level 2 or 3, as level 4 does not distinguish unsigned integers. By
    default, `tools` are the first found. A large program that is not `optimized`
    compiles in a twentieth of the time.

    Raises `LocatedError` if MLIR's tools are not on PATH or reject the program.
    """

    def __init__(
        self,
        module: ModuleOp,
        signature: Signature,
        tools: Tools | None = None,
        optimized: bool = True,
    ):
        self.inputs: Sequence[Input] = signature.inputs
        self.results: Sequence[Result] = signature.results
        check_devices(signature.function)
        self._lock = Lock()
        tools = tools or find_tools()
        module = module.clone()
        function = _isolate(module, signature.function.sym_name.data)
        # If inlined, all arguments are parts of one mapping, and LLVM spends time on
        # alias analysis of the loops, in vain.
        function.attributes["passthrough"] = ArrayAttr([StringAttr("noinline")])
        self.workspace_bytes = _workspace(function)
        arguments = function.args
        size = 0
        places: dict[SSAValue, int] = {}
        for ours, theirs in zip(signature.function.args, arguments, strict=True):
            places[ours] = size
            size += -(-_bytes(theirs) // _ALIGNMENT) * _ALIGNMENT
        file = tempfile.TemporaryFile()
        file.truncate(size + _ALIGNMENT)
        self._memory = mmap.mmap(file.fileno(), size + _ALIGNMENT)
        self._given, self._made = (
            [self._array(s, places[v]) for s, v in zip(slots, values, strict=True)]
            for slots, values in (
                (self.inputs, signature.arguments),
                (self.results, signature.holders),
            )
        )
        types = [argument.type for argument in arguments]
        server = _server(types, list(places.values()), file.fileno(), len(self._memory))
        with file, tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.mlir"
            text = f"module {{\n{_text(module)}\n{_ROUND}\n{server}\n}}\n"
            program.write_text(_lowered(tools.opt, text))
            entry = ("-e", "tensorplan_serve", "--entry-point-result=i32")
            self._process = subprocess.Popen(
                [tools.runner, "-O3" if optimized else "-O0", *entry, str(program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(file.fileno(),),
                bufsize=0,
            )
            self._finalizer = weakref.finalize(self, _stop, self._process)
            self._wait()  # until it is compiled

    def __call__(self, *arrays: object) -> list[Array]:
        if len(arrays) != len(self.inputs):
            raise TypeError(
                f"the number of arrays is {len(arrays)}, expected {len(self.inputs)}"
            )
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            for array, given in zip(self._given, arrays, strict=True):
                array[...] = given
            stdin.write(b"r")
            self._wait()
            return [array.copy() for array in self._made]

    def _array(self, slot: Slot, offset: int) -> Array:
        return np.ndarray(slot.shape, slot.dtype, self._memory, offset)

    def _wait(self) -> None:
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout is not None
        assert stderr is not None
        if stdout.read(1) == b"r":
            return
        message = stderr.read().decode(errors="replace").strip()
        code = self._process.wait()
        raise LocatedError(f"mlir-runner exited with code {code}: {message[:1000]}")


def _isolate(module: ModuleOp, name: str) -> FuncOp:
    """Renames the function `name` to a unique name and makes all functions private, so
    that unused ones can be removed."""
    entry: FuncOp | None = None
    for op in module.walk():
        if isinstance(op, CallOp) and op.callee.string_value() == name:
            op.properties["callee"] = SymbolRefAttr(_ENTRY)
        elif isinstance(op, FuncOp):
            op.properties["sym_visibility"] = StringAttr("private")
            if op.sym_name.data == name:
                entry = op
    assert entry is not None
    entry.properties["sym_name"] = StringAttr(_ENTRY)
    return entry


def _lowered(opt: str, text: str) -> str:
    run = subprocess.run([opt, *PIPELINE], input=text, capture_output=True, text=True)
    if run.returncode:
        raise LocatedError(f"mlir-opt rejected the program: {run.stderr[:1000]}")
    return run.stdout


def _text(module: ModuleOp) -> str:
    """The operations of a module in generic form."""
    stream = StringIO()
    printer = Printer(stream, print_generic_format=True)
    for op in module.ops:
        printer.print_op(op)
        stream.write("\n")
    return stream.getvalue()


def _server(
    types: Sequence[Attribute], places: Sequence[int], file: int, size: int
) -> str:
    """`tensorplan_serve`: maps the file, then runs the program for each request."""
    arena = f"memref<{size}xi8>"
    views = loads = ""
    for n, (type, place) in enumerate(zip(types, places, strict=True)):
        name = f"%m{n}" if is_number(type) else f"%a{n}"
        memref = f"memref<{type}>" if is_number(type) else str(type)
        views += (
            f"    %o{n} = arith.constant {place} : index\n"
            f"    {name} = memref.view %all[%o{n}][] : {arena} to {memref}\n"
        )
        if is_number(type):
            loads += f"      %a{n} = memref.load {name}[] : {memref}\n"
    arguments = ", ".join(f"%a{n}" for n in range(len(types)))
    of_types = ", ".join(map(str, types))
    return f"""\
  llvm.func @mmap(!llvm.ptr, i64, i32, i32, i32, i64) -> !llvm.ptr
  llvm.func @read(i32, !llvm.ptr, i64) -> i64
  llvm.func @write(i32, !llvm.ptr, i64) -> i64
  func.func @tensorplan_serve() -> i32 {{
    %0 = llvm.mlir.constant(0 : i64) : i64
    %1 = llvm.mlir.constant(1 : i64) : i64
    %size = llvm.mlir.constant({size} : i64) : i64
    %file = llvm.mlir.constant({file} : i32) : i32
    %stdin = llvm.mlir.constant(0 : i32) : i32
    %stdout = llvm.mlir.constant(1 : i32) : i32
    %shared = llvm.mlir.constant({mmap.MAP_SHARED} : i32) : i32
    %access = llvm.mlir.constant({mmap.PROT_READ | mmap.PROT_WRITE} : i32) : i32
    %null = llvm.mlir.zero : !llvm.ptr
    %map = llvm.call @mmap(%null, %size, %access, %shared, %file, %0)
        : (!llvm.ptr, i64, i32, i32, i32, i64) -> !llvm.ptr
    %d0 = llvm.mlir.undef : {_DESCRIPTOR}
    %d1 = llvm.insertvalue %map, %d0[0] : {_DESCRIPTOR}
    %d2 = llvm.insertvalue %map, %d1[1] : {_DESCRIPTOR}
    %d3 = llvm.insertvalue %0, %d2[2] : {_DESCRIPTOR}
    %d4 = llvm.insertvalue %size, %d3[3, 0] : {_DESCRIPTOR}
    %d5 = llvm.insertvalue %1, %d4[4, 0] : {_DESCRIPTOR}
    %all = builtin.unrealized_conversion_cast %d5 : {_DESCRIPTOR} to {arena}
{views}\
    %byte = llvm.alloca %1 x i8 : (i64) -> !llvm.ptr
    %r = llvm.mlir.constant({ord("r")} : i8) : i8
    llvm.store %r, %byte : i8, !llvm.ptr
    %ready = llvm.call @write(%stdout, %byte, %1) : (i32, !llvm.ptr, i64) -> i64
    scf.while : () -> () {{
      %count = llvm.call @read(%stdin, %byte, %1) : (i32, !llvm.ptr, i64) -> i64
      %more = arith.cmpi eq, %count, %1 : i64
      scf.condition(%more)
    }} do {{
{loads}\
      func.call @{_ENTRY}({arguments}) : ({of_types}) -> ()
      %done = llvm.call @write(%stdout, %byte, %1) : (i32, !llvm.ptr, i64) -> i64
      scf.yield
    }}
    return %stdin : i32
  }}"""


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def _workspace(function: FuncOp) -> int:
    """The peak bytes of allocations, without arenas."""
    most = now = 0
    for op in function.walk():
        if isinstance(op, memref.AllocOp) and not _is_arena(op.memref):
            now += _bytes(op.memref)
        elif isinstance(op, memref.DeallocOp) and not _is_arena(op.memref):
            now -= _bytes(op.memref)
        most = max(most, now)
    return most


def _is_arena(value: SSAValue) -> bool:
    return any(isinstance(user, memref.ViewOp) for user in _users(value))


def _users(value: SSAValue) -> Iterator[object]:
    return (use.operation for use in value.uses)


def _bytes(value: SSAValue) -> int:
    type = cast(AnyMemRef, value.type)
    if is_number(type):
        return element_bytes(type)
    return type.element_count() * element_bytes(type.element_type)
