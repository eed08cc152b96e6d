"""`tgraph-fuse-updates-into-scan`: consumes the gradients that a loop stacks row by
row.

    %m = tgraph.read %vm : tensor<12x768x768xf32>
    %0:2 = tgraph.while ...              // iteration i puts a gradient into row 11 - i
    %1 = tgraph.multiply %0#1, %tenths ...
    %2 = tgraph.add %m, %1 ...
    tgraph.assign %vm, %2 : tensor<12x768x768xf32>

    %0:2 = tgraph.while ..., %m ...      // iteration i reads row 11 - i of %m, and puts
    tgraph.assign %vm, %0#1 : ...        // its sum with the gradient back there

The loop of a backward pass over equal layers stacks the gradients of their weights.
After the loop, an optimizer updates all layers at once, element by element. This pass
moves the update into the loop: each iteration consumes its own gradient, so no gradient
is stored for longer than an iteration. Every element is computed from the same elements
as before, so results are bitwise identical. The loop updates the variables in place
(tgraph-eliminate-assigns, tgraph-bufferize), and reads weights and other contents
directly from them. If an iteration writes several rows, it updates each one as soon as
its gradient is there, and reads each one as late as possible.

Each iteration of the loop must write a row of its own, or several adjacent rows,
starting with either the first or the last row.

Needs: level 1, after `cse` and before tgraph-fuse.
Leaves: level 1.
Does not: handle stacks that have other readers (as when all gradients are clipped by
their norm), variables that other operations read or write in the meantime, stacks with
few rows, or functions whose operations have streams.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from ...analysis.functions import erase_unused, tensor_functions
from ...analysis.loops import counter
from ...analysis.scans import (
    Linear,
    Stack,
    extended,
    places,
    stacks,
    without_stacks,
    without_unused,
)
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import (
    STREAM,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    typical_bytes,
    with_shape,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ...dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ViewOp
from ...dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphFuseUpdatesIntoScan(OptionalPass):
    """Updates variables inside the loop that stacks their gradients."""

    name = "tgraph-fuse-updates-into-scan"
    LOWERS_PEAK = True
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if any(STREAM in op.attributes for op in block.ops):
                remark("no update is moved: its operations have streams", func)
                continue
            at = block.first_op
            while at is not None:  # loops are made anew
                at = (_rewritten(at) if isinstance(at, WhileOp) else at).next_op


class _Update(NamedTuple):
    """What follows from a stack, all of it, up to the variables that it updates."""

    stack: Stack
    ops: Sequence[ElementwiseOp]  # in order
    assigns: Sequence[AssignOp]
    olds: Mapping[SSAValue, SSAValue | None]  # what is read of these variables before
    given: Sequence[SSAValue]  # other tensors that are read row by row
    spread: Sequence[BroadcastInDimOp]  # tensors whose rows are all the same
    hoisted: Sequence[Operation]  # what computes these, in order


class _Unfit(Exception):
    """A stack is left as it is."""


def _rewritten(loop: WhileOp) -> WhileOp:
    found = stacks(loop)
    if not found:
        return loop
    block = loop.parent
    assert block is not None
    position = {op: index for index, op in enumerate(block.ops)}
    updates: list[_Update] = []
    for stack in found:
        try:
            updates.append(_Finding(loop, stack, position).update())
        except _Unfit:
            continue
    bytes = sum(typical_bytes(loop.declared[u.stack.number]) for u in updates)
    if bytes <= max([_row_bytes(loop, update) for update in updates], default=0):
        return loop
    remark(
        f"{len(updates)} of {len(found)} values that the loop stacks update variables "
        f"row by row, which saves {bytes} bytes",
        loop,
        passed=True,
    )
    return _moved(loop, updates, position)


class _Finding:
    """Looks for the updates that follow from a stack, all of it."""

    def __init__(self, loop: WhileOp, stack: Stack, position: Mapping[Operation, int]):
        self.loop = loop
        self.stack = stack
        self.position = position
        self.at = position[loop]
        self.shape = shape_of(loop.declared[stack.number])
        self.ops: dict[ElementwiseOp, None] = {}
        self.hoisted: dict[Operation, None] = {}

    def update(self) -> _Update:
        """Raises `_Unfit`."""
        assigns = self._find_ops()
        olds = {assign.variable: self._old(assign) for assign in assigns}
        held = {old for old in olds.values() if old is not None}
        made = {self.loop.res[self.stack.number], *(op.result for op in self.ops)}
        given: dict[SSAValue, None] = {}
        spread: dict[BroadcastInDimOp, None] = {}
        for value in (value for op in self.ops for value in op.inputs):
            if shape_of(tensor_type_of(value.type)) != self.shape:
                raise _Unfit
            owner = value.owner
            if value in made or value in held or _is_number(owner):
                continue
            if isinstance(owner, BroadcastInDimOp) and _is_same_for_all(owner):
                spread[owner] = None
                self._hoist(owner.inputs[0])
            elif self._is_anyhow_there(value):
                given[value] = None
            else:
                raise _Unfit
        return _Update(
            self.stack,
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
        stack = self.loop.res[self.stack.number]
        values: list[SSAValue] = [stack]
        for value in values:  # grows
            for use in value.uses:
                op = use.operation
                if isinstance(op, AssignOp) and value is not stack:
                    assigns.append(op)
                elif not isinstance(op, ElementwiseOp) or op.outs:
                    raise _Unfit
                else:
                    values += self._added(op)
        if not assigns:
            raise _Unfit
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
                if isinstance(owner, ElementwiseOp) and not self._is_before(owner):
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
                raise _Unfit
        return old

    def _check_uses(self, old: SSAValue) -> None:
        """Refuses a value that is read after the loop, or in it but for its rows."""
        for use in old.uses:
            op = use.operation
            if isinstance(op, ViewOp) and not op.outs:
                self._check_uses(op.result)
            elif op is self.loop:
                slices = [inner.operation for inner in self._reads_of(use.index)]
                if not all(map(self._takes_row, slices)):
                    raise _Unfit
            elif not self._is_before(op) and op not in self.ops:
                raise _Unfit

    def _reads_of(self, index: int) -> Iterator[Use]:
        """Where the loop uses an input."""
        for region in self.loop.regions:
            yield from region.block.args[index].uses

    def _takes_row(self, op: Operation) -> bool:
        """Whether an operation in the body takes the row that this iteration writes."""
        if (
            not isinstance(op, DynamicSliceOp)
            or op.outs
            or op.parent is not self.loop.body.block
        ):
            return False
        counted = counter(self.loop)
        assert counted is not None
        starts = places(op, self.loop, counted)
        shape = tuple(op.slice_sizes.get_values())
        puts = self.stack.puts
        return bool(starts) and (starts[0], shape) in [(p.place, p.shape) for p in puts]

    def _is_before(self, op: Operation) -> bool:
        return self.position.get(op, self.at) < self.at

    def _is_anyhow_there(self, value: SSAValue) -> bool:
        """Whether a value is there when the loop runs, in the caller's memory."""
        owner = value.owner
        if isinstance(owner, ReadOp):
            return self._is_before(owner)
        return isinstance(value, BlockArgument)

    def _hoist(self, value: SSAValue) -> None:
        """Notes what has to be computed before the loop for a value; numbers only."""
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
                raise _Unfit
            if self._is_before(op):
                continue
            if op.regions or op.outs:
                raise _Unfit
            self.hoisted[op] = None
            pending += op.operands


