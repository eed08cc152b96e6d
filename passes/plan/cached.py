"""Keeps plans on disk, for processes that compile the same program again.

A plan is stored as text, with the source locations of its operations, under a hash of
everything that determines it: the program, the options, the files of this package, and
the kernels whose workspaces are planned. A stored plan is verified and checked like any
other plan. If this fails, the program is planned again.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from time import process_time
from typing import Any

import xdsl
from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from ...checking.plan_check import check_plan
from ...dialects.diagnostics import LocatedError
from ...frontends import reading
from ...support import cache
from ...version import VERSION
from .. import driver
from ..options import PlanOptions

LEAST = 0.5
"""The seconds of CPU time from which a plan is stored."""

_SOURCE = "a cached plan"
"""The file in the locations that reading gives to operations without a location."""


def cached(
    ctx: Context,
    module: ModuleOp,
    options: PlanOptions,
    kernels: str,
    plan: Callable[[], ModuleOp],
) -> ModuleOp:
    """Returns the plan of a module: the stored one, or what `plan` makes.

    kernels: a text that identifies the kernels whose workspaces are planned.
    """
    name = f"{_digest(module, options, kernels)}.plan"
    if (found := _read(ctx, name)) is not None:
        return found
    start = process_time()
    planned = plan()
    if process_time() - start >= LEAST:
        cache.write(name, _text(planned).encode())
    return planned


def _digest(module: ModuleOp, options: PlanOptions, kernels: str) -> str:
    parts = _Contents(module).parts, options, kernels, _version()
    return sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()


class _Contents:
    """The contents of a program, as objects whose `repr` distinguishes programs. (To
    print the program takes five times as long.)"""

    def __init__(self, module: ModuleOp) -> None:
        self.parts: list[object] = []
        self._numbers: dict[SSAValue | Block, int] = {}
        self._texts: dict[int, str] = {}  # of attributes, by id
        self._add(module)

    def _add(self, op: Operation) -> None:
        self.parts += (op.name, self._place(op.location))
        self.parts += map(self._number, (*op.operands, *op.successors))
        for named in (op.attributes, op.properties):
            self.parts += (*named, *map(self._text, named.values()), None)
        self._define(op.results)
        for region in op.regions:
            for block in region.blocks:
                self.parts.append(self._number(block))
                self._define(block.args)
                for each in block.ops:
                    self._add(each)
            self.parts.append(None)

    def _define(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            named = self._number(value), value.name_hint, self._text(value.type)
            self.parts.append(named)

    def _number(self, value: SSAValue | Block) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _place(self, location: LocationAttr) -> object:
        if isinstance(location, FileLineColLoc):  # most frequent, and all differ
            column = location.column.data
            return self._text(location.filename), location.line.data, column
        return self._text(location)

    def _text(self, attribute: Attribute) -> object:
        if type(attribute) is StringAttr:  # mostly names of operations
            return (attribute.data,)
        if id(attribute) not in self._texts:
            self._texts[id(attribute)] = str(attribute)
        return self._texts[id(attribute)]


@functools.cache
def _version() -> str:
    """The versions of everything that makes plans."""
    files = _files(Path(__file__).parents[2])
    return "\n".join(map(str, (VERSION, xdsl.__version__, sys.version, *files)))


def _files(package: Path) -> Iterator[tuple[str, int, int]]:
    """The paths, sizes, and times of a package's files: a checkout changes more often
    than its version."""
    for entry in sorted(os.scandir(package), key=lambda entry: entry.name):
        if entry.name.endswith(".py"):
            found = entry.stat()
            yield entry.path, found.st_size, found.st_mtime_ns
        elif os.path.exists(os.path.join(entry.path, "__init__.py")):
            yield from _files(Path(entry.path))


def _text(module: ModuleOp) -> str:
    text = StringIO()
    printer = _Printer(text, print_generic_format=True, print_debuginfo=True)
    printer.print_op(module)
    return text.getvalue()


class _Printer(Printer):
    """Prints a module that does not change meanwhile: formats each attribute once, and
    does not count lines and columns."""

    def __init__(self, stream: StringIO, **options: Any) -> None:
        super().__init__(stream, **options)
        self._text = stream
        self._printed: dict[int, str] = {}  # by id

    def _print_to(self, stream: StringIO) -> None:
        self.stream = self._text = stream

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        self._text.write(text)

    def print_attribute(self, attribute: Attribute) -> None:
        self._text.write(self._attribute(attribute))

    def print_function_type(
        self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]
    ) -> None:
        inputs, outputs = map(self._attributes, (input_types, output_types))
        self._text.write(f"({inputs}) -> ({outputs})")

    def _attributes(self, attributes: Iterable[Attribute]) -> str:
        return ", ".join(map(self._attribute, attributes))

    def _attribute(self, attribute: Attribute) -> str:
        text = self._printed.get(id(attribute))
        if text is None:
            around = self._text
            self._print_to(own := StringIO())
            super().print_attribute(attribute)
            self._print_to(around)
            text = self._printed[id(attribute)] = own.getvalue()
        return text


def _read(ctx: Context, name: str) -> ModuleOp | None:
    """The stored plan; None if there is none, or if it is not sound."""
    if (data := cache.read(name)) is None:
        return None
    try:
        module = reading.read(data, _SOURCE, ctx)
        for op in module.walk():
            place = op.location
            if isinstance(place, FileLineColLoc) and place.filename.data == _SOURCE:
                op.location = UnknownLoc()
        driver.check(module)
        check_plan(module, unmarked=False)
    except (LocatedError, ParseError):
        return None
    return module
