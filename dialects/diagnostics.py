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
    """Turns Python's `RecursionError` into a `LocatedError` at the most deeply nested
    operation of `module`, if given."""
    try:
        yield
    except RecursionError:
        raise too_deep(module and _deepest(module)) from None


def too_deep(op: Operation | None) -> LocatedError:
    return LocatedError("the program is nested too deeply", op)


def _deepest(module: Operation) -> Operation:
    """The first operation at the greatest nesting depth; does not recurse."""
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
    """One error for several: the first one, with a note for each of the others."""
    (first, message), *others = found
    notes = [f"{place_of(op) or '-'}: note: {text}" for op, text in others]
    return LocatedError("\n".join([message, *notes]), first)


class LocatedVerifyError(LocatedError, VerifyException):
    """An operation violates its verifier: a `VerifyException` with a location."""


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
    """The framework's name for an operation. In JAX it includes the transformations,
    `jit(step)/transpose(jvp())/mul`; in PyTorch the module, `net.0/aten.gelu`. Empty
    for programs without such names."""
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
    """Collects remarks in a list, which `say` takes, instead of logging them. Of nested
    lists, only the innermost one gets a remark."""
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
    """Logs remarks that were held back."""
    for record in records:
        REMARKS.handle(record)


def remark(message: str, op: Operation, *, passed: bool = False) -> None:
    """Reports a decision at `op` that may interest the user, but is no error.

    `passed` is for decisions that went as well as possible.
    """
    place = place_of(op)
    level = logging.DEBUG if passed else logging.INFO
    REMARKS.log(level, "%sremark: %s", f"{place}: " if place else "", message)
