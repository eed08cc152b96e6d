"""Random passes with random options, and the properties that each promises."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from tensorplan.passes import optional_passes
from tensorplan.passes.optional import OptionalPass
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.planning import STRATEGIES

GROUPS = ("a=cpu:0", "b=cpu:1")


class Promise(NamedTuple):
    """A pass on tensors, with its properties."""

    make: Callable[[Random], ModulePass]
    exact: bool = True  # values stay equal, bit by bit
    keeps_order: bool = True  # of sums; without it, `exact` holds for integers only
    idempotent: bool = True


OPTIONS: Mapping[str, Callable[[Random], Mapping[str, Any]]] = {
    "tgraph-infer-shapes": lambda r: {"require_static": r.random() < 0.5},
    "tgraph-infer-devices": lambda r: {"fallback": "cpu:0"},
    "tgraph-place-devices": lambda r: {
        "groups": GROUPS,
        "default": r.choice(["cpu:0", "cpu:1"]),
    },
    "tgraph-fold-scale-axis": lambda r: {"always": r.random() < 0.5},
    "tgraph-tile": lambda r: {
        "tiles": r.choice([2, 8]),
        "max_slowdown": r.choice([0.03, 9]),
        "tile_bytes": r.choice([0, 1, 64, 1 << 19]),
        "alignment": r.choice([1, 64]),
    },
    "tgraph-fuse": lambda r: {
        "mode": r.choice(["relay", "nnvm"]),
        "keep_peak": r.random() < 0.5,
    },
    "tgraph-schedule": lambda r: {
        "effort": r.choice([0, 0.05, 0.2]),
        "alignment": r.choice([1, 16, 64]),
    },
    "tgraph-rematerialize": lambda r: r.choice(
        [{"budget": r.choice([64, 512, "4KiB", "1MiB"])}, {"max_slowdown": 9}]
    ),
    "tgraph-offload": lambda r: {
        "budget": r.choice([64, 512, "4KiB"]),
        "device": "cpu:0",
        "to": "cpu:1",
    },
    "tgraph-color-streams": lambda r: {"streams": r.randint(1, 4)},
}
"""Random options by pass. Other passes have default options."""

STEADY_BY_DEFAULT = {"tgraph-schedule"}
"""Passes that are idempotent with default options only: list scheduling starts from
the given order."""


def _promise(cls: type[OptionalPass]) -> Promise:
    options = OPTIONS.get(cls.name, lambda r: {})
    return Promise(
        lambda r: cls(**options(r)),
        exact=cls.EXACT,
        idempotent=cls.IDEMPOTENT and cls.name not in STEADY_BY_DEFAULT,
    )


PASSES: Sequence[Promise] = [
    # Rewrites the transpose of a product to a product of swapped operands.
    Promise(lambda r: CanonicalizePass(), keeps_order=False),
    Promise(lambda r: CommonSubexpressionElimination(), idempotent=False),
    Promise(lambda r: DeadCodeElimination()),
    *map(_promise, optional_passes()),
    Promise(
        lambda r: TGraphFuse("relay", r.choice([1, 2, 4]), r.random() < 0.5),
        idempotent=False,  # the next run fuses what the depth limit left
    ),
]


def place(random: Random) -> ModulePass:
    return TGraphPlaceDevices(groups=GROUPS, default=random.choice(["cpu:0", "cpu:1"]))


def plan_memory(random: Random) -> PlanMemory:
    return PlanMemory(
        strategy=random.choice(sorted(STRATEGIES)),
        alignment=random.choice([1, 4, 16, 64, 256]),
    )


def plan_pipeline(random: Random) -> PlanPipeline:
    pipeline = PlanPipeline(
        strategy=random.choice(sorted(STRATEGIES)),
        alignment=random.choice([8, 64, 128]),
        device=random.choice(["cpu:0", "cpu:1"]),
        groups=GROUPS,
        budget=random.choice([None, None, None, "1KiB", "16KiB"]),
        effort=random.choice([*["low"] * 7, "high"]),
        streams=random.choice([1, 1, 2, 3]),
        reuse_outputs=random.random() < 0.8,
        workspaces=random.choice(["none", "none", "numpy", "native"]),
    )
    if pipeline.effort == "high":  # limits its search
        return replace(pipeline, time_limit=5.0)
    return pipeline
