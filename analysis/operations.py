"""The operations of a block and their operands, with groups of them taken as fusions.

    operations = Operations(block)            the block as it is
    operations = Operations(block, groups)    each group taken as one fusion

A fusion is at the position of its group's last operation, the root. The other
operations of a group remain only if operations outside of the group use their results.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from xdsl.ir import Block, Operation, SSAValue

from ..dialects import contents
from ..dialects.tgraph.base import TensorOp, VariableType
from ..dialects.tgraph.fusing import CONTRACTIONS
from ..dialects.tgraph.shaping import ViewOp
from ..dialects.tgraph.structure import FusionOp
from .destinations import destinations_of, reads


class Fused(NamedTuple):
    """Operations that will be computed together, as one `tgraph.fusion`."""

    ops: Sequence[TensorOp]  # in order; all but the last may be in other groups, too
    inputs: Sequence[SSAValue]
    overwritable: Sequence[int]  # that of the fusion (`TensorOp.overwritable`)

    @property
    def root(self) -> TensorOp:
        """The operation that computes the group's result."""
        return self.ops[-1]


class Operations:
    """The operations of a block, by position."""

    def __init__(self, block: Block, groups: Sequence[Fused] = ()):
        self.block = block
        self.ops: Sequence[Operation] = list(block.ops)
        self.position = {op: index for index, op in enumerate(self.ops)}
        self.inputs: list[Sequence[SSAValue]] = [()] * len(self.ops)
        """The operands that each operation reads; empty if it does not remain."""
        self.outs: list[Sequence[SSAValue]] = [()] * len(self.ops)
        """The variables that each operation writes."""
        self.is_left = [True] * len(self.ops)
        self._groups: dict[Operation, list[Fused]] = {}  # the groups of each operation
        self._overwritable: dict[Operation, Sequence[int]] = {}
        for group in groups:
            for op in group.ops:
                self._groups.setdefault(op, []).append(group)
        self._read()

    def group_of(self, op: Operation) -> Fused | None:
        """The group of which `op` is the root; None if there is none."""
        found = self._groups.get(op)
        return found[0] if found and found[0].root is op else None

    def overwritable(self, op: Operation) -> Sequence[int]:
        """The inputs whose buffer the first result of `op` may take over."""
        if group := self.group_of(op):
            return group.overwritable
        if op not in self._overwritable:
            self._overwritable[op] = _overwritable(op)
        return self._overwritable[op]

    def uses(self, value: SSAValue) -> Iterator[tuple[Operation, int]]:
        """The operations that read `value`, each with the operand index."""
        for use in value.uses:
            op = use.operation
            for group in self._groups.get(op, ()):
                if value in group.inputs:
                    yield group.root, group.inputs.index(value)
            if self.group_of(op) is None and self.is_left[self.position[op]]:
                yield op, use.index

    def _read(self) -> None:
        """Determines inputs and remaining operations, from the last operation up."""
        read: set[SSAValue] = set()
        for at in range(len(self.ops) - 1, -1, -1):
            op = self.ops[at]
            inputs, self.outs[at] = operands_of(op)
            if op in self._groups:
                group = self.group_of(op)
                if group:
                    inputs = group.inputs
                elif read.isdisjoint(op.results):
                    self.is_left[at] = False
                    continue
            self.inputs[at] = inputs
            if self._groups:
                read.update(inputs)

    def is_view(self, at: int) -> bool:
        """Whether the operation at position `at` makes a view of its operand."""
        return isinstance(self.ops[at], ViewOp) and not self.outs[at]


def operands_of(op: Operation) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """The operands that an operation reads, and the variables that it writes."""
    if not isinstance(op, TensorOp):
        return reads(op), ()
    values = contents.operands_of(op)
    count = len(values)
    while count and type(values[count - 1].type) is VariableType:
        count -= 1
    if count == len(values):  # usual; avoids slicing, which runs in Python
        return values, ()
    return values[:count], values[count:]


def members(op: Operation) -> Iterable[Operation]:
    """The operations that are computed together: those in a fusion, or `op` itself."""
    return op.body.block.ops if isinstance(op, FusionOp) else (op,)


def contracts(op: Operation | Block) -> bool:
    """Whether `op` is a product or a convolution, or a fusion with one."""
    return isinstance(op, Operation) and any(
        isinstance(inner, CONTRACTIONS) for inner in members(op)
    )


def operands_within(op: Operation) -> Iterator[SSAValue]:
    """The operands of `op` and of the operations nested in it."""
    for inner in (op,) if isinstance(op, TensorOp) else op.walk():
        yield from inner.operands


def _overwritable(op: Operation) -> Sequence[int]:
    if isinstance(op, TensorOp):
        return op.overwritable()
    first, *_ = destinations_of(op)
    return first.overwritable


def is_view(op: Operation) -> TypeGuard[ViewOp]:
    """Whether `op` makes a view of its operand."""
    return isinstance(op, ViewOp) and not operands_of(op)[1]


def uses(value: SSAValue) -> Iterator[tuple[Operation, int]]:
    """The operations that read `value`, each with the operand index."""
    return ((use.operation, use.index) for use in value.uses)
