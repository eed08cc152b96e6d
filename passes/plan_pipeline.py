"""`plan-pipeline`: from a StableHLO, tgraph or memref program to planned arenas.

The default sequence. A pass that finds nothing of its level does nothing, so the input
may be of any level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tensorplan.choices import ChoiceError
from tensorplan.passes import driver

EFFORTS = {"low": 0.2, "high": 10.0}
"""Of tgraph-schedule, where there is no search around it."""


@dataclass(frozen=True)
class PlanPipeline(ModulePass):
    """Runs the default sequence of passes.

    strategy: how buffers are placed (see plan-memory).
    alignment: of every buffer, in bytes.
    device: where operations and arguments go that name no device.
    groups: the device of each tgraph.group, as "stage1=cpu:0","stage2=cpu:1".
    budget: the bytes that each arena may have, such as 64MiB: the peak is lowered until
        they fit (see tgraph-fit); what does not fit is an error.
    offload: a device that values of `device` may be moved to for that (see
        tgraph-offload); its arena has no limit.
    effort: `low`, or `high` to search for what to fuse, slice, and compute again, and
        in which order, together (see tgraph-search).
    time_limit: the seconds that all passes may take where effort is high or there is a
        budget; without, all is tried.
    lend: whether buffers may lie in results that are not written yet (see plan-memory).
    bounds: the largest symbolic sizes, for static arenas (see plan-memory).
    hints: typical symbolic sizes, for arenas of computed size (see plan-memory).
    dynamic: `offsets`, or `allocator` to plan nothing of symbolic size.
    streams: how many each device has (see tgraph-color-streams); with 1, everything
        runs in program order.
    workspaces: the kernels whose workspaces are planned, too: `native`, `numpy` (see
        plan-workspaces), or `none`, for whoever has other kernels.
    """

    name = "plan-pipeline"

    strategy: str = "auto"
    alignment: int = 64
    device: str = "cpu:0"
    groups: tuple[str, ...] = ()
    budget: int | str | None = None
    effort: str = "low"
    streams: int = 1
    lend: bool = True
    bounds: str = ""
    hints: str = ""
    dynamic: str = "offsets"
    offload: str = ""
    time_limit: float | None = None
    workspaces: str = "none"

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise ChoiceError("effort", self.effort, EFFORTS)
        if self.offload and self.budget is None:
            raise ValueError(f"offload is {self.offload!r}, but there is no budget")
        if self.offload and self.streams != 1:
            raise ValueError(
                f"streams is {self.streams}, expected 1 where offload is given"
            )
        is_search = self.effort == "high" or self.budget is not None
        if self.time_limit is not None and not is_search:
            raise ValueError(
                f"time-limit is {self.time_limit}, but effort is {self.effort!r} and "
                "there is no budget"
            )
        self.passes()  # raises ValueError for a bad option

    def passes(self) -> Sequence[ModulePass]:
        """The sequence, in order."""
        from xdsl.transforms.canonicalize import CanonicalizePass

        from tensorplan.passes.attempts import Placing
        from tensorplan.passes.common_subexpressions import (
            UnplannedCommonSubexpressionElimination,
        )
        from tensorplan.passes.convert_stablehlo_to_tgraph import (
            ConvertStablehloToTGraph,
        )
        from tensorplan.passes.plan_budget import PlanBudget
        from tensorplan.passes.plan_check import PlanCheck
        from tensorplan.passes.plan_memory import PlanMemory
        from tensorplan.passes.plan_workspaces import PlanWorkspaces
        from tensorplan.passes.tgraph_bufferize import TGraphBufferize
        from tensorplan.passes.tgraph_color_streams import TGraphColorStreams
        from tensorplan.passes.tgraph_compare_clipped import TGraphCompareClipped
        from tensorplan.passes.tgraph_consume_stacked import TGraphConsumeStacked
        from tensorplan.passes.tgraph_eliminate_assigns import TGraphEliminateAssigns
        from tensorplan.passes.tgraph_fit import TGraphFit
        from tensorplan.passes.tgraph_fuse import TGraphFuse
        from tensorplan.passes.tgraph_gradient import TGraphGradient
        from tensorplan.passes.tgraph_infer_shapes import TGraphInferShapes
        from tensorplan.passes.tgraph_place_devices import TGraphPlaceDevices
        from tensorplan.passes.tgraph_recompute_stacked import TGraphRecomputeStacked
        from tensorplan.passes.tgraph_scatter_into import TGraphScatterInto
        from tensorplan.passes.tgraph_schedule import TGraphSchedule
        from tensorplan.passes.tgraph_search import TGraphSearch
        from tensorplan.passes.tgraph_sink_reshapes import TGraphSinkReshapes
        from tensorplan.passes.tgraph_slice import TGraphSlice

        placing = Placing(self.alignment, self.lend, self.workspaces)._asdict()
        lower: list[ModulePass] = [
            TGraphFuse(),
            TGraphEliminateAssigns(),
            TGraphSchedule(EFFORTS[self.effort], **placing),
        ]
        if self.streams == 1:
            lower.append(TGraphSlice(**placing))
        check: list[ModulePass] = []
        if self.effort == "high" and self.streams == 1 and self.budget is None:
            lower = [TGraphSearch(self.time_limit, **placing)]
        if self.budget is not None:
            fit = TGraphFit(
                self.budget,
                EFFORTS[self.effort],
                slices=self.streams == 1,
                device=self.device,
                offload=self.offload,
                time_limit=self.time_limit,
                **placing,
            )
            lower = [fit]
            check = [PlanBudget(self.budget, unlimited=self.offload)]
        return [
            PlanCheck(report=False),  # of what comes planned
            ConvertStablehloToTGraph(),
            TGraphInferShapes(require_static=True),
            TGraphGradient(),
            # Before constants are shared: each is made where it is used.
            TGraphPlaceDevices(groups=self.groups, default=self.device),
            CanonicalizePass(),
            UnplannedCommonSubexpressionElimination(),
            TGraphRecomputeStacked(),
            TGraphConsumeStacked(),
            TGraphCompareClipped(),
            TGraphScatterInto(),
            TGraphSinkReshapes(),
            *lower,
            *([TGraphColorStreams(self.streams)] if self.streams != 1 else []),
            TGraphBufferize(),
            *([PlanWorkspaces(self.workspaces)] if self.workspaces != "none" else []),
            PlanMemory(
                self.strategy,
                self.alignment,
                self.lend,
                self.bounds,
                self.hints,
                self.dynamic,
            ),
            *check,
        ]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        driver.run(ctx, op, self.passes())
