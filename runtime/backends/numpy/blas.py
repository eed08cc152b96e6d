"""The number of threads that NumPy's BLAS (OpenBLAS, in wheels) uses in programs.

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
"""How many are inside of `Threads`, and the number of BLAS's before the first was."""


class Threads:
    """Sets the number of threads that products use in the whole process. If several are
    entered at a time, the last one decides. Leaving the last one restores the number.
    """

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
        self.__exit__()  # if it was interrupted when it entered


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
