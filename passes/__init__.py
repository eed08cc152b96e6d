"""The names of all passes, in pipeline order. A pass is imported on first use.

The file of a pass follows from its name: `tgraph-sink-reshapes` is
tgraph/sink_reshapes.py. plan/pipeline.py has the default sequence.

tgraph/                    passes on tensors
plan/                      passes that place memory, check plans, and report on them
convert/                   conversions between dialects
specialize/                specialize-sizes: numbers for symbolic sizes
driver.py                  runs passes, and verifies the IR after each
common_subexpressions.py   cse for functions that are not planned yet
options.py                 the options of planning
optional.py                the contract of optional passes
inference.py               computes values that depend on parameters alone, once
option_values.py           parses the symbolic sizes in options

The analyses that passes use are in analysis/. The checker of plans is in checking/.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from .optional import OptionalPass

_REWRITES = {
    "tgraph-simplify-scatter": "TGraphSimplifyScatter",
    "tgraph-coalesce-loops": "TGraphCoalesceLoops",
    "tgraph-unroll-loops": "TGraphUnrollLoops",
    "tgraph-reroll-loops": "TGraphRerollLoops",
    "tgraph-rematerialize-scan-residuals": "TGraphRematerializeScanResiduals",
    "tgraph-scatter-into": "TGraphScatterInto",
    "tgraph-fuse-updates-into-scan": "TGraphFuseUpdatesIntoScan",
    "tgraph-split-updates": "TGraphSplitUpdates",
    "tgraph-fuse-into-loops": "TGraphFuseIntoLoops",
    "tgraph-sink-invariants": "TGraphSinkInvariants",
    "tgraph-sink-reshapes": "TGraphSinkReshapes",
    "tgraph-hoist-transposes": "TGraphHoistTransposes",
}
"""Passes of the default sequence that change few programs and have no options."""

_CLASSES = {
    "plan-attach-target": "PlanAttachTarget",
    "convert-stablehlo-to-tgraph": "ConvertStablehloToTGraph",
    "convert-tensor-to-tgraph": "ConvertTensorToTGraph",
    "tgraph-infer-shapes": "TGraphInferShapes",
    "tgraph-simplify-inference": "TGraphSimplifyInference",
    "tgraph-fold-scale-axis": "TGraphFoldScaleAxis",
    "tgraph-channels-last": "TGraphChannelsLast",
    "tgraph-precompute": "TGraphPrecompute",
    "tgraph-infer-devices": "TGraphInferDevices",
    "tgraph-gradient": "TGraphGradient",
    "tgraph-place-devices": "TGraphPlaceDevices",
    **_REWRITES,
    "tgraph-fuse": "TGraphFuse",
    "tgraph-eliminate-assigns": "TGraphEliminateAssigns",
    "tgraph-sink-concatenations": "TGraphSinkConcatenations",
    "tgraph-schedule": "TGraphSchedule",
    "tgraph-split-concatenations": "TGraphSplitConcatenations",
    "tgraph-tile": "TGraphTile",
    "tgraph-pack-masks": "TGraphPackMasks",
    "tgraph-rematerialize": "TGraphRematerialize",
    "tgraph-offload": "TGraphOffload",
    "tgraph-concatenate-in-place": "TGraphConcatenateInPlace",
    "tgraph-update-in-place": "TGraphUpdateInPlace",
    "tgraph-hoist-invariants": "TGraphHoistInvariants",
    "tgraph-fit": "TGraphFit",
    "tgraph-search": "TGraphSearch",
    "tgraph-color-streams": "TGraphColorStreams",
    "tgraph-bufferize": "TGraphBufferize",
    "specialize-sizes": "SpecializeSizes",
    "plan-in-place": "PlanInPlace",
    "plan-workspaces": "PlanWorkspaces",
    "plan-spill": "PlanSpill",
    "plan-overlap-copies": "PlanOverlapCopies",
    "plan-memory": "PlanMemory",
    "plan-check": "PlanCheck",
    "plan-budget": "PlanBudget",
    "convert-tgraph-to-linalg": "ConvertTGraphToLinalg",
    "plan-strip-memory-spaces": "PlanStripMemorySpaces",
    "plan-pipeline": "PlanPipeline",
}


def _module_of(name: str) -> str:
    """Returns `.tgraph.sink_reshapes` for `tgraph-sink-reshapes`."""
    return "." + name.replace("-", ".", 1).replace("-", "_")


def get_all_passes() -> "dict[str, Callable[[], type[ModulePass]]]":
    """The factory of each pass by name, in the form that xDSL's tools expect."""

    return {name: partial(_load, name) for name in _CLASSES}


def rewrites() -> "Sequence[type[OptionalPass]]":
    """The passes of the default sequence that change few programs, in order."""
    return [cast("type[OptionalPass]", _load(name)) for name in _REWRITES]


def optional_passes() -> "Sequence[type[OptionalPass]]":
    """All passes that may be omitted, in pipeline order."""
    from .optional import OptionalPass

    return [cls for cls in map(_load, _CLASSES) if issubclass(cls, OptionalPass)]


def _load(name: str) -> "type[ModulePass]":
    module = import_module(_module_of(name), __package__)
    return getattr(module, _CLASSES[name])
