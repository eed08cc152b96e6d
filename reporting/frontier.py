"""`tensorplan.frontier` and `plan-opt --frontier`: the curve of time against bytes.

bytes      time   longer  plan-pipeline{budget=...}
49152  37.0 us            49152: larger groups
24576  38.0 us     +2.7%  27645: more tiles
 6144  44.0 us    +18.7%  15360: many tiles

Each point is the plan for a budget. The first point is the plan without tiles and
recomputation, which is fast but may need many bytes. The last point has the fewest
bytes that the search finds. Each budget in between is the geometric mean of the ends of
the gap with the largest ratio, because curves often span a factor of ten. The frontier
omits a plan that needs at least as many bytes as another and is no faster.
Times are either estimated from types, and thus the same on every machine, or measured
on this machine. Estimates use a few rates, which do not capture how the shape of a
kernel affects its time.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import isqrt
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..analysis.functions import tensor_functions
from ..checking.plan_check import check_plan
from ..dialects.diagnostics import LocatedError, held_back
from ..passes import driver
from ..passes.plan.budget import PlanBudget
from ..passes.plan.pipeline import PlanPipeline
from ..passes.tgraph.fit import Lowerings, TGraphFit
from ..passes.tgraph.shared.candidates import undominated
from ..passes.tgraph.shared.fitting import is_static_block
from ..support.remarks import PROGRESS
from .wording import aligned, readable_time

if TYPE_CHECKING:
    from ..model import Model

POINTS = 20

FINE = 2
"""Gaps are bisected until the ratio of their ends is at most the `FINE * points`-th
root of the ratio of most to fewest bytes."""

ROUNDS = 3
"""The number of rounds in which all plans are measured in turn. With several rounds,
temporary load on the machine distorts fewer of the times."""

_SHOWN = ("bytes", "time", "budget", "change")
"""The fields of a point in JSON."""

_HEAD = ("bytes", "time", "longer", "plan-pipeline{budget=...}")


@dataclass(frozen=True)
class FrontierPoint:
    """A plan on the curve of time against bytes.

    bytes: the size of the largest arena of the finished plan.
    time: the time of a run in nanoseconds, estimated from types (analysis/cost.py) or
        measured on this machine.
    budget: the budget in bytes for which plan-pipeline makes this plan.
    change: the changes to the program that meet the budget, in words.
    planned: the program with this plan, as plan-pipeline returns it; None for a point
        that was read from a file.
    """

    bytes: int
    time: int
    budget: int
    change: str
    planned: "ModuleOp | Model | None" = field(default=None, compare=False, repr=False)


def frontier(
    ctx: Context,
    module: ModuleOp,
    pipeline: PlanPipeline | None = None,
    points: int = POINTS,
    measure: bool = False,
) -> Sequence[FrontierPoint]:
    """The Pareto-optimal plans that the search finds, by time and bytes, fastest first.

    pipeline: plans a copy of the module for each point; it must have no budget.
    points: the largest number of points; fewer if the search finds no more.
    measure: whether to run each plan to measure its time (runtime/measuring.py).

    Raises `ValueError` for invalid options, and `LocatedError` for IR that can't be
    planned, that is not on tensors, or whose sizes are unknown; with `measure`, also
    for plans that this machine can't run.
    """
    pipeline = pipeline or PlanPipeline()
    check_options(pipeline, points)
    planner = _Planner(ctx, module, pipeline, measure)
    if measure:
        _check_devices(planner.plan(sys.maxsize))
    found: list[FrontierPoint] = []
    kept: Sequence[FrontierPoint] = ()
    for point in _points(planner, points):
        found.append(point)
        kept = undominated(found)
        PROGRESS.info("frontier: point %d, %d bytes", len(kept), point.bytes)
        if len(kept) == points:
            break
    return undominated(_measured(kept, pipeline.threads)) if measure else kept


def check_options(pipeline: PlanPipeline, points: int) -> None:
    """Raises `ValueError` for options that a frontier does not support."""
    if pipeline.budget is not None:
        raise ValueError(
            f"budget is {pipeline.budget}, expected none: a frontier chooses its "
            "own budgets"
        )
    if points < 2:
        raise ValueError(f"points is {points}, expected 2 or more")


def _points(planner: "_Planner", points: int) -> Iterator[FrontierPoint]:
    """Yields plans that meet their budgets: the largest, the smallest, the others."""
    high, low = (planner.plan(budget).bytes for budget in (sys.maxsize, 1))
    for budget in dict.fromkeys((high, low)):
        point = planner.plan(budget)
        if point.bytes <= budget:
            yield point
    fine = (high / max(low, 1)) ** (1 / (FINE * points))
    gaps = [(-high / max(low, 1), low, high)]
    while gaps:
        ratio, low, high = heappop(gaps)
        middle = isqrt(low * high)
        if -ratio <= fine or middle in (low, high):
            continue
        point = planner.plan(middle)
        if point.bytes <= middle:
            yield point
            heappush(gaps, (-point.bytes / max(low, 1), low, point.bytes))
        heappush(gaps, (-high / middle, middle, high))


class _Planner:
    """Plans a program for one budget after another."""

    def __init__(
        self, ctx: Context, module: ModuleOp, pipeline: PlanPipeline, measure: bool
    ):
        passes = replace(pipeline, budget=1).passes()
        at, fit = next((i, p) for i, p in enumerate(passes) if isinstance(p, TGraphFit))
        start = module.clone()
        driver.run(ctx, start, passes[:at])
        _expect_known_tensors(start, pipeline, measure)
        self._ctx = ctx
        self._lowerings = Lowerings(fit, ctx, start)
        self._rest = [p for p in passes[at + 1 :] if not isinstance(p, PlanBudget)]

    def plan(self, budget: int) -> FrontierPoint:
        """The plan for a budget, whether it meets the budget or not."""
        best = self._lowerings.fitted(budget).best
        planned = best.module.clone()
        with held_back():
            driver.run(self._ctx, planned, self._rest, verify=False)
        sizes = [pool.size for pool in check_plan(planned) if pool.argument is None]
        bytes = max(sizes, default=0)
        return FrontierPoint(bytes, best.time, budget, best.what, planned)


def _check_devices(point: FrontierPoint) -> None:
    """Raises `LocatedError` if this machine cannot run the plan because it lacks a
    device, before the search for other plans takes its time."""
    from ..runtime.runnable import check_devices

    check_devices(cast(ModuleOp, point.planned))


def _measured(
    points: Sequence[FrontierPoint], threads: int | None
) -> Sequence[FrontierPoint]:
    """The points with the times of their plans as measured on this machine."""
    from ..runtime.measuring import measured_time

    plans = [cast(ModuleOp, point.planned) for point in points]
    rounds = [[measured_time(plan, threads) for plan in plans] for _ in range(ROUNDS)]
    least = map(min, zip(*rounds, strict=True))
    return [replace(p, time=time) for p, time in zip(points, least, strict=True)]


def _expect_known_tensors(
    module: ModuleOp, pipeline: PlanPipeline, measure: bool
) -> None:
    functions = [func for func, _ in tensor_functions(module)]
    if not functions:
        raise LocatedError(
            "a frontier requires a program on tensors, and this one has none or is "
            "planned"
        )
    for func in functions:
        if is_static_block(func.body.block):
            continue
        if measure:
            raise LocatedError("times of symbolic sizes cannot be measured", func)
        if not pipeline.bounds:
            raise LocatedError("a frontier for symbolic sizes requires bounds", func)


def table(points: Sequence[FrontierPoint]) -> str:
    """The points as text: bytes, time, additional time, budget, and change."""
    rows: list[Sequence[str]] = [_HEAD]
    for point in points:
        slowdown = point.time / max(points[0].time, 1) - 1
        longer = f"+{slowdown:.1%}" if point is not points[0] else ""
        how = f"{point.budget}: {point.change}"
        rows.append((str(point.bytes), readable_time(point.time), longer, how))
    return "\n".join(aligned(rows, ">>>"))


def as_json(points: Sequence[FrontierPoint]) -> str:
    """The points as JSON for programs such as plan-view."""
    shown = [{name: getattr(point, name) for name in _SHOWN} for point in points]
    return json.dumps({"frontier": shown}, indent=2)
