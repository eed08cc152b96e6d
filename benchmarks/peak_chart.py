"""An SVG chart of memory relative to ours, with a row of marks for each model."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log2

WIDTH, LEFT, RIGHT, TOP, ROW, LANE = 1000, 150, 30, 70, 36, 4

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.paper { fill: #fff } .even { fill: #f6f8fa } .tick { text-anchor: middle }
.model { text-anchor: end } .grid { stroke: #d0d7de } .ours { stroke: #1f2328 }
.mark { stroke: #fff }
.c0 { fill: #1a7f37 } .c1 { fill: #cf222e } .c2 { fill: #0969da } .c3 { fill: #bf8700 }
.c4 { fill: #8250df } .c5 { fill: #e36209 } .c6 { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .paper { fill: #0d1117 } .even { fill: #161b22 }
  .grid { stroke: #30363d } .ours { stroke: #e6edf3 } .mark { stroke: #0d1117 }
  .c0 { fill: #3fb950 } .c1 { fill: #ff7b72 } .c2 { fill: #58a6ff }
  .c3 { fill: #e3b341 } .c4 { fill: #bc8cff } .c5 { fill: #ffa657 }
  .c6 { fill: #8b949e }
}"""

SHAPES = (
    "M-6 0L0 -6L6 0L0 6Z",
    "M-5 -5H5V5H-5Z",
    "M0 -6L6 5H-6Z",
    "M0 6L6 -5H-6Z",
    "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-6 -2H6V2H-6Z",
)
"""The mark of each column. Readers need not distinguish colors."""

Figures = tuple[str, int, Sequence[int | None]]
"""A model, our bytes, and the bytes of each other compiler."""


def chart(base: str, names: Sequence[str], models: Sequence[Figures]) -> str:
    """Draws the columns `names` relative to `base` on a logarithmic scale, as SVG."""
    ratios = [n / own for _, own, others in models for n in others if n]
    first, last = floor(log2(min(ratios))), ceil(log2(max(ratios)))
    step = (WIDTH - LEFT - RIGHT) / (last - first)
    bottom = TOP + ROW * len(models)
    height = bottom + 40

    def place(ratio: float) -> float:
        return LEFT + step * (log2(ratio) - first)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        *_legend(base, names),
    ]
    for row in range(0, len(models), 2):
        lines.append(
            f'<rect class="even" y="{TOP + ROW * row}" width="{WIDTH}" height="{ROW}"/>'
        )
    for power in range(first, last + 1):
        x, kind = place(2.0**power), "grid" if power else "ours"
        label = f"1/{2**-power}" if power < 0 else str(2**power)
        lines.append(f'<path class="{kind}" d="M{x:.1f} {TOP}V{bottom}"/>')
        lines.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 18}">{label}</text>')
    for row, (model, own, others) in enumerate(models):
        y = TOP + ROW * row + ROW // 2
        lines.append(f'<text class="model" x="{LEFT - 12}" y="{y + 4}">{model}</text>')
        for column, count in enumerate(others):
            if count is not None:
                title = f"{model}, {names[column]}: {count:,} bytes"
                lane = y + LANE * (column - len(names) // 2)  # marks do not overlap
                lines.append(_mark(column, place(count / own), lane, title))
    return "\n".join([*lines, "</svg>", ""])


def _legend(base: str, names: Sequence[str]) -> Iterator[str]:
    title = f"Bytes relative to {base}, the line at 1; further left is less"
    yield f'<text x="{LEFT}" y="22">{title}</text>'
    for column, name in enumerate(names):
        x = LEFT + 118 * column
        yield _mark(column, x + 6, 44, name)
        yield f'<text x="{x + 18}" y="48">{name}</text>'


def _mark(column: int, x: float, y: float, title: str) -> str:
    shape = f'<path class="mark c{column}" d="{SHAPES[column]}"'
    move = f'transform="translate({x:.1f} {y}) scale(.8)"'
    return f"{shape} {move}><title>{title}</title></path>"
