"""`plan-pipeline`: from a StableHLO, tgraph or memref program to planned arenas.

The default sequence. A pass that finds nothing of its level does nothing, so the input
may be of any level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tensorplan.passes import driver

EFFORTS = {"low": 0.2, "high": 10.0}
"""Of tgraph-schedule."""


@dataclass(frozen=True)
class PlanPipeline(ModulePass):
    """Runs the default sequence of passes.

    strategy: how buffers are placed (see plan-memory).
    alignment: of every buffer, in bytes.
    device: where operations and arguments go that name no device.
    groups: the device of each tgraph.group, as "stage1=cpu:0","stage2=cpu:1".
    budget: the bytes that each arena may have, such as 64MiB: values are computed again
        until they fit (see tgraph-rematerialize); what does not fit is an error.
    effort: `low` or `high`: how long orders of operations are searched.
    streams: how many each device has (see tgraph-color-streams); with 1, everything
        runs in program order.
    """

    name = "plan-pipeline"

    strategy: str = "auto"
    alignment: int = 64
    device: str = "cpu:0"
    groups: tuple[str, ...] = ()
    budget: int | str | None = None
    effort: str = "low"
    streams: int = 1

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise ValueError(
                f"effort is {self.effort!r}, expected one of {', '.join(EFFORTS)}"
            )
        self.passes()  # raises ValueError for a bad option

    def passes(self) -> Sequence[ModulePass]:
        """The sequence, in order."""
        from xdsl.transforms.canonicalize import CanonicalizePass
        from xdsl.transforms.common_subexpression_elimination import (
            CommonSubexpressionElimination,
        )

        from tensorplan.passes.convert_stablehlo_to_tgraph import (
            ConvertStablehloToTGraph,
        )
        from tensorplan.passes.plan_budget import PlanBudget
        from tensorplan.passes.plan_memory import PlanMemory
        from tensorplan.passes.tgraph_bufferize import TGraphBufferize
        from tensorplan.passes.tgraph_color_streams import TGraphColorStreams
        from tensorplan.passes.tgraph_eliminate_assigns import TGraphEliminateAssigns
        from tensorplan.passes.tgraph_fuse import TGraphFuse
        from tensorplan.passes.tgraph_gradient import TGraphGradient
        from tensorplan.passes.tgraph_infer_shapes import TGraphInferShapes
        from tensorplan.passes.tgraph_place_devices import TGraphPlaceDevices
        from tensorplan.passes.tgraph_rematerialize import TGraphRematerialize
        from tensorplan.passes.tgraph_schedule import TGraphSchedule

        alignment = self.alignment
        recompute: list[ModulePass] = []
        check: list[ModulePass] = []
        if self.budget is not None:
            recompute = [TGraphRematerialize(self.budget, alignment=alignment)]
            check = [PlanBudget(self.budget)]
        return [
            ConvertStablehloToTGraph(),
            TGraphInferShapes(require_static=True),
            TGraphGradient(),
            # Before constants are shared: each is made where it is used.
            TGraphPlaceDevices(groups=self.groups, default=self.device),
            CanonicalizePass(),
            CommonSubexpressionElimination(),
            TGraphFuse(),
            TGraphEliminateAssigns(),
            TGraphSchedule(EFFORTS[self.effort], alignment),
            *recompute,
            *([TGraphColorStreams(self.streams)] if self.streams != 1 else []),
            TGraphBufferize(),
            PlanMemory(strategy=self.strategy, alignment=alignment),
            *check,
        ]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        driver.run(ctx, op, self.passes())
