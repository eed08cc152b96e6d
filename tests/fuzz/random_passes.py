"""Random passes with random options, and what each of them promises."""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from tensorplan.passes.plan_memory import PlanMemory
from tensorplan.passes.plan_pipeline import PlanPipeline
from tensorplan.passes.tgraph_color_streams import TGraphColorStreams
from tensorplan.passes.tgraph_compare_clipped import TGraphCompareClipped
from tensorplan.passes.tgraph_consume_stacked import TGraphConsumeStacked
from tensorplan.passes.tgraph_eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph_fold_scale_axis import TGraphFoldScaleAxis
from tensorplan.passes.tgraph_fuse import TGraphFuse
from tensorplan.passes.tgraph_infer_devices import TGraphInferDevices
from tensorplan.passes.tgraph_infer_shapes import TGraphInferShapes
from tensorplan.passes.tgraph_offload import TGraphOffload
from tensorplan.passes.tgraph_place_devices import TGraphPlaceDevices
from tensorplan.passes.tgraph_recompute_stacked import TGraphRecomputeStacked
from tensorplan.passes.tgraph_rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph_scatter_into import TGraphScatterInto
from tensorplan.passes.tgraph_schedule import TGraphSchedule
from tensorplan.passes.tgraph_simplify_inference import TGraphSimplifyInference
from tensorplan.passes.tgraph_sink_reshapes import TGraphSinkReshapes
from tensorplan.passes.tgraph_slice import TGraphSlice
from tensorplan.planning import STRATEGIES

GROUPS = ("a=cpu:0", "b=cpu:1")


class Promise(NamedTuple):
    """A pass on tensors."""

    make: Callable[[Random], ModulePass]
    exact: bool = True  # values stay as they are, bit by bit
    keeps_order: bool = True  # of what is added up: else that is so of integers only
    idempotent: bool = True


PASSES: Sequence[Promise] = [
    Promise(lambda r: TGraphInferShapes(r.random() < 0.5)),
    Promise(lambda r: TGraphInferDevices(fallback="cpu:0")),
    Promise(lambda r: place(r)),
    # The transpose of a product is that of its operands, swapped.
    Promise(lambda r: CanonicalizePass(), keeps_order=False),
    Promise(lambda r: CommonSubexpressionElimination(), idempotent=False),
    Promise(lambda r: DeadCodeElimination()),
    Promise(lambda r: TGraphSimplifyInference(), exact=False),
    Promise(lambda r: TGraphFoldScaleAxis(r.random() < 0.5), exact=False),
    Promise(lambda r: TGraphRecomputeStacked()),
    Promise(lambda r: TGraphConsumeStacked()),
    Promise(lambda r: TGraphCompareClipped()),
    Promise(lambda r: TGraphScatterInto()),
    Promise(lambda r: TGraphSinkReshapes()),
    Promise(
        lambda r: TGraphSlice(
            r.choice([2, 8]), r.choice([0.03, 9]), alignment=r.choice([1, 64])
        ),
        exact=False,  # a product of a slice may add up in another order
        idempotent=False,  # a piece may be cut again
    ),
    Promise(
        lambda r: TGraphFuse(r.choice(["relay", "nnvm"]), keep_peak=r.random() < 0.5)
    ),
    Promise(
        lambda r: TGraphFuse("relay", r.choice([1, 2, 4]), r.random() < 0.5),
        idempotent=False,  # what the depth has cut off is there for the next run
    ),
    Promise(lambda r: TGraphEliminateAssigns()),
    Promise(
        lambda r: TGraphSchedule(
            r.choice([0, 0.05, 0.2]), alignment=r.choice([1, 16, 64])
        ),
        idempotent=False,  # list scheduling goes on from the order that it gets
    ),
    Promise(
        lambda r: TGraphRematerialize(r.choice([64, 512, "4KiB", "1MiB"])),
        idempotent=False,
    ),
    Promise(
        lambda r: TGraphOffload(r.choice([64, 512, "4KiB"]), "cpu:0", "cpu:1"),
        idempotent=False,
    ),
    Promise(lambda r: TGraphColorStreams(r.randint(1, 4))),
]


def place(random: Random) -> ModulePass:
    return TGraphPlaceDevices(groups=GROUPS, default=random.choice(["cpu:0", "cpu:1"]))


def plan_memory(random: Random) -> PlanMemory:
    return PlanMemory(
        strategy=random.choice(sorted(STRATEGIES)),
        alignment=random.choice([1, 4, 16, 64, 256]),
    )


def plan_pipeline(random: Random) -> PlanPipeline:
    return PlanPipeline(
        strategy=random.choice(sorted(STRATEGIES)),
        alignment=random.choice([8, 64, 128]),
        device=random.choice(["cpu:0", "cpu:1"]),
        groups=GROUPS,
        budget=random.choice([None, None, None, "1KiB", "16KiB"]),
        effort=random.choice([*["low"] * 7, "high"]),
        streams=random.choice([1, 1, 2, 3]),
        lend=random.random() < 0.8,
        workspaces=random.choice(["none", "none", "numpy", "native"]),
    )
