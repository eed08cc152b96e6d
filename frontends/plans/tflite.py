"""Reads the types of tensors and their offsets from a `.tflite` file.

Field numbers are those of TensorFlow Lite's `schema.fbs`, which never change.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...support.foreign_plan import ForeignPlanError
from .elements import element_width
from .flatbuffer import Table, root

IDENTIFIER = b"TFL3"
"""The bytes 4 to 8 of a file."""
METADATA = "OfflineMemoryAllocation"
"""The name of the metadata with offsets. Its 32-bit integers are a version, a subgraph,
which is ignored, the number of tensors in all subgraphs, and for each tensor its offset
in the arena, or -1.
"""
HEADER = struct.Struct("<3i")
"""The integers before the offsets."""

_TYPES = """
    f32 f16 i32 u8 i64 string bool i16 c64 i8 f64 c128 u64 resource variant u32 u16 i4
    bf16
""".split()
_OTHERS = {"i4": 1, "resource": 4}
TYPES: Mapping[int, tuple[str, int]] = {
    number: (name, _OTHERS.get(name) or element_width(name) or 0)
    for number, name in enumerate(_TYPES)
}
"""Name and bytes of an element in the arena, by the number of `TensorType`; 0 bytes for
a type without a fixed size.
"""


class Offsets(NamedTuple):
    at: int  # their position in the file
    content: Sequence[int]


def model_of(data: bytes, name: str) -> Table:
    """The model in the contents `data` of a file called `name`.

    Raises `ForeignPlanError` for another format, and `struct.error` for a damaged file.
    """
    if data[4:8] != IDENTIFIER:
        raise ForeignPlanError("this is not a TensorFlow Lite model", name)
    return root(data)


def offsets(model: Table) -> Offsets | None:
    """The offsets of the tensors of all subgraphs; None if the file has none.

    Raises `LookupError`, `ValueError` or `struct.error` for a damaged file.
    """
    for entry in model.tables(6):
        if entry.text(0) == METADATA:
            content = model.tables(4)[entry.number(1, "I")].table(0)
            if content is None:
                raise ValueError
            _, _, count = HEADER.unpack_from(model.data, content.at + 4)
            at = content.at + 4 + HEADER.size
            return Offsets(at, struct.unpack_from(f"<{count}i", model.data, at))
    return None


def builtin(code: Table) -> int:
    """The number in `BuiltinOperator`, of which older files have 8 bits."""
    return max(code.number(0, "b"), code.number(3))
