"""Fuzzes readers: no input may cause a traceback, a hang, or unbounded memory use.

A reader runs a tool in this process, on a file or a command line. The tool must return
0, or 1 or 2 with a message; 70 means an internal error. Inputs are mutations of
`corpus`: bytes, tokens and fields are dropped, repeated and swapped, and numbers become
extreme.
"""

import io
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import TextIO
from unittest import mock

from oracles import Failure
from structured import mutated_archive, mutated_model
from unchanged_ir import parsed

from tensorplan.support.slots import Input
from tensorplan.tools import plan_audit, plan_opt, plan_solve, plan_view
from tensorplan.tools.common import guard

ROOT = Path(__file__).parents[2]
LARGEST = 20_000  # bytes of a corpus file

Main = Callable[[Sequence[str]], int]

EXTREMES = [
    *("0", "-1", "1", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "99999999999999999999999", "1e999", "nan", "0x7F", "?"),
]
PROGRAM = """\
func.func @main(%x: tensor<4xf32>, %v: !tgraph.variable<tensor<4xf32>>) {
  %0 = tgraph.negate %x : tensor<4xf32>
  tgraph.assign %v, %0 : tensor<4xf32>
  func.return
}
"""
CSV = """\
id,lower,upper,size,alignment,gaps,offset,hint
a,0,10,4096,64,2-4 6-7,0,
"b,c",3,5,512,1,,4096,7
\xe9,-4,5,0,8,,,
"""


def call(main: Main, arguments: Sequence[str]) -> None:
    """Runs a tool. Raises `Failure` for a wrong exit code or message."""
    with TemporaryFile("w+", errors="replace") as said, _nowhere() as nowhere:
        _call(main, arguments, said, nowhere)


def _nowhere() -> TextIO:
    return open(os.devnull, "w")


def _call(main: Main, arguments: Sequence[str], said: TextIO, nowhere: TextIO) -> None:
    try:
        with redirect_stdout(nowhere), redirect_stderr(said):
            code = main(arguments)
    except SystemExit as exit:
        code = exit.code
    except Exception as error:
        raise Failure("traceback", _place(error)) from error
    if code not in (0, 1, 2):
        raise Failure("exit code", f"{code}: {_reason(main, arguments)}")
    said.seek(0)
    message = said.read()
    if code and not message.strip():
        raise Failure("message", f"exit code {code} without a reason")
    if "out of memory" in message:
        raise Failure("memory", message.strip())
    if "Traceback (most" in message:
        raise Failure("traceback", message.splitlines()[-1])


def _reason(main: Main, arguments: Sequence[str]) -> str:
    """The place of an internal error. Runs the tool again, and lets the error
    propagate."""
    try:
        with (
            _nowhere() as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
            mock.patch.dict(os.environ, PLAN_OPT_TRACEBACK="1"),
        ):
            main(arguments)
    except Exception as error:
        return _place(error)
    return "not a second time"


def _place(error: BaseException) -> str:
    *_, last = traceback.extract_tb((error.__cause__ or error).__traceback__)
    summary = " ".join(str(error.__cause__ or error).split())[:150]
    name = type(error.__cause__ or error).__name__
    return f"{name} at {Path(last.filename).name}:{last.name}: {summary}"


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="tensorplan-fuzz-")
    os.chdir(folder)  # tools write reproducers there
    (Path(folder) / "program.mlir").write_text(PROGRAM)
    return Path(folder)


def _file(data: bytes, suffix: str) -> str:
    path = _folder() / f"input{suffix}"
    path.write_bytes(data)
    return str(path)


def read_mlir(data: bytes) -> None:
    call(plan_opt.main, [_file(data, ".mlir")])


def plan_mlir(data: bytes) -> None:
    call(plan_opt.main, [_file(data, ".mlir"), "-p", "plan-pipeline", "-t", "json"])


def read_csv(data: bytes) -> None:
    path = _file(data, ".csv")
    how = [[], ["--inclusive"], ["--keep-offsets"]][len(data) % 3]
    strategy = ["greedy-by-size", "auto", "tlsf"][len(data) % 5 % 3]
    call(
        plan_solve.main,
        [path, "--strategy", strategy, "--time-limit", "1", "-o", "-", *how],
    )


