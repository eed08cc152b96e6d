"""Tries lowerings of a program, each on a copy, and estimates their bytes and time."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Protocol, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....analysis.cost import duration
from ....analysis.functions import tensor_functions
from ....dialects.diagnostics import held_back, say
from ....planning import deadline
from ... import driver
from ...options import Placing
from .fitting import PlannedBytes

REST = 4
"""Lowering and planning a program takes this many times as long as measuring it."""


@dataclass(frozen=True)
class Candidate:
    """A program that passes have lowered, with its cost."""

    what: str  # describes the passes in words
    module: ModuleOp  # level 1
    bytes: int  # of the largest arena that counts
    time: int  # nanoseconds, estimated from types
    remarks: Sequence[logging.LogRecord]  # held back

    def adopt(self, op: ModuleOp) -> None:
        """Replaces the program `op` by this one, and emits its remarks."""
        op.detach_region(op.body)
        op.add_region(self.module.detach_region(self.module.body))
        say(self.remarks)


class Costly(Protocol):
    """An object with a cost in bytes and time."""

    @property
    def bytes(self) -> int: ...

    @property
    def time(self) -> int: ...


T = TypeVar("T", bound=Costly)


def undominated(candidates: Iterable[T]) -> Sequence[T]:
    """The Pareto-optimal candidates by time and bytes, the fastest first."""
    kept: list[T] = []
    for candidate in sorted(candidates, key=lambda c: (c.time, c.bytes)):
        if not kept or candidate.bytes < kept[-1].bytes:
            kept.append(candidate)
    return kept


class Candidates:
    """Makes candidates for a program until the time is up.

    unlimited: a device whose arena does not count.
    made: the number of candidates so far.
    time_limit: the seconds of wall-clock time, from the start of the current run of
        passes, that these passes, all candidates, and planning the result may take.
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
        self.made = 0
        self._end = driver.deadline(time_limit)
        self._planned = PlannedBytes(placing)

    def run(
        self,
        what: str,
        start: ModuleOp,
        passes: Sequence[ModulePass],
        ahead: list[ModuleOp] | None = None,
        seen: set[object] | None = None,
    ) -> Candidate | None:
        """Runs the passes on a copy of `start` and returns the candidate. None if the
        time is up, or if the same program, with the same passes left, is in `seen`.

        The first candidate is always made. Before each pass, `ahead` receives the
        program, and `seen` its text and the passes that are left.
        """
        module = start.clone()
        left = list(passes)

        def before(_: ModulePass, module: ModuleOp) -> None:
            self._check()
            if ahead is not None:
                ahead.append(module.clone() if ahead else start)
            if seen is not None and len(left) < len(passes):
                key = str(module), *map(str, left)
                if key in seen:
                    raise _GivenUp
                seen.add(key)
            left.pop(0)

        try:
            end = self._end if self.made else inf
            with held_back() as remarks, deadline.until(end):
                driver.run(self.ctx, module, passes, verify=False, before=before)
                self._check()
                begin = monotonic()
                bytes = self._bytes(module)
                self._check()
        except _GivenUp:
            return None
        if not self.made:
            self._end -= REST * (monotonic() - begin)  # to lower and plan the result
        self.made += 1
        return Candidate(what, module, bytes, duration(module), remarks)

    def _check(self) -> None:
        if self.made and deadline.passed():
            raise _GivenUp

    def _bytes(self, module: ModuleOp) -> int:
        """The bytes of the largest arena that counts."""
        arenas = [self._planned.peaks(func) for func, _ in tensor_functions(module)]
        counting = [
            n for arena in arenas for d, n in arena.items() if d != self.unlimited
        ]
        return max(counting, default=0)


class _GivenUp(Exception):
    """Raised when a candidate is given up."""
