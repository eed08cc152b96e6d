"""The passes on tensors that a pipeline may contain or omit, in any order."""

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)

from tensorplan.passes import optional_passes
from tensorplan.passes.optional import OptionalPass
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices

PLACE = TGraphPlaceDevices(default="cpu:0")

OPTIONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "tgraph-infer-devices": [{"fallback": "cpu:0"}],
    "tgraph-place-devices": [{"default": "cpu:0"}],
    "tgraph-fuse": [{}, {"mode": "nnvm"}, {"max_depth": 2, "keep_peak": False}],
    "tgraph-rematerialize": [{}, {"budget": 512}],
    "tgraph-offload": [{"budget": 512, "device": "cpu:0", "to": "cpu:1"}],
}
"""The options with which tests run each pass, if not only with its defaults."""

OPTIONAL: Sequence[OptionalPass] = [
    cls(**options)
    for cls in optional_passes()
    for options in OPTIONS.get(cls.name, [{}])
]
TENSOR_PASSES: Sequence[ModulePass] = [
    CanonicalizePass(),
    CommonSubexpressionElimination(),
    *(pass_ for pass_ in OPTIONAL if pass_.EXACT),
]
"""The passes that preserve values bit for bit. Each accepts the output of any other."""

IDEMPOTENT: Sequence[ModulePass] = [
    CanonicalizePass(),
    *(pass_ for pass_ in OPTIONAL if pass_.IDEMPOTENT),
]
