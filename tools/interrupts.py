"""Ctrl-C during a search: it ends with the best that it has, and the tool goes on.

A second Ctrl-C ends the tool.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from ..planning import deadline

_NOTE = b"\r\x1b[Kinterrupted: ending with the best so far; again: at once\n"


@contextmanager
def ending_searches() -> Generator[Callable[[], bool]]:
    """What it gives says whether there was a Ctrl-C."""
    interrupted = Event()
    with deadline.stoppable() as stop:

        def end(number: int, frame: FrameType | None) -> None:
            if interrupted.is_set():
                raise KeyboardInterrupt
            interrupted.set()
            stop()
            if sys.stderr.isatty():  # print is not to be used in handlers
                os.write(sys.stderr.fileno(), _NOTE)

        if not _is_heard():
            yield interrupted.is_set
            return
        before = signal.signal(signal.SIGINT, end)
        try:
            yield interrupted.is_set
        finally:
            signal.signal(signal.SIGINT, before)


def _is_heard() -> bool:
    """Whether Ctrl-C comes here: not in other threads, nor where it is ignored."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
