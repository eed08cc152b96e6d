"""Tries candidates for a lowering: each on a copy of the program, which it measures."""

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
"""How much longer it takes to lower a program and to plan it than to measure it."""


@dataclass(frozen=True)
class Candidate:
    """What passes have made of a program."""

    what: str  # in words
    module: ModuleOp  # level 1
    bytes: int  # of the largest arena that counts
    time: int  # nanoseconds, estimated from types
    remarks: Sequence[logging.LogRecord]  # held back

    def adopt(self, op: ModuleOp) -> None:
        """Makes this the program, and says what was said about it."""
        op.detach_region(op.body)
        op.add_region(self.module.detach_region(self.module.body))
        say(self.remarks)


class Costly(Protocol):
    """What takes bytes and time."""

    @property
    def bytes(self) -> int: ...

    @property
    def time(self) -> int: ...


T = TypeVar("T", bound=Costly)


def undominated(candidates: Iterable[T]) -> Sequence[T]:
    """Those than which no other takes less time and no more bytes, or as much time and
    fewer bytes; what takes the least time first."""
    kept: list[T] = []
    for candidate in sorted(candidates, key=lambda c: (c.time, c.bytes)):
        if not kept or candidate.bytes < kept[-1].bytes:
            kept.append(candidate)
    return kept


class Candidates:
    """Candidates for a program, until the time is up.

    unlimited: a device whose arena does not count.
    made: how many there were.
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
        self.made = 0
        self._end = driver.due(time_limit)
        self._planned = PlannedBytes(placing)

    def run(
        self,
        what: str,
        start: ModuleOp,
        passes: Sequence[ModulePass],
        ahead: list[ModuleOp] | None = None,
        seen: set[object] | None = None,
    ) -> Candidate | None:
        """What the passes make of a copy of the program; None if the time is up, or if
        it has become a program of `seen` with the same passes ahead of it.

        The first candidate is always made. `ahead` gets the program ahead of each pass,
        `seen` its text.
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
            self._end -= REST * (monotonic() - begin)  # for what comes after it
        self.made += 1
        return Candidate(what, module, bytes, duration(module), remarks)

    def _check(self) -> None:
        if self.made and deadline.passed():
            raise _GivenUp

    def _bytes(self, module: ModuleOp) -> int:
        """Of the largest arena that counts."""
        arenas = [self._planned.peaks(func) for func, _ in tensor_functions(module)]
        counting = [
            n for arena in arenas for d, n in arena.items() if d != self.unlimited
        ]
        return max(counting, default=0)


class _GivenUp(Exception):
    """A candidate is given up."""
