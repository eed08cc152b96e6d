"""A plan's recomputation for PyTorch: selective activation checkpointing of modules.

    %h = tgraph.dot_general ...                       blocks.0.up/aten.linear
    %a = tgraph.multiply ...                          blocks.0/aten.gelu
    ...
    %b = tgraph.multiply ... {tgraph.recomputed}      blocks.0/aten.gelu

The plan keeps %h and recomputes %a, so PyTorch checkpoints `blocks.0` and saves the
result of `aten.addmm` in `blocks.0.up`. PyTorch keeps the input of a checkpointed
module, and recomputes all of it when the backward pass reaches it. Regions are
therefore small: the entries of lists of blocks, or else the modules that recompute.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..dialects.tgraph.base import TensorOp, tensor_type_of, typical_bytes
from .kept_values import KeptValue, is_of_gradient, module_of
from .wording import readable

_BELOW_AUTOGRAD = {
    "aten.linear": ("aten.addmm", "aten.mm"),
    "aten.matmul": ("aten.mm", "aten.bmm"),
    "aten.scaled_dot_product_attention": (
        "aten._scaled_dot_product_flash_attention_for_cpu",
        "aten._scaled_dot_product_flash_attention",
        "aten._scaled_dot_product_efficient_attention",
    ),
    "aten._native_batch_norm_legit_functional": (
        "aten.native_batch_norm",
        "aten.cudnn_batch_norm",
    ),
}
"""The operations that a policy sees instead of those that PyTorch decomposes."""

_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        *("alias", "detach", "expand", "permute", "select", "slice", "split", "t"),
        *("split_with_sizes", "squeeze", "transpose", "unsqueeze", "view"),
    )
)
"""Operations that only make views in PyTorch."""

_IMPORTS = """\
from contextlib import contextmanager
from functools import partial

import torch
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

aten = torch.ops.aten
"""

_CHECKPOINTING = """

def checkpoint_as_planned(model):
    path_now = [""]

    @contextmanager
    def inside(path):
        path_now.append(path)
        try:
            yield
        finally:
            path_now.pop()

    def policy(context, op, *args, **kwargs):
        if op.overloadpacket in KEPT.get(path_now[-1], ()):
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(create_selective_checkpoint_contexts, policy)
    for path, module in model.named_modules():
        module.forward = inside(path)(module.forward)
        if path in REGIONS:
            module.forward = partial(
                checkpoint, module.forward, use_reentrant=False, context_fn=contexts
            )


checkpoint_as_planned(model)  # the module that from_torch took"""


@dataclass(frozen=True)
class TorchCheckpointPolicy:
    """The values that a plan keeps for the gradient. Prints as code for PyTorch."""

    kept: Sequence[KeptValue]  # in the order in which the plan computes them
    regions: Sequence[str]  # paths of the modules to checkpoint
    saved: Mapping[str, Sequence[str]]
    """The operations whose results PyTorch saves, by path of the module."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = readable(sum(value.size for value in self.kept))
        yield f"# The gradient reads {total} of the forward pass."
        if not self.regions:
            yield "# The plan recomputes nothing: there is nothing to checkpoint."
            return
        yield _IMPORTS
        yield "KEPT = {"
        for path, ops in self.saved.items():
            yield f"    {json.dumps(path)}: [{', '.join(ops)}],"
        yield "}"
        yield "REGIONS = ["
        yield from (f"    {json.dumps(path)}," for path in self.regions)
        yield "]"
        yield _CHECKPOINTING


def torch_checkpoint_policy(
    module: ModuleOp, kept: Sequence[KeptValue]
) -> TorchCheckpointPolicy:
    """The policy for a planned PyTorch program that keeps `kept`; see `kept_values`."""
    forward = {op: module_of(op) for op in module.walk() if module_of(op)[1]}
    paths = list(dict.fromkeys(path for path, _ in forward.values()))
    recomputed = (path for op, (path, _) in forward.items() if is_of_gradient(op))
    regions = _regions(set(recomputed), paths)
    # The last operation computes the result, the others statistics, for example.
    sizes = {name: size for op, name in forward.items() if (size := _bytes(op))}
    saved: dict[str, dict[str, None]] = {}
    for value in kept:
        name = value.name, value.primitive
        is_result = value.primitive not in _VIEWS and value.size >= sizes.get(name, 0)
        if is_result and any(_is_in(value.name, region) for region in regions):
            ops = _BELOW_AUTOGRAD.get(value.primitive, (value.primitive,))
            saved.setdefault(value.name, {}).update(dict.fromkeys(ops))
    return TorchCheckpointPolicy(
        kept, regions, {path: list(ops) for path, ops in saved.items()}
    )


def _bytes(op: Operation) -> int:
    """The bytes of the first result; 0 for a view, which is no `TensorOp`."""
    if not isinstance(op, TensorOp):
        return 0
    value = op.outs[0] if op.outs else op.results[0]
    return typical_bytes(tensor_type_of(value.type))


def _regions(recomputed: Set[str], paths: Sequence[str]) -> Sequence[str]:
    """The modules to checkpoint, none inside another, in the order of `paths`."""
    found = dict.fromkeys(_region(path, paths) for path in paths if path in recomputed)
    return [a for a in found if not any(a != b and _is_in(b, a) for b in found)]


def _region(path: str, paths: Sequence[str]) -> str:
    """The outermost list entry around a module, or else the innermost module around it.
    Only modules that contain other modules count.
    """
    parts = path.split(".")
    around = [".".join(parts[:n]) for n in range(len(parts) + 1)]
    outer = [a for a in around if any(a != p and _is_in(p, a) for p in paths)]
    entries = (a for a in outer if a.rpartition(".")[2].isdigit())
    return next(entries, outer[-1] if outer else "")


def _is_in(path: str, around: str) -> bool:
    return f"{path}.".startswith(f"{around}." if around else "")
