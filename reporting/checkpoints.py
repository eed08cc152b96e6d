"""`tensorplan.checkpoint_policy`: a plan's recomputation as code for JAX or PyTorch.

In JAX, the policy lists each kept value by the name that it already has, or by a new
name for the expression in the user's source that computes it:

    policy = jax.checkpoint_policies.save_only_these_names("step_5")

`torch_checkpoints.py` has the form for PyTorch.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from .kept_values import KeptValue, kept_values, module_of
from .torch_checkpoints import TorchCheckpointPolicy, torch_checkpoint_policy
from .wording import aligned, readable


@dataclass(frozen=True)
class CheckpointPolicy:
    """The values that a plan keeps for the gradient. Prints as Python code for JAX."""

    kept: Sequence[KeptValue]  # in the order in which the plan computes them

    @property
    def names(self) -> Sequence[str]:
        """Distinct names for `jax.checkpoint_policies.save_only_these_names`."""
        return list(dict.fromkeys(value.name for value in self.kept if value.name))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = readable(sum(value.size for value in self.kept))
        yield f"# The gradient reads {total} of the forward pass:"
        alike = Counter(
            (v.location, v.type, readable(v.size), _what_to_do(v)) for v in self.kept
        )
        rows = [(*row, f"{n} times" * (n > 1)) for row, n in alike.items()]
        yield from (f"#   {line}" for line in aligned(rows, "<<>"))
        yield "policy = jax.checkpoint_policies.save_only_these_names("
        yield from (f"    {json.dumps(name)}," for name in self.names)
        yield ")"
        yield "loss = jax.checkpoint(loss, policy=policy)  # before jax.grad(loss)"


def checkpoint_policy(module: ModuleOp) -> CheckpointPolicy | TorchCheckpointPolicy:
    """The values that a planned gradient keeps, for the framework of the program.

    Raises `LocatedError` like `kept_values`.
    """
    kept = kept_values(module)
    if any(module_of(op)[1] for op in module.walk()):
        return torch_checkpoint_policy(module, kept)
    return CheckpointPolicy(kept)


def _what_to_do(value: KeptValue) -> str:
    if not value.name:
        return f"comes from {value.primitive}: name its rows in the loop's body"
    if value.is_named:
        return f"is {json.dumps(value.name)}"
    return f"checkpoint_name(..., {json.dumps(value.name)}) around {value.primitive}"
