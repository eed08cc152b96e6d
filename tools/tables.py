"""Tables of text with aligned columns."""

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], sides: str = "") -> Iterator[str]:
    """The rows as lines, columns two spaces apart.

    `sides` has `<` or `>` for each column that is aligned there; the others are `<`.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = sides.ljust(len(widths), "<")
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        yield "  ".join(f"{text:{side}{width}}" for text, side, width in cells).rstrip()
