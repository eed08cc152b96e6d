"""Plans on disk, for processes that compile the same program again.

A plan is kept as text, with the places of its operations in the source, under a hash of
all that it follows from: the program, the options, the files of this package, and the
kernels whose workspaces are planned. What is found is verified and proved like a plan
of anybody's; what cannot be is made anew.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import StringIO
from pathlib import Path
from time import process_time
from typing import Any

import xdsl
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, UnknownLoc
from xdsl.ir import Attribute
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from ... import cache, frontends
from ...checking.plan_check import check_plan
from ...dialects.diagnostics import LocatedError
from ...version import VERSION
from .. import driver
from ..options import PlanOptions

LEAST = 0.5
"""Seconds of CPU time: a plan that takes less is made anew."""

_SOURCE = "a cached plan"
"""Where operations without a place in the program's source come from when read."""


def cached(
    ctx: Context,
    module: ModuleOp,
    options: PlanOptions,
    kernels: str,
    plan: Callable[[], ModuleOp],
) -> ModuleOp:
    """The plan of a module: the one that is kept, or what `plan` makes.

    kernels: says, for all that can be different, which kernels' workspaces are planned.
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
    parts = _text(module), repr(options), kernels, _version()
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


@functools.cache
def _version() -> str:
    """Of what plans."""
    files = _files(Path(__file__).parents[2])
    return "\n".join(map(str, (VERSION, xdsl.__version__, sys.version, *files)))


def _files(package: Path) -> Iterator[tuple[str, int, int]]:
    """Names, sizes and times of a package's files: a checkout changes more often than
    its version."""
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
    """Prints a module, of which nothing changes meanwhile: each attribute once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._printed: dict[int, str] = {}  # by id

    def print_attribute(self, attribute: Attribute) -> None:
        text = self._printed.get(id(attribute))
        if text is None:
            around, self.stream = self.stream, StringIO()
            super().print_attribute(attribute)
            text = self._printed[id(attribute)] = self.stream.getvalue()
            self.stream = around
        print(text, end="", file=self.stream)


def _read(ctx: Context, name: str) -> ModuleOp | None:
    """A plan that is kept and sound."""
    if (data := cache.read(name)) is None:
        return None
    try:
        module = frontends.read(data, _SOURCE, ctx)
        for op in module.walk():
            place = op.location
            if isinstance(place, FileLineColLoc) and place.filename.data == _SOURCE:
                op.location = UnknownLoc()
        driver.check(module)
        check_plan(module)
    except (LocatedError, ParseError):
        return None
    return module
