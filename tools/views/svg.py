"""Plans and frontiers as an SVG drawing: for papers, notes and wherever pages are not
at home.

Of a plan, x is the step, y the address; below, the curve of live bytes with its peak.
Of a frontier, x is bytes, y time. Where the viewer can, pointing at a buffer or a point
says what it is.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from ...reporting.wording import readable
from .model import FrontierView, PlanView, PoolView, ShownBuffer

if TYPE_CHECKING:
    from ...reporting.frontier import FrontierPoint

WIDTH = 1000  # of the drawing; all in user units, which are pixels on a screen
MAP = 300  # height of the map
CURVE = 60  # height of the curve
_LEFT, _TOP, _GAP, _BOTTOM = 80, 34, 10, 36
_POOL = _TOP + MAP + _GAP + CURVE + _BOTTOM  # height of all that a pool takes
_TICKS, _LINE = 44, 18  # heights of a frontier's scale and of a row of its legend
_INNER = WIDTH - _LEFT - 20

_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.paper { fill: #fff } .field { fill: #f6f8fa; stroke: #8c959f }
.name { font-size: 11px; fill: #111; text-anchor: middle; pointer-events: none }
.address { text-anchor: end } .tick { text-anchor: middle }
.curve { fill: #8c959f; fill-opacity: .5 }
.peak { stroke: #cf222e; stroke-dasharray: 4 3 }
.steps { fill: none; stroke: #8c959f; stroke-width: 1.5 }
.b { stroke: #333; stroke-width: .5 }
.b:hover { stroke: #cf222e; stroke-width: 2 }
.c0 { fill: #8ecae6 } .c1 { fill: #ffb703 } .c2 { fill: #a7c957 } .c3 { fill: #f4978e }
.c4 { fill: #cdb4db } .c5 { fill: #80cfa9 } .c6 { fill: #e9c46a } .c7 { fill: #9fb8ff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .paper { fill: #0d1117 } .field { fill: #161b22 }
  .name { fill: #111 }
}"""


def draw(plans: Sequence[PlanView], frontiers: Sequence[FrontierView] = ()) -> str:
    """All pools of all plans, below one another, and all frontiers."""
    parts = [(_POOL, _pool(plan.title, pool)) for plan in plans for pool in plan.pools]
    parts += [(_height(view), _frontier(view)) for view in frontiers]
    total = sum(height for height, _ in parts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" '
        f'width="{WIDTH}" height="{total}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{total}"/>',
    ]
    top = 0
    for height, part in parts:
        lines.append(f'<g transform="translate(0 {top})">')
        lines += part
        lines.append("</g>")
        top += height
    return "\n".join((*lines, "</svg>", ""))


def _height(view: FrontierView) -> int:
    return _TOP + MAP + _TICKS + -(-len(view.changes) // 2) * _LINE


def _frontier(view: FrontierView) -> Iterator[str]:
    """Steps, as each plan is the fastest for all budgets up to the next."""
    first, last = view.points[0], view.points[-1]
    most = max(view.slowdown(last), 1e-9)
    bottom = _TOP + MAP

    def x(bytes: float) -> float:
        return _LEFT + bytes * (_INNER - 30) / max(first.bytes, 1)

    def y(slowdown: float) -> float:
        return bottom - 15 - slowdown * (MAP - 30) / most

    yield f'<text x="{_LEFT}" y="20">{_text(f"{view.title}: {view.figures}")}</text>'
    field = f'x="{_LEFT}" y="{_TOP}" width="{_INNER}" height="{MAP}"'
    yield f'<rect class="field" {field}/>'
    for quarter in range(5):
        part, at = most * quarter / 4, first.bytes * quarter // 4
        yield (
            f'<text class="address" x="{_LEFT - 6}" y="{y(part) + 4:.2f}">'
            f"+{100 * part:.3g} %</text>"
        )
        yield (
            f'<text class="tick" x="{x(at):.2f}" y="{bottom + 18}">'
            f"{readable(at)}</text>"
        )
    line = f"M{_LEFT + _INNER} {y(0):.2f}"
    for before, point in pairwise(view.points):
        line += f"H{x(before.bytes):.2f}V{y(view.slowdown(point)):.2f}"
    yield f'<path class="steps" d="{line}H{x(last.bytes):.2f}V{_TOP}"/>'
    for point in view.points:
        yield (
            f'<circle class="b c{view.changes.index(point.change) % 8}" r="6" '
            f'cx="{x(point.bytes):.2f}" cy="{y(view.slowdown(point)):.2f}">'
            f"<title>{_text(_said(point, view))}</title></circle>"
        )
    yield from _legend(view.changes, bottom + _TICKS)


def _said(point: "FrontierPoint", view: FrontierView) -> str:
    return (
        f"{point.bytes} bytes, {view.slowdown(point):+.1%} of time\n"
        f"budget={point.budget}: {point.change}"
    )


def _legend(changes: Sequence[str], top: int) -> Iterator[str]:
    """What each colour stands for, in rows of two."""
    for index, change in enumerate(changes):
        left, middle = _LEFT + index % 2 * _INNER // 2, top + index // 2 * _LINE
        yield f'<circle class="b c{index % 8}" r="6" cx="{left + 6}" cy="{middle}"/>'
        yield f'<text x="{left + 18}" y="{middle + 4}">{_text(change)}</text>'


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
