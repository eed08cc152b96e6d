"""Reads StableHLO in any form that JAX writes to level 0, by jaxlib's MLIR bindings.

Level 0 is StableHLO in xDSL: a module with unregistered operations `stablehlo.*` and
`chlo.*`, and `func.func`, `func.call` and `func.return`. jaxlib parses and verifies the
module, which is then walked, so no text is parsed twice.

The elements of a dense constant are copied as bytes. A splat of any shape is stored as
one element: a `DenseIntOrFPElementsAttr` with the full type and the bytes of one
element, which prints as valid MLIR, `dense<0.0> : tensor<1024xf32>`. (xDSL's own parser
would store all elements. This form occurs at level 0 only.)

Import this module only if jaxlib is required: without it, the import fails.
"""

# jaxlib's type stubs are incomplete.
# pyright: reportMissingTypeStubs=false, reportMissingTypeArgument=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyDenseElement,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FunctionType,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    RankedStructure,
    StringAttr,
    TensorType,
    UnknownLoc,
    UnregisteredOp,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span

from ...analysis.functions import argument_attributes, set_argument_attributes
from ...dialects.diagnostics import LocatedError, too_deep
from ...dialects.dtypes import numpy_dtype
from ...dialects.tgraph.base import NAME
from .. import bytecode
from ..mlir_text import parse_attribute, permissive, unregistered_op

_UNNAMED = "-"  # MLIR's file name for text without one


def read_text(text: str, name: str, ctx: Context, *, first_line: int = 1) -> ModuleOp:
    """Reads StableHLO text, pretty or generic, of a file called `name`, to level 0.

    Raises `ParseError` for invalid text.
    """
    text = "\n" * (first_line - 1) + text
    return _read(lambda context: ir.Module.parse(text, context), name, ctx, text)


def read_bytecode(data: bytes, name: str, ctx: Context) -> ModuleOp:
    """Reads MLIR bytecode or a portable artifact (versioned StableHLO) to level 0.

    Raises `LocatedError` for invalid bytes.
    """
    try:
        return _read(bytecode.parser(data), name, ctx)
    except (RuntimeError, ValueError) as error:  # from jaxlib, for names not in UTF-8
        raise LocatedError(f"{name} is not valid MLIR bytecode: {error}") from None


def _read(
    parse: Callable[[ir.Context], ir.Module],
    name: str,
    ctx: Context,
    text: str | None = None,
) -> ModuleOp:
    errors: list[_Error] = []
    with _context(errors) as context:
        try:
            module = parse(context)
        except ir.MLIRError as error:
            if not errors:
                raise LocatedError(f"{name}: {error}") from None
            raise _located(errors[0], name, text) from None
        except (RuntimeError, ValueError) as error:  # from jaxlib, without a location
            raise LocatedError(f"MLIR cannot read {name}: {error}") from None
        return _Importer(ctx, name).module(module)


class _Error(NamedTuple):
    message: str
    place: tuple[str, int, int] | None  # file, line and column


def _context(errors: list[_Error]) -> ir.Context:
    """A context that appends MLIR's error messages to `errors`.

    jaxlib 0.10 would collect the messages itself, and abort the process if the text of
    a message or note is damaged.
    """

    def keep(diagnostic: ir.Diagnostic) -> bool:
        if diagnostic.severity != ir.DiagnosticSeverity.ERROR:
            return False
        try:
            place = _innermost(diagnostic.location)
            errors.append(_Error(diagnostic.message.strip(), place))
        except RuntimeError:
            errors.append(_Error("a name in it is not UTF-8", None))
        return True

    context = bytecode.context()
    context.emit_error_diagnostics = True
    context.attach_diagnostic_handler(keep)
    return context


