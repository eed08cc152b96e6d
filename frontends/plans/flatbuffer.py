"""Flatbuffers as tables with numbered fields, read without the classes of a schema.

    root(data).tables(1)[0].text(4)

Raises `struct.error` for offsets outside of the data.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """A table of a flatbuffer. Raises `struct.error` for offsets outside of it."""

    data: bytes
    at: int

    def field(self, number: int) -> int:
        """The position of a field in the data; 0 if it is absent."""
        (back,) = struct.unpack_from("<i", self.data, self.at)
        (size,) = struct.unpack_from("<H", self.data, self.at - back)
        entry = 4 + 2 * number
        if entry >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.data, self.at - back + entry)
        return self.at + offset if offset else 0

    def number(self, number: int, kind: str = "i") -> int:
        at = self.field(number)
        return struct.unpack_from(f"<{kind}", self.data, at)[0] if at else 0

    def table(self, number: int) -> "Table | None":
        at = self.field(number)
        return self._target(at) if at else None

    def _target(self, at: int) -> "Table":
        return Table(self.data, at + struct.unpack_from("<I", self.data, at)[0])

    def vector(self, number: int, kind: str = "i") -> Sequence[int]:
        if (found := self.table(number)) is None:
            return ()
        (length,) = struct.unpack_from("<I", self.data, found.at)
        return struct.unpack_from(f"<{length}{kind}", self.data, found.at + 4)

    def tables(self, number: int) -> Sequence["Table"]:
        if (found := self.table(number)) is None:
            return ()
        count = len(self.vector(number, "I"))
        return [self._target(found.at + 4 + 4 * n) for n in range(count)]

    def text(self, number: int) -> str:
        return bytes(self.vector(number, "B")).decode()


def root(data: bytes) -> Table:
    """The root table of a file."""
    return Table(data, struct.unpack_from("<I", data)[0])
