"""Element types by their TVM names: `float32`, `bool`, `int16x4` (lanes), ..."""

import re
from functools import cache
from typing import NamedTuple

_NAME = re.compile(r"(?:int|uint|float|bfloat)(\d+)?(?:x(\d+))?")


class DType(NamedTuple):
    """The width of an element."""

    bits: int  # of one lane
    lanes: int

    @property
    def bytes(self) -> int:
        """Bytes of one element, all lanes; bits are rounded up to bytes."""
        return -(-self.bits * self.lanes // 8)


@cache
def parse_dtype(name: str) -> DType:
    """The width of the type `name`; 32 bits if the name states none.

    Raises `ValueError` for a name that TVM does not have.
    """
    if name == "bool":
        return DType(1, 1)
    if name == "handle":
        return DType(64, 1)
    found = _NAME.fullmatch(name)
    if not found:
        raise ValueError(f"dtype is {name!r}, expected one like float32, int16x4, bool")
    bits, lanes = found.groups()
    return DType(int(bits or 32), int(lanes or 1))
