"""Parses options that give values to symbolic sizes."""

import re

from ..dialects.tgraph.base import LARGEST_SIZE


def parse_values(text: str, what: str, relation: str = "=") -> dict[str, int]:
    """Returns the numbers in `n=64,m=3` by name. Raises `ValueError`, which calls the
    text `what`, for other text."""
    values: dict[str, int] = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"([A-Za-z_]\w*)(<?=)(\d+)", part)
        if not match or match[2] != relation or not int(match[3]):
            raise ValueError(
                f"{what} are {text!r}, expected a list such as "
                f"n{relation}64,m{relation}3"
            )
        values[match[1]] = value = int(match[3])
        if value > LARGEST_SIZE:
            raise ValueError(
                f"size {match[1]} is {value}, expected at most {LARGEST_SIZE}"
            )
    return values
