"""A block's operations and what they read, also once groups of them are fusions.

    operations = Operations(block)            as they are
    operations = Operations(block, groups)    with each group as the fusion it becomes

A fusion stands where its group's last operation, the root, does. Of the others in a
group only those are left that somebody outside reads.
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
    """Operations that are computed as one, as a `tgraph.fusion` of them will be."""

    ops: Sequence[TensorOp]  # in order; other groups may repeat all but the last
    inputs: Sequence[SSAValue]
    overwritable: Sequence[int]  # what `TensorOp.overwritable` says of the fusion

    @property
    def root(self) -> TensorOp:
        """The operation whose result is the group's."""
        return self.ops[-1]


class Operations:
    """The operations of a block, by position."""

    def __init__(self, block: Block, groups: Sequence[Fused] = ()):
        self.block = block
        self.ops: Sequence[Operation] = list(block.ops)
        self.position = {op: index for index, op in enumerate(self.ops)}
        self.inputs: list[Sequence[SSAValue]] = [()] * len(self.ops)
        """What each reads; nothing if it is not left."""
        self.outs: list[Sequence[SSAValue]] = [()] * len(self.ops)
        """The variables that each computes into."""
        self.is_left = [True] * len(self.ops)
        self._groups: dict[Operation, list[Fused]] = {}  # that an operation is in
        self._overwritable: dict[Operation, Sequence[int]] = {}
        for group in groups:
            for op in group.ops:
                self._groups.setdefault(op, []).append(group)
        self._read()

    def group_of(self, op: Operation) -> Fused | None:
        """The group that stands where this operation does, its root."""
        found = self._groups.get(op)
        return found[0] if found and found[0].root is op else None

    def overwritable(self, op: Operation) -> Sequence[int]:
        """The inputs whose buffer the operation's first result may take over."""
        if group := self.group_of(op):
            return group.overwritable
        if op not in self._overwritable:
            self._overwritable[op] = _overwritable(op)
        return self._overwritable[op]

    def uses(self, value: SSAValue) -> Iterator[tuple[Operation, int]]:
        """Who reads a value, as which operand."""
        for use in value.uses:
            op = use.operation
            for group in self._groups.get(op, ()):
                if value in group.inputs:
                    yield group.root, group.inputs.index(value)
            if self.group_of(op) is None and self.is_left[self.position[op]]:
                yield op, use.index

    def _read(self) -> None:
        """Fills in what is read, and what is left, from the last operation up."""
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
        """Whether an operation's result is another way to see what it reads."""
        return isinstance(self.ops[at], ViewOp) and not self.outs[at]


def operands_of(op: Operation) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """What an operation reads, and the variables that it computes into."""
    if not isinstance(op, TensorOp):
        return reads(op), ()
    values = contents.operands_of(op)
    count = len(values)
    while count and type(values[count - 1].type) is VariableType:
        count -= 1
    if count == len(values):  # the rule: slices are made in Python
        return values, ()
    return values[:count], values[count:]


def members(op: Operation) -> Iterable[Operation]:
    """The operations that are computed together: those in a fusion, or one alone."""
    return op.body.block.ops if isinstance(op, FusionOp) else (op,)


def contracts(op: Operation | Block) -> bool:
    """Whether the operation is a product or a convolution, or a group with one."""
    return isinstance(op, Operation) and any(
        isinstance(inner, CONTRACTIONS) for inner in members(op)
    )


def operands_within(op: Operation) -> Iterator[SSAValue]:
    """The operands of an operation and of those in its regions."""
    for inner in (op,) if isinstance(op, TensorOp) else op.walk():
        yield from inner.operands


def _overwritable(op: Operation) -> Sequence[int]:
    if isinstance(op, TensorOp):
        return op.overwritable()
    first, *_ = destinations_of(op)
    return first.overwritable


def is_view(op: Operation) -> TypeGuard[ViewOp]:
    """Whether the operation's result is another way to see what it reads."""
    return isinstance(op, ViewOp) and not operands_of(op)[1]


def uses(value: SSAValue) -> Iterator[tuple[Operation, int]]:
    """Who reads a value, as which operand."""
    return ((use.operation, use.index) for use in value.uses)
