"""Parses the functions in a dump of IREE's IR, and reads properties of operations.

before, after = functions(text, "model.iree.mlir")
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ...support.foreign_plan import ForeignPlanError

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

_BEFORE = "Before", "iree-stream-schedule-allocation"
_AFTER = "After", "iree-stream-layout-slices"
_HEAD = re.compile(r"^// -----// IR Dump (\w+) \w+: ([\w-]+)", re.MULTILINE)
_FUNCTION = re.compile(
    r'^( *)"util\.(?:func|initializer)"\(.*?^\1\}\)[^\n]*$', re.MULTILINE | re.DOTALL
)
_OF_ARGUMENT = re.compile(r" loc\(.*?\)(?=, %|\):$)")


class DynamicError(Exception):
    """A size is not constant."""


def functions(
    text: str, name: str
) -> "tuple[Sequence[Operation], Sequence[Operation]]":
    """The functions of the last dump before planning and of the dumps after it."""
    heads = [*_HEAD.finditer(text)]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    parts = [(h.groups(), h.end(), end) for h, end in zip(heads, ends, strict=False)]
    starts = [number for number, part in enumerate(parts) if part[0] == _BEFORE]
    afters = [p for p in parts[starts[-1] :] if p[0] == _AFTER] if starts else []
    if not afters:
        wanted = f"the IR before {_BEFORE[1]} and after {_AFTER[1]}"
        raise ForeignPlanError(f"this is not an IREE dump, expected {wanted}", name)
    _, begin, end = parts[starts[-1]]
    planned = [f for part in afters for f in _parsed(text, part[1], part[2], name)]
    return [*_parsed(text, begin, end, name)], planned


def _parsed(text: str, begin: int, end: int, name: str) -> "Iterator[Operation]":
    """Parses the functions only, without kernels."""
    from xdsl.utils.exceptions import DiagnosticException, ParseError

    from ... import dialects
    from ..mlir_text import parse_module, permissive

    context = permissive(dialects.context())
    found = [*_FUNCTION.finditer(text, begin, end)]
    if not found:
        reason = "no functions in generic form (--mlir-print-op-generic)"
        raise ForeignPlanError(reason, f"{name}:{text.count(chr(10), 0, begin) + 1}")
    for function in found:
        line = text.count("\n", 0, function.start()) + 1
        part = "\n".join(map(_without_place, function[0].split("\n")))
        try:
            module = parse_module(part, name, context, first_line=line)
        except ParseError as error:
            before = str(error.span.input.content)[: error.span.start]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            place = f"{name}:{line}:{column}"
            raise ForeignPlanError(error.msg.splitlines()[0], place) from None
        except DiagnosticException as error:
            reason = str(error).splitlines()[0]
            raise ForeignPlanError(reason, f"{name}:{line}") from None
        yield from module.body.ops


def _without_place(line: str) -> str:
    """Removes source locations except those of commands: they are most of the text."""
    if line.lstrip().startswith("^"):
        return _OF_ARGUMENT.sub("", line)
    if '"stream.cmd.' in line or not line.endswith(")"):
        return line
    return line.partition(" loc(")[0]


def op_name(op: "Operation | Block") -> str:
    """The operation's name; empty for a block, which owns its arguments."""
    from xdsl.ir import Operation

    from ...dialects.diagnostics import name_of

    return name_of(op) if isinstance(op, Operation) else ""


def all_ops(op: "Operation", *names: str) -> "Iterator[Operation]":
    return (inner for inner in op.walk() if op_name(inner) in names)


def property_of(op: Any, name: str) -> Any:
    return (op.properties | op.attributes)[name]


def operand_groups(op: "Operation") -> "Sequence[Sequence[SSAValue]]":
    """The operands, split by `operandSegmentSizes`."""
    sizes = property_of(op, "operandSegmentSizes").get_values()
    ends = accumulate(sizes, initial=0)
    return [op.operands[begin:end] for begin, end in pairwise(ends)]


def tied_operands(op: "Operation") -> Sequence[int]:
    """The operand that each result updates in place, or -1."""
    return [number.value.data for number in property_of(op, "tied_operands")]


def kernel_of(op: "Operation") -> str:
    [*_, point] = property_of(op, "entry_points")
    return point.string_value().rpartition(".")[2]


def resources_in(values: "Sequence[SSAValue]") -> "Sequence[SSAValue]":
    return [value for value in values if _type(value).startswith("!stream.resource")]


def _type(value: "SSAValue") -> str:
    return str(value.type)


def lifetime_of(value: "SSAValue") -> str:
    """The lifetime in a type: `transient` of `!stream.resource<transient>`."""
    return _type(value).partition("<")[2].rstrip(">")


def awaited(value: "SSAValue") -> "SSAValue":
    """The operand that an operation forwards as this result."""
    op: Any = value.owner
    return resources_in(op.operands)[resources_in(op.results).index(value)]


def source_of(value: "SSAValue") -> "SSAValue":
    """The value without casts and awaits."""
    while op_name(value.owner) in ("stream.timepoint.await", "stream.async.cast"):
        value = awaited(value)
    return value


def constant_of(value: "SSAValue") -> int | None:
    if op_name(value.owner) != "arith.constant":
        return None
    op: Any = value.owner
    return property_of(op, "value").value.data


def number_of(value: "SSAValue") -> int:
    if (number := constant_of(value)) is None:
        raise DynamicError
    return number