def _is_number(owner: Operation | Block) -> bool:
    return isinstance(owner, ConstantOp) and owner.splat is not None


def _is_same_for_all(op: BroadcastInDimOp) -> bool:
    """Whether all rows are equal."""
    return 0 not in op.broadcast_dimensions.get_values()


def _row_bytes(loop: WhileOp, update: _Update) -> int:
    """What the rows of an update take in the loop, at most."""
    type = loop.declared[update.stack.number]
    count = len(update.olds) + len(update.given) + len(update.assigns)
    rows = max(put.shape[0] for put in update.stack.puts)
    return count * rows * typical_bytes(type) // shape_of(type)[0]


def _moved(
    loop: WhileOp, updates: Sequence[_Update], position: Mapping[Operation, int]
) -> WhileOp:
    """The loop with the updates, which are no longer after it."""
    block = loop.parent
    assert block is not None
    hoisted = dict.fromkeys(op for update in updates for op in update.hoisted)
    for op in sorted(hoisted, key=position.__getitem__):
        op.detach()
        block.insert_op_before(op, loop)
    carried: list[SSAValue] = []
    given: dict[SSAValue, None] = {}
    for update in updates:
        for assign in update.assigns:
            old = update.olds[assign.variable]
            if old is None:
                read = ReadOp(assign.variable)
                block.insert_op_before(read, loop)
                old = read.result
            carried.append(old)
        given |= dict.fromkeys((*update.given, *(op.inputs[0] for op in update.spread)))
    first = len(loop.res)
    new = extended(loop, carried, list(given))
    arguments = new.body.block.args[len(new.inputs) - len(given) :]
    rows = _Rows(new, dict(zip(given, arguments, strict=True)))
    results = iter(range(first, first + len(carried)))
    for update in updates:
        rows.add(update, [next(results) for _ in update.assigns])
    erase_unused(block)
    return without_unused(without_stacks(new, [u.stack.number for u in updates]))


