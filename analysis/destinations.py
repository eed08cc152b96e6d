"""Operations of other dialects on tensors, in destination style.

    %y = linalg.add ins(%a, %b : ...) outs(%d : ...) -> ...

Each result is what an operand, its destination, becomes: it has the type of the
destination. The operation says by its traits (`dialects/memory.py`) whether it reads
what the destination held, and in place of which operands it may compute.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import destinations, overwritable, written_operands
from ..dialects.tgraph.base import TensorOp
from .functions import is_tensor


class Destination(NamedTuple):
    """Where a result of such an operation may lie."""

    operand: int
    start: SSAValue | None  # what it holds before, if the operation reads that
    overwritable: Sequence[int]
    """The tensors in whose memory the result may lie, by their numbers in `reads`."""


def destinations_of(op: Operation) -> Sequence[Destination]:
    """The destination of each result; none of an operation of another style."""
    written, types = written_operands(op), [result.type for result in op.results]
    if not types or [op.operands[n].type for n in written] != types:
        return ()
    if not all(map(is_tensor, types)):
        return ()
    read, elementwise = operands_read(op), overwritable(op)
    found: list[Destination] = []
    for number in written:
        start, over = None, () if found else elementwise
        if number in read:
            start, over = op.operands[number], (number,)
        same = [n for n in over if op.operands[n].type == types[len(found)]]
        over = [read.index(n) for n in same if n in read]
        found.append(Destination(number, start, over))
    return found


def reads(op: Operation) -> Sequence[SSAValue]:
    """The tensors and variables that an operation reads, in its regions too."""
    return [*(op.operands[n] for n in operands_read(op)), *captured(op)]


def operands_read(op: Operation) -> Sequence[int]:
    """The numbers of the operands that are tensors or variables and are read."""
    empty = [n for n in written_operands(op) if is_empty(op.operands[n].owner)]
    unread = {*destinations(op), *empty}
    tensors = (n for n, value in enumerate(op.operands) if is_tensor(value.type))
    return [n for n in tensors if n not in unread]


def captured(op: Operation) -> Iterator[SSAValue]:
    """The tensors from outside that an operation's regions use; tgraph's use none."""
    for region in () if isinstance(op, TensorOp) else op.regions:
        for inner in region.walk():
            for value in inner.operands:
                if is_tensor(value.type) and not region.is_ancestor(value.owner):
                    yield value


def is_empty(op: object) -> bool:
    """Whether an operation makes a tensor with no contents."""
    return isinstance(op, Operation) and name_of(op) == "tensor.empty"
