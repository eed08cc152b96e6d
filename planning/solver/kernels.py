"""Hot loops in plain Python, compiled by numba where that is installed and pays.

A kernel is a function over sequences of integers that its caller made: lists in plain
Python, arrays of 64 bits when compiled. It is the same source either way, so that both
give the same plans. numba (the extra `fast`) is imported when the first
large problem needs it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

Integers: TypeAlias = Any
"""A mutable sequence of integers: a list, or an array of 64 bits."""

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


def integers(values: Iterable[int], fast: bool) -> Integers:
    """The values as a kernel takes them: an array for a compiled one, else a list."""
    if not fast:
        return list(values)
    import numpy as np

    return np.array(list(values), dtype=np.int64)


def zeros(count: int, fast: bool) -> Integers:
    return integers([0] * count, fast)


def pays(work: int, sizes: Sequence[int]) -> bool:
    """Whether to compile for this many steps of plain Python, each about 0.1 us.

    Not where sums of the sizes might not fit into 64 bits.
    """
    return work > 10_000_000 and sum(sizes) < LARGEST // 2 and available()
