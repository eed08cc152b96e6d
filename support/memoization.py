"""Memoization for the duration of a task, such as a run of passes.

Imports nothing, so that every folder can use it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


@contextmanager
def memoized_within(memory: ContextVar[dict[_K, _V] | None]) -> Generator[None]:
    """Sets `memory` to a dictionary within the block; a nested block shares it."""
    known = memory.get()
    token = memory.set({} if known is None else known)
    try:
        yield
    finally:
        memory.reset(token)
