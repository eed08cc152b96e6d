"""Formats counts and ranges of indices in messages."""


def plural(count: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def indices(count: int) -> str:
    """The indices of `count` elements: `none`, `0`, `0 to 1`."""
    return ("none", "0")[count] if count < 2 else f"0 to {count - 1}"
