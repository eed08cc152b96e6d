"""Converts LiteRT's control flow: branches, loops, calls and composite operations.

Their bodies are separate graphs. Does not: read or assign variables within them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation, SSAValue

from ..loops import Loop, Values, branch
from ..operators import Value
from .node import TFLiteNode

Subgraph: TypeAlias = Callable[
    [int, Sequence[Value], list[Operation]], Sequence[Value] | None
]
"""Appends the operations of a graph for given inputs; None if it is not supported."""


def _if(n: TFLiteNode, subgraph: Subgraph) -> Sequence[Value | None]:
    made: list[tuple[list[Operation], Values]] = []
    given = [n.given(index) for index in range(1, len(n.inputs))]
    for option in ("ThenSubgraphIndex", "ElseSubgraphIndex"):
        inner = replace(n, into=[])
        outputs = subgraph(n.option(option), given, inner.into)
        if outputs is not None:
            made.append((inner.into, [inner.materialize(value) for value in outputs]))
    if len(made) < 2:
        return [None] * len(n.results)
    return branch(n, n.value(0), *made)


def _while(n: TFLiteNode, subgraph: Subgraph) -> Sequence[Value | None]:
    loop = Loop(n)
    carried = [loop.carry(n.value(index)) for index in range(len(n.inputs))]
    outputs = subgraph(n.option("BodySubgraphIndex"), carried, loop.body.into)

    def more(n: TFLiteNode, values: Values) -> SSAValue:
        found = subgraph(n.option("CondSubgraphIndex"), values, n.into)
        if found is None:  # reported with all unsupported operations
            return n.splat(0, TensorType(i1, []))
        return n.reshape(n.materialize(found[0]), [])

    if outputs is None:
        return [None] * len(n.results)
    return loop.close([loop.body.materialize(value) for value in outputs], more)


def _call(option: str) -> Callable[[TFLiteNode, Subgraph], Sequence[Value | None]]:
    """Inlines another graph, whose number is an option."""

    def convert(n: TFLiteNode, subgraph: Subgraph) -> Sequence[Value | None]:
        given = [n.given(index) for index in range(len(n.inputs))]
        outputs = subgraph(n.option(option), given, n.into)
        return [None] * len(n.results) if outputs is None else outputs

    return convert


CONTROL: Mapping[str, Callable[[TFLiteNode, Subgraph], Sequence[Value | None]]] = {
    "CALL": _call("Subgraph"),
    "IF": _if,
    "STABLEHLO_COMPOSITE": _call("DecompositionSubgraphIndex"),
    "WHILE": _while,
}
