"""Limits of time and memory for one input."""

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Hang(BaseException):
    """An input took too long. It is not an `Exception`, so that no handler stops it."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raises `Hang` in the main thread after `seconds` of CPU time."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(gibibytes: float) -> None:
    """Limits the address space of this process. Beyond it, allocation raises
    `MemoryError`."""
    size = int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
