"""What is found once while something goes on, such as a run of passes.

Imports nothing, so that every folder can use it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


@contextmanager
def remembering(memory: ContextVar[dict[_K, _V] | None]) -> Generator[None]:
    """Within it, the variable has a dictionary: within another, the outer one's."""
    known = memory.get()
    token = memory.set({} if known is None else known)
    try:
        yield
    finally:
        memory.reset(token)
