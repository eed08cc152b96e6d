"""A point in time by which searches end, wherever they are.

    with until(monotonic() + 3):
        ...                      # whatever is called here asks `passed()` now and then,
                                 # and goes on with the best that it has so far

What is searched without one does not depend on the clock.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

_end: ContextVar[float] = ContextVar("_end", default=inf)


@contextmanager
def until(end: float) -> Generator[None]:
    """Sets a deadline, on `time.monotonic()`; an earlier one around it stays."""
    token = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(token)


def left() -> float:
    """Seconds until the deadline; infinitely many without one."""
    return _end.get() - monotonic()


def passed() -> bool:
    return left() <= 0
