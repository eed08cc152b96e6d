"""A function as a graph for schedulers: its operations, and the bytes they store.

`analysis/storage` decides what is stored; this module turns it into tasks, values and
sizes for planning.scheduling. Every buffer takes a multiple of the alignment. The bytes
that an operation such as a loop needs while it runs are measured in the block's order.

`MemoryGraph.reorder` puts the operations into another order. An operation that appears
several times there is rematerialized. New operations can be inserted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.tgraph.base import TensorOp, device_of, typical_bytes, value_bytes
from ..dialects.tgraph.differentiation import RECOMPUTED
from ..dialects.tgraph.indexing import DynamicUpdateSliceOp
from ..dialects.tgraph.shaping import ConstantOp, ViewOp
from ..dialects.tgraph.structure import IfOp, RegionOp, WhileOp
from ..dialects.tgraph.unused import read_arguments
from ..planning.problem import round_up
from ..planning.scheduling import Task, TaskGraph, peak_of, profile
from .caching import cached
from .concatenations import is_in_place
from .dependencies import accesses, memory_order
from .destinations import captured
from .functions import is_tensor
from .operations import operands_of, operands_within
from .storage import (
    SMALL_CONSTANT,
    Action,
    Allocate,
    Branch,
    Copy,
    Free,
    Global,
    Home,
    Loop,
    MakeView,
    Run,
    Storage,
    TensorBuffer,
    during,
    storage_of,
)
from .versions import source_of, uses_of_contents

_NAMING = Allocate | Free | Global | MakeView
"""Actions that do no work at run time."""

Order = Sequence[int]
"""Task numbers; each occurs at least once."""


class Insertion(NamedTuple):
    """A new operation with one result."""

    op: Operation
    instead_of: SSAValue | None = None  # the value that later operations replace by it


Insertions = Mapping[int, Sequence[Insertion]]
"""New operations by the position in an order before which they are inserted."""


@dataclass(eq=False)
class MemoryGraph:
    """The tasks of a block: its operations that do work, except the last one."""

    storage: Storage
    ops: Sequence[Operation]  # the operation of each task
    tasks: Sequence[Task]
    sizes: Mapping[str | None, Sequence[int]]  # of the values on each device, in bytes
    kept: Sequence[int]  # the values that are live at the end
    names: Mapping[int, SSAValue]  # the result that each value is
    graphs: Mapping[str | None, TaskGraph] = field(init=False)  # by device

    def __post_init__(self) -> None:
        self.graphs = {
            device: TaskGraph(self.tasks, sizes, self.kept)
            for device, sizes in self.sizes.items()
        }

    def peaks(self, order: Order) -> dict[str | None, int]:
        """The peak of live bytes on each device."""
        return {device: peak_of(g, order) for device, g in self.graphs.items()}

    def reorder(self, order: Order, insertions: Insertions | None = None) -> None:
        """Puts the operations into an order; repetitions become copies.

        Each view and small constant goes before its first user, or to the end if it has
        no users.
        """
        _Reordering(self.storage.block, self.ops).run(order, insertions or {})


def memory_graph(block: Block, alignment: int) -> MemoryGraph:
    """The graph of a level-1 function's block. A symbolic size counts as a typical one,
    and a value of unknown size as 0 bytes."""
    return cached(block, _graph, block, alignment)


def _graph(block: Block, alignment: int) -> MemoryGraph:
    return _Building(storage_of(block), alignment).graph()


def is_free(op: Operation) -> bool:
    """Whether an operation needs no memory: it is a view, or a constant of the module.

    A view that no strides describe may be stored nevertheless.
    """
    if isinstance(op, ConstantOp):
        bytes = value_bytes(op.result)
        return not op.outs and (op.splat is None or bytes <= SMALL_CONSTANT)
    return isinstance(op, ViewOp) and not op.outs


def _is_unread(op: Operation) -> bool:
    return all(result.first_use is None for result in op.results)


class _Building:
    """Builds the graph from the actions of each operation.

    A value of the graph is the contents of a buffer from one write to the next.
    Contents of memory that the block does not own are values of no bytes, unless the
    caller provides it only while it is used (`tgraph.on_demand`).
    """

    def __init__(self, storage: Storage, alignment: int):
        self.storage = storage
        self.alignment = alignment
        self.all = [op for op, _ in storage.steps]
        self.position = {op: index for index, op in enumerate(self.all)}
        self.ops: list[Operation] = []
        self.tasks: list[Task] = []
        self.number: dict[Operation, int] = {}  # the number of each task
        self.names: dict[int, SSAValue] = {}
        self.sizes: list[int] = []
        self.devices: list[str | None] = []
        self.inside: dict[TensorBuffer, int] = {}  # the current value in each buffer
        self.elsewhere: dict[SSAValue, int] = {}  # values in variables, by result
        self.readers: dict[int, list[int]] = {}  # the tasks that read each value
        self.counted = [Home.OWN]
        if storage.is_on_demand:
            self.counted += [Home.RESULT, Home.DONATED]
            for argument in storage.block.args:
                if is_tensor(argument.type):
                    buffer = storage.buffer_of(argument)
                    if buffer.home is Home.DONATED:
                        self.inside[buffer] = self._add_buffer(buffer)

    def graph(self) -> MemoryGraph:
        waits = memory_order(accesses(self.all))
        several: list[int] = []  # tasks with several actions, or with regions
        for at, (op, actions) in enumerate(self.storage.steps[:-1]):
            done = [a for a in actions if not isinstance(a, _NAMING)]
            if not done and isinstance(op, ViewOp | ConstantOp):
                continue
            if len(done) > 1 or isinstance(op, RegionOp):
                several.append(len(self.ops))
            self.number[op] = len(self.ops)
            self.ops.append(op)
            self.tasks.append(self._task(op, done, self._before(at, op, waits)))
            for value in self.tasks[-1].reads:
                self.readers.setdefault(value, []).append(len(self.tasks) - 1)
        numbers = map(self._value, self.all[-1].operands)
        kept = list(dict.fromkeys(n for n in numbers if n is not None))
        self._measure(several, kept)
        return MemoryGraph(
            *(self.storage, self.ops, self.tasks),
            *(self._on_devices(), kept, self.names),
        )

    def _value(self, value: SSAValue) -> int | None:
        """The graph's value that a reader of `value` currently reads; None if none."""
        place = self.storage.places.get(value)
        found = None if place is None else self.inside.get(place.buffer)
        return self.elsewhere.get(source_of(value)) if found is None else found

    def _add(self, device: str | None, bytes: int) -> int:
        self.devices.append(device)
        self.sizes.append(bytes)
        return len(self.sizes) - 1

    def _add_buffer(self, buffer: TensorBuffer) -> int:
        """A new value in a buffer."""
        size = round_up(typical_bytes(buffer.type), self.alignment)
        counted = buffer.home in self.counted
        return self._add(device_of(buffer.type), size if counted else 0)

    def _task(self, op: Operation, actions: Sequence[Action], after: list[int]) -> Task:
        numbers = map(self._value, self._used(op, actions))
        reads = dict.fromkeys(n for n in numbers if n is not None)
        overwrites: list[int | None] = []
        made: dict[TensorBuffer, int] = {}  # values that this operation writes
        taken: list[int] = []  # initial values that a loop overwrites

        def write(buffer: TensorBuffer, *, anew: bool = False) -> None:
            if buffer in made or buffer.is_variable:
                return
            if buffer in self.inside and not anew:  # it writes another part
                reads[self.inside[buffer]] = None
                return
            made[buffer] = self._add_buffer(buffer)

        for action in actions:
            match action:
                case Copy(_, target):
                    write(target.place.buffer)
                case Run(_, inputs, outs, overwritable):
                    over = [at.value for i in overwritable if (at := inputs[i]).value]
                    overwrites += map(self._value, over)
                    read = {at.place.buffer for at in inputs}
                    for at in outs:
                        write(at.place.buffer, anew=at.place.buffer in read)
                case Loop(_, _, carried):
                    for buffer in carried:
                        if buffer in self.inside and buffer not in made:
                            taken.append(self.inside[buffer])
                        write(buffer, anew=True)
                case Branch(branch):
                    for result in branch.res:
                        write(self.storage.places[result].buffer)
                case _:
                    pass
        self.inside |= made
        writes = list(made.values())
        for result in op.results:
            if result not in self.storage.places:
                continue  # a scalar
            number = made.get(self.storage.places[result].buffer)
            if number is None:
                number = self.elsewhere[result] = self._add(device_of(result.type), 0)
                writes.append(number)
            self.names[number] = result
        for value in taken:  # the loop waits for other readers of initial values
            after += self.readers.get(value, ())
        over = [n for n in overwrites if n is not None]
        return Task(list(reads), writes, list(dict.fromkeys(after)), over)

    def _used(self, op: Operation, actions: Sequence[Action]) -> Iterator[SSAValue]:
        """The operands whose contents an operation needs. A loop or a branch does not
        need operands that its regions do not read, unless they are copied, or become a
        result that is used."""
        inputs, outs = operands_of(op)
        if isinstance(op, WhileOp | IfOp):
            ahead = isinstance(op, IfOp)  # the predicate precedes the arguments
            needed = {n + ahead for n in read_arguments(op)} | set(range(ahead))
            carried = next((a.carried for a in actions if isinstance(a, Loop)), ())
            for number, buffer in enumerate(carried):
                place = self.storage.places.get(inputs[number])
                is_taken_over = place is not None and place.buffer is buffer
                if op.results[number].first_use or not is_taken_over:
                    needed.add(number)
            inputs = [inputs[number] for number in sorted(needed)]
        yield from chain(inputs, outs)

    def _before(
        self, at: int, op: Operation, waits: Sequence[Sequence[int]]
    ) -> list[int]:
        """The tasks that an operation waits for: the makers of its operands, and the
        users of variables that it writes, possibly ahead of the assignment."""
        before = list(waits[at])
        for value in op.results:
            if writer := self.storage.early.get(value):
                before += [n for n in waits[self.position[writer]] if n < at]
                before += [n for n in self._readers_of_start(writer, value) if n < at]
        tasks = [self.number[o] for n in before if (o := self.all[n]) in self.number]
        for value in operands_within(op):  # operands of a concatenation share a value
            maker = value.owner
            while isinstance(maker, ViewOp) and maker not in self.number:
                maker = maker.inputs[0].owner
            if isinstance(maker, Operation) and maker in self.number:
                task = self.number[maker]
                if (
                    self._value(value) not in self.tasks[task].writes
                    or is_in_place(op)
                    or isinstance(op, WhileOp | IfOp)  # may leave the value alone
                    or not (isinstance(op, TensorOp) or value in operands_of(op)[0])
                ):
                    tasks.append(task)
        return tasks

    def _readers_of_start(self, update: Operation, value: SSAValue) -> Iterator[int]:
        """The positions that read the initial contents of an update, if `value` is
        computed over them."""
        start, places = update.operands[0], self.storage.places
        if isinstance(update, DynamicUpdateSliceOp) and not update.outs:
            if places[start].buffer is places[value].buffer:
                for at, _, _ in uses_of_contents(start, self.position):
                    yield at

    def _measure(self, several: Sequence[int], kept: Sequence[int]) -> None:
        """Adds a value to each task in `several` for the bytes that it needs besides
        the values it reads and writes. Its size is negative if these are not all live
        throughout the task."""
        if not several:
            return
        order = range(len(self.tasks))
        live = during(self.storage, self.alignment)
        found: list[tuple[int, str | None, int]] = []  # task, device, bytes
        for device, sizes in self._on_devices().items():
            needed = live.get(device) or [0] * len(self.all)
            modeled = profile(TaskGraph(self.tasks, sizes, kept), order)
            for task in several:
                at = self.position[self.ops[task]]
                if within := needed[at] - modeled[task]:
                    found.append((task, device, within))
        for task, device, within in found:
            writes = [*self.tasks[task].writes, self._add(device, within)]
            self.tasks[task] = replace(self.tasks[task], writes=writes)

    def _on_devices(self) -> dict[str | None, list[int]]:
        return {
            device: [
                size if there == device else 0
                for size, there in zip(self.sizes, self.devices, strict=True)
            ]
            for device in dict.fromkeys(self.devices)
        }


