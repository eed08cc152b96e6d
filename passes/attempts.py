"""Ways to lower the peak of a program, tried on copies of it and measured."""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import REMARKS
from tensorplan.passes import driver
from tensorplan.passes.plan_check import PlannedPool, check_plan
from tensorplan.passes.plan_memory import PlanMemory
from tensorplan.passes.tgraph_bufferize import TGraphBufferize


@dataclass(frozen=True)
class Attempt:
    """What passes have made of a program."""

    what: str  # in words
    module: ModuleOp  # level 1
    bytes: int  # of the largest arena that counts
    remarks: Sequence[logging.LogRecord]  # held back

    def adopt(self, op: ModuleOp) -> None:
        """Makes this the program, and says what was said about it."""
        op.detach_region(op.body)
        op.add_region(self.module.detach_region(self.module.body))
        for record in self.remarks:
            REMARKS.handle(record)


@dataclass(frozen=True)
class Trial:
    """Tries passes.

    alignment, lend: as of plan-memory.
    unlimited: a device whose arena does not count.
    """

    ctx: Context
    alignment: int
    lend: bool
    unlimited: str = ""

    def run(self, what: str, start: ModuleOp, passes: Sequence[ModulePass]) -> Attempt:
        """What the passes make of a copy of the program."""
        module = start.clone()
        with _held_back() as remarks:
            driver.run(self.ctx, module, passes, verify=False)
        return Attempt(what, module, self._planned(module), remarks)

    def _planned(self, module: ModuleOp) -> int:
        arenas = planned_arenas(self.ctx, module.clone(), self.alignment, self.lend)
        return max((a.size for a in arenas if a.device != self.unlimited), default=0)


def planned_arenas(
    ctx: Context, module: ModuleOp, alignment: int = 64, lend: bool = True
) -> list[PlannedPool]:
    """Plans a program of level 1 with devices, in place; returns its arenas.

    Results that lend their memory are not among them.
    """
    plan = PlanMemory(alignment=alignment, lend=lend)
    driver.run(ctx, module, [TGraphBufferize(), plan], verify=False)
    return [pool for pool in check_plan(module) if pool.result is None]


@contextmanager
def _held_back() -> Generator[list[logging.LogRecord]]:
    """Remarks go into a list."""
    records: list[logging.LogRecord] = []

    def hold(record: logging.LogRecord) -> bool:
        records.append(record)
        return False

    REMARKS.addFilter(hold)
    try:
        yield records
    finally:
        REMARKS.removeFilter(hold)
