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


@dataclass(frozen=True)
class PlanPipeline(ModulePass):
    """Runs the default sequence of passes.

    strategy: how buffers are placed (see plan-memory).
    alignment: of every buffer, in bytes.
    device: where operations and arguments go that name no device.
    groups: the device of each tgraph.group, as "stage1=cpu:0","stage2=cpu:1".
    streams: how many each device has (see tgraph-color-streams); with 1, everything
        runs in program order.
    """

    name = "plan-pipeline"

    strategy: str = "auto"
    alignment: int = 64
    device: str = "cpu:0"
    groups: tuple[str, ...] = ()
    streams: int = 1

    def __post_init__(self) -> None:
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
        from tensorplan.passes.plan_memory import PlanMemory
        from tensorplan.passes.tgraph_bufferize import TGraphBufferize
        from tensorplan.passes.tgraph_color_streams import TGraphColorStreams
        from tensorplan.passes.tgraph_eliminate_assigns import TGraphEliminateAssigns
        from tensorplan.passes.tgraph_fuse import TGraphFuse
        from tensorplan.passes.tgraph_gradient import TGraphGradient
        from tensorplan.passes.tgraph_infer_shapes import TGraphInferShapes
        from tensorplan.passes.tgraph_place_devices import TGraphPlaceDevices

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
            *([TGraphColorStreams(self.streams)] if self.streams != 1 else []),
            TGraphBufferize(),
            PlanMemory(strategy=self.strategy, alignment=self.alignment),
        ]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        driver.run(ctx, op, self.passes())