class _Reordering:
    """Moves operations before the terminator; views follow their sources."""

    def __init__(self, block: Block, ops: Sequence[Operation]):
        assert block.last_op is not None
        self.ops = ops
        self.block = block
        self.last = block.last_op
        self.placed: set[Operation] = set()
        self.tasks = set(ops)
        self.given = {op: list(op.operands) for op in block.ops}
        self.latest: dict[SSAValue, SSAValue] = {}  # the last copy of repeated results
        self.views: dict[tuple[SSAValue, SSAValue], SSAValue] = {}
        unread = (op for op in block.ops if is_free(op) and _is_unread(op))
        self.unread = dict.fromkeys(unread)

    def run(self, order: Order, insertions: Insertions) -> None:
        for at, index in enumerate(order):
            self._insert(insertions.get(at, ()))
            op = self.ops[index]
            operands = [self._value(value) for value in self.given[op]]
            for value in captured(op):
                self._value(value)
            if op in self.placed:
                original, op = op, op.clone()
                op.location = original.location
                op.attributes[RECOMPUTED] = UnitAttr()
                self.latest.update(zip(original.results, op.results, strict=True))
            else:
                self.placed.add(op)
            self._place(op, operands)
        self._insert(insertions.get(len(order), ()))
        for op in self.unread:
            self._value(op.results[0])
        self.last.operands = [self._value(value) for value in self.last.operands]
        for op in reversed([o for o in self.block.ops if is_free(o)]):
            if _is_unread(op) and op not in self.unread:
                op.detach()
                op.erase()

    def _insert(self, insertions: Sequence[Insertion]) -> None:
        for insertion in insertions:
            self._place(insertion.op, insertion.op.operands)
            if insertion.instead_of is not None:
                self.latest[insertion.instead_of] = insertion.op.results[0]

    def _value(self, value: SSAValue) -> SSAValue:
        """The value to read for `value` at this point; makes missing views."""
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
