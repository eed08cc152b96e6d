"""A plan as an SVG drawing: for papers, notes and wherever pages are not at home.

x is the step, y the address; below, the curve of live bytes with its peak. Where the
viewer can, pointing at a buffer says what it is.
"""

from collections.abc import Iterator, Sequence
from html import escape

from ...reporting.wording import readable
from .model import PlanView, PoolView, ShownBuffer

WIDTH = 1000  # of the drawing; all in user units, which are pixels on a screen
MAP = 300  # height of the map
CURVE = 60  # height of the curve
_LEFT, _TOP, _GAP, _BOTTOM = 80, 34, 10, 36
_POOL = _TOP + MAP + _GAP + CURVE + _BOTTOM  # height of all that a pool takes
_INNER = WIDTH - _LEFT - 20

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.paper { fill: #fff } .field { fill: #f6f8fa; stroke: #8c959f }
.name { font-size: 11px; fill: #111; text-anchor: middle; pointer-events: none }
.address { text-anchor: end } .curve { fill: #8c959f; fill-opacity: .5 }
.peak { stroke: #cf222e; stroke-dasharray: 4 3 }
rect.b { stroke: #333; stroke-width: .5 }
rect.b:hover { stroke: #cf222e; stroke-width: 2 }
.c0 { fill: #8ecae6 } .c1 { fill: #ffb703 } .c2 { fill: #a7c957 } .c3 { fill: #f4978e }
.c4 { fill: #cdb4db } .c5 { fill: #80cfa9 } .c6 { fill: #e9c46a } .c7 { fill: #9fb8ff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .paper { fill: #0d1117 } .field { fill: #161b22 }
  .name { fill: #111 }
}"""


def draw(plans: Sequence[PlanView]) -> str:
    """All pools of all plans, below one another."""
    pools = [(plan.title, pool) for plan in plans for pool in plan.pools]
    height = _POOL * len(pools)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
    ]
    for index, (title, pool) in enumerate(pools):
        lines.append(f'<g transform="translate(0 {index * _POOL})">')
        lines += _pool(title, pool)
        lines.append("</g>")
    return "\n".join((*lines, "</svg>", ""))


def _pool(title: str, pool: PoolView) -> Iterator[str]:
    first, end = pool.steps
    top = max(pool.size, 1)
    peak = max((bytes for _, bytes in pool.curve), default=0)

    def x(step: int) -> float:
        return _LEFT + (step - first) * _INNER / (end - first)

    def y(address: int) -> float:
        return _TOP + MAP - address * MAP / top

    name = f"{title}: {pool.name}" if pool.name else title
    yield f'<text x="{_LEFT}" y="20">{_text(f"{name}: {pool.figures}")}</text>'
    field = f'x="{_LEFT}" y="{_TOP}" width="{_INNER}" height="{MAP}"'
    yield f'<rect class="field" {field}/>'
    for quarter in range(5):
        at = pool.size * quarter // 4
        yield (
            f'<text class="address" x="{_LEFT - 6}" y="{y(at) + 4:.2f}">'
            f"{readable(at)}</text>"
        )
    for index, placed in enumerate(pool.buffers):
        yield f"<g><title>{_text(_summary(placed))}</title>"
        high = placed.offset + placed.buffer.size
        tall = y(placed.offset) - y(high)
        for start, stop in placed.buffer.live:
            wide = x(stop) - x(start)
            yield (
                f'<rect class="b c{index % 8}" x="{x(start):.2f}" y="{y(high):.2f}" '
                f'width="{wide:.2f}" height="{tall:.2f}"/>'
            )
            names = [n for n in (placed.buffer.id, placed.op) if n]
            while names and (tall < 14 * len(names) or wide < _width(names) + 4):
                names.pop()
            for line, name in enumerate(names):
                at = y(high) + tall / 2 + 4 + 14 * line - 7 * (len(names) - 1)
                yield (
                    f'<text class="name" x="{x(start) + wide / 2:.2f}" y="{at:.2f}">'
                    f"{_text(name)}</text>"
                )
        yield "</g>"
    base = _TOP + MAP + _GAP + CURVE
    points = [f"{_LEFT},{base}"]
    height = float(base)
    for step, live in pool.curve:
        points.append(f"{x(step):.2f},{height:.2f}")
        height = base - live * CURVE / max(peak, 1)
        points.append(f"{x(step):.2f},{height:.2f}")
    yield f'<polygon class="curve" points="{" ".join(points)}"/>'
    middle = x(pool.peak_step) + _INNER / (end - first) / 2
    yield f'<path class="peak" d="M{middle:.2f} {_TOP}V{base}"/>'
    note = f"steps {first} to {end - 1}; live bytes, most in step {pool.peak_step}: "
    yield f'<text x="{_LEFT}" y="{base + 16}">{note}{readable(peak)}</text>'


def _width(names: Sequence[str]) -> int:
    """What they take at most, below one another."""
    return 7 * max(map(len, names))


def _summary(placed: ShownBuffer) -> str:
    b = placed.buffer
    lines = [
        f"{b.id}: {b.size} bytes at {placed.offset}",
        f"live in steps [{b.start}, {b.end})",
        placed.op,
        placed.location,
    ]
    return "\n".join(filter(None, lines))


def _text(text: str) -> str:
    """Escaped, and without the characters that XML does not allow."""
    allowed = (
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return escape("".join(allowed))
