"""Runs Python's garbage collector less often while IR is built.

IR consists of many live objects in cycles. Python's collector traverses all of them
again and again, and finds no garbage.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

ALLOCATIONS = 1_000_000
"""The number of new objects between collections, instead of 700: some 100 MB."""


_lock = Lock()
_inside = 0
"""The number of active calls of `seldom_collected`, over all threads."""

_before = gc.get_threshold()
"""The process's thresholds before the first active call."""


@contextmanager
def seldom_collected() -> Generator[None]:
    """Raises the collector's threshold until the last active call ends, unless the
    caller has turned collection off."""
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
