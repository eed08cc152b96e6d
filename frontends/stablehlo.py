"""StableHLO in any form that JAX writes → level 0, with jaxlib's MLIR bindings.

Level 0 is StableHLO as xDSL holds it: a module whose operations `stablehlo.*` and
`chlo.*` are unregistered, with `func.func`, `func.call` and `func.return`. jaxlib parses
and verifies; what it built is then walked, so that no text is parsed twice.

The elements of a dense constant are taken over as bytes. A splat stays one element at
any shape: `DenseIntOrFPElementsAttr` with the full type and the bytes of one element,
which prints as valid MLIR, `dense<0.0> : tensor<1024xf32>`. (xDSL itself would store all
elements; only level 0 holds the short form.)

Import this module only where jaxlib may be needed: it raises `ImportError` without.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, stablehlo
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyDenseElement,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    RankedStructure,
    StringAttr,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.frontends.mlir_text import parse_attribute, unregistered_op

_UNNAMED = "-"  # the file that MLIR says the text came from


def read_text(text: str, name: str, ctx: Context, *, first_line: int = 1) -> ModuleOp:
    """Level 0 of StableHLO text, pretty or generic, in a file called `name`.

    Raises `ParseError` for text that is not valid StableHLO.
    """
    text = "\n" * (first_line - 1) + text
    return _read(lambda context: ir.Module.parse(text, context), name, ctx, text)


def read_bytecode(data: bytes, name: str, ctx: Context) -> ModuleOp:
    """Level 0 of MLIR bytecode, also of a portable artifact (versioned StableHLO).

    Raises `LocatedError` for bytes that are not valid.
    """
    portable = data[5:].startswith(b"StableHLO_v")  # magic, version, then the producer

    def parse(context: ir.Context) -> ir.Module:
        if portable:
            return stablehlo.deserialize_portable_artifact(context, data)
        return ir.Module.parse(data, context)

    return _read(parse, name, ctx)


def _read(
    parse: Callable[[ir.Context], ir.Module],
    name: str,
    ctx: Context,
    text: str | None = None,
) -> ModuleOp:
    with _context() as context:
        try:
            module = parse(context)
        except ir.MLIRError as error:
            raise _located(error, name, text) from None
        importer = _Importer(ctx, name)
        op = importer.operation(module.operation)
        assert isinstance(op, ModuleOp)
        return op


def _context() -> ir.Context:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    return context


def _located(error: ir.MLIRError, name: str, text: str | None) -> Exception:
    """The first of MLIR's diagnostics as an error at its place."""
    diagnostics = cast(list[ir.DiagnosticInfo], error.error_diagnostics)
    if not diagnostics:
        return LocatedError(f"{name}: {error}")
    message = diagnostics[0].message.strip()
    place = _innermost(diagnostics[0].location)
    if place is None:
        return LocatedError(f"{name}: {message}")
    file, line, column = place
    if file != _UNNAMED or text is None:
        at = ModuleOp([])
        at.location = FileLineColLoc(
            StringAttr(name if file == _UNNAMED else file),
            IntAttr(line),
            IntAttr(column),
        )
        return LocatedError(message, at)
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: line - 1]) + column - 1
    return ParseError(Span(start, start + 1, Input(text, name)), message)


def _innermost(location: ir.Location) -> tuple[str, int, int] | None:
    """File, line and column that `location` is about, if it names any."""
    if isinstance(location, ir.FileLineColLoc):
        return location.filename.value, location.start_line, location.start_col
    if isinstance(location, ir.NameLoc):
        return _innermost(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return _innermost(location.callee)
    if isinstance(location, ir.FusedLoc):
        places = map(_innermost, location.locations)
        return next((place for place in places if place), None)
    return None