def _located(error: _Error, name: str, text: str | None) -> Exception:
    """Converts an error of MLIR to an exception with its location."""
    message, place = error
    if place is None or place[1] == 0:
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
    """The innermost file, line and column of `location`; None if there is none."""
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    if isinstance(location, ir.NameLoc):
        return _innermost(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return _innermost(location.callee)
    if isinstance(location, ir.FusedLoc):
        places = map(_innermost, cast(list[ir.Location], location.locations))
        return next((place for place in places if place), None)
    return None


class _Importer:
    """Builds the xDSL module; converts each type, attribute and location only once."""

    def __init__(self, ctx: Context, name: str):
        self._ctx = permissive(ctx)
        self._name = name
        self._values: dict[ir.Value, SSAValue] = {}
        self._attributes: dict[ir.Attribute | ir.Type, Attribute] = {}
        self._places: dict[ir.Location, LocationAttr] = {}
        self._files: dict[str, StringAttr] = {}

    def module(self, module: ir.Module) -> ModuleOp:
        op = self._operation(module.operation)
        assert isinstance(op, ModuleOp)
        return op

    def _operation(self, source: ir.Operation) -> Operation:
        op_type = self._ctx.get_op(source.name)
        if issubclass(op_type, UnregisteredOp):
            op_type = unregistered_op(source.name)
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        for name, attr in _attributes_of(source):
            inherent = (
                name in op_type.get_irdl_definition().properties
                if issubclass(op_type, IRDLOperation)
                else "." not in name
            )
            into = properties if inherent else attributes
            is_text = isinstance(attr, str)
            into[name] = self._complex(attr) if is_text else self._attribute(attr)
        location = self._place(source.location)
        op = op_type.create(
            operands=[self._values[operand] for operand in source.operands],
            result_types=[self._attribute(result.type) for result in source.results],
            properties=properties,
            attributes=attributes,
            location=location,
            regions=[self._region(region, source) for region in source.regions],
        )
        self._values.update(zip(source.results, op.results, strict=True))
        if isinstance(op, FuncOp) and op.body.blocks:
            _name_arguments(op, source.regions[0].blocks[0].arguments)
        return op

    def _region(self, source: ir.Region, parent: ir.Operation) -> Region:
        blocks = list(source.blocks)
        if len(blocks) > 1:
            raise LocatedError(
                f"{parent.name} has a region of {len(blocks)} blocks, expected 1",
                self._at(parent),
            )
        try:
            return Region([self._block(block) for block in blocks])
        except RecursionError:
            raise too_deep(self._at(parent)) from None

    def _at(self, source: ir.Operation) -> Operation:
        """An operation at the location of `source`, for errors."""
        at = ModuleOp([])
        at.location = self._place(source.location) or at.location
        return at

    def _block(self, source: ir.Block) -> Block:
        block = Block(
            arg_types=[self._attribute(argument.type) for argument in source.arguments]
        )
        self._values.update(zip(source.arguments, block.args, strict=True))
        block.add_ops([self._operation(op.operation) for op in source.operations])
        return block

    def _attribute(self, source: ir.Attribute | ir.Type) -> Attribute:
        if (known := self._attributes.get(source)) is not None:
            return known
        attr = self._converted(source)
        if attr is None:
            attr = parse_attribute(str(source), self._ctx)
        self._attributes[source] = attr
        return attr

    def _converted(self, source: ir.Attribute | ir.Type) -> Attribute | None:
        """Converts an attribute of a frequent kind without text; None for others."""
        match source:
            case ir.RankedTensorType() if source.encoding is None:
                element = self._attribute(source.element_type)
                shape = (
                    DYNAMIC_INDEX if source.is_dynamic_dim(dim) else size
                    for dim, size in enumerate(source.shape)
                )
                return TensorType(element, shape)
            case ir.FunctionType():
                types = (source.inputs, source.results)
                return FunctionType.from_lists(
                    *([self._attribute(type) for type in each] for each in types)
                )
            case ir.TypeAttr():
                return self._attribute(source.value)
            case ir.DenseI64ArrayAttr():
                return DenseArrayBase.from_list(i64, list(source))
            case ir.DenseElementsAttr() if not source.is_splat:
                return self._dense(source)
            case _:
                return None

    def _dense(self, source: ir.DenseElementsAttr) -> Attribute:
        try:
            elements = np.asarray(cast(Any, source))
        except TypeError:  # no NumPy type for the elements, e.g. bf16
            return parse_attribute(str(source), self._ctx)
        if elements.dtype == np.bool_:
            elements = elements * np.uint8(0xFF)  # as xDSL stores an i1
        type = cast(RankedStructure[AnyDenseElement], self._attribute(source.type))
        return DenseIntOrFPElementsAttr(type, BytesAttr(elements.tobytes()))

    def _complex(self, text: str) -> Attribute:
        """Parses a complex constant from its text: jaxlib has no class for it."""
        numbers, type = text[len("dense<") :].split("> : ")
        tensor = cast(
            RankedStructure[AnyDenseElement], parse_attribute(type, self._ctx)
        )
        dtype = numpy_dtype(tensor.element_type)
        part = np.dtype(f"f{dtype.itemsize // 2}")
        if numbers.startswith('"'):
            data = bytes.fromhex(numbers[3:-1])
        else:
            found = re.findall(r"[^\s()\[\],]+", numbers)
            data = b"".join(_bytes_of(number, part) for number in found)
        return DenseIntOrFPElementsAttr(tensor, BytesAttr(data))

    def _place(self, source: ir.Location) -> LocationAttr | None:
        if source in self._places:
            return self._places[source]
        location: LocationAttr | None = None
        if (place := _innermost(source)) is not None:
            file, line, column = place
            name = self._files.setdefault(
                file, StringAttr(self._name if file == _UNNAMED else file)
            )
            location = FileLineColLoc(name, IntAttr(line), IntAttr(column))
        if isinstance(source, ir.NameLoc):  # its location may be that of a call
            location = NameLoc(StringAttr(source.name_str), location or UnknownLoc())
        if location is not None:
            self._places[source] = location
        return location


def _name_arguments(func: FuncOp, arguments: Iterable[Any]) -> None:
    """Keeps JAX's names of arguments, which are in their locations."""
    attributes = argument_attributes(func)
    for own, argument in zip(attributes, arguments, strict=True):
        if isinstance(place := argument.location, ir.NameLoc):
            own.setdefault(NAME, StringAttr(place.name_str))
    set_argument_attributes(func, attributes)


_COMPLEX = re.compile(r"value = (dense<.*> : tensor<[\dx]*complex<f\d+>>)")


def _bytes_of(number: str, dtype: np.dtype[Any]) -> bytes:
    """The bytes of a float that MLIR writes in decimal digits or as its bits."""
    if number.startswith("0x"):
        return int(number, 16).to_bytes(dtype.itemsize, sys.byteorder)
    return np.array(float(number)).astype(dtype).tobytes()


def _attributes_of(op: ir.Operation) -> Iterator[tuple[str, ir.Attribute | str]]:
    for name in op.attributes:
        try:
            yield name, op.attributes[name]
        except TypeError:  # jaxlib has no class for the attribute: a complex constant
            text = _COMPLEX.search(str(op.get_asm(print_generic_op_form=True)))
            if text:
                yield name, text[1]
