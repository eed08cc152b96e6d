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

COMPILING = 5.0
"""Seconds that numba takes for a kernel, at most, if it is not on disk."""

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


def integers(values: Sequence[int], fast: bool) -> Integers:
    """The values as a kernel takes them: an array for a compiled one, else a list."""
    if not fast:
        return list(values)
    import numpy as np

    return np.array(values, dtype=np.int64)


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
    """Whether to compile a kernel: this process asks for so many steps of plain Python,
    each about 0.1 us, and for those of the calls before.

    Not where sums of the sizes might not fit into 64 bits, nor where a deadline comes
    too soon to compile.
    """
    _asked[kernel] += work
    if _asked[kernel] <= 10_000_000 or not available():
        return False
    is_in_time = deadline.left() > COMPILING or _is_on_disk(kernel)
    return is_in_time and sum(sizes) < LARGEST // 2
