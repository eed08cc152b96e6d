"""Strides of tensors in memory: row-major ones, and those of a reshape without a copy.

The unit is the caller's: elements in memref layouts, bytes in NumPy arrays.
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    return tuple(accumulate(shape[:0:-1], mul, initial=1))[::-1] if shape else ()


def rows_of(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int] | None:
    """Of elements in rows that are equally far apart, in this order: from the start of
    one to that of the next, and the elements of each. None if they lie in another way,
    or all follow one another."""
    rows = _runs(shape, strides)
    if rows and rows[-1][1] != 1:  # a column
        rows.append((1, 1))
    if len(rows) != 2 or rows[0][1] < rows[1][0]:
        return None
    return rows[0][1], rows[1][0]


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int]
) -> tuple[int, ...] | None:
    """The strides that read the same elements in the same order under another shape.

    The shapes have equally many elements, and some. None if no strides can say it.
    """
    runs = _runs(shape, strides)
    result: list[int] = []
    step = runs[-1][1] if runs else 1  # what the next dimension would have if merged
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
    """Runs of dimensions that are one dimension in memory: sizes and strides."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs
