"""The view of a program's plan: names, operations, locations, and what makes the peak.

A program without a plan is planned by `plan-pipeline` first.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ... import dialects
from ...checking.plan_check import check_plan
from ...dialects.tgraph.base import STREAM
from ...passes.plan.pipeline import PlanPipeline
from ...reporting.explanation import Explanation, explain
from ...reporting.explanation_text import in_place, summary, waits_for
from ...reporting.peaks import ArenaPeak, peaks_of
from ...reporting.placements import PlacedBuffer, PlacedPool, placements
from ...reporting.printed import Printed, printed
from ...reporting.report import sizes
from ...reporting.trials import Alternative
from ..common import OPTION_ERRORS, FileError, Source, UsageError
from ..compiler import ToolPipeline
from ..plan_arguments import option_of
from ..progress import tracked
from .model import HeldBuffer, PlanView, PoolView, ShownBuffer

_LARGEST_SOURCE = 1 << 20
"""The largest size in bytes of a source file that is shown beside the picture."""


def read(
    source: Source,
    is_explained: bool,
    planning: Mapping[str, Any],
    *,
    placed_anew: bool,
) -> PlanView:
    """The plan of the program in `source`. A program without a plan is planned with the
    options `planning`. The text of the view is the IR as plan-opt prints it.

    `is_explained` adds an explanation of what would lower the peak. `placed_anew` means
    that strategies will place the buffers again by their live ranges; streams, whose
    order live ranges don't show, are then an error. Raises `FileError`, `UsageError`
    for invalid options, and the exceptions of `ToolPipeline`.
    """
    try:
        pipeline = PlanPipeline(**planning)
    except OPTION_ERRORS as error:
        raise UsageError(str(error)) from None
    compiler = ToolPipeline("plan-view", dialects.context())
    module = compiler.read(source, simplify=True)
    compiler.run(module, ())
    title, explanation = source.name, None
    if not check_plan(module):
        title += f", {pipeline}".replace("_", "-")
        if not is_explained:
            compiler.run(module, [pipeline])
    elif planning:
        option = option_of(next(iter(planning)))
        raise FileError(source, f"this is already planned, expected no {option}")
    if is_explained:
        explanation = _explained(compiler.ctx, module, pipeline)
        module = explanation.planned
    plan = view_of(module, title, source)
    if not plan.pools:
        raise FileError(source, "the program stores nothing, so it has no arena")
    if placed_anew and any(STREAM in op.attributes for op in module.walk()):
        raise FileError(
            source,
            "it has streams, so placement depends on more than live ranges; plan it "
            "with each strategy, and view the plans together",
        )
    return replace(plan, explanation=explanation)


def view_of(module: ModuleOp, title: str, source: Source | None = None) -> PlanView:
    """The view of a planned module; `source` is the file that it was read from."""
    counted = (f"{name} = {size}" for name, size in sizes(module).items())
    title = ", ".join((title, *counted))
    text = printed(module)
    arenas = placements(module, text)
    peaks: dict[tuple[str, str], list[ArenaPeak]] = {}  # in the arenas' order
    for peak in peaks_of(module, text, arenas):
        peaks.setdefault((peak.function, peak.device), []).append(peak)
    several = len({arena.function for arena in arenas}) > 1
    pools: list[PoolView] = []
    for arena in arenas:
        name = f"@{arena.function} {arena.device}" if several else arena.device
        if arena.argument is None:
            peak = peaks[arena.function, arena.device].pop(0)
            pools.append(_pool(name, arena, text, peak))
        else:
            pools.append(_pool(f"{arena.argument} on {name}", arena, text))
    files = {_file(p.location) for pool in pools for p in pool.buffers if p.location}
    return PlanView(title, pools, text.text.splitlines(), _sources(files, source))


def _file(location: str) -> str:
    return location.rsplit(":", 2)[0]


def _sources(files: Collection[str], source: Source | None) -> dict[str, list[str]]:
    """The lines of `files` that exist: of the program itself and of Python files.

    Other files are excluded, because a page may be shared.
    """
    found: dict[str, list[str]] = {}
    for file in sorted(files):
        try:
            if source and file == source.name:
                found[file] = source.data.decode().splitlines()
            elif file.endswith(".py") and Path(file).stat().st_size <= _LARGEST_SOURCE:
                found[file] = Path(file).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):  # it does not exist, or is not text
            continue
    return found


def _explained(ctx: Context, module: ModuleOp, pipeline: PlanPipeline) -> Explanation:
    def track(alternatives: Sequence[Alternative]) -> Iterable[Alternative]:
        return tracked("trying", alternatives)

    return explain(ctx, module, pipeline, track=track)


def _pool(
    name: str, pool: PlacedPool, text: Printed, peak: ArenaPeak | None = None
) -> PoolView:
    if peak is None:
        return PoolView(name, pool.size, [_placed(b, text) for b in pool.buffers])
    held = [HeldBuffer(*each) for each in pool.callers]
    live = {buffer.name: buffer for buffer in peak.buffers}
    buffers: list[ShownBuffer] = []
    for placed in pool.buffers:
        view = _placed(placed, text)
        if at_peak := live.get(placed.buffer.id):
            waits = waits_for(at_peak, peak)
            view = view._replace(waits=waits, in_place=in_place(at_peak))
        buffers.append(view)
    return PoolView(name, pool.size, buffers, summary(peak), held)


def _placed(placed: PlacedBuffer, text: Printed) -> ShownBuffer:
    ops = (op for op in (placed.view, *placed.accesses) if op is not None)
    lines = [text.lines[op] for op in ops if op in text.lines]
    what = (placed.type, placed.role, placed.op, placed.location)
    return ShownBuffer(placed.buffer, placed.offset, *what, lines)
