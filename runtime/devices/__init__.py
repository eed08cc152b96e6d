"""Runs the steps of a program: in one thread, a thread for each queue, or processes.

order.py       which steps of different queues wait for each other
serial.py      in this thread, in program order
local.py       in this process: `Serial`, or `Threads`, by queue
processes.py   in processes that MPI starts, here or on other hosts
worker.py      what runs in such a process
messages.py    between these two

A queue is a stream of a device. Its steps run one after the other, in program order.
"""

from collections.abc import Sequence
from typing import Protocol

from ..program.program import Changes


class Runner(Protocol):
    """Runs the steps of one program, again and again."""

    def wait(self) -> None:
        """Till nothing is at work any more for a run that was interrupted."""
        ...

    def remake(self) -> None:
        """Makes the calls of all steps anew."""
        ...

    def follow(self, changes: Changes) -> None:
        """Makes the calls follow arguments."""
        ...

    def divide(self, cuts: Sequence[int]) -> Sequence[int]:
        """Has `run` take stages, which begin at these steps, but for the first; returns
        the steps at which they do: none if it runs all of them at a time."""
        ...

    def run(self, stage: int | None = None) -> None:
        """Runs all steps, or those of a stage; raises what one of them raises."""
        ...

    def close(self) -> None:
        """Ends threads and processes. A later run starts them again."""
        ...
