"""The number of threads that programs use. Imports nothing from tensorplan."""

import os

VARIABLE = "TENSORPLAN_THREADS"

MOST = 1024
"""A larger number is taken for a mistake: each thread has a stack, and may have a
workspace."""


def available() -> int:
    """The default number of threads: `TENSORPLAN_THREADS` if set, else one for each
    processor that this process may run on.

    Raises `ValueError` if the variable is not a number from 1 to `MOST`.
    """
    if given := os.environ.get(VARIABLE):
        if not given.isdecimal() or not 1 <= int(given) <= MOST:
            raise ValueError(f"{VARIABLE} is {given!r}, expected 1 to {MOST}")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked(threads: int | None) -> int:
    """Returns `threads`, or `available()` for None. Raises `ValueError` for a number
    below 1 or above `MOST`."""
    if threads is None:
        return available()
    if isinstance(threads, bool) or not 1 <= threads <= MOST:
        raise ValueError(f"threads is {threads}, expected 1 to {MOST}")
    return threads
