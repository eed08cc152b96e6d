"""Updates variables row by row, from a tensor whose rows are computed in sequence.

    %1 = tgraph.multiply %rows, %tenths ...
    %2 = tgraph.add %m, %1 ...
    tgraph.assign %vm, %2 : tensor<12x768x768xf32>

A row of the new contents needs that row of %rows and of %m. `Finding` finds all that
follows from %rows; `Rows` writes it for some rows, where they have been computed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from ....analysis.operations import is_view
from ....dialects.tgraph.base import (
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    typical_bytes,
    with_shape,
)
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ViewOp
from ....dialects.tgraph.structure import AssignOp, ReadOp


class Unfit(Exception):
    """What follows is left as it is."""


class Update(NamedTuple):
    """What follows from a tensor, all of it, up to the variables that it updates."""

    source: SSAValue  # the tensor
    ops: Sequence[ElementwiseOp]  # in order
    assigns: Sequence[AssignOp]
    olds: Mapping[SSAValue, SSAValue | None]  # what is read of these variables before
    given: Sequence[SSAValue]  # other tensors that are read row by row
    spread: Sequence[BroadcastInDimOp]  # tensors whose rows are all the same
    hoisted: Sequence[Operation]  # what computes these, in order

    @property
    def outside(self) -> Sequence[SSAValue]:
        """What it needs, besides the tensor and the old contents."""
        return (*self.given, *(op.inputs[0] for op in self.spread))

    @property
    def bytes(self) -> int:
        """Of the tensor."""
        return typical_bytes(tensor_type_of(self.source.type))

    def row_bytes(self, rows: int) -> int:
        """What so many rows take while they are updated, at most."""
        count = len(self.olds) + len(self.given) + len(self.assigns)
        total = shape_of(tensor_type_of(self.source.type))[0]
        return count * rows * self.bytes // total

    def hoist(self, before: Operation) -> None:
        """Moves what can be computed before an operation there."""
        for op in self.hoisted:
            op.detach()
            assert before.parent is not None
            before.parent.insert_op_before(op, before)


class Finding:
    """Looks for the updates that follow from a tensor, all of it.

    Everything is there when `first` runs. Later, `is_row_read` says, only rows of a
    variable's old contents are read that are not updated yet.
    """

    def __init__(
        self,
        source: SSAValue,
        first: Operation,
        position: Mapping[Operation, int],
        is_row_read: Callable[[Use], bool],
    ):
        self.source = source
        self.position = position
        self.is_row_read = is_row_read
        self.at = position[first]
        self.shape = shape_of(tensor_type_of(source.type))
        self.ops: dict[ElementwiseOp, None] = {}
        self.hoisted: dict[Operation, None] = {}

    def update(self) -> Update:
        """Raises `Unfit`."""
        assigns = self._find_ops()
        olds = {assign.variable: self._old(assign) for assign in assigns}
        held = {old for old in olds.values() if old is not None}
        made = {self.source, *(op.result for op in self.ops)}
        given: dict[SSAValue, None] = {}
        spread: dict[BroadcastInDimOp, None] = {}
        for value in (value for op in self.ops for value in op.inputs):
            if shape_of(tensor_type_of(value.type)) != self.shape:
                raise Unfit
            owner = value.owner
            if value in made or value in held or _is_number(owner):
                continue
            if isinstance(owner, BroadcastInDimOp) and _is_same_for_all(owner):
                spread[owner] = None
                self._hoist(owner.inputs[0])
            elif self._is_anyhow_there(value):
                given[value] = None
            else:
                raise Unfit
        return Update(
            self.source,
            sorted(self.ops, key=self.position.__getitem__),
            assigns,
            olds,
            list(given),
            list(spread),
            sorted(self.hoisted, key=self.position.__getitem__),
        )

    def _find_ops(self) -> list[AssignOp]:
        """What follows element by element, with what that needs element by element;
        returns where it ends."""
        assigns: list[AssignOp] = []
        values = [self.source]
        for value in values:  # grows
            for use in value.uses:
                op = use.operation
                if isinstance(op, AssignOp) and value is not self.source:
                    assigns.append(op)
                elif not isinstance(op, ElementwiseOp) or op.outs:
                    raise Unfit
                else:
                    values += self._added(op)
        if not assigns:
            raise Unfit
        return assigns

    def _added(self, op: ElementwiseOp) -> Iterator[SSAValue]:
        """Results of operations that are new, with those that they need."""
        pending = [op]
        while pending:
            op = pending.pop()
            if op in self.ops:
                continue
            self.ops[op] = None
            yield op.result
            for value in op.inputs:
                owner = value.owner
                if isinstance(owner, ElementwiseOp) and (
                    not self._is_before(owner) or value.has_one_use()
                ):
                    pending.append(owner)

    def _old(self, assign: AssignOp) -> SSAValue | None:
        """What is read of a variable before the loop, if nothing else is done to it."""
        old: SSAValue | None = None
        for use in assign.variable.uses:
            op = use.operation
            if isinstance(op, ReadOp) and old is None and self._is_before(op):
                old = op.result
                self._check_uses(old)
            elif op is not assign:
                raise Unfit
        return old

    def _check_uses(self, old: SSAValue) -> None:
        """Refuses a value that is read later, but for its rows."""
        for use in old.uses:
            op = use.operation
            if self.is_row_read(use):
                continue
            if is_view(op):
                self._check_uses(op.results[0])
            elif not self._is_before(op) and op not in self.ops:
                raise Unfit

    def _is_before(self, op: Operation) -> bool:
        return self.position.get(op, self.at) < self.at

    def _is_anyhow_there(self, value: SSAValue) -> bool:
        """Whether a value is there, in the caller's memory."""
        owner = value.owner
        if isinstance(owner, ReadOp):
            return self._is_before(owner)
        return isinstance(value, BlockArgument)

    def _hoist(self, value: SSAValue) -> None:
        """Notes what has to be computed before for a value; numbers only."""
        pending = [value]
        while pending:
            value = pending.pop()
            op = value.owner
            if self._is_anyhow_there(value) or op in self.hoisted:
                continue
            if (
                not isinstance(op, TensorOp)
                or prod(shape_of(tensor_type_of(value.type))) > 1
            ):
                raise Unfit
            if self._is_before(op):
                continue
            if op.regions or op.outs:
                raise Unfit
            self.hoisted[op] = None
            pending += op.operands


