"""Parses sizes in bytes as people write them: `4096`, `64MiB`, `1.5GB`."""

import re

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def parse_size(text: int | str, what: str = "size") -> int:
    """Returns bytes. Raises `ValueError` for text that is not a size above 0."""
    from decimal import Decimal  # slow to import

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(text))
    unit = _UNITS.get(match[2].upper()) if match else None
    bytes = int(Decimal(match[1]) * unit) if match and unit else 0
    if not bytes:
        raise ValueError(
            f"{what} is {text!r}, expected bytes such as 4096, 64MiB or 1.5GB"
        )
    return bytes
