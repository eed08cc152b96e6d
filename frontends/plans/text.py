"""Reads the text of a dump."""

from pathlib import Path

from ...support.foreign_plan import ForeignPlanError


def text_of(path: Path) -> str:
    """The text of a UTF-8 file. Raises `ForeignPlanError` or `OSError`."""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ForeignPlanError("this is not UTF-8", str(path)) from None
