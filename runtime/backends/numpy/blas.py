"""Sets the number of threads that NumPy's BLAS (OpenBLAS, in wheels) uses in programs.

Another BLAS is configured by its own environment variables.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock

import numpy as np

_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "", "_64")


_lock = Lock()
_count = _before = 0
"""The number of active `Threads`, and BLAS's setting before the first of them."""


class Threads:
    """Sets the number of threads of products in the whole process. Of several active
    ones, the one entered last decides. Leaving the last active one restores the
    original number."""

    _is_inside = False

    def __init__(self, count: int):
        self._threads = count

    def __enter__(self) -> None:
        global _count, _before
        get, set = _controls()
        with _lock:
            if not _count:
                _before = get()
            _count += 1
            self._is_inside = True
            set(self._threads)

    def __exit__(self, *_: object) -> None:
        global _count
        if self._is_inside:
            restore = _controls()[1]
            with _lock:
                _count -= 1
                self._is_inside = False
                if not _count:
                    restore(_before)

    def __del__(self) -> None:
        self.__exit__()  # in case `__enter__` was interrupted


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Functions that get and set the number; without effect for another BLAS."""
    loaded = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # pyright: ignore
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(loaded, f"{prefix}_get_num_threads{suffix}", None)
            set = getattr(loaded, f"{prefix}_set_num_threads{suffix}", None)
            if get is not None and set is not None:
                return get, set
    return (lambda: 1), (lambda count: None)
