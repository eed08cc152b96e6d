"""A picture of a plan, or of a frontier, in plain characters.

    cpu:0: 320 B, lower bound 320 B
        256 |....cccccc......|
        128 |bbbbbbbbb.......|
          0 |aaaaaaa.dddddddd|
       live |5557777773332222|  tenths of the peak
             0             15  steps
    at the peak, step 4, 320 B are live:
      a  %0  128 B, steps [0, 7), tgraph.add, model.mlir:3:3

Rows are addresses, columns are steps. A cell shows the buffer at its center.

    model.json: 3 plans, from 48 KiB to 1.504 KiB in 250.4% more time
      +250% |*...............|
      +125% |................|
        +0% |.*............*.|
      bytes  0        48 KiB

In a frontier, rows are time and columns are bytes.
"""

from collections.abc import Iterator, Sequence
from string import ascii_letters, digits

from ...reporting.wording import printable, readable
from .model import FrontierView, PlanView, PoolView

ROWS = 16
LISTED = 10
"""The largest number of buffers at the peak that are listed."""

_SIGNS = ascii_letters + digits
_MARGIN = 12  # columns for addresses


def draw(
    plans: Sequence[PlanView], width: int, frontiers: Sequence[FrontierView] = ()
) -> str:
    """Draws all pools of all plans and all frontiers, `width` columns wide."""
    lines: list[str] = []
    for plan in plans:
        for pool in plan.pools:
            lines += ["", *_pool(plan.title, pool, max(width - _MARGIN - 3, 8))]
        if plan.explanation:
            lines += ["", *map(printable, plan.explanation.text().splitlines())]
    for view in frontiers:
        lines += ["", *_frontier(view, max(width - _MARGIN - 3, 8))]
    return "\n".join(lines[1:]) + "\n"


def _frontier(view: FrontierView, columns: int) -> Iterator[str]:
    from ...reporting.frontier import table  # imports the passes

    yield printable(f"{view.title}: {view.figures}")
    most, high = view.slowdown(view.points[-1]), view.points[0].bytes
    cells = [["."] * columns for _ in range(ROWS)]
    for point in view.points:
        row = round(view.slowdown(point) * (ROWS - 1) / (most or 1))
        cells[row][point.bytes * (columns - 1) // max(high, 1)] = "*"
    for row in reversed(range(ROWS)):
        longer = f"+{most * row / (ROWS - 1):.1%}"
        yield f"{longer:>{_MARGIN}} |{''.join(cells[row])}|"
    yield f"{'bytes':>{_MARGIN}}  0{readable(high):>{columns - 1}}"
    yield from map(printable, table(view.points).splitlines())


def _pool(title: str, pool: PoolView, width: int) -> Iterator[str]:
    yield printable(f"{title}: {f'{pool.name}: ' * bool(pool.name)}{pool.figures}")
    if pool.process:
        yield pool.process
    if not pool.buffers:
        return
    first, end = pool.steps
    columns = _columns(end - first, width)
    rows = ROWS if pool.size >= ROWS else max(pool.size, 1)
    for row in reversed(_cells(pool, rows, columns)):
        address, cells = row
        yield f"{readable(address):>{_MARGIN}} |{cells}|"
    yield f"{'live':>{_MARGIN}} |{_live(pool, columns)}|"
    last = str(end - 1)
    scale = f"{first}{last.rjust(columns - len(str(first)))}"
    yield f"{'steps':>{_MARGIN}}  {scale}"
    peak = max(bytes for _, bytes in pool.curve)
    yield f"at the peak, step {pool.peak_step}, {readable(peak)} are live:"
    tells_roles = len({placed.role for placed in pool.buffers}) > 1
    live = pool.live_at(pool.peak_step)
    for index in live[:LISTED]:
        placed = pool.buffers[index]
        b, steps = placed.buffer, f"steps [{placed.buffer.start}, {placed.buffer.end})"
        role = placed.role if tells_roles else ""
        what = [readable(b.size), placed.type, role, steps]
        what += [placed.op, placed.location]
        yield printable(f"  {_sign(index)}  {b.id}  {', '.join(filter(None, what))}")
    if live[LISTED:]:
        rest = sum(pool.buffers[index].buffer.size for index in live[LISTED:])
        yield f"  and {len(live) - LISTED} more with {readable(rest)}"


def _sign(index: int) -> str:
    return _SIGNS[index % len(_SIGNS)]


def _columns(steps: int, width: int) -> int:
    """The number of columns for `steps` steps: 1 to 8 for each step, or `width` if
    there are more steps than columns.
    """
    return steps * min(width // steps, 8) if steps <= width else width


def _cells(pool: PoolView, rows: int, columns: int) -> list[tuple[int, str]]:
    """(address, characters) of each row, from the lowest address up."""
    cells = [["."] * columns for _ in range(rows)]
    first, end = pool.steps
    for index, placed in enumerate(pool.buffers):
        top = placed.offset + placed.buffer.size
        low, high = (_middles(at, pool.size, rows) for at in (placed.offset, top))
        for start, stop in placed.buffer.live:
            left, right = (
                _middles(at - first, end - first, columns) for at in (start, stop)
            )
            for row in cells[low:high]:
                row[left:right] = _sign(index) * (right - left)
    return [(i * pool.size // rows, "".join(row)) for i, row in enumerate(cells)]


def _middles(at: int, length: int, cells: int) -> int:
    """How many of the `cells` that divide `length` have their center before `at`."""
    return -((length - 2 * at * cells) // (2 * length)) if length else 0


def _live(pool: PoolView, columns: int) -> str:
    """Live bytes in tenths of the peak, rounded up, at most 9; `*` at the peak."""
    first, end = pool.steps
    peak = max(bytes for _, bytes in pool.curve)
    cells: list[str] = []
    points = iter([*pool.curve, (end, 0)])
    live, after = 0, next(points)
    for column in range(columns):
        step = first + (2 * column + 1) * (end - first) // (2 * columns)
        while after[0] <= step:
            live, after = after[1], next(points)
        tenth = min(-(-live * 10 // peak), 9) if peak else 0
        cells.append("*" if peak and live == peak else str(tenth))
    return "".join(cells)
