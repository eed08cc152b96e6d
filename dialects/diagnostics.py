"""Located errors and remarks, which every layer uses to report to the user.

An error is raised (`LocatedError`), and a remark is logged (`remark`). Both name the
source location of their operation, if known:

    model.mlir:12:10: error: tgraph.add: operand 1 has shape 3x4, expected 3x5
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import PassFailedException, VerifyException

from ..support.remarks import REMARKS

if TYPE_CHECKING:
    from xdsl.ir import Operation


class LocatedError(PassFailedException):
    """An error in the user's program; `str()` starts with the source location, if
    known.
    """

    def __init__(self, message: str, op: Operation | None = None):
        self.message = message
        self.place = None if op is None else place_of(op)
        super().__init__(f"{self.place}: {message}" if self.place else message)


@contextmanager
def depth_limited(module: Operation | None = None) -> Generator[None]:
    """Makes a `LocatedError` of Python's `RecursionError`, at the deepest operation of
    a module that is there."""
    try:
        yield
    except RecursionError:
        raise too_deep(module and _deepest(module)) from None


def too_deep(op: Operation | None) -> LocatedError:
    return LocatedError("the program is nested too deeply", op)


def _deepest(module: Operation) -> Operation:
    """The first of the operations in the most regions; does not recurse."""
    level = [module]
    while inner := [
        op
        for outer in level
        for region in outer.regions
        for block in region.blocks
        for op in block.ops
    ]:
        level = inner
    return level[0]


def errors_at(found: Sequence[tuple[Operation, str]]) -> LocatedError:
    """One error for all: the first one, with a note for each further one."""
    (first, message), *others = found
    notes = [f"{place_of(op) or '-'}: note: {text}" for op, text in others]
    return LocatedError("\n".join([message, *notes]), first)


class LocatedVerifyError(LocatedError, VerifyException):
    """An operation breaks its own rules: an error of xDSL's kind, and one of ours."""


def place_of(op: Operation) -> str | None:
    """`file:line:col` of the nearest operation around `op` that has one."""
    from xdsl.dialects.builtin import FileLineColLoc, NameLoc

    node: Operation | None = op
    while node is not None:
        location = node.location
        if isinstance(location, NameLoc):
            location = location.location
        if isinstance(location, FileLineColLoc):
            file = location.filename.data
            return f"{file}:{location.line.data}:{location.column.data}"
        node = node.parent_op()
    return None


def path_of(op: Operation) -> str:
    """The framework's name for an operation: with the transformations around it in JAX,
    `jit(step)/transpose(jvp())/mul`; with the module in PyTorch, `net.0/aten.gelu`.
    Empty for programs without such names."""
    from xdsl.dialects.builtin import NameLoc

    return op.location.desc.data if isinstance(op.location, NameLoc) else ""


def name_of(op: Operation) -> str:
    """The operation's name as the user writes it."""
    if op.name != "builtin.unregistered":
        return op.name
    from xdsl.dialects.builtin import UnregisteredOp

    assert isinstance(op, UnregisteredOp)
    return op.op_name.data


@contextmanager
def held_back() -> Generator[list[logging.LogRecord]]:
    """Remarks go into a list, from which `say` takes them, and into no other that is
    held around it."""
    records: list[logging.LogRecord] = []

    def hold(record: logging.LogRecord) -> bool:
        records.append(record)
        return False

    REMARKS.filters.insert(0, hold)
    try:
        yield records
    finally:
        REMARKS.removeFilter(hold)


def say(records: Sequence[logging.LogRecord]) -> None:
    """Passes on remarks that were held back."""
    for record in records:
        REMARKS.handle(record)


def remark(message: str, op: Operation, *, passed: bool = False) -> None:
    """Tells the user of a decision at `op` that may be of interest: no error.

    `passed` is for what went as well as it can.
    """
    place = place_of(op)
    level = logging.DEBUG if passed else logging.INFO
    REMARKS.log(level, "%sremark: %s", f"{place}: " if place else "", message)
