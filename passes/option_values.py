"""Sizes as options give them: bytes such as 64MiB, values of names."""

import re
from decimal import Decimal

from ..dialects.tgraph.base import LARGEST_SIZE

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


def parse_size(text: int | str) -> int:
    """Bytes. Raises `ValueError` for what is no size, or not above 0."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(text))
    unit = _UNITS.get(match[2].upper()) if match else None
    bytes = int(Decimal(match[1]) * unit) if match and unit else 0
    if not bytes:
        raise ValueError(f"size is {text}, expected bytes such as 4096, 64MiB or 1.5GB")
    return bytes


def parse_values(text: str, relation: str = "=") -> dict[str, int]:
    """The numbers in `n=64,m=3`, by name. Raises `ValueError` for what is none."""
    values: dict[str, int] = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"([A-Za-z_]\w*)(<?=)(\d+)", part)
        if not match or match[2] != relation or not int(match[3]):
            raise ValueError(
                f"sizes are {text!r}, expected a list such as "
                f"n{relation}64,m{relation}3"
            )
        values[match[1]] = value = int(match[3])
        if value > LARGEST_SIZE:
            raise ValueError(
                f"size {match[1]} is {value}, expected at most {LARGEST_SIZE}"
            )
    return values
