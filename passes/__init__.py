"""The passes, by name, in pipeline order; each factory imports on first use.

Each pass is one file of its name. `plan_pipeline.py` has the default sequence. Folders
hold the parts of one pass or a few:

stablehlo/       convert-stablehlo-to-tgraph: each family of operations
gradients/       tgraph-gradient: the rules, and what asks for them
fusion/          tgraph-fuse: which operations are computed together
slicing/         tgraph-slice: which chains are computed in pieces
bufferization/   tgraph-bufferize: tensors to memrefs
memory/          plan-memory: what buffers there are, and when they are live
checking/        plan-check: the proof, which imports nothing of memory/
linalg/          convert-tgraph-to-linalg: each family of operations
reporting/       reports, pictures, explanations

A pass that may be left out says so in its class (optional.py).

The other files are shared:

options.py           the options of planning: their defaults, meanings and checks
driver.py            runs passes, and verifies after each
attempts.py          ways to lower the peak, tried on copies
fitting.py           how few bytes have to be live to fit a budget
memory_graph.py      a function as the schedulers of planning/ see it
layout.py            how a tensor lies in a buffer
concatenations.py, updates.py, stacks.py   parts that are computed in place
versions.py          what variables hold when
inference.py         what depends on known parameters, computed
functions.py, channels.py, devices.py   what functions, foldings and device passes share
common_subexpressions.py   xDSL's pass, for what is not planned yet
sizes.py, index_sizes.py   sizes as options, and as values of the IR
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from tensorplan.passes.optional import OptionalPass

_REWRITES = {
    "tgraph-recompute-stacked": "TGraphRecomputeStacked",
    "tgraph-consume-stacked": "TGraphConsumeStacked",
    "tgraph-compare-clipped": "TGraphCompareClipped",
    "tgraph-scatter-into": "TGraphScatterInto",
    "tgraph-sink-reshapes": "TGraphSinkReshapes",
}
"""Of the default sequence: each finds something in few programs, and has no options."""

_CLASSES = {
    "convert-stablehlo-to-tgraph": "ConvertStablehloToTGraph",
    "tgraph-infer-shapes": "TGraphInferShapes",
    "tgraph-simplify-inference": "TGraphSimplifyInference",
    "tgraph-fold-scale-axis": "TGraphFoldScaleAxis",
    "tgraph-precompute": "TGraphPrecompute",
    "tgraph-infer-devices": "TGraphInferDevices",
    "tgraph-gradient": "TGraphGradient",
    "tgraph-place-devices": "TGraphPlaceDevices",
    **_REWRITES,
    "tgraph-fuse": "TGraphFuse",
    "tgraph-eliminate-assigns": "TGraphEliminateAssigns",
    "tgraph-schedule": "TGraphSchedule",
    "tgraph-slice": "TGraphSlice",
    "tgraph-rematerialize": "TGraphRematerialize",
    "tgraph-offload": "TGraphOffload",
    "tgraph-fit": "TGraphFit",
    "tgraph-search": "TGraphSearch",
    "tgraph-color-streams": "TGraphColorStreams",
    "tgraph-bufferize": "TGraphBufferize",
    "specialize-sizes": "SpecializeSizes",
    "plan-in-place": "PlanInPlace",
    "plan-workspaces": "PlanWorkspaces",
    "plan-memory": "PlanMemory",
    "plan-check": "PlanCheck",
    "plan-budget": "PlanBudget",
    "convert-tgraph-to-linalg": "ConvertTGraphToLinalg",
    "plan-strip-memory-spaces": "PlanStripMemorySpaces",
    "plan-pipeline": "PlanPipeline",
}


def get_all_passes() -> "dict[str, Callable[[], type[ModulePass]]]":
    """Our passes' names and factories, as xDSL's tools take them."""

    return {name: partial(_load, name) for name in _CLASSES}


def rewrites() -> "Sequence[type[OptionalPass]]":
    """Those of the default sequence that find something in few programs, in order."""
    return [cast("type[OptionalPass]", _load(name)) for name in _REWRITES]


def optional_passes() -> "Sequence[type[OptionalPass]]":
    """All that may be left out, in pipeline order."""
    from tensorplan.passes.optional import OptionalPass

    return [cls for cls in map(_load, _CLASSES) if issubclass(cls, OptionalPass)]


def _load(name: str) -> "type[ModulePass]":
    module = import_module(f"tensorplan.passes.{name.replace('-', '_')}")
    return getattr(module, _CLASSES[name])
