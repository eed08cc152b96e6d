"""Garbage collection while IR is made.

IR is many live objects in cycles: Python's collector goes through all of them again and
again, and finds nothing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

ALLOCATIONS = 1_000_000
"""After how many new objects garbage is looked for, not every 700: some 100 MB."""


@contextmanager
def seldom_collected() -> Generator[None]:
    """Looks for garbage seldom, unless the caller has turned that off."""
    thresholds = gc.get_threshold()
    if thresholds[0]:
        gc.set_threshold(max(ALLOCATIONS, thresholds[0]), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
