"""Finds the allocations of a function that plan-memory can place, and their uses.

The analysis follows a memref through views, selects, results of `scf.if`, loops and
branches. plan-memory can place an allocation if the analysis understands all uses, or
if on each path a `memref.dealloc` of the allocation by its own name follows the others.

All allocations that one `memref.dealloc` may free are placed together or not at all:
the `memref.dealloc` must stay if one of them is not placed. A function does not free
its arguments or globals, which others own, as in MLIR's ownership-based deallocation.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    MemRefType,
    ModuleOp,
    NoneAttr,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from ..dialects.diagnostics import name_of, remark
from ..dialects.memory import (
    ARENA,
    asynchronous,
    effects_on,
    ends_here,
    freed,
    is_before,
    is_buffer,
    is_memref,
    is_view,
    overwrites,
)
from ..dialects.sizes.symbolic import Size, Symbolic
from ..dialects.tgraph.base import (
    AnyMemRef,
    Shape,
    TensorOp,
    element_alignment,
    element_bytes,
)
from ..planning.problem import Steps
from .addresses import comparisons
from .calls import NUMBERS, STORES
from .control_flow import ControlFlow, ends
from .forwarding import CHOICES, CLONE, CONCURRENT, SCOPES, moves, only_moves
from .functions import (
    CallerMemory,
    arena_arguments,
    caller_memories,
    tensor_functions,
)
from .liveness import Uses, live_steps, merged, without
from .references import MOST_SLOTS, References, loops_of, slots
from .sizes import SizeReader


class Deallocation(NamedTuple):
    """An operation frees the memory of one of its operands."""

    op: Operation
    operand: int


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """An allocation that plan-memory can place."""

    alloc: memref.AllocOp
    frees: Sequence[Deallocation]
    size: int  # bytes; may be symbolic
    alignment: int  # bytes; the larger of what the allocation and its elements need
    uses: Uses
    references: References
    uses_by: Mapping[SSAValue, Uses]
    """The uses through each reference."""
    accesses: Sequence[tuple[Operation, SSAValue]]
    """The operations that access the memory, each with the memref it uses for that."""
    slots: int = 1  # the most instances live at a time, if a loop carries it
    loops: int = 1  # the number of nested loops that carry it

    @property
    def deallocs(self) -> Sequence[Operation]:
        """The operations that free the memory, possibly together with other memory."""
        return [free.op for free in self.frees]

    @property
    def name(self) -> str:
        return f"%{self.alloc.memref.name_hint or self.uses.allocated}"


def find_allocations(
    func: FuncOp,
    flow: ControlFlow,
    *,
    sizes: SizeReader | None = None,
    remarks: bool = True,
    most_slots: int = MOST_SLOTS,
) -> list[Allocation]:
    """The allocations that can be placed, in program order. Remarks say why others
    cannot. Allocations of symbolic size are included if `sizes` is given.
    """
    found: dict[SSAValue, Allocation] = {}
    refused: list[SSAValue] = []
    frees: dict[SSAValue, Sequence[Deallocation]] = {}
    may_free: dict[Deallocation, list[SSAValue]] = {}
    for source in _sources(func):
        trace = _Trace(source, flow)
        frees[source] = trace.deallocs
        for dealloc in trace.deallocs:
            may_free.setdefault(dealloc, []).append(source)
        if not isinstance(alloc := source.owner, memref.AllocOp):
            refused.append(source)
            continue
        try:
            found[source] = _allocation(alloc, trace, flow, sizes, most_slots)
        except _NotPlannable as reason:
            refused.append(source)
            if remarks:
                remark(f"memref.alloc is not planned: {reason}", alloc)
    for source in refused:  # grows during the loop
        for other in [s for d in frees[source] for s in may_free[d]]:
            if allocation := found.pop(other, None):
                refused.append(other)
                text = "its dealloc may also free memory that is not planned"
                if remarks:
                    remark(f"memref.alloc is not planned: {text}", allocation.alloc)
    return list(found.values())


def caller_uses(memory: CallerMemory, func: FuncOp, flow: ControlFlow) -> Uses | None:
    """The uses of a function argument's memory, including those by the caller. None if
    the function does not access the memory, or the analysis does not understand all
    uses."""
    trace = _Trace(memory.argument, flow)
    if trace.deallocs or not trace.accesses:
        return None
    for op, alias in trace.accesses:
        if _unclear(op, alias, flow) or _unclear_around(op, flow):
            return None
    return _caller_uses(memory, trace, func, flow)


def _caller_uses(
    memory: CallerMemory, trace: "_Trace", func: FuncOp, flow: ControlFlow
) -> Uses:
    """The uses of memory that the caller fills before, or reads after, the function."""
    accesses = _accesses(trace, memory.argument, flow)
    if memory.is_given:
        accesses[0] = False
    if memory.is_kept:
        accesses = {flow.step[end]: False for end in ends(func)} | accesses
    return Uses(0, accesses)


def lifespans(buffers: Sequence[SSAValue]) -> list[list[Steps]]:
    """The live ranges of a pool's buffers for reports: ascending ranges of steps of
    their function. The buffers are views of an arena, or an argument and views of
    it."""
    func = buffers[0].owner
    while not isinstance(func, FuncOp):
        around = func.parent_op()
        assert around is not None
        func = around
    flow = ControlFlow(func)
    given = {memory.argument: memory for memory in caller_memories(func)}
    uses: list[Mapping[SSAValue, Uses]] = []
    for buffer in buffers:
        trace = _Trace(buffer, flow)
        if isinstance(buffer.owner, Operation):
            accesses = _accesses_by_alias(trace, buffer, flow)
            uses.append(References(flow, [buffer]).uses(accesses))
        else:  # the caller also reads an arena that it passes
            memory = given.get(buffer) or CallerMemory(buffer, "", False, True)
            uses.append({buffer: _caller_uses(memory, trace, func, flow)})
    ranges = iter(live_steps(flow, [each for of in uses for each in of.values()]))
    live = [merged(sorted(s for _ in of for s in next(ranges))) for of in uses]
    return _without_alternatives(buffers, uses, live)


def _without_alternatives(
    buffers: Sequence[SSAValue],
    references: Sequence[Iterable[SSAValue]],
    live: list[list[Steps]],
) -> list[list[Steps]]:
    """Of buffers at the same offset of an arena that control flow merges into one
    value, only the last one counts as live in steps where several are."""
    known: dict[object, list[int]] = {}
    for number, buffer in reversed(list(enumerate(buffers))):
        view = buffer.owner
        if isinstance(view, memref.ViewOp) and isinstance(
            at := view.byte_shift.owner, arith.ConstantOp
        ):
            others = known.setdefault((view.source, at.value), [])
            for other in others:
                if not set(references[number]).isdisjoint(references[other]):
                    left = without(live[number], live[other])
                    live[number] = left or live[number]
            others.append(number)
    return live


class _NotPlannable(Exception):
    """The reason why an allocation is not placed."""


class _Trace:
    """The values that may refer to a value's memory, and the operations that use them.

    A result of an unknown operation on the memory may be that memory, or a copy of it
    (`bufferization.clone`), so it is followed as well, unless it is new.
    """

    def __init__(self, source: SSAValue, flow: ControlFlow):
        self.deallocs: list[Deallocation] = []
        self.accesses: list[tuple[Operation, SSAValue]] = []
        self.compared: list[tuple[Operation, SSAValue]] = []
        """The comparisons of the memory's address."""
        self.freed_copies: list[Deallocation] = []
        self._aliases = {source: None}
        self._follow(source, self.deallocs)
        for op, _ in self.accesses:  # grows during the loop
            for result in flow.calls.may_return(op):
                if result not in self._aliases:
                    self._aliases[result] = None
                    self._follow(result, self.freed_copies)

    @property
    def aliases(self) -> Sequence[SSAValue]:
        return list(self._aliases)

    def _follow(self, value: SSAValue, deallocs: list[Deallocation]) -> None:
        pending = [value]
        while pending:
            alias = pending.pop()
            for use in alias.uses:
                op = use.operation
                if use.index in freed(op):
                    deallocs.append(Deallocation(op, use.index))
                elif (targets := moves(use)) is None:
                    self.accesses.append((op, alias))
                    if isinstance(op, memref.ExtractAlignedPointerAsIndexOp):
                        compared = comparisons(op.results[0]) or ()
                        self.compared += [(each, alias) for each in compared]
                else:
                    new = [t for t in targets if t not in self._aliases]
                    self._aliases.update(dict.fromkeys(new))
                    pending += new


def _sources(func: FuncOp) -> Iterator[SSAValue]:
    """Memrefs whose memory may have to be freed, without the function's arguments."""
    for op in func.walk():
        if isinstance(op, memref.AllocOp):
            if not is_arena(op):
                yield op.memref
        elif not isinstance(op, TensorOp | memref.AllocaOp | memref.GetGlobalOp):
            yield from (r for r in op.results if is_memref(r) and not only_moves(op))


def is_arena(alloc: memref.AllocOp) -> bool:
    """Whether an allocation is an arena that plan-memory has filled: only views use it,
    and no call takes it as the frame of a callee."""
    users = {type(use.operation) for use in alloc.memref.uses}
    return ARENA in alloc.attributes and users <= {memref.ViewOp, memref.DeallocOp}


def is_planned(module: ModuleOp) -> bool:
    """Whether buffers are placed, correctly or not, and no function is on tensors."""
    functions = (op for op in module.walk() if isinstance(op, FuncOp))
    return any(map(has_plan, functions)) and not any(tensor_functions(module))


def has_plan(func: FuncOp) -> bool:
    """Whether a function has arenas, or buffers that lie in arguments."""
    return bool(func.body.blocks and arena_arguments(func)) or any(
        is_buffer(op) or ARENA in op.attributes for op in func.walk()
    )


