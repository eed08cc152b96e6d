"""Runs steps in the caller's thread, one after the other. Knows no IR."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from ..backends.jit.records import is_native, joined
from ..backends.jit.subnormals import flushing
from ..backends.numpy import blas
from ..calls import Call
from ..program.program import Changes, Program
from ..program.steps import Step


def tape(steps: Iterable[Step], flush_subnormals: bool = False) -> list[Call]:
    """The calls of `steps`, with consecutive native calls joined into one call."""
    return joined([call for step in steps for call in step.calls], flush_subnormals)


class JoinedRunner(ABC):
    """Runs the steps of a program in this process, from tapes of joined calls."""

    _program: Program

    def remake(self) -> None:
        self._program.make()
        self._join()

    def follow(self, changes: Changes) -> None:
        if self._program.follow(changes):
            self._join()

    @abstractmethod
    def _join(self) -> None:
        """Makes the tapes of the steps' calls."""


class Serial(JoinedRunner):
    """Runs one step after the other in the caller's thread."""

    def __init__(
        self, program: Program, threads: int = 1, flush_subnormals: bool = False
    ):
        """`threads` is the number of threads that NumPy's BLAS uses."""
        self._program = program
        self._threads = threads
        self._flush_subnormals = flush_subnormals
        self._cuts: Sequence[int] = ()
        self.remake()

    def wait(self) -> None:
        pass

    def _join(self) -> None:
        steps = self._program.steps
        bounds = pairwise([0, *self._cuts, len(steps)])
        flush = self._flush_subnormals
        stages = [tape(steps[start:end], flush) for start, end in bounds]
        self._whole = [call for calls in stages for call in calls]
        self._stages = stages
        self._is_native = is_native(self._whole)

    def divide(self, cuts: Sequence[int]) -> Sequence[int]:
        self._cuts = cuts
        self._join()
        return cuts

    def run(self, stage: int | None = None) -> None:
        calls = self._whole if stage is None else self._stages[stage]
        if self._is_native:  # setting NumPy up takes longer than a small program
            for function, arguments in calls:
                function(*arguments)
            return
        with (
            np.errstate(all="ignore"),
            blas.Threads(self._threads),
            flushing(self._flush_subnormals),
        ):
            for function, arguments in calls:
                function(*arguments)

    def close(self) -> None:
        pass
