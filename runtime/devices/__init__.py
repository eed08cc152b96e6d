"""Runs the steps of a program: in one thread, a thread for each queue, or processes.

order.py       which steps of different queues wait for each other
serial.py      in the caller's thread, in program order
local.py       in this process: `Serial`, or `Concurrent`, by queue
processes.py   in processes that MPI starts, here or on other hosts
worker.py      the program of such a process
messages.py    messages between the controller and these processes

A queue is a stream of a device. Its steps run sequentially, in program order.
"""

from collections.abc import Sequence
from typing import Protocol

from ..program.program import Changes


class Runner(Protocol):
    """Runs the steps of one program, any number of times."""

    def wait(self) -> None:
        """Waits until an interrupted run has ended in all threads."""
        ...

    def remake(self) -> None:
        """Makes the calls of all steps anew."""
        ...

    def follow(self, changes: Changes) -> None:
        """Makes the calls follow arguments that have changed."""
        ...

    def divide(self, cuts: Sequence[int]) -> Sequence[int]:
        """Divides `run` into stages that begin at the steps `cuts`, after a first stage
        at step 0. Returns the cuts that it makes: none if it always runs all steps
        together."""
        ...

    def run(self, stage: int | None = None) -> None:
        """Runs all steps, or those of a stage. Raises the error of a failing step."""
        ...

    def close(self) -> None:
        """Ends threads and processes. A later run restarts them."""
        ...
