"""`plan-check`: proves from the IR alone that the arenas' plan is sound.

Takes level 3, and shares no code with what makes it: neither how live ranges are found
nor how buffers are placed. An arena is any memory of which a `memref.view` is made, in
whatever block: what `memref.alloc` or `memref.alloca` allocates, an argument, a global
(checking/memories.py). Results, variables and donated arguments with buffers in their
memory are checked like arenas (checking/caller_pools.py). Proved are:

 * each buffer has a known offset, is aligned as its arena and its elements are, and is
   within the arena; each view of a buffer lies within that (checking/extents.py);
 * nothing uses a buffer when another may have had some of its bytes since it was used
   before, on any path through the function, except to overwrite all of it without
   reading it (checking/ownership.py); what the caller gave, and what it is to find, is
   used at the function's start and end;
 * what goes on when its operation ends, a DMA, has its buffers until the wait;
 * if operations have streams: all operations that have the one of two such buffers are
   surely over before any that has the other (checking/happens_before.py);
 * tgraph's operations read nothing of an arena that is not written before, on every
   path and in all of its bytes (checking/written.py); somebody writes each result;
 * no operation writes what it still reads: each destination is disjoint from each other
   operand, or is one that the operation may overwrite, element by element, whether
   both are one buffer or two at the same place (checking/operands.py);
 * nothing uses a buffer after its arena was freed, nothing frees an arena twice or a
   buffer by itself, and none is returned from its function.

What is not understood is a remark that counts it (checking/unchecked.py): operations
whose effects nobody declares, addresses that are taken, views at places known only in a
run, reads of undefined contents, arenas that a path does not free.

Where sizes are symbolic, that is checked for the largest that the function's bounds
allow; without bounds, for typical ones and then proved for all
(checking/symbolic_plan.py). If the proof fails a remark says so, and the runtime checks
again for the sizes of a call.

Shared with what it checks, and trusted: what operations declare about memory
(dialects/memory.py, dialects/linalg_memory.py) and how index arithmetic is read
(analysis/sizes.py). Assumed: a function's arguments are different memories, and
indices of `memref.load` and `memref.store` are within their memrefs. Does not: check
values, or memory of which no view is made. Raises `LocatedError` for the first fault.
The pass says how many arenas and buffers it has checked, 0 as well.
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
    """Checks the arenas of all functions; changes nothing.

    report: whether a remark says how many arenas and buffers were checked.
    """

    name = "plan-check"

    report: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        arenas = [pool for pool in check_plan(op) if pool.argument is None]
        if not self.report:
            return
        buffers = {buffer.value for arena in arenas for buffer in arena.buffers}
        counts = f"{_count(arenas, 'arena')}, {_count(buffers, 'buffer')}"
        remark(f"plan-check: {counts} checked", op)


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