def view_csv(data: bytes) -> None:
    call(plan_view.main, [_file(data, ".csv"), "--svg", "-", "--trace", "view.json"])


def view_json(data: bytes) -> None:
    call(plan_view.main, [_file(data, ".json"), "-o", "-", "--snapshot", "view.pickle"])


def view_mlir(data: bytes) -> None:
    call(plan_view.main, [_file(data, ".mlir"), "--ascii"])


def audit_inductor(data: bytes) -> None:
    call(_audit, [_file(data, ".output_code.py")])


def _audit(arguments: Sequence[str]) -> int:
    """Runs plan-audit with stdout as stderr, as it prints unsound plans on stdout."""
    with redirect_stdout(sys.stderr):
        return plan_audit.main(arguments)


def read_npz(data: bytes) -> None:
    call(_load_inputs, [_file(data, ".npz")])


def _load_inputs(arguments: Sequence[str]) -> int:
    """Reads `--inputs` as plan-run does. Without a program, it reads hundreds of files
    per second."""
    from tensorplan.tools.arrays import load_inputs

    [path] = arguments

    def body() -> int:
        load_inputs(path, (inputs := _npz_inputs()), [""] * len(inputs))
        return 0

    return guard("plan-run", body)


@cache
def _npz_inputs() -> Sequence[Input]:
    from tensorplan.dialects.tgraph.signature import signature

    return signature(parsed(PROGRAM)).inputs


def read_onnx(data: bytes) -> None:
    call(plan_opt.main, [_file(b"\x08\x08" + data[2:], ".onnx")])


def read_bytecode(data: bytes) -> None:
    call(plan_opt.main, [_file(b"ML\xefR" + data[4:], ".mlirbc")])


def command_line(data: bytes) -> None:
    program = str(_folder() / "program.mlir")
    text = data.decode(errors="replace").replace("\0", "")
    options = text.split("\n")
    call(plan_opt.main, [program, *options])


READERS: dict[str, Callable[[bytes], None]] = {
    "bytecode": read_bytecode,
    "cli": command_line,
    "csv": read_csv,
    "inductor": audit_inductor,
    "mlir": read_mlir,
    "npz": read_npz,
    "onnx": read_onnx,
    "plan": plan_mlir,
    "stablehlo": read_mlir,
    "view-csv": view_csv,
    "view-json": view_json,
    "view-mlir": view_mlir,
}


@cache
def corpus(reader: str) -> Sequence[bytes]:
    """The well-formed inputs of a reader, in a fixed order."""
    match reader:
        case "mlir" | "plan" | "view-mlir":
            folders = ("lit_tests", "tests/mlir/programs", "tests/models", "examples")
            files = [p for f in folders for p in sorted((ROOT / f).rglob("*.mlir"))]
            whole = [p.read_bytes() for p in files if p.stat().st_size < LARGEST]
            parts = [part for data in whole for part in data.split(b"// -----")]
            # jaxlib reads these: the reader stablehlo.
            ours = [p for p in parts if b"stablehlo." not in p and b"chlo." not in p]
            if reader == "view-mlir":
                return [p for p in ours if b"memref.view" in p]
            return ours
        case "stablehlo" | "bytecode":
            files = sorted((ROOT / "tests/models").glob("*.mlir"))
            texts = [p.read_bytes() for p in files if p.stat().st_size < LARGEST]
            return texts if reader == "stablehlo" else list(map(_bytecode, texts))
        case "csv" | "view-csv":
            return [CSV.encode(), b"id,lower,upper,size\r\na,0,1,1\r\n"]
        case "view-json":
            return [_report()]
        case "inductor":
            files = sorted((ROOT / "tests/foreign/inductor").glob("*.txt"))
            return [path.read_bytes() for path in files]
        case "npz":
            return _archives()
        case "onnx":
            from onnx_models import CASES, case_model

            return [_onnx(), *(case_model(case)[0] for case in CASES)]
        case _:
            return [
                b"-p\nplan-pipeline{alignment=64 strategy=auto}",
                b'-p\ntgraph-place-devices{default="cpu:0" groups="a=cpu:0","b=cpu:1"}',
                b"-p\ncse, tgraph-fuse{mode=nnvm max-depth=3},canonicalize\n--timing",
                b"--print-ir-after\nall\n-p\ntgraph-gradient{of=0 wrt=0}\n-o\nout.mlir",
                b"-t\njson\n--split-input-file\n--verify-diagnostics",
                b"-p\ntgraph-rematerialize{budget=64MiB exact=true}\n-t\nc-header",
                b"--sizes\nbatch=1,n=2\n--report\nreport.json\n--print-op-generic",
            ]


