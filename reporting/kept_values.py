"""Finds the values of the forward pass that a plan keeps for the gradient.

    %h = tgraph.dot_general ...      jit(step)/jvp()/dot_general, step.py:5:10
    %a = tgraph.tanh %h              jit(step)/jvp()/tanh, step.py:6:10
    ...                              the gradient starts: jit(step)/transpose(jvp())/...
    %b = tgraph.tanh %h {tgraph.recomputed}
    %g = tgraph.multiply %b, ...

The plan keeps %h and recomputes %a. A value is kept if it is live when the gradient
first reads a value of the forward pass. Frontends store the framework's name for an
operation in its location (`path_of`). In JAX, this name contains the transformations
that made the operation; for PyTorch, tgraph-gradient adds them. Reads level 3.
"""

import re
from collections.abc import Iterator, Sequence
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

_NAMED = re.compile(r"/name\[(.*)\]$")
_MODULE = re.compile(r"(.*)/(aten\.\w+)$")
_GRADIENT = re.compile(r"\btranspose\(|\brematted_computation\b")


class KeptValue(NamedTuple):
    """A value that the forward pass computes and the plan keeps for the gradient."""

    name: str  # in JAX that of `checkpoint_name`, or else a new one; empty for results
    # of a loop. In PyTorch, the path of the module that computes it.
    is_named: bool  # whether the name is from the program
    location: str  # `file:line:col` of the expression, or empty
    primitive: str  # of JAX or PyTorch, such as `dot_general` or `aten.gelu`
    type: str  # `f32[128,64]`
    size: int  # bytes


def kept_values(module: ModuleOp) -> list[KeptValue]:
    """The values that the functions of a planned module keep, in order of computation.

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
    if not any(map(is_of_gradient, module.walk())):
        raise LocatedError(
            "there is no gradient, expected one by from_jax or from_torch", module
        )
    return kept


def is_of_gradient(op: Operation) -> bool:
    """Whether the operation runs in the backward pass, perhaps to recompute a value."""
    return RECOMPUTED in op.attributes or bool(_GRADIENT.search(path_of(op)))


def module_of(op: Operation) -> tuple[str, str]:
    """The path of the PyTorch module that an operation of the forward pass belongs to,
    and the ATen operation that the module calls. Both are empty for other operations.
    """
    found = _MODULE.match(path_of(op))
    return (found[1], found[2]) if found else ("", "")


def _kept(flow: ControlFlow, buffers: Sequence[PlacedBuffer]) -> Iterator[KeptValue]:
    """The values of the forward pass live when the gradient first reads one of them."""
    reads = [
        flow.step_of(_outermost(op))[0]
        for placed in buffers
        if not is_of_gradient(placed.ops[0])
        for op in placed.ops
        if is_of_gradient(op)
    ]
    start = min(reads, default=0)
    found: list[tuple[int, KeptValue]] = []
    for placed in buffers:
        for first, end in placed.buffer.live:
            if first < start < end:
                maker = next(op for op in placed.ops if flow.step_of(op)[0] >= first)
                if not is_of_gradient(maker):
                    found.append((first, _value(placed, maker)))
    return (value for _, value in sorted(found, key=lambda each: each[0]))


def _outermost(op: Operation) -> Operation:
    """The outermost loop of the gradient around `op`, or `op` itself.

    A loop over tiles does not count: it contains forward operations and is no JAX loop.
    """
    node: Operation | None = op
    while (node := node.parent_op()) is not None:
        if _is_loop(node) and is_of_gradient(node):
            op = node
    return op


def _is_loop(op: Operation) -> bool:
    return path_of(op).endswith("/while")


def _value(placed: PlacedBuffer, maker: Operation) -> KeptValue:
    path, location = path_of(maker), place_of(maker) or ""
    name = _NAMED.search(path) or _MODULE.match(path)
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
    """The new name of a value: `step_5` for an expression in line 5 of `step.py`."""
    file, _, line = location.rpartition(":")[0].rpartition(":")
    return f"{PurePath(file).stem}_{line}" if file else ""
