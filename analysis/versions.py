"""The versions of a variable: its contents between one write and the next (level 1).

    %w = tgraph.read %v                 version 0: %w
    %n = tgraph.add %w, %g outs(%v)     version 1: %n, %x
    %x = tgraph.read %v
    tgraph.assign %v, %y                version 2

NNVM's OrderMutation numbers them likewise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from xdsl.ir import Block, Operation, SSAValue

from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from .operations import is_view, operands_of, uses
from .scans import before_reshapes

Position = TypeVar("Position")


@dataclass(eq=False, slots=True)
class Version:
    """The contents of a variable from `writer` to the writer of the next version."""

    writer: Operation | None = None  # None: the initial contents
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """The tensors with these contents: results of reads, and of the writer."""
    previous: "Version | None" = None
    next: "Version | None" = None

    def insert(self) -> "Version":
        """Inserts a new version before this one."""
        assert self.previous is not None
        new = Version(previous=self.previous, next=self)
        self.previous.next = self.previous = new
        return new

    def drop(self) -> None:
        """Removes the version; its tensors become those of the previous version."""
        assert self.previous is not None
        self.previous.values += self.values
        self.previous.next = self.next
        if self.next is not None:
            self.next.previous = self.previous


def last_versions(block: Block) -> dict[SSAValue, Version]:
    """The last version of each variable that the block's operations use."""
    last: dict[SSAValue, Version] = {}

    def write(variable: SSAValue, op: Operation, contents: list[SSAValue]) -> None:
        previous = last.setdefault(variable, Version())
        last[variable] = previous.next = Version(op, contents, previous)

    for op in block.ops:
        match op:
            case ReadOp():
                last.setdefault(op.variable, Version()).values.append(op.result)
            case AssignOp():
                write(op.variable, op, [])
            case TensorOp() if op.results and (outs := operands_of(op)[1]):
                for variable, result in zip(outs, op.results, strict=True):
                    write(variable, op, [result])
            case _:
                pass
    return last


def source_of(value: SSAValue) -> SSAValue:
    """The tensor of which `value` is a view, through all views."""
    while isinstance(value.owner, Operation) and is_view(value.owner):
        value = value.owner.operands[0]
    return value


def uses_of_contents(
    value: SSAValue,
    position: Mapping[Operation, Position],
    uses_of: Callable[[SSAValue], Iterable[tuple[Operation, int]]] = uses,
) -> Iterator[tuple[Position, Operation, int | None]]:
    """Where the memory of `value` is read, through views too.

    Yields (position, operation, operand index); the index is None through a view.
    """
    stack = [(value, True)]
    while stack:
        viewed, direct = stack.pop()
        for op, index in uses_of(viewed):
            if is_view(op):
                stack.append((op.results[0], False))
            else:
                yield position[op], op, index if direct else None


def looped_into(
    version: Version,
    position: Mapping[Operation, int] | Mapping[Operation, int | Fraction],
    uses_of: Callable[[SSAValue], Iterable[tuple[Operation, int]]] = uses,
) -> SSAValue | None:
    """The result of a loop that is assigned, perhaps in another shape, if it can be
    carried in the variable.

    The variable can carry it if only the loop, for its initial value, reads the old
    contents from the loop on.
    """
    assign, before = version.writer, version.previous
    if not isinstance(assign, AssignOp) or before is None:
        return None
    result = before_reshapes(assign.value)
    loop = result.owner
    if not isinstance(loop, WhileOp):
        return None
    start = before_reshapes(loop.inputs[loop.res.index(result)])
    is_only_start = sum(source_of(value) is start for value in loop.inputs) == 1
    at = position[loop]
    if before.writer is not None and position[before.writer] >= at:
        return None
    for value in before.values:
        for read, reader, _ in uses_of_contents(value, position, uses_of):
            is_start = reader is loop and value is start and is_only_start
            if read >= at and not is_start:
                return None
    return result
