"""The size of an element, by the name of its type in any compiler's plan."""

import re
from functools import cache

_BITS = re.compile(r"[a-z]+(8|16|32|64|128)(?!\d)")


@cache
def element_width(dtype: str) -> int | None:
    """The size in bytes of a type such as `f32`, `bfloat16`, `f8E5M2`, or `c64`.

    None for a type without a whole number of bytes, such as `s4`, and for other types.
    """
    if dtype in ("bool", "pred"):
        return 1
    found = _BITS.match(dtype)
    return int(found[1]) // 8 if found else None
