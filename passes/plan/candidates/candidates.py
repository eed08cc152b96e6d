"""Candidates for a plan: each is made on a copy of the program, and measured."""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import monotonic

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....checking.plan_check import PlannedPool, check_plan
from ....dialects.diagnostics import REMARKS
from ....planning import deadline
from ... import driver
from ...options import Packing, Placing
from ...tgraph.bufferize import TGraphBufferize
from ..memory import PlanMemory
from ..workspaces import PlanWorkspaces


@dataclass(frozen=True)
class Candidate:
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


class Candidates:
    """Candidates for a program, until the time is up.

    unlimited: a device whose arena does not count.
    time_limit: the seconds on the clock, from when the passes of this run began, that
        these, all candidates, and planning the outcome may take.
    """

    def __init__(
        self,
        ctx: Context,
        placing: Placing,
        unlimited: str = "",
        time_limit: float | None = None,
    ):
        self.ctx = ctx
        self.placing = placing
        self.unlimited = unlimited
        self.made: list[Candidate] = []
        self._end = driver.due(time_limit)

    @property
    def best(self) -> Candidate:
        """That with the fewest bytes, the first of these."""
        return min(self.made, key=lambda candidate: candidate.bytes)

    def run(
        self, what: str, start: ModuleOp, passes: Sequence[ModulePass]
    ) -> Candidate | None:
        """What the passes make of a copy of the program; None if the time is up.

        The first candidate is always made.
        """
        module = start.clone()
        try:
            end = self._end if self.made else inf
            with held_back() as remarks, deadline.until(end):
                driver.run(self.ctx, module, passes, verify=False, before=self._check)
                self._check()
                begin = monotonic()
                bytes = self._planned(module.clone())
                self._check()
        except _OutOfTime:
            return None
        if not self.made:
            self._end -= 2 * (monotonic() - begin)  # for what comes after it
        self.made.append(Candidate(what, module, bytes, remarks))
        return self.made[-1]

    def _check(self, *_: object) -> None:
        if self.made and deadline.passed():
            raise _OutOfTime

    def _planned(self, module: ModuleOp) -> int:
        arenas = planned_arenas(self.ctx, module, self.placing)
        return max((a.size for a in arenas if a.device != self.unlimited), default=0)


class _OutOfTime(Exception):
    """A candidate is given up."""


def planned_arenas(
    ctx: Context, module: ModuleOp, placing: Placing
) -> list[PlannedPool]:
    """Plans a program of level 1 with devices, in place; returns its arenas.

    Results whose memory is reused are not among them.
    """
    passes = [
        TGraphBufferize(),
        PlanWorkspaces(placing.workspaces),
        PlanMemory(**placing.shared(Packing)),
    ]
    driver.run(ctx, module, passes, verify=False)
    return [pool for pool in check_plan(module) if pool.result is None]


@contextmanager
def held_back() -> Generator[list[logging.LogRecord]]:
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