class _Rows:
    """Computes rows in the body of a loop.

    `given` are the arguments for what is given from outside.
    """

    def __init__(self, loop: WhileOp, given: Mapping[SSAValue, SSAValue]):
        self.loop = loop
        self.block = loop.body.block
        self.given = given
        counted = counter(loop)
        assert counted is not None
        self.counted = counted

    def add(self, update: _Update, results: Sequence[int]) -> None:
        """Adds an update of variables, which become results of the loop."""
        pairs = list(zip(update.assigns, results, strict=True))
        slices: dict[Linear, list[DynamicSliceOp]] = {}
        for assign, number in pairs:
            if (old := update.olds[assign.variable]) is not None:
                for slice in self._read_there(old, self.block.args[number]):
                    slices.setdefault(self._place(slice), []).append(slice)
        for put in update.stack.puts:
            _, row, *starts = put.update.inputs
            own = slices.get(put.place, [])
            if own:  # known earlier
                _, *starts = own[0].inputs
            views = self._views_of(row)
            source = views[0].inputs[0] if views else row
            needed = [source.owner, *(start.owner for start in starts), *own]
            for view in views:
                view.detach()
            self.next = self._after([op for op in needed if op is not self.block])
            self.block.insert_ops_before(views, self.next)
            self._add_row(update, row, starts, pairs)
        for assign, number in pairs:
            assign.operands[1] = self.loop.res[number]

    def _views_of(self, value: SSAValue) -> list[ViewOp]:
        """What makes a value of one that is computed, in order."""
        views: list[ViewOp] = []
        while isinstance(op := value.owner, ViewOp) and op.parent is self.block:
            views.append(op)
            value = op.inputs[0]
        return views[::-1]

    def _after(self, ops: Sequence[Operation | Block]) -> Operation:
        """What comes after all of these in the body."""
        after = next(op for op in reversed(list(self.block.ops)) if op in ops).next_op
        assert after is not None
        return after

    def _place(self, op: DynamicSliceOp) -> Linear:
        """Where the rows are that an operation takes."""
        starts = places(op, self.loop, self.counted)
        assert starts
        return starts[0]

    def _add_row(
        self,
        update: _Update,
        row: SSAValue,
        starts: Sequence[SSAValue],
        pairs: Sequence[tuple[AssignOp, int]],
    ) -> None:
        """Adds the update by a row."""
        self.starts = starts
        self.shape = shape_of(tensor_type_of(row.type))
        self.rows: dict[SSAValue, SSAValue] = {self.loop.res[update.stack.number]: row}
        self.wholes = {value: self.given[value] for value in update.given}
        contents: list[SSAValue] = []
        for assign, number in pairs:
            read = ReadOp(self.block.args[number])
            self.block.insert_op_before(read, self.next)
            contents.append(read.result)
            if (old := update.olds[assign.variable]) is not None:
                self.wholes[old] = read.result
        for op in update.ops:
            operands = [self._row(value) for value in op.inputs]
            self.rows[op.result] = self._emit(op, operands)
        for (assign, number), whole in zip(pairs, contents, strict=True):
            changed = DynamicUpdateSliceOp(
                [whole, self.rows[assign.value], *self.starts],
                result_types=[whole.type],
            )
            store = AssignOp(self.block.args[number], changed.result)
            for op in (changed, store):
                op.location = assign.location
                self.block.insert_op_before(op, self.next)

    def _read_there(
        self, old: SSAValue, variable: SSAValue
    ) -> Iterator[DynamicSliceOp]:
        """What the loop reads of a variable's rows, it reads where it updates them, as
        late as it can: the updates of other rows come before."""
        inputs = self.loop.inputs
        for index in range(len(self.loop.res), len(inputs)):
            if inputs[index] is old:
                for use in list(self.block.args[index].uses):
                    slice = use.operation
                    assert isinstance(slice, DynamicSliceOp)
                    self._sink(slice)
                    read = ReadOp(variable)
                    self.block.insert_op_before(read, slice)
                    slice.operands[use.index] = read.result
                    yield slice

    def _sink(self, op: Operation) -> None:
        """Moves an operation, with views of what it gives, to where that is read."""
        users = [use.operation for use in op.results[0].uses]
        for user in users:
            if isinstance(user, ViewOp) and user.parent is self.block:
                self._sink(user)
        outer = [self.block.find_ancestor_op_in_block(user) for user in users]
        first = next((op for op in self.block.ops if op in outer), self.block.last_op)
        assert first is not None
        op.detach()
        self.block.insert_op_before(op, first)

    def _row(self, value: SSAValue) -> SSAValue:
        """A row of what is computed after the loop."""
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
            self.block.insert_op_before(slice, self.next)
            return slice.result
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
        self.block.insert_op_before(copy, self.next)
        return copy.results[0]
