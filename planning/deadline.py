"""A point in time by which searches end, wherever they are.

    with until(monotonic() + 3):
        ...                      # whatever is called here asks `passed()` now and then,
                                 # and goes on with the best that it has so far

What is searched without one does not depend on the clock. Who waits for a search can
end it before its time:

    with stoppable() as stop:
        ...                      # `stop()`, from a signal's handler or another thread
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from math import inf
from threading import Event
from time import monotonic

_end: ContextVar[float] = ContextVar("_end", default=inf)
_stop: ContextVar[Event | None] = ContextVar("_stop", default=None)


@contextmanager
def until(end: float) -> Generator[None]:
    """Sets a deadline, on `time.monotonic()`; an earlier one around it stays."""
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def within(seconds: float | None) -> AbstractContextManager[None]:
    """Sets a deadline so many seconds from now; none for None."""
    return until(inf if seconds is None else monotonic() + seconds)


@contextmanager
def stoppable() -> Generator[Callable[[], None]]:
    """Gives what ends all that is searched within, as if the deadline had passed."""
    event = Event()
    token = _stop.set(event)
    try:
        yield event.set
    finally:
        _stop.reset(token)


def left() -> float:
    """Seconds until the deadline; infinitely many without one."""
    stop = _stop.get()
    return -inf if stop and stop.is_set() else _end.get() - monotonic()


def passed() -> bool:
    return left() <= 0
