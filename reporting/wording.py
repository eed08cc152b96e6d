"""Formats sizes, times, tables and bold print for people."""

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal


def aligned(rows: Sequence[Sequence[str]], sides: str = "") -> Iterator[str]:
    """The rows as lines, with columns two spaces apart.

    `sides` has `<` or `>` for the alignment of each column. Columns without one are
    aligned on the left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = sides.ljust(len(widths), "<")
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        yield "  ".join(f"{text:{side}{width}}" for text, side, width in cells).rstrip()


def bold(text: str, color: bool) -> str:
    """The text; with `color`, in bold print on a terminal."""
    return f"\x1b[1m{text}\x1b[m" if color else text


def printable(text: str) -> str:
    """The text without control characters, which a terminal would interpret."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def plural(count: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def readable(count: int) -> str:
    """A number of bytes as `640 B`, `2.5 KiB`, ... with at most four digits."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    scaled = _FOUR_DIGITS.divide(Decimal(count), Decimal(1024**power))
    return f"{scaled.normalize():f} {_UNITS[power - 1]}"


def readable_time(nanoseconds: int) -> str:
    """A time as `640 ns`, `2.5 us`, ... with three digits."""
    value, unit = float(nanoseconds), "ns"
    for larger in ("us", "ms", "s"):
        if value >= 1000:
            value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_UP)
