"""Memory that repeated calls keep."""

import gc
import statistics
import tracemalloc
from collections.abc import Callable
from itertools import pairwise


def growth(run: Callable[[], object], times: int = 100) -> float:
    """Bytes that `times` calls of `run` keep: the median of five measurements.

    tracemalloc counts all threads. The thread in which pytest-xdist receives messages
    allocates some kilobytes in one measurement, what `run` keeps is in each.
    """
    kept: list[int] = []
    gc.collect()
    gc.freeze()  # the collections below need not visit the objects of other tests
    tracemalloc.start()
    try:
        for _ in range(6):  # what the first calls fill stays: caches, free lists
            for _ in range(times):
                run()
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return statistics.median(b - a for a, b in pairwise(kept))
