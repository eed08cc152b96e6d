"""An interactive page of plans: one HTML file that needs no network.

Its parts are in web/. The plans are embedded as JSON without `<`, which could end the
element. The script inserts names and texts as text, never as HTML. The page's content
security policy forbids loading anything.
"""

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from ...reporting.wording import printable
from .groups import OTHERS, ROLES, Grouping, groupings
from .model import MAX_HELD_RATIO, PlanView, PoolView, ShownBuffer

_SCRIPTS = (
    "plans.js",
    "drawing.js",
    "details.js",
    "table.js",
    "text.js",
    "moving.js",
    "start.js",
)
"""The scripts share one scope; start.js comes last."""

_EXACT = 1 << 53
"""From here on, JavaScript's numbers skip integers, so they are passed as text."""


def page(plans: Sequence[PlanView]) -> str:
    """The page that shows the plans side by side."""
    folder = files("tensorplan.tools.views") / "web"
    parts = {
        "title": escape(printable(", ".join(plan.title for plan in plans))),
        "style": (folder / "page.css").read_text(),
        "data": _data(plans),
        "script": "\n".join((folder / name).read_text() for name in _SCRIPTS),
    }
    frame = (folder / "page.html").read_text()
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], frame)


def _data(plans: Sequence[PlanView]) -> str:
    texts = list(dict.fromkeys(tuple(plan.text) for plan in plans))
    modes = groupings(plans)
    whole = {
        "texts": texts,
        "sources": {f: lines for plan in plans for f, lines in plan.sources.items()},
        "modes": [{"name": mode.name, "groups": mode.groups} for mode in modes],
        "roles": ROLES,
        "others": OTHERS,
        "held": MAX_HELD_RATIO,
        "plans": [
            {
                "title": plan.title,
                "text": texts.index(tuple(plan.text)),
                "pools": [_pool(pool, modes) for pool in plan.pools],
                "explained": _explained(plan),
            }
            for plan in plans
        ],
    }
    text = json.dumps(whole, separators=(",", ":"))  # all ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _pool(pool: PoolView, modes: Sequence[Grouping]) -> dict[str, object]:
    return {
        "name": pool.name,
        "size": _number(pool.size),
        "bound": _number(pool.problem.lower_bound),
        "total": _number(pool.problem.total),
        "steps": [_number(step) for step in pool.steps],
        "peakStep": _number(pool.peak_step),
        "summary": list(pool.summary),
        "curve": [[_number(step), _number(live)] for step, live in pool.curve],
        "isCallers": pool.is_callers,
        "unused": pool.unused,
        "process": pool.process,
        "held": [[h.name, _number(h.size), h.type, h.role] for h in pool.held],
        "buffers": [_buffer(placed, modes) for placed in pool.buffers],
    }


def _explained(plan: PlanView) -> dict[str, object] | None:
    """The tables and remarks of a plan's explanation; None without one."""
    explanation = plan.explanation
    if explanation is None:
        return None
    from ...reporting.explanation_text import HEAD, remarks, tables

    return {
        "head": HEAD,
        "tables": tables(explanation.outcome, explanation.trials),
        "remarks": remarks(explanation.trials),
    }


def _buffer(placed: ShownBuffer, modes: Sequence[Grouping]) -> list[object]:
    """The fields of a buffer in the order that plans.js expects."""
    b = placed.buffer
    return [
        b.id,
        _number(placed.offset),
        _number(b.size),
        [[_number(start), _number(end)] for start, end in b.live],
        placed.type,
        placed.role,
        placed.op,
        placed.location,
        list(placed.lines),
        [mode.of(placed) for mode in modes],
        *((placed.waits, placed.in_place) if placed.waits else ()),
    ]


def _number(value: int) -> int | str:
    return value if abs(value) < _EXACT else str(value)
