"""Converts `torch.cond` and `torch.while_loop` to tgraph."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from ..builder import TensorBuilder
from ..loops import Loop, Values, branch
from ..unsupported import Unsupported

Subgraph: TypeAlias = Callable[[Any, Sequence[Any], list[Operation]], Values | None]
"""Appends the operations of a graph, applied to inputs, to a list. Returns the graph's
results, or None if one of them is not supported."""


def _cond(
    b: TensorBuilder,
    subgraph: Subgraph,
    condition: Any,
    then: Any,
    otherwise: Any,
    operands: Sequence[Any],
) -> Values | None:
    if not isinstance(condition, SSAValue):
        raise Unsupported("on a size")
    made: list[tuple[list[Operation], Values]] = []
    for graph in (then, otherwise):
        ops: list[Operation] = []
        results = subgraph(graph, operands, ops)
        if results is None:
            return None
        made.append((ops, results))
    return branch(b, cast(SSAValue, condition), *made)


def _while_loop(
    b: TensorBuilder,
    subgraph: Subgraph,
    condition: Any,
    body: Any,
    carried: Sequence[Any],
    others: Sequence[Any],
) -> Values | None:
    """Converts a loop. The `others` are loop-invariant inputs of both graphs."""
    if not all(isinstance(value, SSAValue) for value in carried):
        raise Unsupported("with a carried number")
    loop = Loop(b)
    inputs = [*map(loop.carry, carried), *others]
    following = subgraph(body, inputs, loop.body.into)
    if following is None:
        return None

    def more(b: TensorBuilder, values: Values) -> SSAValue:
        answer = subgraph(condition, [*values, *others], b.into)
        return b.reshape(answer[0], []) if answer else b.full(0, i1, ())

    return loop.close(following, more)


CONTROL: Mapping[str, Callable[..., Values | None]] = {
    "cond": _cond,
    "while_loop": _while_loop,
}
