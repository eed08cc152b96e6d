"""Loads and stores vectors of short rows, such as the colors of pixels.

row 0          row 1          row 2
r0 g0 b0       r1 g1 b1       r2 g2 b2        in a vector, for any of these layouts:

r0 g0 b0 r1 g1 b1 ...           the same
r0 r1 ... g0 g1 ... b0 b1 ...   separate columns
r g b                           one row for all
x0 x1 x2 ...                    one element for all of a row
"""

from collections.abc import Sequence
from typing import NamedTuple

from ....support.arrays import DType
from .code import LlvmFunction, Value
from .complexes import Complex
from .elements import load_element, store_element


class Rows(NamedTuple):
    """The layout of rows in memory."""

    length: int
    """The elements of a row."""
    step: int
    """The bytes from one row to the next."""
    within: int
    """The bytes from one element of a row to the next."""

    def are_joined(self, itemsize: int) -> bool:
        return self.within == itemsize and self.step == self.length * itemsize

    def can_be_read(self, itemsize: int) -> bool:
        """Whether a vector consists of a few contiguous pieces of memory."""
        in_columns = self.step == itemsize
        return self.step == 0 or in_columns or self.are_joined(itemsize)


def load_rows(
    code: LlvmFunction, pointer: str, rows: Rows, dtype: DType, lanes: int, active: int
) -> Value | Complex:
    """The elements of the row at `pointer`, then those of the next row, and so on, as
    in `load_element`. A scalar if all are the same."""
    length, step, within = rows
    if rows.are_joined(dtype.itemsize) or step == within == 0:
        return load_element(code, pointer, within, dtype, lanes, active)
    if step == 0:
        row = load_element(code, pointer, within, dtype, length, length)
        return _ordered(row, [lane % length for lane in range(lanes)])
    numbers = [lane // length for lane in range(lanes)]

    def column(number: int) -> Value | Complex:
        at = code.moved(pointer, str(number), within)
        many = lanes // length, active // length
        return _ordered(load_element(code, at, step, dtype, *many), numbers)

    result = column(0)
    for number in range(1, length if within else 1):
        order = [i + lanes * (i % length == number) for i in range(lanes)]
        result = _ordered(result, order, column(number))
    return result


def store_rows(
    value: Value | Complex,
    pointer: str,
    rows: Rows,
    dtype: DType,
    lanes: int,
    active: int,
) -> None:
    """The inverse of `load_rows`. A scalar value is stored in all lanes."""
    length, step, within = rows
    if rows.are_joined(dtype.itemsize):
        store_element(value, pointer, within, dtype, lanes, active)
        return
    for number in range(length):
        column = _ordered(value, range(number, lanes, length))
        at = value.code.moved(pointer, str(number), within)
        store_element(column, at, step, dtype, lanes // length, active // length)


def _ordered(
    value: Value | Complex, order: Sequence[int], other: Value | Complex | None = None
) -> Value | Complex:
    """The lanes in `order`, of both parts of complex numbers; see
    `LlvmFunction.shuffled`. A scalar is the same in all lanes."""
    if isinstance(value, Value):
        assert other is None or isinstance(other, Value)
        is_same = value.lanes <= 1 and other is None
        return value if is_same else value.code.shuffled(value, order, other)
    assert other is None or isinstance(other, Complex)
    others = (other.real, other.imag) if other else (None, None)
    real, imag = (
        _ordered(x, order, y)
        for x, y in zip((value.real, value.imag), others, strict=True)
    )
    assert isinstance(real, Value)
    assert isinstance(imag, Value)
    return Complex(real, imag)
