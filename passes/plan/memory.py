"""`plan-memory`: places allocations into one arena per memory space, at fixed offsets.

    %0 = memref.alloc() : memref<4x8xf32, "cpu:0">
    ...
    memref.dealloc %0 : memref<4x8xf32, "cpu:0">

    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena}
           : memref<256xi8, "cpu:0">
    %c128 = arith.constant 128 : index
    ...
    %0 = memref.view %arena[%c128][]
         : memref<256xi8, "cpu:0"> to memref<4x8xf32, "cpu:0">
    ...
    memref.dealloc %arena : memref<256xi8, "cpu:0">

The steps of a function are its operations, including those in nested regions and other
blocks (analysis/control_flow.py). A buffer is live at a step if its memory has been
accessed and may be accessed again on some path (analysis/liveness.py). The live range
of a buffer allocated in a loop is within one iteration. If the loop forwards the buffer
to later iterations, it carries as many slots as instances of the buffer are live at
once, and the iterations take turns. A buffer that is computed over its predecessor,
element by element, needs no second slot (analysis/overwriting.py). Buffers that reach
one value on different paths share a slot (placement/slots.py). The alignment of a pool
is the option `alignment`, or more if an element type requires it (8 for f64). A buffer
whose allocation requires a larger alignment gets it, and the arena gets the largest of
all. If the module describes the target's memories (dialects/target_memory.py), a pool
has the alignment of its memory instead, and an arena that exceeds the memory's
capacity, less the bytes of arguments there, is an error. Offsets are relative to the
arena, which lies at the memory's base address. If operations have streams
(`tgraph.stream`), two buffers share bytes only if the last use of one precedes the
first use of the other in every execution (placement/stream_order.py).

Where it makes the arena smaller, the pass places buffers in the memory of a result
(`tgraph.result`) that is written later, of a variable (`tgraph.variable`) whose old
contents are dead, or of a donated argument (`tgraph.donated`), as a view with the
attribute `tgraph.buffer` (placement/output_reuse.py). With streams, it uses the memory
of results only.

If the caller provides memory only while it is used (`tgraph.on_demand`), buffers lie in
arguments only if that lowers the bytes that are live at once, and a memory space may
have several arenas (planning/on_demand.py). Each one is allocated before its first
buffer, and freed after the last use of its buffers:

    %arena = memref.alloc() {tgraph.arena} : memref<64xi8, "cpu:0">     // stage 0
    ...
    %arena_1 = memref.alloc() {tgraph.arena} : memref<32xi8, "cpu:0">   // 0 and 1
    ...
    memref.dealloc %arena : memref<64xi8, "cpu:0">

With `arena`, others own the arenas (placement/arena_forms.py): the caller passes them
as arguments, and `@<name>_arena_size` returns their bytes, or they are globals, or lie
at addresses. If other functions of the module call a function, its arena then lies in
the arenas of its callers, in bytes that are not live during the call. There is thus one
arena for the call tree, unless the function calls itself.

The result of a call counts as other memory than its arguments if every return of the
called function returns an allocation of that function, or of a function that it calls,
or one of several of these (analysis/calls.py). A result of a recursive function may be
an argument.

It is an error if a program certainly frees a buffer twice, or uses it after it is
freed. If this happens only on some paths, the pass emits a remark (analysis/frees.py).

Needs: memrefs, from tgraph-bufferize or from mlir-opt.
Leaves: level 3, verified by plan-check. Allocations that the pass cannot plan stay
unchanged, with a remark: sizes that do not follow from the arguments, layouts other
than the identity, buffers that escape or have unknown uses, buffers that a loop may
forward for any number of iterations, and allocations that are freed together with one
of these (analysis/allocations.py). A program that has only tensors is an error.
Does not: reorder operations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isinf
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    TensorType,
    UnitAttr,
    i8,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.allocations import Allocation, erase_deallocs, find_allocations
from ...analysis.banks import banks_of
from ...analysis.calls import Calls
from ...analysis.control_flow import ControlFlow, ends
from ...analysis.frees import uses_after_free
from ...analysis.functions import argument_attributes
from ...analysis.references import MOST_SLOTS, before, loops_around
from ...analysis.sizes import SizeReader, argument_bytes
from ...checking.plan_check import check_plan
from ...dialects.diagnostics import LocatedError, remark
from ...dialects.memory import ALIGNMENT, BUFFER
from ...dialects.sizes.dims import BOUNDS, DIMS, HINTS
from ...dialects.sizes.intervals import interval
from ...dialects.sizes.symbolic import (
    Size,
    Symbolic,
    is_known_at_least,
    names_in,
    typical,
)
from ...dialects.target_memory import target_memories
from ...dialects.tgraph.base import (
    LARGEST_SIZE,
    ON_DEMAND,
    STREAM,
    AnyMemRef,
    element_alignment,
)
from ...planning.arena import Part, arranged, placeable, solve_arena
from ..options import Arenas, Banking, MemoryOptions
from .placement.arena import Arena, Pool
from .placement.marked import marked_arena, replace_by
from .placement.output_reuse import (
    find_outputs,
    hand_overs,
    move,
)
from .placement.runtime_offsets import place
from .placement.slots import Slot, carry, find_slots
from .placement.stream_order import Offsets, StreamOrder

if TYPE_CHECKING:
    from .placement.arena_forms import ArenaForms


@dataclass(frozen=True)
class PlanMemory(ModulePass, MemoryOptions, Arenas, Banking):
    """Plans the allocations of each function into arenas.

    Allocations of symbolic size (`?`) are planned for the largest sizes in `bounds`.
    Without bounds, `dynamic` says how, and `hints` may give typical sizes.
    """

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        funcs = [f for f in op.walk() if isinstance(f, FuncOp) and not f.is_declaration]
        calls = Calls()
        if self.arena == "alloc":
            is_planned = any([self._plan(func, calls) for func in funcs])
        else:
            from .placement.arena_forms import ArenaForms  # loads LLVM's dialect

            forms = ArenaForms(op, self.arena)
            is_planned = any(
                [self._place(f, calls, forms) for f in forms.callees_first()]
            )
        for func in filter(_has_tensors, funcs):
            if not is_planned:
                raise LocatedError(
                    "tensors have no memory to plan: bufferize them first, by "
                    "tgraph-bufferize or mlir-opt",
                    func,
                )
            remark("tensors have no memory to plan: bufferize them first", func)
        check_plan(op, unmarked=False)

    def _place(self, func: FuncOp, calls: Calls, forms: "ArenaForms") -> bool:
        """Plans the arenas of a function, and gives them their form. Returns whether
        there was anything to plan."""
        is_planned = self._plan(func, calls)
        forms.change(func)
        return is_planned

    def _plan(self, func: FuncOp, calls: Calls) -> bool:
        """Plans a function. Returns whether there was anything to plan."""
        if _has_sizes(func) or _names_sizes(func):
            _note(func, BOUNDS, self.largest)
        is_planned = False
        for arena in self.arenas(func, calls):
            is_planned = True
            if arena.dynamic is None:
                self._write(func, arena)
                continue
            sizes, allocations = arena.dynamic
            made = place(
                *(sizes, arena.space, arena.alignment, allocations),
                *(arena.pool.spans, arena.plan.offsets),
            )
            _free(func, made, allocations)
            _note(func, HINTS, self.typical)
        return is_planned

    def arenas(self, func: FuncOp, calls: Calls | None = None) -> Iterator[Arena]:
        """Yields the plan of each memory space. The caller may write a plan into the IR
        before it asks for the next one."""
        flow = ControlFlow(func, calls)
        _check_frees(func, flow)
        pools: dict[Attribute, list[Allocation]] = {}
        sizes = None
        if self.dynamic != "allocator":
            sizes = SizeReader(func, name_operands=not self.bounds and _is_proved(func))
        most = MOST_SLOTS if self.bounds or not _has_sizes(func) else 1
        for allocation in find_allocations(func, flow, sizes=sizes, most_slots=most):
            space = allocation.alloc.memref.type.memory_space
            pools.setdefault(space, []).append(allocation)
        if not pools:
            return
        order = _stream_order(func, flow)
        outputs = find_outputs(func, flow) if self.reuse_outputs else []
        if order is not None:  # other outputs hold data at the start
            outputs = [output for output in outputs if not output.is_given]
        memories = target_memories(func)
        if memories and not memories.keys() & pools.keys():
            spaces = " and ".join(map(str, pools))
            names = ", ".join(memory.name for memory in memories.values())
            remark(f"the target describes {names}, but buffers are in {spaces}", func)
        for space, allocations in pools.items():
            memory = memories.get(space)
            given = self.alignment if memory is None else memory.alignment
            alignments = _alignments(allocations, given)
            taken, _ = argument_bytes(func, space, self.largest)
            left = memory and memory.capacity - taken
            solve = partial(solve_arena, strategy=self.strategy, capacity=left)
            is_symbolic = any(isinstance(a.size, Symbolic) for a in allocations)
            measured = [self._measured(a, self.largest) for a in allocations]
            slots = find_slots(measured, alignments, flow, is_joined=not is_symbolic)
            pool = Pool(flow, order, slots)
            here = [output for output in outputs if output.space == space]
            if is_symbolic and not self.largest:
                every = range(len(allocations))
                plan = pool.place(every, solve)
                assert sizes is not None
                dynamic = (sizes, allocations)
                yield Arena(space, pool, every, plan, max(alignments), dynamic=dynamic)
                continue
            is_ordered = order is None and not flow.barriers
            is_divided = is_ordered and self._may_divide(func)
            ops = func.body.block.ops if is_divided else ()
            reuses, parts = arranged(
                pool.spans,
                () if is_symbolic else pool.spans_of(here),
                lambda indices, pool=pool, solve=solve: pool.place(indices, solve),
                hand_overs(pool.allocations, here, flow) if is_ordered else None,
                on_demand=[flow.step[op] for op in ops],
            )
            places = {i: (here[number], at) for i, (number, at) in reuses.items()}
            for members, plan in parts or [Part((), Offsets((), 0))]:
                yield Arena(
                    *(space, pool, members, plan, max(alignments), memory, left),
                    places,
                    is_on_demand=is_divided,
                )
                places = {}

    def _may_divide(self, func: FuncOp) -> bool:
        """Whether each memory space may have several arenas."""
        is_single = self.arena == "alloc" and len(func.body.blocks) == 1
        return is_single and ON_DEMAND in func.attributes and not target_memories(func)

    def _write(self, func: FuncOp, arena: Arena) -> None:
        """Writes an arena with constant offsets into the IR."""
        pool, plan = arena.pool, arena.plan
        if rest := arena.members:
            if plan.peak > LARGEST_SIZE:
                raise LocatedError(
                    f"the arena has {plan.peak} bytes, expected at most {LARGEST_SIZE}",
                    func,
                )
            if not arena.fits:
                raise _too_large(arena, func)
            if (banks := banks_of(arena.memory)) and pool.is_ordered:
                most = max(plan.peak, min(plan.peak + self.bank_slack, arena.left or 0))
                plan = pool.spread(rest, plan, func, banks, most)
            type = MemRefType(i8, [plan.peak], NoneAttr(), arena.space)
            slots = [pool.slots[i] for i in rest]
            _rewrite(func, type, slots, plan.offsets, arena.is_on_demand)
        for index, (output, offset) in arena.reuses.items():
            move(pool.allocations[index], output.argument, offset)

    def _measured(
        self, allocation: Allocation, bounds: Mapping[str, int]
    ) -> Allocation:
        """`allocation` with a number as its size: the largest, or a typical one."""
        if not isinstance(size := cast(Size, allocation.size), Symbolic):
            return allocation
        if not bounds:
            number = typical(size, self.typical)
            return replace(allocation, size=number)
        _, most = interval(size, bounds)
        if isinf(most):
            missing = [n for n in dict.fromkeys(names_in(size)) if n not in bounds]
            raise LocatedError(
                f"buffer {allocation.name} has {size} bytes, expected bounds for "
                f"{', '.join(missing)}",
                allocation.alloc,
            )
        return replace(allocation, size=int(most))


def _check_frees(func: FuncOp, flow: ControlFlow) -> None:
    """Raises `LocatedError` if a program certainly uses a buffer that it has freed.
    Emits a remark if it does so on some paths."""
    for found in uses_after_free(func, flow):
        if found.is_sure:
            expected = "expected no use of what is freed"
            raise LocatedError(f"{found.text}, {expected}", found.use)
        remark(found.text, found.use)


def _alignments(allocations: Sequence[Allocation], given: int) -> list[int]:
    """The alignment of each buffer of a pool: `given` or what an element type requires,
    or more if the allocation requires more."""
    types = (a.alloc.memref.type.element_type for a in allocations)
    common = max(given, *map(element_alignment, types))
    return [max(common, a.alignment) for a in allocations]


def _has_tensors(func: FuncOp) -> bool:
    return any(isinstance(t, TensorType) for t in func.function_type.inputs)


def _too_large(arena: Arena, func: FuncOp) -> LocatedError:
    memory, left = arena.memory, arena.left
    assert memory is not None
    assert left is not None
    live = placeable([arena.pool.spans[i] for i in arena.members]).lower_bound
    taken = memory.capacity - left
    beside = f", {taken} of them arguments'" if taken else ""
    return LocatedError(
        f"the arena in {memory.name} takes {arena.plan.peak} bytes, expected at most "
        f"{left}: the memory has {memory.capacity}{beside}; in this order {live} bytes "
        "are live at once",
        func,
    )


def _note(func: FuncOp, name: str, values: Mapping[str, int]) -> None:
    """Records in an attribute the values that symbolic sizes are planned for."""
    if values:
        func.attributes[name] = DictionaryAttr(
            {name: IntegerAttr(value, i64) for name, value in values.items()}
        )


def _has_sizes(func: FuncOp) -> bool:
    """Whether allocations have dynamic sizes."""
    return any(
        isinstance(op, memref.AllocOp) and op.dynamic_sizes for op in func.walk()
    )


def _names_sizes(func: FuncOp) -> bool:
    """Whether arguments have symbolic sizes, which calls must keep within the bounds
    even if no buffer depends on them."""
    return any(DIMS in attributes for attributes in argument_attributes(func))


def _is_proved(func: FuncOp) -> bool:
    """Whether plan-check can prove a plan for all sizes: without streams, and where no
    size may be negative."""
    sizes = SizeReader(func)
    for op in func.walk():
        shape = sizes.shape(op.memref) if isinstance(op, memref.AllocOp) else ()
        known = [size for size in shape if size is not None]
        if STREAM in op.attributes or not all(is_known_at_least(s, 0) for s in known):
            return False
    return True


def _stream_order(func: FuncOp, flow: ControlFlow) -> StreamOrder | None:
    """The order of operations that have streams; None if none has.

    Raises `LocatedError` for streams in a function of several blocks.
    """
    blocks = func.body.blocks
    if not any(STREAM in op.attributes for block in blocks for op in block.ops):
        return None
    if len(blocks) > 1:
        raise LocatedError(
            f"function @{func.sym_name.data} has operations with streams and "
            f"{len(blocks)} blocks, expected 1",
            func,
        )
    return StreamOrder(flow, blocks[0].ops)


def _rewrite(
    func: FuncOp,
    type: AnyMemRef,
    slots: Sequence[Slot],
    offsets: Sequence[int],
    is_on_demand: bool,
) -> None:
    """Replaces the allocations in `slots` by views of a new arena, at `offsets`. If
    `is_on_demand`, the arena is allocated only while its buffers are used."""
    alignment = max(slot.alignment for slot in slots)
    arena = marked_arena(type, alignment)
    constants = _Constants(func)

    def view(
        slot: Slot,
        offset: int,
        type: AnyMemRef,
        op: Operation,
        sizes: Sequence[SSAValue],
    ) -> memref.ViewOp:
        made = memref.ViewOp(arena.memref, constants.before(op, offset), sizes, type)
        if slot.alignment < alignment:
            made.attributes[ALIGNMENT] = IntegerAttr(slot.alignment, i64)
        return made

    if is_on_demand:
        _allocate_while_used(func, arena, slots)
    places: dict[Allocation, list[tuple[Slot, int]]] = {}
    for slot, offset in zip(slots, offsets, strict=True):
        for allocation in slot.allocations:
            places.setdefault(allocation, []).append((slot, offset))
    for allocation in sorted(places, key=lambda a: a.uses.allocated):
        alloc, given = allocation.alloc, allocation.alloc.memref.type
        if allocation.slots == 1:
            ((slot, offset),) = places[allocation]
            made = view(slot, offset, given, alloc, alloc.dynamic_sizes)
        else:
            flow = allocation.references.flow
            loop = before(loops_around(alloc, allocation.loops, flow)[-1])
            bytes_ = MemRefType(i8, [allocation.size], NoneAttr(), given.memory_space)
            views = [view(*place, bytes_, loop, ()) for place in places[allocation]]
            Rewriter.insert_op(views, InsertPoint.before(loop))
            for each in views:
                each.result.name_hint = "slot"
            source = carry(allocation, [each.result for each in views])
            zero = constants.before(alloc, 0)
            made = memref.ViewOp(source, zero, alloc.dynamic_sizes, given)
            made.attributes[BUFFER] = UnitAttr()
        replace_by(made, alloc)
    if not is_on_demand:
        Rewriter.insert_op(arena, InsertPoint.at_start(func.body.blocks[0]))
        _free(func, arena, list(places))


def _allocate_while_used(
    func: FuncOp, arena: memref.AllocOp, slots: Sequence[Slot]
) -> None:
    """Allocates the arena before its first buffer, and frees it, instead of the
    buffers, after the last use of any of them."""
    block = func.body.block
    allocations = [allocation for slot in slots for allocation in slot.allocations]
    flow = allocations[0].references.flow
    made = [allocation.uses.allocated for allocation in allocations]
    used = [end - 1 for slot in slots for _, end in slot.steps]
    first, last = (
        block.find_ancestor_op_in_block(flow.ops[step])
        for step in (min(made), max(*made, *used))
    )
    assert first is not None
    assert last is not None
    erase_deallocs(allocations)
    Rewriter.insert_op(arena, InsertPoint.before(first))
    end = InsertPoint.before(last) if last is block.last_op else InsertPoint.after(last)
    Rewriter.insert_op(memref.DeallocOp.get(arena.memref), end)


class _Constants:
    """Constants for offsets. Each one dominates all later operations."""

    def __init__(self, func: FuncOp):
        self._entry = func.body.blocks[0]
        self._made: dict[int, SSAValue] = {}

    def before(self, op: Operation, number: int) -> SSAValue:
        if number not in self._made:
            first = self._entry.find_ancestor_op_in_block(op) or self._entry.last_op
            assert first is not None
            constant = arith.ConstantOp(IntegerAttr(number, IndexType()))
            constant.result.name_hint = f"c{number}"
            Rewriter.insert_op(constant, InsertPoint.before(first))
            self._made[number] = constant.result
        return self._made[number]


def _free(
    func: FuncOp, arena: memref.AllocOp, allocations: Sequence[Allocation]
) -> None:
    """Frees the arena at the ends of the function, instead of the allocations."""
    erase_deallocs(allocations)
    for end in list(ends(func)):
        Rewriter.insert_op(memref.DeallocOp.get(arena.memref), InsertPoint.before(end))
