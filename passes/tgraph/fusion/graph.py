"""The graph that the fusion algorithms work on, and the places of its operations."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation

TUPLE = 7
"""Relay's pattern of a node that only bundles values, ordered among those of
`Pattern`."""


PLACE = ("tgraph.device", "tgraph.group", "tgraph.stream")
"""The attributes that must be equal for all members of a group."""


@dataclass(frozen=True, slots=True)
class FusionNode:
    """An operation, or an input of the graph. A graph lists its nodes in execution
    order.

    pattern: a `Pattern`, or `TUPLE`.
    inputs: the values that it reads, as (index of their node, number of its output).
    shapes: the shape of each output.
    """

    pattern: int
    inputs: Sequence[tuple[int, int]] = ()
    shapes: Sequence[Sequence[int]] = ((),)
    is_variable: bool = False


FusionGraph = Sequence[FusionNode]


def place_of(op: Operation) -> tuple[Attribute | None, ...]:
    """Where and when an operation is computed: the attributes in `PLACE`."""
    return tuple(op.attributes.get(name) for name in PLACE)
