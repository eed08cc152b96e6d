"""`plan-budget`: rejects a plan whose arenas exceed a budget, and explains why.

    error: the arena on cpu:0 takes 3072 bytes, 1024 more than the budget of 2048
      buffers live at tgraph.add (model.mlir:7:8):
        2048 bytes of %big, from tgraph.concatenate (model.mlir:5:10)
        1024 bytes of %s, from tgraph.add (model.mlir:4:8)
      in this order, 3072 bytes are live at the peak
      tgraph.concatenate (model.mlir:5:10) alone takes 2048 bytes; tiles along
      dimension 1 may take less

The pass counts each buffer of an arena while it is live, also in loops. Buffers in the
caller's memory are not in an arena.

Needs: level 3.
Leaves: the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...analysis.allocations import lifespans
from ...analysis.liveness import buffer_of
from ...checking.plan_check import PlannedBuffer, PlannedPool, check_plan
from ...dialects.diagnostics import LocatedError, name_of, place_of
from ...dialects.memory import is_view
from ...planning import Problem
from ..options import Budget
from ..tgraph.tiling.claims import claim, why_whole

LISTED = 12
"""The largest number of buffers that an error names."""


@dataclass(frozen=True)
class PlanBudget(ModulePass, Budget):
    """Rejects arenas that exceed a budget, and changes nothing.

    unlimited: a device whose arena may exceed the budget.
    """

    name = "plan-budget"

    unlimited: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        budget = self.bytes_allowed
        for pool in check_plan(op):
            if pool.device == self.unlimited and pool.device:
                continue
            if pool.argument is None and pool.size > budget:
                lines = _explained(pool, budget)
                view = pool.buffers[0].value.owner
                raise LocatedError("\n  ".join(lines), view.parent_op())


def _explained(pool: PlannedPool, budget: int) -> Iterator[str]:
    where = f" on {pool.device}" if pool.device else ""
    yield (
        f"the arena{where} takes {pool.size} bytes, {pool.size - budget} more than the "
        f"budget of {budget}"
    )
    planned = list({buffer.value: buffer for buffer in pool.buffers}.values())
    problem = Problem(
        [
            buffer_of(b.name, b.size, live, b.alignment)
            for b, live in zip(
                planned, lifespans([b.value for b in planned]), strict=True
            )
        ]
    )
    live = [
        (start, b)
        for b, buffer in zip(planned, problem.buffers, strict=True)
        for start, end in buffer.live
        if start <= problem.peak_step < end
    ]
    _, newest = max(live, key=lambda each: each[0])
    live.sort(key=lambda each: (-each[1].size, each[0]))
    yield f"buffers live at {_writer(newest)}:"
    for _, buffer in live[:LISTED]:
        hint = buffer.value.name_hint
        name = f" of %{hint}," if hint else ""
        yield f"  {buffer.size} bytes{name} from {_writer(buffer)}"
    if len(live) > LISTED:
        rest = sum(buffer.size for _, buffer in live[LISTED:])
        yield f"  {rest} bytes in {len(live) - LISTED} other buffers"
    yield f"in this order, {problem.lower_bound} bytes are live at the peak"
    op, needed = _in_the_way(pool, budget)
    yield f"{_described(op)} {claim(op, f'{needed} bytes')}"


def _users(value: SSAValue) -> Iterator[tuple[Operation, int]]:
    """The operations that use a buffer, directly or through views, and the number of
    the operand."""
    values = [value]
    for alias in values:  # the body appends
        for use in alias.uses:
            if is_view(use.operation):
                values.append(use.operation.results[0])
            else:
                yield use.operation, use.index


def _writer(buffer: PlannedBuffer) -> str:
    """The operation that writes a buffer, as text. It has the buffer's location."""
    users = [op for op, _ in _users(buffer.value)]
    view = buffer.value.owner
    for op in users:
        if isinstance(view, Operation) and op.location == view.location:
            return _described(op)
    return _described(users[0])


def _described(op: Operation) -> str:
    place = place_of(op)
    return f"{name_of(op)} ({place})" if place else name_of(op)


def _in_the_way(pool: PlannedPool, budget: int) -> tuple[Operation, int]:
    """The operation whose buffers take the most bytes, and these bytes. Operations that
    provably need more than the budget take precedence."""
    needed: dict[Operation, dict[SSAValue, int]] = {}
    for buffer in pool.buffers:
        for op, _ in _users(buffer.value):
            needed.setdefault(op, {})[buffer.value] = buffer.size
    sums = {op: sum(sizes.values()) for op, sizes in needed.items()}
    proved = [op for op in sums if sums[op] > budget and why_whole(op)]
    op = max(proved or sums, key=lambda op: sums[op])
    return op, sums[op]
