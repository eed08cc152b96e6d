"""How many bytes an element takes, by the name of its type in any compiler's plan."""

import re
from functools import cache

_BITS = re.compile(r"[a-z]+(8|16|32|64|128)(?!\d)")


@cache
def element_width(dtype: str) -> int | None:
    """Bytes, as `f32`, `bfloat16`, `f8E5M2` and `c64` say them in bits.

    None for what has no whole bytes of its own, such as `s4`, and for what is no
    number.
    """
    if dtype in ("bool", "pred"):
        return 1
    found = _BITS.match(dtype)
    return int(found[1]) // 8 if found else None
