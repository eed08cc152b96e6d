"""Deadlines, at which searches end with the best result that they have.

    with until(monotonic() + 3):
        ...                      # searches that are called here ask `passed()` now and
                                 # then, and end with the best result so far

Without a deadline, searches do not depend on the clock. A program that waits for a
search can end it early:

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
    """Sets a deadline in `time.monotonic()`. An earlier outer one stays."""
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def within(seconds: float | None) -> AbstractContextManager[None]:
    """Sets a deadline `seconds` from now, or none for None."""
    return until(inf if seconds is None else monotonic() + seconds)


@contextmanager
def stoppable() -> Generator[Callable[[], None]]:
    """Yields a function that ends all searches within, as a deadline does."""
    event = Event()
    token = _stop.set(event)
    try:
        yield event.set
    finally:
        _stop.reset(token)


def left() -> float:
    """The seconds until the deadline: infinity without one, -infinity after a stop."""
    stop = _stop.get()
    return -inf if stop and stop.is_set() else _end.get() - monotonic()


def passed() -> bool:
    return left() <= 0
