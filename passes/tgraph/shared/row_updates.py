"""Updates variables row by row, from a tensor whose rows are computed in sequence.

    %1 = tgraph.multiply %rows, %tenths ...
    %2 = tgraph.add %m, %1 ...
    tgraph.assign %vm, %2 : tensor<12x768x768xf32>

A row of the new contents needs only the same row of %rows and of %m. `Finding` finds
all operations that depend on %rows. `Rows` writes them for some rows, right after these
are computed.
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
    value_bytes,
    with_shape,
)
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ViewOp
from ....dialects.tgraph.structure import AssignOp, ReadOp


class Unfit(Exception):
    """Raised if the update has to stay as it is."""


class Update(NamedTuple):
    """All operations that depend on a tensor, up to the variables that they update."""

    source: SSAValue  # the tensor
    ops: Sequence[ElementwiseOp]  # in order
    assigns: Sequence[AssignOp]
    olds: Mapping[SSAValue, SSAValue | None]  # old contents by variable, where read
    given: Sequence[SSAValue]  # other tensors that are read row by row
    spread: Sequence[BroadcastInDimOp]  # tensors whose rows are all the same
    hoisted: Sequence[Operation]  # operations for the inputs of these, in order

    @property
    def outside(self) -> Sequence[SSAValue]:
        """The values that the update needs besides the tensor and the old contents."""
        return (*self.given, *(op.inputs[0] for op in self.spread))

    @property
    def bytes(self) -> int:
        """The bytes of the tensor."""
        return value_bytes(self.source)

    def row_bytes(self, rows: int) -> int:
        """The most bytes that `rows` rows take while they are updated."""
        count = len(self.olds) + len(self.given) + len(self.assigns)
        total = shape_of(tensor_type_of(self.source.type))[0]
        return count * rows * self.bytes // total

    def hoist(self, before: Operation) -> None:
        """Moves the operations in `hoisted` to before `before`."""
        for op in self.hoisted:
            op.detach()
            assert before.parent is not None
            before.parent.insert_op_before(op, before)


class Finding:
    """Looks for the updates that depend on a tensor.

    All other values must be available when `first` runs. A later use of a variable's
    old contents must satisfy `is_row_read`: it reads only rows that are not updated
    yet.
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
        """The updates. Raises `Unfit` if they cannot be computed row by row."""
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
            elif self._is_in_callers_memory(value):
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
        """Finds the elementwise operations that depend on the tensor, and those that
        they need. Returns the assignments at their ends."""
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
        """Adds `op` and the elementwise operations that it needs. Yields the results of
        new ones."""
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
        """The contents of a variable that are read before `first`, or None. Raises
        `Unfit` if the variable has other uses than this read and `assign`."""
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
        """Raises `Unfit` if the old contents are read later, except for single rows."""
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

    def _is_in_callers_memory(self, value: SSAValue) -> bool:
        """Whether a value is in the caller's memory, and so available at no cost."""
        owner = value.owner
        if isinstance(owner, ReadOp):
            return self._is_before(owner)
        return isinstance(value, BlockArgument)

    def _hoist(self, value: SSAValue) -> None:
        """Notes the operations to hoist in order to compute `value` before `first`.
        Raises `Unfit` if they compute more than single numbers."""
        pending = [value]
        while pending:
            value = pending.pop()
            op = value.owner
            if self._is_in_callers_memory(value) or op in self.hoisted:
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
    """Whether all rows of the broadcast are equal."""
    return 0 not in op.broadcast_dimensions.get_values()


class Rows:
    """Writes updates of rows into a block.

    `given` maps values from outside to their values in the block.
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
        """Updates `variables`, in the order of the update's assignments, for the rows
        in `row`: right after these, the starts, and the operations in `after`."""
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
        """The views, in order, between the operation that computes a value and it."""
        views: list[ViewOp] = []
        while isinstance(op := value.owner, ViewOp) and op.parent is self.block:
            views.append(op)
            value = op.inputs[0]
        return views[::-1]

    def _after(self, ops: Sequence[Operation | Block]) -> Operation:
        """The operation that follows the last of `ops` in the block."""
        after = next(op for op in reversed(list(self.block.ops)) if op in ops).next_op
        assert after is not None
        return after

    def _row(self, value: SSAValue) -> SSAValue:
        """The rows of `value`, which has all rows outside."""
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
        """Inserts a copy, on rows, of an operation outside."""
        copy = type(op).create(
            operands=operands,
            result_types=[with_shape(tensor_type_of(op.result.type), self.shape)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            location=op.location,
        )
        return self._insert(copy)
