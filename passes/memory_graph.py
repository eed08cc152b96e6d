"""A function as a graph for planning: its operations, and the bytes that they store.

What is stored is counted as tgraph-bufferize will do it: views cost nothing, unless no
strides can say them; results and variables lie in the caller's memory; an operand may
be overwritten where its operation allows it; contents of a variable that are read after
it was written are copied before. Every buffer takes a multiple of the alignment. Of
loops and branches it is known only what goes in and what comes out.

`MemoryGraph.reorder` brings the operations into another order, in which some may appear
several times: those are computed again. New operations can be put in between.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from tensorplan.analysis.storage import SMALL_CONSTANT
from tensorplan.dialects.tgraph.base import (
    TensorOp,
    device_of,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from tensorplan.dialects.tgraph.differentiation import RECOMPUTED
from tensorplan.dialects.tgraph.shaping import (
    ConstantOp,
    ReshapeOp,
    ViewOp,
)
from tensorplan.dialects.tgraph.structure import AssignOp, ReadOp
from tensorplan.passes.concatenations import is_in_place, part_layout, parts
from tensorplan.passes.fusion.groups import has_destination
from tensorplan.passes.layout import Layout
from tensorplan.passes.memory.dependencies import accesses, memory_order
from tensorplan.passes.updates import updates
from tensorplan.planning.scheduling import Graph, Task, peak_of

Order = Sequence[int]
"""Numbers of tasks, each at least once."""


class Insertion(NamedTuple):
    """A new operation with one result."""

    op: Operation
    instead_of: SSAValue | None = None  # what later operations read its result for


Insertions = Mapping[int, Sequence[Insertion]]
"""New operations ahead of positions of an order."""


@dataclass(eq=False)
class MemoryGraph:
    """The tasks of a block: the operations that do something, without the last."""

    block: Block
    ops: Sequence[Operation]  # of the tasks
    tasks: Sequence[Task]
    sizes: Mapping[str | None, Sequence[int]]  # bytes of the values, on each device
    kept: Sequence[int]  # values that are live at the end
    names: Sequence[SSAValue]  # of the values
    graphs: Mapping[str | None, Graph] = field(init=False)  # of each device

    def __post_init__(self) -> None:
        self.graphs = {
            device: Graph(self.tasks, sizes, self.kept)
            for device, sizes in self.sizes.items()
        }

    def peaks(self, order: Order) -> dict[str | None, int]:
        """The most live bytes on each device."""
        return {device: peak_of(g, order) for device, g in self.graphs.items()}

    def reorder(self, order: Order, insertions: Insertions | None = None) -> None:
        """Puts the operations into an order, repetitions as copies of the first.

        Each view and small constant goes before its first user.
        """
        _Reordering(self.block, self.ops).run(order, insertions or {})


def memory_graph(block: Block, alignment: int) -> MemoryGraph:
    """The graph of a level-1 function's block; values without static sizes count 0."""
    return _Building(block, alignment).graph()


def is_free(op: Operation) -> bool:
    """Whether it is only another way to see memory that is there anyhow.

    A view of a view may have to be stored all the same.
    """
    if isinstance(op, ConstantOp):
        return not has_destination(op) and (
            op.splat is None or _bytes(op.results[0]) <= SMALL_CONSTANT
        )
    return isinstance(op, ViewOp) and not has_destination(op)


def _bytes(value: SSAValue) -> int:
    return typical_bytes(tensor_type_of(value.type))


