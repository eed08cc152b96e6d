"""Compiles the planners' inner loops with numba, where it is installed and saves time.

A kernel is a function over sequences of integers that its caller allocates: lists for
plain Python, arrays of 64-bit integers for compiled code. Both run the same source, and
therefore give the same plans; only `ascend`, which sorts, has two forms. numba (the
extra `fast`) is imported when the first large problem needs it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from .. import deadline

Integers: TypeAlias = Any
"""A mutable sequence of integers: a list, or an array of 64-bit integers."""

STEP = 1e-7
"""The approximate seconds that a step of plain Python takes."""

_LOADING, _READING, _COMPILING = 0.4, 0.02, 2.0
"""Seconds to load numba and a first kernel from the disk cache, to load another kernel,
and to compile a kernel that is not in the cache."""

_SHARE = 10
"""A kernel is compiled once plain Python has taken a tenth of the time to compile,
because later processes find it on disk."""

_FAR = 10
"""If plain Python takes more than this many times as long as compiling, a kernel is
compiled even shortly before a deadline."""

LARGEST = 1 << 60
"""Larger than every offset and every sum of bytes in a compiled kernel."""


@cache
def available() -> bool:
    """Whether numba is installed. Does not load it: that takes longer than a search
    with a short limit."""
    return find_spec("numba") is not None


@cache
def _loads() -> bool:
    """Loads numba, and returns whether this succeeds."""
    try:
        import numba  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def compiled(kernel: Callable[..., Any], *helpers: Callable[..., Any]) -> Any:
    """Compiles `kernel` and the `helpers` that it calls, with a cache on disk."""
    numba: Any = __import__("numba.extending")
    _implement_ascend()
    for helper in helpers:
        numba.extending.register_jitable(helper)
    return numba.njit(cache=True)(kernel)


def ascend(indices: Integers, count: int, keys: Integers) -> None:
    """Sorts the first `count` indices by their keys. Equal keys have any order."""
    indices[:count] = sorted(indices[:count], key=keys.__getitem__)


def _ascend(indices: Integers, count: int, keys: Integers) -> None:
    """`ascend` for compiled code: Shell's sort, with gaps that shrink by 5/11 as in
    Gonnet and Baeza-Yates, "Handbook of Algorithms and Data Structures", 1991.

    numba takes eight times as long to compile its own `sort`.
    """
    gap = count
    while gap > 1:
        gap = max(gap * 5 // 11, 1)
        for place in range(gap, count):
            index = indices[place]
            key = keys[index]
            while place >= gap and keys[indices[place - gap]] > key:
                indices[place] = indices[place - gap]
                place -= gap
            indices[place] = index


@cache
def _implement_ascend() -> None:
    """Compiled kernels call `_ascend` where their source calls `ascend`."""
    numba: Any = __import__("numba.extending")

    @numba.extending.overload(ascend, strict=False)
    def implementation(*_: object) -> object:  # type: ignore[reportUnusedFunction]
        return _ascend


def _is_on_disk(kernel: Callable[..., Any]) -> bool:
    """Whether numba's disk cache has the kernel."""
    name = f"*.{kernel.__name__}-{kernel.__code__.co_firstlineno}.*.nbi"
    return any(_folder(kernel).glob(name))


@cache
def _folder(kernel: Callable[..., Any]) -> Path:
    """The folder in which numba caches the machine code of a kernel."""
    numba: Any = __import__("numba")
    return Path(numba.njit(cache=True)(kernel).stats.cache_path)


_asked: Counter[Callable[..., Any]] = Counter()  # announced steps of plain Python
_loaded: set[Callable[..., Any]] = set()  # kernels compiled or loaded in this process


def integers(values: Sequence[int], fast: bool) -> Integers:
    """The values as an array, for a compiled kernel (`fast`), or else as a list."""
    if not fast:
        return list(values)
    import numpy as np

    return np.array(values, dtype=np.int64)


def as_arrays(table: Any) -> Any:
    """Converts the lists of a named tuple to arrays, in nested named tuples, too."""
    return table._make(
        as_arrays(column) if hasattr(column, "_make") else integers(column, True)
        for column in table
    )


def zeros(count: int, fast: bool) -> Integers:
    """`count` zeros: an array for a compiled kernel (`fast`), or else a list."""
    if not fast:
        return [0] * count
    import numpy as np

    return np.zeros(count, dtype=np.int64)


def plain(values: Integers) -> list[int]:
    """Converts a kernel's list or array to a list of Python integers."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def pays(work: int, sizes: Sequence[int], kernel: Callable[..., Any]) -> bool:
    """Whether to run the compiled form of `kernel` for the next `work` steps.

    True once the steps announced in this process would take plain Python longer than
    loading the kernel, or a tenth of the time to compile it. The time to load numba
    is weighed against the steps of all kernels. False if sums of `sizes` might not fit
    into 64 bits. False if a deadline leaves too little time to compile, unless plain
    Python takes far longer.
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
        least = wait
        if _is_late(seconds, wait) or not _loads():
            return False
        if not _is_on_disk(kernel):
            seconds, wait, least = own, _COMPILING, _COMPILING / _SHARE
        if seconds <= least or _is_late(seconds, wait):
            return False
        _loaded.add(kernel)
    return True


def _is_late(seconds: float, wait: float) -> bool:
    """Whether a deadline leaves too little time to `wait` for a kernel that does the
    work of these `seconds` of plain Python."""
    return deadline.left() <= 2 * wait and seconds <= _FAR * wait
