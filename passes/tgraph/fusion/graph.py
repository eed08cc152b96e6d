"""Operations as the fusion algorithms see them: patterns, shapes, who reads whom, and
where they are computed."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation

TUPLE = 7
"""Relay's pattern of a node that only bundles values; between those of `Pattern`."""


PLACE = ("tgraph.device", "tgraph.group", "tgraph.stream")
"""Attributes in which the members of a group have to agree."""


@dataclass(frozen=True, slots=True)
class FusionNode:
    """An operation, or an input of the graph. A graph is a list in order of execution.

    pattern: a `Pattern`, or `TUPLE`.
    inputs: what it reads, each as (index of the node, number of its output).
    shapes: of the outputs.
    """

    pattern: int
    inputs: Sequence[tuple[int, int]] = ()
    shapes: Sequence[Sequence[int]] = ((),)
    is_variable: bool = False


FusionGraph = Sequence[FusionNode]


def place_of(op: Operation) -> tuple[Attribute | None, ...]:
    """Where and when an operation is computed: the attributes in `PLACE`."""
    return tuple(op.attributes.get(name) for name in PLACE)
