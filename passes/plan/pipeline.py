"""`plan-pipeline`: lowers a StableHLO, tgraph, or memref program to planned arenas.

The pass runs the default sequence of passes. A pass that finds nothing at its level
does nothing, so the input may be at any level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .. import driver, rewrites
from ..options import EFFORTS, MemoryOptions, Placing, PlanOptions


@dataclass(frozen=True)
class PlanPipeline(ModulePass, PlanOptions):
    """Runs the default sequence of passes."""

    name = "plan-pipeline"

    def passes(self) -> Sequence[ModulePass]:
        """The sequence, in order."""
        from xdsl.transforms.canonicalize import CanonicalizePass

        from ..common_subexpressions import UnplannedCommonSubexpressionElimination
        from ..convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
        from ..tgraph.bufferize import TGraphBufferize
        from ..tgraph.color_streams import TGraphColorStreams
        from ..tgraph.concatenate_in_place import TGraphConcatenateInPlace
        from ..tgraph.eliminate_assigns import TGraphEliminateAssigns
        from ..tgraph.fit import TGraphFit
        from ..tgraph.fuse import TGraphFuse
        from ..tgraph.gradient import TGraphGradient
        from ..tgraph.hoist_invariants import TGraphHoistInvariants
        from ..tgraph.infer_shapes import TGraphInferShapes
        from ..tgraph.offload import TGraphOffload
        from ..tgraph.pack_masks import TGraphPackMasks
        from ..tgraph.place_devices import TGraphPlaceDevices
        from ..tgraph.rematerialize import TGraphRematerialize
        from ..tgraph.schedule import TGraphSchedule
        from ..tgraph.search import TGraphSearch
        from ..tgraph.sink_concatenations import TGraphSinkConcatenations
        from ..tgraph.split_concatenations import TGraphSplitConcatenations
        from ..tgraph.tile import TGraphTile
        from ..tgraph.update_in_place import TGraphUpdateInPlace
        from .attach_target import PlanAttachTarget
        from .budget import PlanBudget
        from .check import PlanCheck
        from .memory import PlanMemory
        from .spill import PlanSpill
        from .workspaces import PlanWorkspaces

        placing = self.shared(Placing)
        lower: list[ModulePass] = [
            TGraphEliminateAssigns(),
            TGraphFuse(),
            TGraphSinkConcatenations(),
            TGraphSchedule(EFFORTS[self.effort], alignment=self.alignment),
        ]
        if self.streams == 1:
            lower += [
                TGraphSplitConcatenations(),
                TGraphUpdateInPlace(),  # first, so that smaller values are not tiled
                TGraphTile(**placing),
                TGraphPackMasks(**placing),
                TGraphRematerialize(**placing),
            ]
        check: list[ModulePass] = []
        growth = TGraphHoistInvariants.max_growth if self.budget is None else 0.0
        if self.effort == "high" and self.streams == 1 and self.budget is None:
            lower = [TGraphSearch(time_limit=self.time_limit, **placing)]
        if self.budget is not None:
            fit = TGraphFit(
                self.budget,
                EFFORTS[self.effort],
                tiles=self.streams == 1,
                device=self.device,
                offload=self.offload,
                time_limit=self.time_limit,
                **placing,
            )
            lower = [fit]
            check = [PlanBudget(self.budget, unlimited=self.offload)]
        return [
            *([PlanAttachTarget(self.target_memory)] if self.target_memory else []),
            PlanCheck(report=False),  # for input that is planned
            ConvertStablehloToTGraph(),
            TGraphInferShapes(require_static=True),
            TGraphGradient(),
            # Before constants are shared, so that each device makes its own.
            TGraphPlaceDevices(groups=self.groups, default=self.device),
            CanonicalizePass(),
            UnplannedCommonSubexpressionElimination(),
            *(rewrite() for rewrite in rewrites()),
            *lower,
            *(
                [
                    TGraphOffload(**placing),
                    TGraphConcatenateInPlace(**placing),
                    TGraphSplitConcatenations(),
                    TGraphUpdateInPlace(),
                    TGraphHoistInvariants(max_growth=growth, **placing),
                ]
                if self.streams == 1
                else [TGraphColorStreams(self.streams)]
            ),
            TGraphBufferize(),
            *(
                [PlanWorkspaces(self.workspaces, self.threads)]
                if self.workspaces != "none"
                else []
            ),
            PlanSpill(**self.shared(MemoryOptions)),
            PlanMemory(**self.shared(MemoryOptions)),
            *check,
        ]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        driver.run(ctx, op, self.passes())
