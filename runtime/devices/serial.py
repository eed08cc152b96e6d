"""Runs steps in the caller's thread, one after the other. Knows no IR."""

from collections.abc import Iterable

import numpy as np

from ..backends.jit.records import is_native, joined
from ..backends.numpy import blas
from ..calls import Call
from ..program.program import Changes, Program
from ..program.steps import Step


def tape(steps: Iterable[Step]) -> list[Call]:
    """The calls of steps; runs of native ones are one call."""
    return joined([call for step in steps for call in step.calls])


class Serial:
    """One step after the other, in the caller's thread."""

    def __init__(self, program: Program, threads: int = 1):
        """`threads` are those of NumPy's BLAS."""
        self._program = program
        self._threads = threads
        self.remake()

    def wait(self) -> None:
        pass

    def remake(self) -> None:
        self._program.make()
        self._join()

    def follow(self, changes: Changes) -> None:
        if self._program.follow(changes):
            self._join()

    def _join(self) -> None:
        self._tape = tape(self._program.steps)
        self._is_native = is_native(self._tape)

    def run(self) -> None:
        if self._is_native:  # NumPy's setting takes longer than small programs
            for function, arguments in self._tape:
                function(*arguments)
            return
        with np.errstate(all="ignore"), blas.Threads(self._threads):
            for function, arguments in self._tape:
                function(*arguments)

    def close(self) -> None:
        pass