def _allocation(
    alloc: memref.AllocOp,
    trace: _Trace,
    flow: ControlFlow,
    sizes: SizeReader | None,
    most_slots: int,
) -> Allocation:
    """Determines an allocation's size and uses, or raises `_NotPlannable`."""
    size = _bytes(alloc, sizes)
    at, step = flow.step_of(alloc)
    if step is not alloc:
        raise _NotPlannable(
            f"it is inside {name_of(step)}, which may run concurrently with itself"
        )
    for alias in trace.aliases:
        if _is_beyond(alias, size):
            raise _NotPlannable(f"{alias.type} extends beyond it")
    if not all(_is_before_next(op, alias) for op, alias in trace.compared):
        raise _NotPlannable("its address escapes")
    if trace.freed_copies:
        raise _NotPlannable("memory that may alias it is freed as well")
    frees = _own_frees(alloc, flow)
    lives_on = False
    for op, alias in trace.accesses:
        if reason := _unclear(op, alias, flow) or _unclear_around(op, flow):
            if not _is_freed_after(flow.step_of(op)[0], at, frees, flow):
                raise _NotPlannable(reason)
            lives_on = True
    accesses = _accesses(trace, alloc.memref, flow)
    if flow.barriers and _is_read_first(trace, flow):  # another agent has written it
        accesses[at] = False
    if lives_on:  # live until it is freed, in spite of overwrites
        accesses = dict.fromkeys((*accesses, *frees), False)
    uses, references = Uses(at, accesses), References(flow, [alloc.memref])
    by_reference: Mapping[SSAValue, Uses] = references.uses(
        _accesses_by_alias(trace, alloc.memref, flow)
    )
    count = slots(references, by_reference)
    if lives_on or flow.barriers or flow.has_streams:
        if any(flow.is_carried(reference, alloc) for reference in by_reference):
            count = None
        by_reference = {alloc.memref: uses}
    if count is None or count > most_slots:
        raise _NotPlannable(
            "it is still live when the next iteration allocates it again"
        )
    asked = alloc.alignment.value.data if alloc.alignment else 1
    alignment = max(asked, element_alignment(alloc.memref.type.element_type))
    return Allocation(
        *(alloc, trace.deallocs, size, alignment, uses, references, by_reference),
        *(trace.accesses, count, len(loops_of(references))),
    )


def _is_read_first(trace: _Trace, flow: ControlFlow) -> bool:
    """Whether the first step that accesses the memory only reads it."""
    by_step: dict[int, list[bool]] = {}
    for op, alias in trace.accesses:
        _, writes = effects_on(op, alias)
        by_step.setdefault(flow.step_of(op)[0], []).append(writes)
    return bool(by_step) and not any(by_step[min(by_step)])


def _accesses(trace: _Trace, source: SSAValue, flow: ControlFlow) -> dict[int, bool]:
    """The accesses of the memory of `source`: by step, whether it is overwritten."""
    accesses: dict[int, bool] = {}
    for steps in _accesses_by_alias(trace, source, flow).values():
        for step, is_whole in steps.items():
            accesses[step] = accesses.get(step, True) and is_whole
    return accesses