def _report() -> bytes:
    path = _folder() / "report.json"
    source = _folder() / "program.mlir"
    call(plan_opt.main, [str(source), "-p", "plan-pipeline", "--report", str(path)])
    return path.read_bytes()


def _archives() -> Sequence[bytes]:
    import numpy as np

    whole = np.arange(4, dtype=np.float32)
    firsts = [
        *(whole, whole.astype(">f4"), whole[::2], np.asfortranarray([[1.0, 2]] * 2)),
        *(np.array([object()]), np.zeros((0, 3)), np.float64(2), np.array(["text"])),
        np.zeros(2, [("a", "<i4"), ("b", "u1", (2,))]),  # fields, with padding
        np.array(["2026-01-01"], "M8[D]"),
        np.zeros(4, "V2"),  # bfloat16
    ]
    files: list[bytes] = []
    for n, first in enumerate(firsts):
        file = io.BytesIO()
        save = np.savez_compressed if n % 2 else np.savez
        save(file, arg0=first, arg1=whole)
        files.append(file.getvalue())
    return files


def _bytecode(text: bytes) -> bytes:
    from jaxlib.mlir import ir

    from tensorplan.frontends.bytecode import context

    file = io.BytesIO()
    with context() as here:
        ir.Module.parse(text, here).operation.write_bytecode(file)
    return file.getvalue()


def _onnx() -> bytes:
    from onnx import TensorProto, helper

    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
        helper.make_node("Softmax", ["t"], ["y"], axis=-1),
    ]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [3, 4], [0.5] * 12)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(
        graph, ir_version=8, opset_imports=opset
    ).SerializeToString()


_TOKEN = re.compile(rb"[\w.$#%@!]+|\s+|.", re.DOTALL)


def mutated(reader: str, data: bytes, random: Random) -> bytes:
    """Applies a few random changes to an input of `reader`."""
    if reader == "onnx":
        return mutated_model(data, random)
    if reader == "npz":
        return mutated_archive(data, random, mutated_tokens)
    if reader == "bytecode":
        return mutated_bytes(data, random)
    return mutated_tokens(data, random)


def mutated_bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice([0, 1, 2, 8])):
        changed[random.randrange(len(data))] = random.randrange(256)
    cut = random.choice([len(data)] * 4 + [random.randrange(999)])
    return bytes(changed[:cut])


def mutated_tokens(data: bytes, random: Random) -> bytes:
    """Applies random changes, mostly to tokens, sometimes to bytes."""
    tokens = _TOKEN.findall(data) or [b""]
    for _ in range(random.choice([0, 1, 1, 2, 3, 8])):
        at = random.randrange(len(tokens))
        other = random.randrange(len(tokens))
        match random.randrange(8):
            case 0:
                del tokens[at : at + random.choice([1, 1, 3, 20])]
            case 1:
                tokens[at:at] = tokens[other : other + random.choice([1, 3, 20])]
            case 2 | 3:
                tokens[at] = tokens[other]
            case 4:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 5:
                numbers = [n for n, t in enumerate(tokens) if t[:1].isdigit()] or [at]
                tokens[random.choice(numbers)] = random.choice(EXTREMES).encode()
            case 6:
                tokens[at] = random.choice(
                    [b"", b"\xff", b"\0", b"<", b"(", b'"', b"{"]
                )
            case _:
                tokens[at] = random.randbytes(random.choice([1, 4]))
        tokens = tokens or [b""]
    return b"".join(tokens)


def input_of(reader: str, seed: int) -> bytes:
    random = Random(f"{reader} {seed}")
    data = random.choice(corpus(reader))
    if reader in ("npz", "onnx") and random.random() < 0.3:
        return mutated_bytes(data, random)
    return mutated(reader, data, random)
