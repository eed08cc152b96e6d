"""`tensorplan.checkpoint_policy`: a plan's recomputation as a `jax.checkpoint` policy.

    %h = tgraph.dot_general ...      jit(step)/jvp()/dot_general, step.py:5:10
    %a = tgraph.tanh %h              jit(step)/jvp()/tanh, step.py:6:10
    ...                              the gradient starts: jit(step)/transpose(jvp())/...
    %b = tgraph.tanh %h {tgraph.recomputed}
    %g = tgraph.multiply %b, ...

The plan keeps %h and recomputes %a: what is live when the gradient starts to read is
kept. Each kept value leads to the expression in the user's source that computes it, or
to the name that it has there already:

    policy = jax.checkpoint_policies.save_only_these_names("step_5")

JAX puts the transformations that an operation comes from into its name, and the
frontend keeps the name as part of the location (`path_of`). Reads level 3.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..analysis.control_flow import ControlFlow
from ..dialects.diagnostics import LocatedError, path_of, place_of
from ..dialects.tgraph.base import AnyMemRef
from ..dialects.tgraph.differentiation import RECOMPUTED
from .placements import PlacedBuffer, placements
from .printed import printed
from .wording import aligned, readable

_NAMED = re.compile(r"/name\[(.*)\]$")
_GRADIENT = re.compile(r"\btranspose\(|\brematted_computation\b")


class KeptValue(NamedTuple):
    """A value that the forward pass computes and the plan keeps for the gradient."""

    name: str  # by `checkpoint_name`, or else a new one; empty for a loop's results
    is_named: bool  # whether the program calls it so
    location: str  # `file:line:col` of the expression, or nothing
    primitive: str  # of JAX, such as `dot_general`
    type: str  # `f32[128,64]`
    size: int  # bytes


@dataclass(frozen=True)
class CheckpointPolicy:
    """What a plan keeps for the gradient. Prints as Python code for JAX."""

    kept: Sequence[KeptValue]  # in the order in which the plan computes them

    @property
    def names(self) -> Sequence[str]:
        """For `jax.checkpoint_policies.save_only_these_names`, each once."""
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


def checkpoint_policy(module: ModuleOp) -> CheckpointPolicy:
    """What a planned gradient keeps.

    Raises `LocatedError` for a module without a plan, or if its operations do not say
    which of them belong to a gradient.
    """
    functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, FuncOp)}
    buffers: dict[str, list[PlacedBuffer]] = {}
    for pool in placements(module, printed(module)):
        inside = (placed for placed in pool.buffers if placed.view)
        buffers.setdefault(pool.function, []).extend(inside)
    if not buffers:
        raise LocatedError("there is no plan, expected the result of plan", module)
    kept = [
        value
        for name, placed in buffers.items()
        for value in _kept(ControlFlow(functions[name]), placed)
    ]
    if not any(map(_is_of_gradient, module.walk())):
        raise LocatedError("there is no gradient, expected one by from_jax", module)
    return CheckpointPolicy(kept)


def _kept(flow: ControlFlow, buffers: Sequence[PlacedBuffer]) -> Iterator[KeptValue]:
    """The values live from the forward pass to the first operation of the gradient that
    reads any of them."""
    reads = [
        flow.step_of(_outermost(op))[0]
        for placed in buffers
        if not _is_of_gradient(placed.ops[0])
        for op in placed.ops
        if _is_of_gradient(op)
    ]
    start = min(reads, default=0)
    found: list[tuple[int, KeptValue]] = []
    for placed in buffers:
        for first, end in placed.buffer.live:
            if first < start < end:
                ops = (op for op in placed.ops if flow.step_of(op)[0] >= first)
                found.append((first, _value(placed, next(ops))))
    return (value for _, value in sorted(found, key=lambda each: each[0]))


def _outermost(op: Operation) -> Operation:
    """The loop of the gradient around an operation, or the operation itself.

    A loop over tiles, which has forward operations too, is no loop of JAX.
    """
    node: Operation | None = op
    while (node := node.parent_op()) is not None:
        if _is_loop(node) and _is_of_gradient(node):
            op = node
    return op


def _is_loop(op: Operation) -> bool:
    return path_of(op).endswith("/while")


def _is_of_gradient(op: Operation) -> bool:
    return RECOMPUTED in op.attributes or bool(_GRADIENT.search(path_of(op)))


def _value(placed: PlacedBuffer, maker: Operation) -> KeptValue:
    path, location = path_of(maker), place_of(maker) or ""
    name = _NAMED.search(path)
    assert placed.view is not None
    type = cast(AnyMemRef, placed.view.results[0].type)
    return KeptValue(
        name[1] if name else "" if _is_loop(maker) else _name_for(location),
        bool(name),
        location,
        path.rpartition("/")[2],
        f"{type.element_type}[{','.join(map(str, type.get_shape()))}]",
        placed.buffer.size,
    )


def _name_for(location: str) -> str:
    """`step_5` for what `step.py` computes in line 5."""
    file, _, line = location.rpartition(":")[0].rpartition(":")
    return f"{PurePath(file).stem}_{line}" if file else ""


def _what_to_do(value: KeptValue) -> str:
    if not value.name:
        return f"comes from {value.primitive}: name its rows in the loop's body"
    if value.is_named:
        return f"is {json.dumps(value.name)}"
    return f"checkpoint_name(..., {json.dumps(value.name)}) around {value.primitive}"
