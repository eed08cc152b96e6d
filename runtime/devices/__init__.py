"""Runs the steps of a program: in one thread, a thread for each queue, or processes.

order.py       which steps of different queues wait for each other
serial.py      in this thread, in program order
local.py       in this process: `Serial`, or `Threads`, by queue
processes.py   in processes that MPI starts, here or on other hosts
worker.py      what runs in such a process
messages.py    between these two

A queue is a stream of a device. Its steps run one after the other, in program order.
"""

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

    def run(self) -> None:
        """Runs all steps; raises what one of them raises."""
        ...

    def close(self) -> None:
        """Ends threads and processes. A later run starts them again."""
        ...
