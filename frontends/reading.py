"""Reads programs from files; detects the format by the content.

    module = read(path.read_bytes(), str(path), ctx)

The first match decides the format:
  1. MLIR bytecode starts with the bytes `ML\\xefR`. It is read as StableHLO (plain or a
     portable artifact), because no other supported format uses bytecode.
  2. A `jax.export` artifact is a flatbuffer that holds such bytecode in a known field.
  3. StableHLO text has an operation `stablehlo.*` or `chlo.*`, in quotes (generic) or
     not (custom), after its results if any, at the start of a line or after `{`.
  4. A LiteRT model has the identifier of its flatbuffer.
  5. An ONNX model is a protobuf message that starts with its version.
  6. Anything else is other MLIR text: tgraph, memref, ... .

jaxlib reads 1 to 3 to level 0 (see `stablehlo/reading.py`). Without jaxlib, xDSL reads
generic StableHLO text. 4 and 5 are converted to level 1 (see `tflite/` and `onnx/`).
"""

import re
import struct
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..dialects.diagnostics import LocatedError, depth_limited
from ..dialects.garbage import seldom_collected
from ..model import Model
from ..support.extras import missing_extra_message
from . import onnx, tflite
from .mlir_text import parse_module, permissive

_BYTECODE = b"ML\xefR"
_STABLEHLO = re.compile(
    r"""(?:^|\{)[ \t]*(?:%[^=\n]*=[ \t]*)?("?)(?:stablehlo|chlo)\.""", re.MULTILINE
)


def read(data: bytes, name: str, ctx: Context, **options: Any) -> ModuleOp:
    """The module that `read_model` returns, without values of its parameters."""
    return read_model(data, name, ctx, **options).module


@depth_limited()
@seldom_collected()
def read_model(
    data: bytes,
    name: str,
    ctx: Context,
    *,
    first_line: int = 1,
    sizes: Mapping[str, int] | None = None,
    trusted: bool = False,
) -> Model:
    """Reads a program from `data`, the contents of the file `name`, with the values of
    its parameters, if it has any.

    `first_line` is the line number of the text in its file. `sizes` are the sizes of
    dynamic dimensions of an ONNX model. Bytecode that is not `trusted` is validated by
    another process first (see `bytecode.py`).

    Raises xDSL's `ParseError` for invalid text, `LocatedError` for invalid bytes, and
    `LocatedError` if jaxlib, onnx or tflite is required but not installed.
    """
    bytecode = data if data.startswith(_BYTECODE) else _exported_module(data)
    if bytecode is not None:
        reader = _jaxlib_reader(name, "bytecode")
        if not trusted:
            reader.bytecode.check(bytecode, name)
        return Model(reader.read_bytecode(bytecode, name, ctx), {})
    if tflite.is_model(data):
        return tflite.import_model(data, name)
    if onnx.is_model(data):
        return onnx.import_model(data, name, sizes)
    return Model(_read_text(decode(data, name), name, ctx, first_line), {})


def _read_text(text: str, name: str, ctx: Context, first_line: int) -> ModuleOp:
    if (operation := _STABLEHLO.search(text)) is None:
        return parse_module(text, name, ctx, first_line=first_line)
    is_generic = bool(operation.group(1))
    if "!quant." in text:  # jaxlib does not register it
        if not is_generic:
            raise LocatedError(
                f"{name} has quantized types, which are read in generic form only "
                "(stablehlo-opt --mlir-print-op-generic)"
            )
        return parse_module(text, name, permissive(ctx), first_line=first_line)
    try:
        reader = _jaxlib_reader(name, "StableHLO in pretty form")
    except LocatedError:
        if not is_generic:
            raise
        return parse_module(text, name, permissive(ctx), first_line=first_line)
    return reader.read_text(text, name, ctx, first_line=first_line)


def decode(data: bytes, name: str) -> str:
    """The text of a file called `name`, after all binary formats were excluded."""
    try:
        return data.decode("utf-8-sig")  # editors on Windows write a BOM
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LocatedError(
            f"{name} is neither MLIR text, nor MLIR bytecode, nor a jax.export "
            "artifact, nor an ONNX or LiteRT model: the byte "
            f"{data[error.start]:#04x} in line {line} is not UTF-8"
        ) from None


def _jaxlib_reader(name: str, what: str) -> ModuleType:
    try:
        from .stablehlo import reading as stablehlo
    except ImportError as error:
        raise LocatedError(
            missing_extra_message(
                f"{name} holds {what}, which requires jaxlib", "jax", error
            )
        ) from None
    return stablehlo


def _exported_module(data: bytes) -> bytes | None:
    """The bytecode in a serialized `jax.export.Exported`; None for other data.

    The format is a flatbuffer: field 13 of the root table is `mlir_module_serialized`
    (in `jax/_src/export/serialization.fbs`), and the numbers of fields never change.
    """
    try:
        (root,) = struct.unpack_from("<I", data)
        (to_vtable,) = struct.unpack_from("<i", data, root)
        (offset,) = struct.unpack_from("<H", data, root - to_vtable + 4 + 2 * 13)
        field = root + offset
        (to_vector,) = struct.unpack_from("<I", data, field)
        (length,) = struct.unpack_from("<I", data, field + to_vector)
    except struct.error:
        return None
    start = field + to_vector + 4
    module = data[start : start + length]
    return module if module.startswith(_BYTECODE) else None
