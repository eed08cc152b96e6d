"""The graph that planners of shared storage read: which node writes and reads what.

>>> x = Node("x", [Tensor((4, 2))], is_variable=True)
>>> exp = Node("exp", [Tensor((4, 2))], [Entry(0)], in_place=[InPlace(0, 0)])
>>> graph = Graph([x, exp], results=[Entry(1)])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import prod
from typing import NamedTuple

from .dtypes import parse_dtype


class Tensor(NamedTuple):
    """The shape and the element type of an output."""

    shape: tuple[int, ...] | None  # None: not known
    dtype: str = "float32"  # TVM's name

    @property
    def elements(self) -> int:
        """The number of elements; 0 if the shape is not known."""
        return 0 if self.shape is None else prod(self.shape)

    @property
    def element_bytes(self) -> int:
        return parse_dtype(self.dtype).bytes


class Entry(NamedTuple):
    """An output of a node, as another node reads it."""

    node: int  # its place in the graph
    output: int = 0
    version: int = 0  # of a variable: how often it was assigned before this read


class InPlace(NamedTuple):
    """An output that an operation may write over an input."""

    input: int
    output: int
    identity: bool = False  # and the contents stay the same


class Assign(IntEnum):
    """Whether a node assigns input 1 to the variable that is its input 0."""

    NO = 0
    COPY = 1
    SIMPLIFIED = 2  # input 1 is computed into the variable; nothing is left to do


@dataclass(frozen=True, slots=True)
class Node:
    """An operation, or a variable: a tensor that exists from the start."""

    name: str
    outputs: Sequence[Tensor]
    inputs: Sequence[Entry] = ()
    is_variable: bool = False
    in_place: Sequence[InPlace] = ()  # in order of preference
    ignored: Sequence[int] = ()  # inputs of which only the shape is read
    device: int = 0
    assign: Assign = Assign.NO
    after: Sequence[int] = ()  # nodes that have to run before, though nothing is read


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in order of execution, and the entries that are the results."""

    nodes: Sequence[Node]
    results: Sequence[Entry] = ()

    def ordered(self) -> "Graph":
        """The graph with its nodes in NNVM's order of execution, without unused nodes.

        The order is that of a depth-first search from the results: a node's inputs from
        left to right, then the nodes in `after`, then the node itself.
        """
        place: dict[int, int] = {}
        seen: set[int] = set()
        stack = [(entry.node, False) for entry in reversed(self.results)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                place[node] = len(place)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((n, False) for n in reversed(self._before(node)))

        def moved(entries: Sequence[Entry]) -> list[Entry]:
            return [e._replace(node=place[e.node]) for e in entries]

        nodes = [
            replace(
                self.nodes[n],
                inputs=moved(self.nodes[n].inputs),
                after=[place[m] for m in self.nodes[n].after],
            )
            for n in place
        ]
        return Graph(nodes, moved(self.results))

    def _before(self, node: int) -> list[int]:
        return [*(e.node for e in self.nodes[node].inputs), *self.nodes[node].after]
