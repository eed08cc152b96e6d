"""`tgraph-offload`: moves values to another memory between two uses, to meet a budget.

    %a = tgraph.exponential %x : tensor<1024xf32, "cpu:0">
    %b = tgraph.dot_general %a, ...          // %a is read, and much is live from here
    ...
    %z = tgraph.multiply %y, %a : tensor<1024xf32, "cpu:0">

    %a = tgraph.exponential %x : tensor<1024xf32, "cpu:0">
    %b = tgraph.dot_general %a, ...
    %0 = tgraph.device_copy %a : ... -> tensor<1024xf32, "cpu:1">
    ...
    %1 = tgraph.device_copy %0 : ... -> tensor<1024xf32, "cpu:0">
    %z = tgraph.multiply %y, %1 : tensor<1024xf32, "cpu:0">

The bytes of %a are free between its two readers. The pass counts live bytes as
tgraph-bufferize will store them (analysis/memory_graph.py), and lowers the peak until
plan-memory meets the budget (passes/tgraph/shared/fitting.py).
planning/scheduling/residency.py chooses the values, and planning/scheduling/offload.py
the times. As in XLA's memory-space assignment, a copy overlaps with operations that
take at least as long, both estimated from types, unless there is too little memory for
that.

Without options, the budgets come from the module's description of its target
(dialects/target_memory.py). The budget of a memory is its capacity, less the bytes of
arguments and results there, if there are copies to a larger memory. Its values go to
the larger memory with the fastest copies. No operation runs during a copy that is not
asynchronous.

The lifetime of a copy's operand ends, and that of its result starts, at the position of
the copy. Copies run in parallel with other operations, in a queue of their own
(runtime/devices/order.py). A copy to the other device starts as soon as its operand is
computed; only the operation that reuses those bytes waits for it. The arenas of both
devices are planned as usual. Results are bitwise identical. Remarks report the values
that are moved, and when.

Needs: level 1 with devices, after `canonicalize`, which removes copies to another
device and back. Preferably after tgraph-schedule and tgraph-rematerialize.
Leaves: level 1.
Does not: move arguments, variables, and results, which are in the caller's memory (an
argument can be placed on the other device instead); move saved contents of variables,
concatenations in place, or values stored inside loops and branches; change functions
whose operations have streams; limit the other device's arena; or fail if it misses the
budget. In that case, the pass leaves the lowest peak that it found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...analysis.concatenations import is_in_place
from ...analysis.cost import time_to_copy, times
from ...analysis.dependencies import queue_of
from ...analysis.functions import is_tensor, tensor_functions
from ...analysis.memory_graph import Insertion, MemoryGraph, memory_graph
from ...dialects.diagnostics import LocatedError, place_of, remark
from ...dialects.target_memory import slower_memory, target_memories
from ...dialects.tgraph.base import (
    device_of,
    on_device,
    tensor_type_of,
    typical_bytes,
)
from ...dialects.tgraph.shaping import DeviceCopyOp
from ...planning.scheduling.offload import Move, offload
from ...planning.scheduling.residency import cheapest
from ..optional import OptionalPass
from ..options import Budget, Placing, check_offload
from .rematerialize import change_of_peak
from .shared.fitting import Peaks, fit, live_peaks
from .shared.streams import has_streams


@dataclass(frozen=True)
class TGraphOffload(OptionalPass, Placing):
    """Moves values to another device and back, until a budget is met.

    budget: the bytes that the arena may have, such as 64MiB; by default the capacity of
        the memory.
    device: the device whose live bytes to reduce; by default each memory of the target.
    to: the device that holds the values in the meantime.
    exact: whether to prove that the copies of a small function take the least time;
        needs the extra `exact`.
    """

    name = "tgraph-offload"
    IDEMPOTENT = False

    budget: int | str | None = None
    device: str = ""
    to: str = ""
    exact: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [self.budget is not None, bool(self.device), bool(self.to)]
        if any(given) and not all(given):
            raise ValueError(
                "expected all or none of the options budget, device and to"
            )
        if self.budget is not None:
            Budget(self.budget)
            check_offload(self.device, self.to)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, _ in tensor_functions(op):
            if not (routes := list(self._routes(func))):
                continue
            if has_streams(func, "nothing is moved"):
                continue
            if None in live_peaks(func.body.block, self.alignment):
                remark("nothing is moved: its tensors have no devices", func)
                continue
            for route, budget in routes:
                placing = replace(self, alignment=route.alignment)
                peaks = fit(func, budget, (route.device,), route.move, placing)
                before, after = (peak.get(route.device, 0) for peak in peaks)
                if before > budget:
                    text = change_of_peak(route.device, before, after, budget)
                    remark(text, func)

    def _routes(self, func: FuncOp) -> Iterator[tuple["_Route", int]]:
        """Yields the routes of values, each with the budget in bytes of its source."""
        if self.budget is not None:
            budget = Budget(self.budget).bytes_allowed
            route = _Route(
                self.device, self.to, self.alignment, self.exact, time_to_copy
            )
            yield route, budget
            return
        memories = target_memories(func)
        for memory in memories.values():
            found = slower_memory(memory, memories)
            if not isinstance(memory.memory_space, StringAttr) or found is None:
                continue
            other, *ways = found
            route = _Route(
                memory.memory_space.data,
                cast(StringAttr, other.memory_space).data,
                memory.alignment,
                self.exact,
                lambda bytes, ways=ways: max(way.time(bytes) for way in ways),
                all(way.asynchronous for way in ways),
            )
            yield route, max(memory.capacity - _given(func, route.device), 0)


@dataclass(frozen=True)
class _Route:
    """The route of values from `device` to the device `to` and back."""

    device: str
    to: str
    alignment: int
    exact: bool
    time: Callable[[int], int]  # bytes of a copy -> nanoseconds
    is_beside: bool = True  # whether operations run during a copy

    def move(self, func: FuncOp, budgets: Peaks) -> None:
        """Moves values until the live bytes of `device` meet its budget."""
        memory = memory_graph(func.body.block, self.alignment)
        moves = self._moves(memory, budgets[self.device])
        if not moves:
            return
        copies = list(self._copied(memory, moves))
        self._explain(memory, moves, copies, func)
        insertions: dict[int, list[Insertion]] = {}
        for at, insertion in copies:
            insertions.setdefault(at, []).append(insertion)
        memory.reorder(range(len(memory.ops)), insertions)
        there = live_peaks(func.body.block, self.alignment)[self.to]
        remark(f"{self.to} has {there} live bytes at its peak", func)

    def _moves(self, memory: MemoryGraph, budget: int) -> Sequence[Move]:
        graph = memory.graphs[self.device]
        here = [
            nanoseconds if self.is_beside and queue_of(op)[0] == self.device else 0
            for op, nanoseconds in zip(memory.ops, times(memory.ops), strict=True)
        ]
        copies = list(map(self.time, graph.sizes))
        choose = cheapest
        if self.exact:
            from ...planning.scheduling.exact_residency import proved

            choose = proved
        movable = list(_movable(memory))
        try:
            return offload(graph, here, copies, movable, budget, choose)
        except ImportError as error:
            raise LocatedError(str(error)) from None

    def _copied(
        self, memory: MemoryGraph, moves: Sequence[Move]
    ) -> Iterator[tuple[int, Insertion]]:
        """Yields the copies for the moves, each with the task that it precedes.

        If several copies precede a task, those that make room come first.
        """
        away: dict[int, SSAValue] = {}
        for move in moves:
            value = memory.names[move.value]
            if move.value not in away:
                copy = _copy(value, self.to, value)
                away[move.value] = copy.result
                yield move.out, Insertion(copy)
        for move in moves:
            value = memory.names[move.value]
            back = _copy(away[move.value], self.device, value)
            yield move.back, Insertion(back, value)

    def _explain(
        self,
        memory: MemoryGraph,
        moves: Sequence[Move],
        copies: Sequence[tuple[int, Insertion]],
        func: FuncOp,
    ) -> None:
        graph = memory.graphs[self.device]
        for move in moves:
            value = memory.names[move.value]
            owner, size = value.owner, graph.sizes[move.value]
            assert isinstance(owner, Operation)
            stalls = ", which stalls" if move.stall else ""
            remark(
                f"offloaded {size} bytes of {owner.name} to {self.to} "
                f"after {_described(memory, move.out - 1)}, prefetched before "
                f"{_described(memory, move.back)} for "
                f"{_described(memory, move.reader)}{stalls}",
                owner,
            )
        bytes = sum(graph.sizes[move.value] for move in moves)
        stall = sum(move.stall for move in moves)
        total = max(sum(times(memory.ops)), 1)
        remark(
            f"copies to {self.to} and back: {len(copies)}, for {bytes} bytes; "
            f"operations stall on them for an estimated {100 * stall / total:.1f} % of "
            "the function's time",
            func,
        )


def _given(func: FuncOp, device: str) -> int:
    """The bytes of arguments and results on `device`, which are the caller's memory."""
    types = (*func.function_type.inputs, *func.function_type.outputs)
    here = (tensor_type_of(t) for t in types if is_tensor(t) and device_of(t) == device)
    return sum(map(typical_bytes, here))


def _movable(memory: MemoryGraph) -> Iterator[int]:
    """The values that a single operation has computed."""
    writer = {
        value: op
        for op, task in zip(memory.ops, memory.tasks, strict=True)
        for value in task.writes
    }
    for number, value in memory.names.items():
        op = value.owner
        if isinstance(op, Operation) and writer.get(number) is op:
            if not is_in_place(op):
                yield number


def _copy(source: SSAValue, device: str, value: SSAValue) -> DeviceCopyOp:
    """A copy of `source` to `device`, with the location and name of `value`."""
    assert isinstance(value.owner, Operation)
    copy = DeviceCopyOp(source, on_device(tensor_type_of(source.type), device))
    copy.location = value.owner.location
    if device == device_of(value.type):
        copy.result.name_hint = value.name_hint
    return copy


def _described(memory: MemoryGraph, task: int) -> str:
    if task == len(memory.ops):
        return "the end"
    op = memory.ops[task]
    place = place_of(op)
    return f"{op.name} ({place})" if place else op.name
