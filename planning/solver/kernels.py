"""Hot loops in plain Python, compiled by numba where that is installed and pays.

A kernel is a function over sequences of integers that its caller made: lists in plain
Python, arrays of 64 bits when compiled. It is the same source either way, so that both
give the same plans. numba (the extra `fast`) is imported when the first
large problem needs it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from .. import deadline

Integers: TypeAlias = Any
"""A mutable sequence of integers: a list, or an array of 64 bits."""

STEP = 1e-7
"""Seconds of a step of plain Python, about."""

_LOADING, _READING, _COMPILING = 0.5, 0.02, 2.0
"""Seconds until numba is there with a first kernel from the disk, until another one is
read, and until one is compiled."""

_FAR = 10
"""How many times as long as compiling plain Python takes, to compile in any case."""

LARGEST = 1 << 60
"""Above every offset that a compiled kernel may meet; sums of bytes stay below."""


@cache
def available() -> bool:
    """Whether numba is installed."""
    try:
        import numba  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def compiled(kernel: Callable[..., Any], *helpers: Callable[..., Any]) -> Any:
    """The kernel as machine code, kept on disk; it calls the `helpers`."""
    numba: Any = __import__("numba.extending")
    for helper in helpers:
        numba.extending.register_jitable(helper)
    return numba.njit(cache=True)(kernel)


def _is_on_disk(kernel: Callable[..., Any]) -> bool:
    """Whether the kernel has been compiled on this machine."""
    name = f"*.{kernel.__name__}-{kernel.__code__.co_firstlineno}.*.nbi"
    return any(_folder(kernel).glob(name))


@cache
def _folder(kernel: Callable[..., Any]) -> Path:
    """Where the machine code of a kernel is kept."""
    numba: Any = __import__("numba")
    return Path(numba.njit(cache=True)(kernel).stats.cache_path)


_asked: Counter[Callable[..., Any]] = Counter()  # steps of plain Python, so far
_loaded: set[Callable[..., Any]] = set()  # what runs as machine code in this process


def integers(values: Sequence[int], fast: bool) -> Integers:
    """The values as a kernel takes them: an array for a compiled one, else a list."""
    if not fast:
        return list(values)
    import numpy as np

    return np.array(values, dtype=np.int64)


def as_arrays(table: Any) -> Any:
    """A named tuple of lists, or of such tuples, as a compiled kernel takes it."""
    return table._make(
        as_arrays(column) if hasattr(column, "_make") else integers(column, True)
        for column in table
    )


def zeros(count: int, fast: bool) -> Integers:
    """So many zeros, as a kernel takes them."""
    if not fast:
        return [0] * count
    import numpy as np

    return np.zeros(count, dtype=np.int64)


def plain(values: Integers) -> list[int]:
    """What a kernel wrote, as numbers of Python."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def pays(work: int, sizes: Sequence[int], kernel: Callable[..., Any]) -> bool:
    """Whether to compile a kernel, of which this process asks for so many more steps of
    plain Python: once all that it asked for would take as long as that.

    numba is loaded for all kernels together. Not where sums of the sizes might not fit
    into 64 bits, nor where a deadline comes too soon to compile, unless plain Python
    would miss it by far. A kernel that is loaded needs no more time.
    """
    _asked[kernel] += work
    seconds = own = _asked[kernel] * STEP
    wait = _READING
    if not _loaded:
        seconds, wait = sum(_asked.values()) * STEP, _LOADING
    if own <= _READING or seconds <= wait or not available():
        return False
    if sum(sizes) >= LARGEST // 2:
        return False
    if kernel not in _loaded:
        if not _is_on_disk(kernel):
            seconds, wait = own, _COMPILING
        if seconds <= wait or (deadline.left() <= 2 * wait and seconds <= _FAR * wait):
            return False
        _loaded.add(kernel)
    return True
