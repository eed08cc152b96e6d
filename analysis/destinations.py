"""Operations of other dialects on tensors in destination style.

    %y = linalg.add ins(%a, %b : ...) outs(%d : ...) -> ...

Each result is the new contents of one operand, its destination, and has its type. The
operation's traits (`dialects/memory.py`) state whether it reads the old contents of the
destination, and which operands it may overwrite.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import destinations, overwritable, written_operands
from ..dialects.tgraph.base import TensorOp
from .functions import is_tensor


class Destination(NamedTuple):
    """The memory that a result of such an operation may use."""

    operand: int  # the destination
    start: SSAValue | None  # the destination, if the operation reads its contents
    overwritable: Sequence[int]
    """The tensors that the result may overwrite, by their positions in `reads`."""


def destinations_of(op: Operation) -> Sequence[Destination]:
    """The destination of each result; empty for an operation of another style."""
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
    """The tensors and variables that `op` reads, with those used in its regions."""
    return [*(op.operands[n] for n in operands_read(op)), *captured(op)]


def operands_read(op: Operation) -> Sequence[int]:
    """The indices of the operands that are tensors or variables, and are read."""
    empty = [n for n in written_operands(op) if is_empty(op.operands[n].owner)]
    unread = {*destinations(op), *empty}
    tensors = (n for n, value in enumerate(op.operands) if is_tensor(value.type))
    return [n for n in tensors if n not in unread]


def captured(op: Operation) -> Iterator[SSAValue]:
    """The tensors from outside that the regions of `op` use; none for tgraph."""
    for region in () if isinstance(op, TensorOp) else op.regions:
        for inner in region.walk():
            for value in inner.operands:
                if is_tensor(value.type) and not region.is_ancestor(value.owner):
                    yield value


def is_empty(op: object) -> bool:
    """Whether `op` makes a tensor without contents."""
    return isinstance(op, Operation) and name_of(op) == "tensor.empty"
