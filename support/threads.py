"""How many threads programs use. Imports nothing of ours."""

import os

VARIABLE = "TENSORPLAN_THREADS"


def available() -> int:
    """The threads of a program that is not told: as many as `TENSORPLAN_THREADS` says,
    or one for each processor that this process may run on.

    Raises `ValueError` for a variable that is no such number.
    """
    if given := os.environ.get(VARIABLE):
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(f"{VARIABLE} is {given!r}, expected 1 or more")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked(threads: int | None) -> int:
    """`threads`, or `available()` for None. Raises `ValueError` for fewer than 1."""
    if threads is None:
        return available()
    if isinstance(threads, bool) or threads < 1:
        raise ValueError(f"threads is {threads}, expected 1 or more")
    return threads
