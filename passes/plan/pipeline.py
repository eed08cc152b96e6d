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
from ..options import EFFORTS, MemoryOptions, Packing, Placing, PlanOptions


@dataclass(frozen=True)
class PlanPipeline(ModulePass, PlanOptions):
    """Runs the default sequence of passes."""

    name = "plan-pipeline"

    def passes(self) -> Sequence[ModulePass]:
        """The sequence, in order."""
        return [
            *self._to_placed_tensors(),
            *(rewrite() for rewrite in rewrites()),
            *self._lowering_peak(),
            *self._in_place_or_streams(),
            *self._to_arenas(),
        ]

    def _to_placed_tensors(self) -> Sequence[ModulePass]:
        """Level 1, with the shape and the device of every tensor."""
        from xdsl.transforms.canonicalize import CanonicalizePass

        from ..common_subexpressions import UnplannedCommonSubexpressionElimination
        from ..convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
        from ..tgraph.gradient import TGraphGradient
        from ..tgraph.infer_shapes import TGraphInferShapes
        from ..tgraph.place_devices import TGraphPlaceDevices
        from .attach_target import PlanAttachTarget
        from .check import PlanCheck

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
        ]

    def _lowering_peak(self) -> Sequence[ModulePass]:
        """Fusion and order, and tiles and rematerialization for one stream."""
        from ..tgraph.eliminate_assigns import TGraphEliminateAssigns
        from ..tgraph.fit import TGraphFit
        from ..tgraph.fuse import TGraphFuse
        from ..tgraph.pack_masks import TGraphPackMasks
        from ..tgraph.rematerialize import TGraphRematerialize
        from ..tgraph.schedule import TGraphSchedule
        from ..tgraph.search import TGraphSearch
        from ..tgraph.sink_concatenations import TGraphSinkConcatenations
        from ..tgraph.split_concatenations import TGraphSplitConcatenations
        from ..tgraph.tile import TGraphTile
        from ..tgraph.update_in_place import TGraphUpdateInPlace

        placing = self.shared(Placing)
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
            return [fit]
        if self.effort == "high" and self.streams == 1:
            return [TGraphSearch(time_limit=self.time_limit, **placing)]
        passes: list[ModulePass] = [
            TGraphEliminateAssigns(),
            TGraphFuse(),
            TGraphSinkConcatenations(),
            TGraphSchedule(EFFORTS[self.effort], **self.shared(Packing)),
        ]
        if self.streams == 1:
            passes += [
                TGraphSplitConcatenations(),
                TGraphUpdateInPlace(),  # first, so that smaller values are not tiled
                TGraphTile(**placing),
                TGraphPackMasks(**placing),
                TGraphRematerialize(**placing),
            ]
        return passes

    def _in_place_or_streams(self) -> Sequence[ModulePass]:
        """What depends on the final order of one stream, or else several streams."""
        from ..tgraph.color_streams import TGraphColorStreams
        from ..tgraph.concatenate_in_place import TGraphConcatenateInPlace
        from ..tgraph.hoist_invariants import TGraphHoistInvariants
        from ..tgraph.offload import TGraphOffload
        from ..tgraph.split_concatenations import TGraphSplitConcatenations
        from ..tgraph.update_in_place import TGraphUpdateInPlace

        if self.streams != 1:
            return [TGraphColorStreams(self.streams)]
        placing = self.shared(Placing)
        growth = TGraphHoistInvariants.max_growth if self.budget is None else 0.0
        return [
            TGraphOffload(**placing),
            TGraphConcatenateInPlace(**placing),
            TGraphSplitConcatenations(),
            TGraphUpdateInPlace(),
            TGraphHoistInvariants(max_growth=growth, **placing),
        ]

    def _to_arenas(self) -> Sequence[ModulePass]:
        """Levels 2 and 3."""
        from ..tgraph.bufferize import TGraphBufferize
        from .budget import PlanBudget
        from .memory import PlanMemory
        from .spill import PlanSpill
        from .workspaces import PlanWorkspaces

        memory = self.shared(MemoryOptions)
        passes: list[ModulePass] = [TGraphBufferize()]
        if self.workspaces != "none":
            passes.append(PlanWorkspaces(self.workspaces, self.threads))
        passes += [PlanSpill(**memory), PlanMemory(**memory)]
        if self.budget is not None:
            passes.append(PlanBudget(self.budget, unlimited=self.offload))
        return passes

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        driver.run(ctx, op, self.passes())
