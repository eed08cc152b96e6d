"""The text of a module, with the line of each operation and the name of each value.

A value without a name is `%0`, `%1`, ... only in the printed text. Whatever refers to
such a value next to the text has to use the names in it.
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
    """In which an operation begins; counted from 1."""
    names: Mapping[SSAValue, str]
    """With the `%`."""


def printed(module: ModuleOp) -> Printed:
    """The module as `plan-opt` prints it."""
    stream = _Lines()
    printer = _Recorder(stream, out=stream)
    printer.print_op(module)
    return Printed(stream.getvalue(), printer.lines, printer.names)


class _Lines(StringIO):
    """Counts the lines that are written."""

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