def _is_number(owner: Operation | Block) -> bool:
    return isinstance(owner, ConstantOp) and owner.splat is not None


def _is_same_for_all(op: BroadcastInDimOp) -> bool:
    """Whether all rows are equal."""
    return 0 not in op.broadcast_dimensions.get_values()


class Rows:
    """Writes updates of rows into a block.

    `given` are the values there of what is computed outside.
    """

    def __init__(self, block: Block, given: Mapping[SSAValue, SSAValue]):
        self.block = block
        self.given = given

    def add(
        self,
        update: Update,
        row: SSAValue,
        starts: Sequence[SSAValue],
        variables: Sequence[SSAValue],
        after: Sequence[Operation | Block] = (),
    ) -> None:
        """Updates variables, those that are assigned, in order, by some rows: as soon
        as these are computed, and after some operations."""
        views = self._views_of(row)
        source = views[0].inputs[0] if views else row
        needed = (source.owner, *(start.owner for start in starts), *after)
        self.next = self._after([op for op in needed if op is not self.block])
        for view in views:
            copy = view.clone({view.inputs[0]: source})
            copy.location = view.location
            source = self._insert(copy)
        self.starts = starts
        self.shape = shape_of(tensor_type_of(row.type))
        self.rows: dict[SSAValue, SSAValue] = {update.source: source}
        self.wholes = {value: self.given[value] for value in update.given}
        contents: list[SSAValue] = []
        for assign, variable in zip(update.assigns, variables, strict=True):
            contents.append(self._insert(ReadOp(variable)))
            if (old := update.olds[assign.variable]) is not None:
                self.wholes[old] = contents[-1]
        for op in update.ops:
            operands = [self._row(value) for value in op.inputs]
            self.rows[op.result] = self._emit(op, operands)
        changes = zip(update.assigns, variables, contents, strict=True)
        for assign, variable, whole in changes:
            changed = DynamicUpdateSliceOp(
                [whole, self.rows[assign.value], *self.starts],
                result_types=[whole.type],
            )
            store = AssignOp(variable, changed.result)
            for op in (changed, store):
                op.location = assign.location
                self.block.insert_op_before(op, self.next)

    def _insert(self, op: TensorOp | ReadOp) -> SSAValue:
        self.block.insert_op_before(op, self.next)
        return op.results[0]

    def _views_of(self, value: SSAValue) -> list[ViewOp]:
        """What makes a value of one that is computed, in order."""
        views: list[ViewOp] = []
        while isinstance(op := value.owner, ViewOp) and op.parent is self.block:
            views.append(op)
            value = op.inputs[0]
        return views[::-1]

    def _after(self, ops: Sequence[Operation | Block]) -> Operation:
        """What comes after all of these in the block."""
        after = next(op for op in reversed(list(self.block.ops)) if op in ops).next_op
        assert after is not None
        return after

    def _row(self, value: SSAValue) -> SSAValue:
        """Rows of what is computed of all rows."""
        if value not in self.rows:
            self.rows[value] = self._new_row(value)
        return self.rows[value]

    def _new_row(self, value: SSAValue) -> SSAValue:
        if whole := self.wholes.get(value):
            sizes = {"slice_sizes": ints(self.shape)}
            slice = DynamicSliceOp(
                [whole, *self.starts],
                result_types=[with_shape(tensor_type_of(value.type), self.shape)],
                properties=sizes,
            )
            return self._insert(slice)
        op = value.owner
        if isinstance(op, BroadcastInDimOp):
            return self._emit(op, [self.given[op.inputs[0]]])
        assert isinstance(op, ConstantOp)
        return self._emit(op, ())

    def _emit(self, op: TensorOp, operands: Sequence[SSAValue]) -> SSAValue:
        """An operation as one outside, on rows."""
        copy = type(op).create(
            operands=operands,
            result_types=[with_shape(tensor_type_of(op.result.type), self.shape)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            location=op.location,
        )
        return self._insert(copy)