def _accesses_by_alias(
    trace: _Trace, source: SSAValue, flow: ControlFlow
) -> dict[SSAValue, dict[int, bool]]:
    """The accesses through each alias. They include the waits for asynchronous
    operations: until such a wait, no overwrite ends the live range. A wait in another
    iteration counts for all names that the memory may have there."""
    found: dict[SSAValue, dict[int, bool]] = {}
    spans: list[Steps] = []
    elsewhere: dict[tuple[Operation, Operation], None] = {}
    for op, alias in trace.accesses:
        step, whole = flow.step_of(op)
        accesses = found.setdefault(alias, {})
        is_whole = op is whole and alias is source and overwrites(op, alias)
        accesses[step] = accesses.get(step, True) and is_whole
        for start, waits in _waits(op, whole):
            if ends_here(start, waits):
                spans.append((step, flow.step_of(waits[0])[0]))
                accesses[spans[-1][1]] = False
            else:
                elsewhere.update(dict.fromkeys((start, wait) for wait in waits))
    for op, alias in trace.compared:
        found[alias][flow.step_of(op)[0]] = False
    for start, end in spans:
        for accesses in found.values():
            for step in accesses:
                accesses[step] &= not start < step <= end
    for start, wait in elsewhere:
        step, _ = flow.step_of(wait)
        for alias in trace.aliases:
            accesses = found.setdefault(alias, {})
            accesses.update(dict.fromkeys(accesses, False))
            if _is_name_at(alias, wait, start):
                accesses[step] = False
    return found


def _is_name_at(value: SSAValue, wait: Operation, start: Operation) -> bool:
    """Whether the memory of a transfer may have the name `value` at the wait: not if a
    loop between start and wait takes it as an operand and renames it."""
    if isinstance(value.owner, Operation):
        is_there = is_before(value.owner, wait)
    else:
        is_there = value.owner.find_ancestor_op_in_block(wait) is not None
    return is_there and not any(
        op.regions
        and moves(use)
        and not op.is_ancestor(start)
        and (op.is_ancestor(wait) or is_before(op, wait))
        for use in value.uses
        for op in [use.operation]
    )


def _waits(
    op: Operation, step: Operation
) -> Iterator[tuple[Operation, Sequence[Operation]]]:
    """`op` and the operations around it up to `step` that are asynchronous, each with
    the operations that wait for it."""
    while True:
        if (transfer := asynchronous(op)) and (waits := transfer.waits_of(op)):
            yield op, waits
        outer = op.parent_op()
        if op is step or outer is None:
            return
        op = outer


def _bytes(alloc: memref.AllocOp, sizes: SizeReader | None) -> int:
    type = alloc.memref.type
    shape = _shape(alloc, sizes) if sizes else type.get_shape()
    if DYNAMIC_INDEX in shape:
        raise _NotPlannable(f"{type} has a dynamic size")
    if None in shape:
        raise _NotPlannable(
            f"the size of {type} cannot be derived from the shapes of the arguments"
        )
    if not isinstance(type.layout, NoneAttr):
        raise _NotPlannable(f"{type} has a layout other than the identity")
    try:
        return prod(cast(Shape, shape)) * element_bytes(type.element_type)
    except VerifyException as error:
        raise _NotPlannable(str(error)) from None


def _shape(alloc: memref.AllocOp, sizes: SizeReader) -> Sequence[Size | None]:
    """Upper bounds of the sizes, None for unknown ones. If the allocation may not run,
    its operands may have any value, and no bound is computed from their names."""
    is_sure = alloc.parent is sizes.func.body.first_block
    return sizes.at_most(alloc.memref, names=is_sure)


def _is_beyond(alias: SSAValue, size: Size) -> bool:
    """Whether a view's type has elements outside of a buffer of `size` bytes."""
    given: Attribute = alias.type
    if isinstance(size, Symbolic) or not isinstance(given, MemRefType):
        return False
    type = cast(AnyMemRef, given)
    shape, strides, offset = type.get_shape(), type.get_strides(), type.get_offset()
    if 0 in shape or DYNAMIC_INDEX in shape or strides is None:
        return False
    if offset is None or None in strides:
        return False
    steps = [(n - 1) * cast(int, s) for n, s in zip(shape, strides, strict=True)]
    first = offset + sum(step for step in steps if step < 0)
    last = offset + sum(step for step in steps if step > 0)
    return first < 0 or (last + 1) * element_bytes(type.element_type) > size


