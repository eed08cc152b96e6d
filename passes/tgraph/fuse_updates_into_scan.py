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
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from ...analysis.functions import erase_unused, tensor_functions
from ...analysis.loops import counter
from ...analysis.scans import (
    Linear,
    Stack,
    extended,
    places,
    stacks,
)
from ...dialects.diagnostics import remark
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import ViewOp
from ...dialects.tgraph.structure import ReadOp, WhileOp
from ..optional import OptionalPass
from .shared.loops import rewrite_loops
from .shared.row_updates import Finding, Rows, Unfit, Update
from .shared.streams import has_streams


@dataclass(frozen=True)
class TGraphFuseUpdatesIntoScan(OptionalPass):
    """Updates variables inside the loop that stacks their gradients."""

    name = "tgraph-fuse-updates-into-scan"
    LOWERS_PEAK = True
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, block in tensor_functions(op):
            if not has_streams(func, "no update is moved"):
                rewrite_loops(block, _rewritten)


def _rewritten(loop: WhileOp) -> WhileOp:
    found = stacks(loop)
    if not found:
        return loop
    block = loop.parent
    assert block is not None
    position = {op: index for index, op in enumerate(block.ops)}
    updates: list[tuple[Stack, Update]] = []
    for stack in found:
        result, reads = loop.res[stack.number], _Reads(loop, stack).are_rows
        try:
            updates.append((stack, Finding(result, loop, position, reads).update()))
        except Unfit:
            continue
    bytes = sum(update.bytes for _, update in updates)
    row_bytes = [update.row_bytes(_rows_of(stack)) for stack, update in updates]
    if bytes <= max(row_bytes, default=0):
        return loop
    remark(
        f"{len(updates)} of {len(found)} values that the loop stacks update variables "
        f"row by row, which saves {bytes} bytes",
        loop,
        passed=True,
    )
    return _moved(loop, updates, position)


def _rows_of(stack: Stack) -> int:
    """The largest number of rows that are updated at a time."""
    return max(put.shape[0] for put in stack.puts)


class _Reads(NamedTuple):
    """A loop's reads of the variables that one of its stacks updates."""

    loop: WhileOp
    stack: Stack

    def are_rows(self, use: Use) -> bool:
        """Whether each iteration reads only the rows that it writes."""
        if use.operation is not self.loop:
            return False
        regions = self.loop.regions
        reads = [read for r in regions for read in r.block.args[use.index].uses]
        return all(self._takes_row(read.operation) for read in reads)

    def _takes_row(self, op: Operation) -> bool:
        """Whether `op`, in the body, slices a row that the same iteration writes."""
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


def _moved(
    loop: WhileOp,
    updates: Sequence[tuple[Stack, Update]],
    position: Mapping[Operation, int],
) -> WhileOp:
    """Moves the updates that follow `loop` into it. Returns the new loop."""
    block = loop.parent
    assert block is not None
    hoisted = dict.fromkeys(op for _, update in updates for op in update.hoisted)
    for op in sorted(hoisted, key=position.__getitem__):
        op.detach()
        block.insert_op_before(op, loop)
    carried: list[SSAValue] = []
    given: dict[SSAValue, None] = {}
    for _, update in updates:
        for assign in update.assigns:
            old = update.olds[assign.variable]
            if old is None:
                read = ReadOp(assign.variable)
                block.insert_op_before(read, loop)
                old = read.result
            carried.append(old)
        given |= dict.fromkeys(update.outside)
    first = len(loop.res)
    new = extended(loop, carried, list(given))
    arguments = new.body.block.args[len(new.inputs) - len(given) :]
    iteration = _Iteration(new, dict(zip(given, arguments, strict=True)))
    results = iter(range(first, first + len(carried)))
    for stack, update in updates:
        update = update._replace(source=new.res[stack.number])
        iteration.add(stack, update, [next(results) for _ in update.assigns])
    erase_unused(block)
    return new


class _Iteration:
    """Updates rows in the body of a loop.

    `given` maps values from outside to the arguments that forward them.
    """

    def __init__(self, loop: WhileOp, given: Mapping[SSAValue, SSAValue]):
        self.loop = loop
        self.block = loop.body.block
        self.rows = Rows(self.block, given)
        counted = counter(loop)
        assert counted is not None
        self.counted = counted

    def add(self, stack: Stack, update: Update, results: Sequence[int]) -> None:
        """Adds an update. The loop's `results` are assigned to its variables."""
        variables = [self.block.args[number] for number in results]
        slices: dict[Linear, list[DynamicSliceOp]] = {}
        for assign, variable in zip(update.assigns, variables, strict=True):
            if (old := update.olds[assign.variable]) is not None:
                for slice in self._read_there(old, variable):
                    slices.setdefault(self._place(slice), []).append(slice)
        for put in stack.puts:
            _, row, *starts = put.update.inputs
            own = slices.get(put.place, [])
            if own:  # these starts are computed earlier
                _, *starts = own[0].inputs
            self.rows.add(update, row, starts, variables, own)
        for assign, number in zip(update.assigns, results, strict=True):
            assign.operands[1] = self.loop.res[number]

    def _place(self, op: DynamicSliceOp) -> Linear:
        """The place of the rows that `op` slices, as a function of the iteration."""
        starts = places(op, self.loop, self.counted)
        assert starts
        return starts[0]

    def _read_there(
        self, old: SSAValue, variable: SSAValue
    ) -> Iterator[DynamicSliceOp]:
        """Makes the loop's slices of `old` read `variable`, which the loop updates, as
        late as possible: updates of other rows come before. Yields these slices."""
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
        """Moves `op`, with views of its result, to just before the first reader."""
        users = [use.operation for use in op.results[0].uses]
        for user in users:
            if isinstance(user, ViewOp) and user.parent is self.block:
                self._sink(user)
        outer = [self.block.find_ancestor_op_in_block(user) for user in users]
        first = next((op for op in self.block.ops if op in outer), self.block.last_op)
        assert first is not None
        op.detach()
        self.block.insert_op_before(op, first)
