"""What one input may take: seconds, and memory."""

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Hang(BaseException):
    """It took too long. No `Exception`, so that nobody on the way takes it for one."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raises `Hang` in the main thread after so many seconds of CPU time."""

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
    """Lets this process have so much address space; more is a `MemoryError`."""
    size = int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
