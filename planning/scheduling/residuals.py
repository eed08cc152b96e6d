"""Chooses which values to keep so that others can be recomputed: a minimum cut.

A value is either kept, or recomputed from its operands, which must then be available.
The cheapest choice is a minimum cut between the given and the needed values, as in
AOTAutograd's partitioner. Here computing has a price, rather than being allowed or not.
The flow at a lower price is a valid start at a higher one, since capacities only grow
(Gallo, Grigoriadis and Tarjan, 1989).
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

NEVER = 1 << 100
"""The cost of recomputing a value that cannot be recomputed."""


@dataclass(frozen=True, slots=True)
class Residual:
    """A value that could be kept.

    keep: the cost of keeping it.
    compute: the cost of recomputing it.
    operands: the numbers of the values that the computation reads.
    """

    keep: int
    compute: int = NEVER
    operands: Sequence[int] = ()


_TAKEN, _KEPT = 0, 1
_Node = tuple[int, int]
"""Each value is two nodes: its operands are available, or it is kept."""


@dataclass(slots=True)
class _Pull:
    """The flow that a node should provide, and the flow it has so far."""

    node: _Node
    amount: int
    got: int = 0


class Choice:
    """The values to recompute at the least total cost.

    Other values that these and the needed ones read are kept. Among equally cheap
    choices, this one recomputes the fewest values.

    It is a flow from the source to the needed values (Ford and Fulkerson, 1956). The
    source has an arc to each value's first node, with the cost of computing it as
    capacity; the first node has one to the second, with the cost of keeping the value;
    and the second has arcs of unlimited capacity to the first nodes of its readers.
    """

    def __init__(
        self, values: Sequence[Residual], needed: Iterable[int], price: float = 1
    ):
        """price: the factor for the cost of computing."""
        self._values, self._needed, self._price = values, tuple(needed), price
        self._kept = [[(other, _KEPT) for other in v.operands] for v in values]
        self._compute = [_capacity(value, price) for value in values]  # residual
        self._keep = [value.keep for value in values]
        self._read: Sequence[dict[int, int]] = [{} for _ in values]  # flow, by reader
        self._saturate()

    def at_higher(self, price: float) -> "Choice":
        """The choice at a higher price, from the current flow."""
        choice = copy(self)
        choice._price = price
        choice._compute = [
            left + _capacity(value, price) - _capacity(value, self._price)
            for left, value in zip(self._compute, self._values, strict=True)
        ]
        choice._keep = self._keep.copy()
        choice._read = [flow.copy() for flow in self._read]
        choice._saturate()
        return choice

    @property
    def recomputed(self) -> set[int]:
        return {value for value, side in self._blocked if side == _TAKEN}

    def _saturate(self) -> None:
        """Adds flow until no augmenting path is left.

        Paths are searched backward, since few values lie between a needed value and
        those that it is computed from.
        """
        self._blocked: set[_Node] = set()  # not reachable from the source
        for needed in self._needed:
            self._fill((needed, _KEPT))

    def _fill(self, needed: _Node) -> None:
        """Adds blocking flows of shortest paths until no path is left (Dinic, 1970)."""
        while needed not in self._blocked:
            levels, is_open = self._levels(needed)
            if is_open:
                self._pull(needed, levels)
            else:
                self._blocked |= levels.keys()

    def _levels(self, needed: _Node) -> tuple[dict[_Node, int], bool]:
        """The distances of nodes from the end, and whether flow can enter at one.
        Visits at most twice as many nodes as up to the first where it can."""
        levels = {needed: 0}
        most = None
        for at, node in enumerate(queue := [needed]):  # grows during the loop
            if most is None and self._enters(node):
                most = 2 * at + 2  # includes nodes at the same distance
            if most is not None and at >= most:
                break
            for other in self._sources(node):
                if other not in levels and other not in self._blocked:
                    levels[other] = levels[node] + 1
                    queue.append(other)
        return levels, most is not None

    def _enters(self, node: _Node) -> bool:
        value, side = node
        return side == _TAKEN and self._compute[value] > 0

    def _sources(self, node: _Node) -> list[_Node]:
        """The predecessors in the residual graph."""
        value, side = node
        if side == _TAKEN:
            less = self._keep[value] < self._values[value].keep
            return [*self._kept[value], (value, _KEPT)] if less else self._kept[value]
        sources = [(r, _TAKEN) for r, flow in self._read[value].items() if flow]
        return [(value, _TAKEN), *sources] if self._keep[value] else sources

    def _pull(self, needed: _Node, levels: dict[_Node, int]) -> None:
        """Adds a blocking flow along arcs that lead one level further. A node takes the
        flow that enters there first, and the rest from nodes further away."""
        path = [_Pull(needed, NEVER << 1)]
        left: dict[_Node, list[_Node]] = {}  # arcs that may have residual capacity
        while True:
            pull = path[-1]
            node, (value, _) = pull.node, pull.node
            if self._enters(node):
                entering = min(pull.amount - pull.got, self._compute[value])
                self._compute[value] -= entering
                pull.got += entering
            if node not in left:
                above = levels[node] + 1
                left[node] = [x for x in self._sources(node) if levels.get(x) == above]
            arcs = left[node]
            while arcs and not self._left(arcs[-1], node):
                arcs.pop()
            if arcs and pull.got < pull.amount:
                most = min(pull.amount - pull.got, self._left(arcs[-1], node))
                path.append(_Pull(arcs[-1], most))
                continue
            path.pop()
            if not path:
                return
            self._add(node, path[-1].node, pull.got)
            path[-1].got += pull.got
            if pull.got < pull.amount:
                left[path[-1].node].pop()

    def _add(self, node: _Node, after: _Node, flow: int) -> None:
        (value, side), (other, _) = node, after
        if value == other:
            self._keep[value] -= flow if side == _TAKEN else -flow
        elif side == _KEPT:
            self._read[value][other] = self._read[value].get(other, 0) + flow
        else:
            self._read[other][value] -= flow

    def _left(self, node: _Node, after: _Node) -> int:
        (value, side), (other, _) = node, after
        if value == other:
            keep = self._keep[value]
            return keep if side == _TAKEN else self._values[value].keep - keep
        return NEVER if side == _KEPT else self._read[other][value]


def _capacity(value: Residual, price: float) -> int:
    return int(value.compute * price)
