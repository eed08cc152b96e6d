"""`plan-check`: proves from the IR alone that the plan of the arenas is sound.

The pass takes level 3. It shares no code with the planner: neither the liveness
analysis nor the placement of buffers. An arena is memory that `tgraph.arena` marks, in
any block: the result of `memref.alloc` or `memref.alloca`, an argument, a global, or an
address (checking/memories.py). Each `memref.view` of an arena is a separate buffer.
Views of other memory may overlap. If nothing is marked, as in the plans of others, all
memory with a `memref.view` is an arena; the option `unmarked` decides otherwise.
Results, variables, and donated arguments that contain buffers are checked like arenas
(checking/caller_pools.py). The pass proves:

 * Each buffer has a known offset, is aligned as its arena and its elements require, and
   lies within the arena. Each view of a buffer lies within the buffer
   (checking/extents.py).
 * On every path through the function, no operation uses a buffer if another buffer may
   have used some of the same bytes since the previous use, except to overwrite the
   whole buffer without reading it (checking/ownership.py). An operation that overwrites
   one buffer may take its bytes from another that it reads. Memory that the caller
   provides counts as used at the start of the function, and memory that the caller
   reads counts as used at the end.
 * An operation that continues after it returns, such as a DMA, owns its buffers until
   the wait. Until the wait for a `memref.dma_start`, nothing else writes its source, or
   reads or writes its target (checking/operands.py). On every path, an operation waits
   for its tag: in its block, in another one, or in the next iteration of a loop, which
   may have other names for its buffers (dialects/tags.py, checking/under_way.py).
 * If operations have streams and two buffers share bytes, all operations on one buffer
   finish before any operation on the other starts (checking/happens_before.py).
 * Operations of tgraph read only bytes of an arena that have been written, on every
   path (checking/written.py). Every result is written.
 * No operation computes with a buffer that nothing has written, on any path, as happens
   if a copy into it is missing. The pass proves this for destination-style operations,
   and for linalg's by their payloads. A copy may copy undefined contents.
 * No operation overwrites its own inputs: each destination is disjoint from all other
   operands, or coincides with an operand that the operation may overwrite element by
   element. This applies to one buffer and to two buffers at the same address
   (checking/operands.py).
 * The result of a call may be any memref that the call passes, unless every return of
   the called function returns an allocation, or one of several (checking/effects.py).
 * An arena that the function does not allocate has the properties that it declares
   (checking/arenas.py): all calls of the module pass memory of its type and alignment
   that no other operand shares, the size function returns its bytes, its global has its
   type and alignment, and its address is aligned and does not overlap others.
 * No operation uses a buffer after its arena is freed, frees an arena twice, frees a
   single buffer of an arena, or returns a buffer from its function.

Remarks count what the pass cannot check (checking/unchecked.py): operations with
undeclared effects, addresses that escape, views at offsets known only at run time,
reads of undefined contents, and arenas that some path does not free.

If sizes are symbolic, the pass checks the largest sizes that the function's bounds
allow. Without bounds, it checks typical sizes, then proves the plan for all sizes
(checking/symbolic_plan.py). If that proof fails, a remark says so, and the runtime
checks the plan again for the sizes of each call.

The pass trusts what it shares with the planner: the memory effects that operations
declare (dialects/memory.py, dialects/linalg_memory.py) and the interpretation of index
arithmetic (analysis/sizes.py). It assumes that a function's arguments do not overlap,
and that the indices of `memref.load` and `memref.store` are in bounds.

Needs: level 3.
Leaves: the same. A remark counts the arenas and buffers that were checked, even if
there are none. The first fault raises `LocatedError`.
Does not: check values, or memory that is no arena.
"""

from collections.abc import Sized
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...checking.plan_check import check_plan
from ...dialects.diagnostics import remark


@dataclass(frozen=True)
class PlanCheck(ModulePass):
    """Checks the arenas of all functions, and changes nothing.

    report: whether a remark counts the arenas and buffers that were checked.
    unmarked: whether all memory with a `memref.view` is an arena, not only what
        `tgraph.arena` marks; by default only if nothing is marked.
    """

    name = "plan-check"

    report: bool = True
    unmarked: bool | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pools = check_plan(op, unmarked=self.unmarked)
        arenas = [pool for pool in pools if pool.argument is None]
        if not self.report:
            return
        buffers = {buffer.value for arena in arenas for buffer in arena.buffers}
        counts = f"{_count(arenas, 'arena')}, {_count(buffers, 'buffer')}"
        remark(f"plan-check: {counts} checked", op)


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