class _Building:
    def __init__(self, block: Block, alignment: int):
        self.block = block
        self.alignment = alignment
        self.all = list(block.ops)
        self.position = {op: index for index, op in enumerate(self.all)}
        self.in_callers_memory = set(_computed_into_results(block))
        self.parts = {
            value: part
            for value, part in parts(block).items()
            if value not in self.in_callers_memory
        }
        self.updates = {
            value: op
            for value, op in updates(block).items()
            if value not in self.in_callers_memory and value not in self.parts
        }
        self.in_callers_memory.update(self.updates)
        self.values: list[SSAValue] = []
        self.sizes: list[int] = []
        self.numbers: dict[SSAValue, int] = {}  # of what a task has written
        self.sources: dict[SSAValue, SSAValue] = {}  # of views
        self.layouts: dict[SSAValue, Layout] = {}  # of views
        self.contents: dict[SSAValue, list[SSAValue]] = {}  # of variables, by now

    def graph(self) -> MemoryGraph:
        last = self.block.last_op
        assert last is not None
        ops: list[Operation] = []
        tasks: list[Task] = []
        waits = memory_order(accesses(self.all))
        number: dict[int, int] = {}  # of the tasks, by position
        for at, op in enumerate(self.all):
            if op is last or self._is_view(op):
                continue
            number[at] = len(ops)
            after = [number[other] for other in waits[at] if other in number]
            after += [number[self.position[made]] for made in self._joined(op)]
            for value in op.results:
                if update := self.updates.get(value):  # writes the variable early
                    others = waits[self.position[update]]
                    after += [number[n] for n in others if n < at and n in number]
            ops.append(op)
            tasks.append(self._task(op, after))
        kept = dict.fromkeys(n for v in last.operands if (n := self._number(v)) >= 0)
        return MemoryGraph(
            self.block, ops, tasks, self._on_devices(), list(kept), self.values
        )

    def _on_devices(self) -> dict[str | None, list[int]]:
        devices = [device_of(value.type) for value in self.values]
        return {
            device: [
                size if there == device else 0
                for size, there in zip(self.sizes, devices, strict=True)
            ]
            for device in dict.fromkeys(devices)
        }

    def _is_view(self, op: Operation) -> bool:
        """Whether it stores nothing; if so, notes what its result is a view of."""
        if not is_free(op):
            return False
        if not isinstance(op, ViewOp):
            return True
        if op.results[0] in self.parts:
            return False
        viewed, result = op.operands[0], op.results[0]
        layout = self._layout(viewed).viewed(op)
        if layout is None:  # it is put in order first
            return False
        self.sources[result] = self._source(viewed)
        self.layouts[result] = layout
        return True

    def _source(self, value: SSAValue) -> SSAValue:
        value = self.sources.get(value, value)
        while value in self.parts:
            value = self.parts[value][0].result
        return value

    def _joined(self, op: Operation) -> Iterator[Operation]:
        """What computes the parts of concatenations, or the concatenations, that an
        operation reads, through views too: all of these have one memory, which is
        there when the first part is."""
        for value in op.operands:
            while value in self.sources:
                value = cast(Operation, value.owner).operands[0]
            owner = value.owner
            if isinstance(owner, Operation) and (
                value in self.parts or is_in_place(owner)
            ):
                yield owner

    def _layout(self, value: SSAValue) -> Layout:
        if value in self.layouts:
            return self.layouts[value]
        if value in self.parts:
            part = self.parts[value]
            return part_layout(self._layout(part[0].result), part)
        return Layout.contiguous(shape_of(tensor_type_of(value.type)))

    def _number(self, value: SSAValue) -> int:
        """Of what a value lies in; -1 if nothing is stored for it."""
        return self.numbers.get(self._source(value), -1)

    def _add(self, value: SSAValue, bytes: int) -> int:
        self.values.append(value)
        self.sizes.append(-(-bytes // self.alignment) * self.alignment)
        return len(self.sizes) - 1

    def _task(self, op: Operation, after: Sequence[int]) -> Task:
        operands = op.operands
        numbers = [self._number(value) for value in operands]
        reads = [number for number in dict.fromkeys(numbers) if number >= 0]
        is_stored = isinstance(op, TensorOp) and not has_destination(op)
        saved = self._saved(op)
        if is_in_place(op) or (op.results and op.results[0] in self.parts):
            return self._joining(op.results[0], reads, after)
        writes: list[int] = []
        for result in op.results:
            stored = is_stored and result not in self.in_callers_memory
            self.numbers[result] = self._add(result, _bytes(result) if stored else 0)
            writes.append(self.numbers[result])
        overwrites: list[int] = []
        if writes and (size := self.sizes[writes[0]]):
            same = [n for n in reads if self.sizes[n] == size]
            if same:
                overwrites = [numbers[i] for i in self._overwritten(op, same)]
        self._note_contents(op)
        return Task(reads, [*writes, *saved], after, overwrites)

    def _joining(self, value: SSAValue, reads: list[int], after: Sequence[int]) -> Task:
        """Writes into a concatenation: what comes first makes room for all of it."""
        whole = self._source(value)
        if whole in self.numbers:
            number = self.numbers[whole]
            return Task(list(dict.fromkeys([*reads, number])), (), after)
        stored = whole not in self.in_callers_memory
        self.numbers[whole] = self._add(whole, _bytes(whole) if stored else 0)
        return Task(reads, [self.numbers[whole]], after)

    def _overwritten(self, op: Operation, same: Sequence[int]) -> Iterator[int]:
        """The operands, among some, whose buffer the first result may take over."""
        assert isinstance(op, TensorOp)
        element = tensor_type_of(op.results[0].type).element_type
        allowed = op.overwritable()
        operands = op.operands
        for index in allowed:
            value = operands[index]
            source = self._source(value)
            if (
                self.numbers.get(source) in same
                and tensor_type_of(value.type).element_type == element
                and self._is_whole(value)
                and all(
                    self._source(other) is not source
                    or (other is value and i in allowed)
                    for i, other in enumerate(operands)
                )
            ):
                yield index

    def _is_whole(self, value: SSAValue) -> bool:
        """Whether a value is all of its buffer, in order."""
        if value not in self.layouts and value not in self.parts:
            return True
        layout = self._layout(value)
        buffer = shape_of(tensor_type_of(self._source(value).type))
        return layout.is_contiguous and prod(layout.shape) == prod(buffer)

    # Variables

    def _note_contents(self, op: Operation) -> None:
        if isinstance(op, ReadOp):
            self.contents.setdefault(op.variable, []).append(op.result)
        elif isinstance(op, TensorOp) and has_destination(op):
            for variable, result in zip(op.outs, op.results, strict=True):
                self.contents[variable] = [result]

    def _saved(self, op: Operation) -> Sequence[int]:
        """What is copied before an operation writes variables, as further values."""
        if isinstance(op, AssignOp):
            variables: Sequence[SSAValue] = (op.variable,)
            if self._is_held(op):
                return ()
        elif isinstance(op, TensorOp) and has_destination(op):
            variables = op.outs
        else:
            return ()
        result: list[int] = []
        for variable in variables:
            needed = [
                value
                for value in self.contents.pop(variable, ())
                if self._is_needed(value, op)
            ]
            if needed:
                in_result = any(value in self.in_callers_memory for value in needed)
                number = self._add(needed[0], 0 if in_result else _bytes(needed[0]))
                self.numbers.update(dict.fromkeys(needed, number))
                result.append(number)
        return result

    def _is_held(self, op: AssignOp) -> bool:
        """Whether the variable holds the value already."""
        held = self.contents.get(op.variable, ())
        return self._source(op.value) in held and self._is_whole(op.value)

    def _is_needed(self, value: SSAValue, op: Operation) -> bool:
        """Whether contents are read after, or while, an operation overwrites them."""
        now = self.position[op]
        stack = [value]
        while stack:
            value = stack.pop()
            for use in value.uses:
                user = use.operation
                at = self.position[user]
                if user.results and user.results[0] in self.sources:
                    stack.append(user.results[0])
                elif at > now:
                    return True
                elif at == now and not (
                    isinstance(op, TensorOp)
                    and use.index in op.overwritable()
                    and self._layout(value).is_contiguous
                ):
                    return True
        return False


def _computed_into_results(block: Block) -> Iterator[SSAValue]:
    """The values that are computed straight into the memory of a result."""
    last = block.last_op
    if not isinstance(last, ReturnOp):
        return
    for value in last.operands:
        while isinstance(value.owner, ReshapeOp):
            value = value.owner.inputs[0]
        yield value


class _Reordering:
    """Places operations before the last one; views follow what they are views of."""

    def __init__(self, block: Block, ops: Sequence[Operation]):
        assert block.last_op is not None
        self.ops = ops
        self.block = block
        self.last = block.last_op
        self.placed: set[Operation] = set()
        self.tasks = set(ops)
        self.given = {op: list(op.operands) for op in block.ops}
        self.latest: dict[SSAValue, SSAValue] = {}  # where a task was repeated
        self.views: dict[tuple[SSAValue, SSAValue], SSAValue] = {}

    def run(self, order: Order, insertions: Insertions) -> None:
        for at, index in enumerate(order):
            self._insert(insertions.get(at, ()))
            op = self.ops[index]
            operands = [self._value(value) for value in self.given[op]]
            if op in self.placed:
                original, op = op, op.clone()
                op.location = original.location
                op.attributes[RECOMPUTED] = UnitAttr()
                self.latest.update(zip(original.results, op.results, strict=True))
            else:
                self.placed.add(op)
            self._place(op, operands)
        self._insert(insertions.get(len(order), ()))
        self.last.operands = [self._value(value) for value in self.last.operands]
        for op in reversed([o for o in self.block.ops if is_free(o)]):
            if all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()

    def _insert(self, insertions: Sequence[Insertion]) -> None:
        for insertion in insertions:
            self._place(insertion.op, insertion.op.operands)
            if insertion.instead_of is not None:
                self.latest[insertion.instead_of] = insertion.op.results[0]

    def _value(self, value: SSAValue) -> SSAValue:
        """What is read for a value at this point; makes the view that is missing."""
        views: list[Operation] = []
        while (
            isinstance(op := value.owner, Operation)
            and op not in self.tasks
            and op.parent is self.block
        ):
            views.append(op)
            if not op.operands:
                break
            value = self.given[op][0]
        found = self.latest.get(value, value)
        for op in reversed(views):
            viewed, result = found, op.results[0]
            if op in self.placed and (not op.operands or op.operands[0] is viewed):
                found = result
            elif op in self.placed:
                found = self.views.get((result, viewed)) or self._viewed(op, viewed)
            else:
                self.placed.add(op)
                self._place(op, op.operands and [viewed])
                found = result
        return found

    def _viewed(self, op: Operation, viewed: SSAValue) -> SSAValue:
        copy = op.clone()
        copy.location = op.location
        self._place(copy, [viewed])
        self.views[op.results[0], viewed] = copy.results[0]
        return copy.results[0]

    def _place(self, op: Operation, operands: Sequence[SSAValue]) -> None:
        if list(op.operands) != list(operands):
            op.operands = operands
        if op.parent is self.block:
            op.detach()
        self.block.insert_op_before(op, self.last)
