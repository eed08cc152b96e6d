"""The text of a module, with the line of each operation and the name of each value.

A value without a name hint is `%0`, `%1`, ... in the printed text only. Output that
refers to such a value beside the text must use the names of the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer


class Printed(NamedTuple):
    text: str
    lines: Mapping[Operation, int]
    """The line in which an operation begins, from 1."""
    names: Mapping[SSAValue, str]
    """The names of values, with `%`."""


def printed(module: ModuleOp) -> Printed:
    """Prints the module as `plan-opt` does."""
    stream = _Lines()
    printer = _Recorder(stream, out=stream)
    printer.print_op(module)
    return Printed(stream.getvalue(), printer.lines, printer.names)


class _Lines(StringIO):
    """A stream that counts the lines written to it."""

    line = 1

    def write(self, s: str, /) -> int:
        self.line += s.count("\n")
        return super().write(s)


@dataclass(eq=False, repr=False)
class _Recorder(Printer):
    out: _Lines = field(default_factory=_Lines)
    lines: dict[Operation, int] = field(default_factory=dict[Operation, int])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])

    def print_op(self, op: Operation) -> None:
        self.lines[op] = self.out.line
        super().print_op(op)

    def print_ssa_value(self, value: SSAValue) -> str:
        name = super().print_ssa_value(value)
        self.names[value] = f"%{name}"
        return name
