"""Formats ranges of indices in messages."""


def indices(count: int) -> str:
    """The indices of `count` elements: `none`, `0`, `0 to 1`."""
    return ("none", "0")[count] if count < 2 else f"0 to {count - 1}"
