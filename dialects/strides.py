"""Computes strides: row-major ones, and those of a reshape without a copy.

Strides have the caller's unit: elements in memref layouts, bytes in NumPy arrays.
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    return tuple(accumulate(shape[:0:-1], mul, initial=1))[::-1] if shape else ()


def rows_of(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int] | None:
    """The distance between consecutive rows, and the number of elements in each row,
    for elements that form equidistant rows in this order. None for contiguous elements,
    and for other layouts."""
    rows = _runs(shape, strides)
    if rows and rows[-1][1] != 1:  # a column
        rows.append((1, 1))
    if len(rows) != 2 or rows[0][1] < rows[1][0]:
        return None
    return rows[0][1], rows[1][0]


def has_distinct_elements(shape: Sequence[int], strides: Sequence[int | None]) -> bool:
    """Whether different indices are known to refer to different elements. Each stride
    must exceed the span of the dimensions with smaller strides."""
    span = 0
    known = [abs(stride) for stride in strides if stride is not None]
    if len(known) != len(shape):
        return False
    for stride, size in sorted(zip(known, shape, strict=True)):
        if size != 1 and stride <= span:
            return False
        span += (size - 1) * stride
    return True


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int]
) -> tuple[int, ...] | None:
    """The strides that visit the same elements in the same order in another shape.

    Both shapes have the same number of elements, at least one. None if no strides
    exist.
    """
    runs = _runs(shape, strides)
    result: list[int] = []
    step = runs[-1][1] if runs else 1  # the stride of a dimension of size 1
    for size in reversed(target):
        if size == 1:
            result.append(step)
            continue
        if not runs or runs[-1][0] % size:
            return None
        count, stride = runs.pop()
        result.append(stride)
        step = size * stride
        if count != size:
            runs.append((count // size, stride * size))
    return tuple(reversed(result))


def _runs(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Merges dimensions that are one dimension in memory; returns sizes and strides."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs
