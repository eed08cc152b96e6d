"""The passes, by name, in pipeline order; each factory imports on first use.

driver.py          runs passes; verifies and checks definitions before uses after each
plan_pipeline.py   the default sequence, as one list
convert_stablehlo_to_tgraph.py, tgraph_*.py   on tensors (levels 0 and 1)
fusion/            which operations are computed together: algorithms for tgraph_fuse.py
tgraph_bufferize.py   tensors to memrefs (level 1 to 2)
slicing/           chains computed in pieces: search and rewriting for tgraph_slice.py
gradients/         differentiation: the rules, and what asks for them
channels.py        what the passes that fold inference share
devices.py         what the two passes on devices share
plan_in_place.py   results over operands, on memrefs of any dialect (level 2)
index_sizes.py     symbolic sizes as values of the IR, and back
specialize_sizes.py   symbolic sizes become numbers (any level)
runtime_offsets.py, symbolic_plan.py   offsets computed from sizes, and their proof
plan_memory.py, plan_check.py   memrefs into arenas, and the proof (level 2 to 3)
lending.py, result_pools.py     buffers in results, for plan and for proof
memory_graph.py    a function as the schedulers of planning/ see it
flops.py           what operations cost
versions.py, dependencies.py   what variables hold when; who has to wait for whom
stream_order.py, happens_before.py   the order of streams, for plan and for proof
linalg/            what convert-tgraph-to-linalg makes of each family of operations
report.py          the figures of a planned module
"""

from collections.abc import Callable
from importlib import import_module

from xdsl.passes import ModulePass

_CLASSES = {
    "convert-stablehlo-to-tgraph": "ConvertStablehloToTGraph",
    "tgraph-infer-shapes": "TGraphInferShapes",
    "tgraph-simplify-inference": "TGraphSimplifyInference",
    "tgraph-fold-scale-axis": "TGraphFoldScaleAxis",
    "tgraph-precompute": "TGraphPrecompute",
    "tgraph-infer-devices": "TGraphInferDevices",
    "tgraph-gradient": "TGraphGradient",
    "tgraph-place-devices": "TGraphPlaceDevices",
    "tgraph-recompute-stacked": "TGraphRecomputeStacked",
    "tgraph-compare-clipped": "TGraphCompareClipped",
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
    "plan-memory": "PlanMemory",
    "plan-check": "PlanCheck",
    "plan-budget": "PlanBudget",
    "convert-tgraph-to-linalg": "ConvertTGraphToLinalg",
    "plan-strip-memory-spaces": "PlanStripMemorySpaces",
    "plan-pipeline": "PlanPipeline",
}


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Our passes' names and factories, as xDSL's tools take them."""

    def factory(name: str, class_name: str) -> Callable[[], type[ModulePass]]:
        def get_pass() -> type[ModulePass]:
            module = import_module(f"tensorplan.passes.{name.replace('-', '_')}")
            return getattr(module, class_name)

        return get_pass

    return {name: factory(name, class_name) for name, class_name in _CLASSES.items()}
