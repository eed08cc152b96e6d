"""The threads of NumPy's BLAS, while programs run: OpenBLAS, as NumPy's wheels have it.

Another BLAS has its own way to be told, which its environment variables say.
"""

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy as np

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "", "_64")


@contextmanager
def threads(count: int) -> Generator[None]:
    """Has products use so many threads, in all of the process, meanwhile: of several at
    a time the last one decides, and the number that was before comes back in the end.
    """
    _inside.enter(count)
    try:
        yield
    finally:
        _inside.leave()


class _Inside:
    """Who is inside of `threads`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = self._before = 0

    def enter(self, count: int) -> None:
        get, set = _controls()
        with self._lock:
            if not self._count:
                self._before = get()
            self._count += 1
            set(count)

    def leave(self) -> None:
        _, set = _controls()
        with self._lock:
            self._count -= 1
            if not self._count:
                set(self._before)


_inside = _Inside()


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], object]]:
    """What reads and what changes the number; of another BLAS, nothing."""
    loaded = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # pyright: ignore
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(loaded, f"{prefix}_get_num_threads{suffix}", None)
            set = getattr(loaded, f"{prefix}_set_num_threads{suffix}", None)
            if get is not None and set is not None:
                return get, set
    return (lambda: 1), (lambda count: None)
