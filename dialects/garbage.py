"""Garbage collection while IR is made.

IR is many live objects in cycles: Python's collector goes through all of them again and
again, and finds nothing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

ALLOCATIONS = 1_000_000
"""After how many new objects garbage is looked for, not every 700: some 100 MB."""


_lock = Lock()
_inside = 0
"""How many threads, and callers of one, are in `seldom_collected`."""

_before = gc.get_threshold()
"""The process's thresholds when the first of them came."""


@contextmanager
def seldom_collected() -> Generator[None]:
    """Looks for garbage seldom, unless the caller has turned that off: until the last
    thread leaves this."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = gc.get_threshold()
            if _before[0]:
                gc.set_threshold(max(ALLOCATIONS, _before[0]), *_before[1:])
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.set_threshold(*_before)
