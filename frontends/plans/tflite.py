"""What a `.tflite` file says of the types of tensors and of their offsets.

Field numbers are those of TensorFlow Lite's `schema.fbs`, which never change.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...support.foreign_plan import ForeignPlanError
from .elements import element_width
from .flatbuffer import Table, root

IDENTIFIER = b"TFL3"
"""What stands in a file after its first 4 bytes."""
METADATA = "OfflineMemoryAllocation"
"""The metadata with 32-bit integers: a version, a subgraph, which nobody reads, the
number of tensors in all subgraphs, and for each its offset in the arena, or -1."""
HEADER = struct.Struct("<3i")
"""What comes before the offsets."""

_TYPES = """
    f32 f16 i32 u8 i64 string bool i16 c64 i8 f64 c128 u64 resource variant u32 u16 i4
    bf16
""".split()
_OTHERS = {"i4": 1, "resource": 4}
TYPES: Mapping[int, tuple[str, int]] = {
    number: (name, _OTHERS.get(name) or element_width(name) or 0)
    for number, name in enumerate(_TYPES)
}
"""By the numbers of `TensorType`, with the bytes of an element in the arena; 0 for what
has no fixed size."""


class Offsets(NamedTuple):
    at: int  # where they are in the file
    content: Sequence[int]


def model_of(data: bytes, name: str) -> Table:
    """The model in a file called `name`.

    Raises `ForeignPlanError` for another file, and `struct.error` for a damaged one.
    """
    if data[4:8] != IDENTIFIER:
        raise ForeignPlanError("this is no model of TensorFlow Lite", name)
    return root(data)


def offsets(model: Table) -> Offsets | None:
    """Those of the tensors of all subgraphs; None if the file has none.

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
    """An operation's number in `BuiltinOperator`; older files have 8 bits of it."""
    return max(code.number(0, "b"), code.number(3))
