"""Hot loops in plain Python, compiled by numba where that is installed and pays.

A kernel is a function over sequences of integers that its caller made: lists in plain
Python, arrays of 64 bits when compiled. It is the same source either way, so that both
give the same plans. numba (the extra `fast`) is imported when the first
large problem needs it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
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

    Not where sums of the sizes might not fit into 64 bits.
    """
    _asked[kernel] += work
    wanted = _asked[kernel] > 10_000_000 and available()
    return wanted and sum(sizes) < LARGEST // 2
