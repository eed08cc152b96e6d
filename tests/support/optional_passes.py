"""The passes on tensors that a pipeline may have or not, in any order."""

from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)

from tensorplan.passes.tgraph_color_streams import TGraphColorStreams
from tensorplan.passes.tgraph_consume_stacked import TGraphConsumeStacked
from tensorplan.passes.tgraph_eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph_fuse import TGraphFuse
from tensorplan.passes.tgraph_infer_devices import TGraphInferDevices
from tensorplan.passes.tgraph_infer_shapes import TGraphInferShapes
from tensorplan.passes.tgraph_place_devices import TGraphPlaceDevices
from tensorplan.passes.tgraph_recompute_stacked import TGraphRecomputeStacked
from tensorplan.passes.tgraph_schedule import TGraphSchedule
from tensorplan.passes.tgraph_sink_reshapes import TGraphSinkReshapes

PLACE = TGraphPlaceDevices(default="cpu:0")
TENSOR_PASSES: list[ModulePass] = [
    TGraphInferShapes(),
    TGraphInferDevices(fallback="cpu:0"),
    PLACE,
    CanonicalizePass(),
    CommonSubexpressionElimination(),
    TGraphRecomputeStacked(),
    TGraphConsumeStacked(),
    TGraphSinkReshapes(),
    TGraphFuse(),
    TGraphFuse(mode="nnvm"),
    TGraphFuse(max_depth=2, keep_peak=False),
    TGraphEliminateAssigns(),
    TGraphSchedule(),
    TGraphColorStreams(streams=2),
]
"""Those that keep every bit of the values; each takes what any of them leaves."""