def _own_frees(alloc: memref.AllocOp, flow: ControlFlow) -> Sequence[int]:
    """The steps that free an allocation by its own name, or by that of a view of it."""
    aliases: list[SSAValue] = [alloc.memref]
    frees: list[int] = []
    for alias in aliases:  # grows during the loop
        for op in (use.operation for use in alias.uses):
            if is_view(op):
                aliases.append(op.results[0])
            elif isinstance(op, memref.DeallocOp) and op in flow.step:
                frees.append(flow.step[op])
    return sorted(frees)


def _is_freed_after(
    step: int, allocated: int, frees: Sequence[int], flow: ControlFlow
) -> bool:
    """Whether each path from after `step` leads to one of the steps `frees` before the
    function ends, and before the step `allocated` allocates the memory anew."""
    starts = {flow.node_of[step]: step + 1}  # by node: the first step on a path
    pending = list(starts)
    for node in pending:  # grows during the loop
        first, end = starts[node], flow.ends[node]
        at = bisect_left(frees, first)
        is_freed = at < len(frees) and frees[at] < end
        if first <= allocated < (frees[at] if is_freed else end):
            return False
        if is_freed:
            continue
        if not flow.successors[node]:
            return False
        for next in flow.successors[node]:
            start = flow.nodes[next].start
            if next not in starts or start < starts[next]:
                starts[next] = start
                pending.append(next)
    return True


def _is_before_next(op: Operation, alias: SSAValue) -> bool:
    """Whether `op` always runs before `alias` may be bound to other memory."""
    owner = alias.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    while block is not None and block.find_ancestor_op_in_block(op) is None:
        outer = block.parent_op()
        assert outer is not None
        if isinstance(outer, FuncOp):
            return outer.body.first_block is block
        if name_of(outer) not in (*CHOICES, *SCOPES) or block.next_block:
            return False
        block = outer.parent_block()
    return True


def _unclear_around(op: Operation, flow: ControlFlow) -> str | None:
    """Why an operation around an access may use the buffer after its step; None if no
    such operation does."""
    _, step = flow.step_of(op)
    while op is not step:
        outer = op.parent_op()
        assert outer is not None
        if name_of(outer) not in CONCURRENT and (reason := _unclear(outer, None, flow)):
            return reason
        op = outer
    return None


def _unclear(op: Operation, value: SSAValue | None, flow: ControlFlow) -> str | None:
    """Why the buffer `value` may be used after `op`; None if it may not."""
    if isinstance(op, TensorOp):
        return None
    name = name_of(op)
    if op.has_trait(IsTerminator, value_if_unregistered=False):
        return f"it escapes through {name}"
    if isinstance(op, memref.ExtractAlignedPointerAsIndexOp):
        is_compared = comparisons(op.results[0]) is not None
        return None if is_compared else "its address escapes"
    if transfer := asynchronous(op):
        waited = transfer.waits_of(op)
        return None if waited else f"no wait is known for what {name} starts"
    if name != CLONE and not all(
        isinstance(result.type, NUMBERS) or flow.calls.is_new(result)
        for result in op.results
    ):
        return f"{name} may return it"
    if name in STORES and op.operands[0] is value:
        return f"{name} stores it"
    if not flow.calls.is_over(op):
        return f"the effects of {name} on it are unknown"
    return None


def erase_deallocs(allocations: Sequence[Allocation]) -> None:
    """Erases the deallocations of these allocations."""
    operands: dict[Operation, list[int]] = {}
    for op, operand in {free: None for a in allocations for free in a.frees}:
        operands.setdefault(op, []).append(operand)
    for op, indices in operands.items():
        if isinstance(op, memref.DeallocOp):
            Rewriter.erase_op(op)
        else:
            _drop(op, indices)


def _drop(op: Operation, indices: Sequence[int]) -> None:
    """Removes memrefs and their conditions from a `bufferization.dealloc`."""
    count = len(freed(op))
    dropped = {*indices, *(index + count for index in indices)}
    retained = len(op.operands) - 2 * count
    op.operands = [v for i, v in enumerate(op.operands) if i not in dropped]
    left = count - len(indices)
    op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(
        i32, [left, left, retained]
    )
    if not left and not retained:
        Rewriter.erase_op(op)
