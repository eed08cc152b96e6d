"""How many threads programs use. Imports nothing of ours."""

import os

VARIABLE = "TENSORPLAN_THREADS"

MOST = 1024
"""More threads than that are a slip: each has a stack, and may have a workspace."""


def available() -> int:
    """The threads of a program that is not told: as many as `TENSORPLAN_THREADS` says,
    or one for each processor that this process may run on.

    Raises `ValueError` for a variable that is no such number.
    """
    if given := os.environ.get(VARIABLE):
        if not given.isdecimal() or not 1 <= int(given) <= MOST:
            raise ValueError(f"{VARIABLE} is {given!r}, expected 1 to {MOST}")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked(threads: int | None) -> int:
    """`threads`, or `available()` for None. Raises `ValueError` for less than 1, and
    for more than `MOST`."""
    if threads is None:
        return available()
    if isinstance(threads, bool) or not 1 <= threads <= MOST:
        raise ValueError(f"threads is {threads}, expected 1 to {MOST}")
    return threads
