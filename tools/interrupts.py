"""Ctrl-C ends a search with its best result so far, and the tool continues.

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
    """Yields a function that returns whether Ctrl-C was pressed."""
    interrupted = Event()
    with deadline.stoppable() as stop:

        def end(number: int, frame: FrameType | None) -> None:
            if interrupted.is_set():
                raise KeyboardInterrupt
            interrupted.set()
            stop()
            if sys.stderr.isatty():  # print is not reentrant
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
    """Whether this thread can handle SIGINT: the main thread, unless it is ignored."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
