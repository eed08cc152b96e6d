"""Plans and frontiers as an SVG drawing, for papers and notes.

In a plan, x is the step and y the address; the curve of live bytes with its peak is
below. In a frontier, x is bytes and y time. A buffer or a point has a tooltip, if the
viewer supports it.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from math import ceil, log2
from typing import TYPE_CHECKING

from ...reporting.wording import readable
from .groups import Group, Grouping, groupings
from .model import MAX_HELD_RATIO, FrontierView, PlanView, PoolView, ShownBuffer

if TYPE_CHECKING:
    from ...reporting.frontier import FrontierPoint

WIDTH = 1000  # of the drawing, in user units (pixels on a screen), as all lengths
MAP = 300  # height of the map
CURVE = 60  # height of the curve
_LEFT, _TOP, _GAP, _BOTTOM = 80, 68, 10, 56
_TICKS, _LINE = 44, 18  # heights of a frontier's scale and of a row of its legend
_INNER = WIDTH - _LEFT - 20

_STYLE = """\
text {
  font-size: 12px; fill: #1f2328; font-family: system-ui, "Segoe UI", Arial,
  "DejaVu Sans", "Liberation Sans", "Noto Sans", sans-serif;
}
.paper { fill: #fff } .field { fill: #f6f8fa; stroke: #8c959f }
.faint { fill: #59636e } .unused { fill: url(#unused) }
.name { font-size: 11px; fill: #111; text-anchor: middle; pointer-events: none }
.address { text-anchor: end } .tick { text-anchor: middle }
.curve { fill: #8c959f; fill-opacity: .5 }
.peak { stroke: #cf222e; stroke-dasharray: 4 3 }
.steps { fill: none; stroke: #8c959f; stroke-width: 1.5 }
.b { stroke: #333; stroke-width: .5 } .thin { stroke: none }
.key { stroke: #333; stroke-width: .5 }
.b:hover { stroke: #cf222e; stroke-width: 2 }
.c0 { fill: #8ecae6 } .c1 { fill: #ffb703 } .c2 { fill: #a7c957 } .c3 { fill: #f4978e }
.c4 { fill: #cdb4db } .c5 { fill: #80cfa9 } .c6 { fill: #e9c46a } .c7 { fill: #9fb8ff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .paper { fill: #0d1117 } .field { fill: #161b22 }
  .name { fill: #111 } .faint { fill: #9198a1 }
}"""
_HATCH = """\
<defs><pattern id="unused" width="7" height="7" patternUnits="userSpaceOnUse">
<path d="M0 7L7 0" stroke="#8c959f" stroke-opacity=".45" stroke-width=".6"/>
</pattern></defs>"""


def draw(plans: Sequence[PlanView], frontiers: Sequence[FrontierView] = ()) -> str:
    """Draws all pools of all plans and all frontiers, from top to bottom."""
    colors = groupings(plans)[0]
    parts = [
        (_height_of(pool), _pool(plan.title, pool, colors))
        for plan in plans
        for pool in plan.pools
    ]
    parts += [(_height(view), _frontier(view)) for view in frontiers]
    total = sum(height for height, _ in parts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" '
        f'width="{WIDTH}" height="{total}">',
        f"<style>{_STYLE}</style>",
        _HATCH,
        f'<rect class="paper" width="{WIDTH}" height="{total}"/>',
    ]
    top = 0
    for height, part in parts:
        lines.append(f'<g transform="translate(0 {top})">')
        lines += part
        lines.append("</g>")
        top += height
    return "\n".join((*lines, "</svg>", ""))


def _map(pool: PoolView) -> int:
    """The height of the pool's map."""
    if pool.is_callers:
        return MAP // 5
    return MAP + MAP * 2 // 3 if _lowest(pool) else MAP


def _lowest(pool: PoolView) -> int:
    """The lowest address on the pool's map: memory of the caller is drawn below 0.

    0 if that memory is too large to be drawn.
    """
    held = sum(each.size for each in pool.held)
    return -held if held <= MAX_HELD_RATIO * pool.size else 0


def _height_of(pool: PoolView) -> int:
    return _TOP + _map(pool) + _GAP + CURVE + _BOTTOM


def _height(view: FrontierView) -> int:
    return _TOP + MAP + _TICKS + -(-len(view.changes) // 2) * _LINE


def _frontier(view: FrontierView) -> Iterator[str]:
    """Draws a step function: a plan is the fastest up to the budget of the next."""
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
            f"+{100 * part:.3g}%</text>"
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
    """The meaning of the colors of a frontier, in rows of two."""
    for index, change in enumerate(changes):
        left, middle = _LEFT + index % 2 * _INNER // 2, top + index // 2 * _LINE
        yield f'<circle class="b c{index % 8}" r="6" cx="{left + 6}" cy="{middle}"/>'
        yield f'<text x="{left + 18}" y="{middle + 4}">{_text(change)}</text>'


def _pool(title: str, pool: PoolView, colors: Grouping) -> Iterator[str]:
    first, end = pool.steps
    low, tall_map = _lowest(pool), _map(pool)
    per_byte = tall_map / max(pool.size - low, 1)
    peak = max((bytes for _, bytes in pool.curve), default=0)

    def x(step: int) -> float:
        return _LEFT + (step - first) * _INNER / (end - first)

    def y(address: int) -> float:
        return _TOP + (pool.size - address) * per_byte

    name = f"{title}: {pool.name}" if pool.name else title
    yield f'<text x="{_LEFT}" y="20">{_text(f"{name}: {pool.figures}")}</text>'
    yield f'<text x="{_LEFT}" y="38" class="faint">{_text(pool.unused)}</text>'
    yield f'<text x="{_LEFT}" y="56" class="faint">{_text(pool.process)}</text>'
    field = f'x="{_LEFT}" y="{_TOP}" width="{_INNER}"'
    yield f'<rect class="field" {field} height="{tall_map}"/>'
    yield f'<rect class="unused" {field} height="{y(0) - _TOP:.2f}"/>'
    for at in _ticks(pool.size, 26 / per_byte):
        yield (
            f'<text class="address" x="{_LEFT - 6}" y="{y(at) + 4:.2f}">'
            f"{readable(at)}</text>"
        )
    bottom = 0
    for each in pool.held if low else ():
        bottom -= each.size
        tall, lines = each.size * per_byte, (each.name, each.type, readable(each.size))
        yield f"<g><title>{_text(', '.join((*lines, each.role)))}</title>"
        color = colors.of_held(each.role).color
        yield _box(color, _LEFT, y(bottom) - tall, _INNER, tall)
        yield from _names(lines, _LEFT, y(bottom) - tall, _INNER, tall)
        yield "</g>"
    for placed in pool.buffers:
        yield f"<g><title>{_text(_summary(placed))}</title>"
        b, high = placed.buffer, y(placed.offset + placed.buffer.size)
        tall, color = b.size * per_byte, colors.groups[colors.of(placed)].color
        lines = tuple(filter(None, (b.id, placed.type or placed.op, readable(b.size))))
        for start, stop in b.live:
            wide = x(stop) - x(start)
            yield _box(color, x(start), high, wide, tall)
            yield from _names(lines, x(start), high, wide, tall)
        yield "</g>"
    base = _TOP + tall_map + _GAP + CURVE
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
    seen = {colors.of(placed) for placed in pool.buffers}
    shown = {group: None for n, group in enumerate(colors.groups) if n in seen}
    held = pool.held if low else ()
    shown |= dict.fromkeys(colors.of_held(each.role) for each in held)
    yield from _keys([group for group in shown if group.label], base + 36)


def _ticks(size: int, least: float) -> Iterator[int]:
    """Round addresses up to `size`, at least `least` bytes apart."""
    unit = 1 << max(ceil(log2(max(least, 1))), 0)
    yield from range(0, size + 1, unit)


def _box(color: str, left: float, top: float, wide: float, tall: float) -> str:
    kind = "b" if min(wide, tall) >= 2 else "b thin"
    return (
        f'<rect class="{kind}" fill="{color}" x="{left:.2f}" y="{top:.2f}" '
        f'width="{wide:.2f}" height="{tall:.2f}"/>'
    )


def _names(
    lines: Sequence[str], left: float, top: float, wide: float, tall: float
) -> Iterator[str]:
    """As many of the lines as fit the box: all side by side, or else as a column."""
    full = "  ".join(lines)
    if tall < 14 * len(lines) and wide > _width([full]) + 4:
        lines = [full]
    shown = list(lines)
    while shown and (tall < 14 * len(shown) or wide < _width(shown) + 4):
        shown.pop()
    for line, name in enumerate(shown):
        at = top + tall / 2 + 4 + 14 * line - 7 * (len(shown) - 1)
        yield (
            f'<text class="name" x="{left + wide / 2:.2f}" y="{at:.2f}">'
            f"{_text(name)}</text>"
        )


def _keys(groups: Sequence[Group], middle: float) -> Iterator[str]:
    """The meaning of the colors of a plan, in a row."""
    left = float(_LEFT)
    for label, color in groups:
        at = f'x="{left}" y="{middle - 8}" width="11" height="11"'
        yield f'<rect class="key" fill="{color}" {at}/>'
        yield f'<text x="{left + 16:.0f}" y="{middle + 2}">{_text(label)}</text>'
        left += 7 * len(label) + 36


def _width(names: Sequence[str]) -> int:
    """An upper bound of the width of the names, one below the other."""
    return 7 * max(map(len, names))


def _summary(placed: ShownBuffer) -> str:
    b = placed.buffer
    lines = [
        f"{b.id}: {b.size} bytes at {placed.offset}",
        ", ".join(filter(None, (placed.type, placed.role))),
        f"live in steps [{b.start}, {b.end})",
        placed.op,
        placed.location,
    ]
    return "\n".join(filter(None, lines))


def _text(text: str) -> str:
    """Escapes `text` and replaces characters that XML does not allow."""
    allowed = (
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return escape("".join(allowed))
