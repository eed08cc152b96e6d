"""Which values to keep so that others can be computed from them: a minimum cut.

Either a value is kept, or it is computed again from its operands, which have to be
there then. The choice with the least cost is a minimum cut between what is given and
what is needed, as in AOTAutograd's partitioner. Here computing has a price, rather than
being allowed or not. At a higher price, the flow of a lower one is a start: capacities
only grow (Gallo, Grigoriadis and Tarjan, 1989).
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

NEVER = 1 << 100
"""What it costs to compute a value again that can't be."""


@dataclass(frozen=True, slots=True)
class Residual:
    """A value that could be kept.

    keep: what that costs.
    compute: what it costs to compute it again.
    operands: the numbers of the values that this takes.
    """

    keep: int
    compute: int = NEVER
    operands: Sequence[int] = ()


_TAKEN, _KEPT = 0, 1
_Node = tuple[int, int]
"""A value's operands are taken, or it is kept: each value is two nodes."""


@dataclass(slots=True)
class _Pull:
    """How much flow a node should give, and has."""

    node: _Node
    amount: int
    got: int = 0


class Choice:
    """The values to compute again, so that all costs together are the least.

    What else these and the needed ones take is kept. Of several such choices, that with
    the fewest values.

    This is a flow from the source to the needed values (Ford and Fulkerson, 1956). Arcs
    lead from the source to each value's first node, with the cost of computing it as
    capacity; from there to its second node, with that of keeping it; and from there to
    the first nodes of its readers, with any.
    """

    def __init__(
        self, values: Sequence[Residual], needed: Iterable[int], price: float = 1
    ):
        """price: by which the cost of computing is multiplied."""
        self._values, self._needed, self._price = values, tuple(needed), price
        self._kept = [[(other, _KEPT) for other in v.operands] for v in values]
        self._compute = [_capacity(value, price) for value in values]  # what is left
        self._keep = [value.keep for value in values]
        self._read: Sequence[dict[int, int]] = [{} for _ in values]  # flow, by reader
        self._saturate()

    def at_higher(self, price: float) -> "Choice":
        """That at a higher price."""
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
        """Adds flow until no path is left.

        Paths are searched from their ends, as few values are between a needed one and
        what it is computed from.
        """
        self._blocked: set[_Node] = set()  # from the source, none of them is reached
        for needed in self._needed:
            self._fill((needed, _KEPT))

    def _fill(self, needed: _Node) -> None:
        """Flow first comes from nearby, and then from as far again and again: all that
        leads one arc further with each arc at a time (Dinic, 1970)."""
        while needed not in self._blocked:
            levels, is_open = self._levels(needed)
            if is_open:
                self._pull(needed, levels)
            else:
                self._blocked |= levels.keys()

    def _levels(self, needed: _Node) -> tuple[dict[_Node, int], bool]:
        """How far nodes are from the end, up to twice as many as there are before the
        first where flow enters; whether there is one."""
        levels = {needed: 0}
        most = None
        for at, node in enumerate(queue := [needed]):  # grows
            if most is None and self._enters(node):
                most = 2 * at + 2  # with all that are as far as this one
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
        """The nodes from which more could come, or to which less could go."""
        value, side = node
        if side == _TAKEN:
            less = self._keep[value] < self._values[value].keep
            return [*self._kept[value], (value, _KEPT)] if less else self._kept[value]
        sources = [(r, _TAKEN) for r, flow in self._read[value].items() if flow]
        return [(value, _TAKEN), *sources] if self._keep[value] else sources

    def _pull(self, needed: _Node, levels: dict[_Node, int]) -> None:
        """Adds flow along arcs that lead one level further. A node takes what enters
        there, and the rest of what it should give from those further away."""
        path = [_Pull(needed, NEVER << 1)]
        left: dict[_Node, list[_Node]] = {}  # arcs that may still lead on
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
