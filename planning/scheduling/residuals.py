"""Which values to keep so that others can be computed from them: a minimum cut.

Either a value is kept, or it is computed again from its operands, which have to be
there then. The choice with the least cost is a minimum cut between what is given and
what is needed, as in AOTAutograd's partitioner. Here computing has a price, rather than
being allowed or not.
"""

from collections.abc import Iterable, Iterator, Sequence
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


def recomputed(values: Sequence[Residual], needed: Iterable[int]) -> set[int]:
    """The values to compute again, so that all costs together are the least.

    What else these and the needed ones take is kept. Of several such choices, that with
    the fewest values.
    """
    network = _Network(values)
    for value in needed:
        network.saturate((value, _KEPT))
    return {value for value, side in network.blocked if side == _TAKEN}


_TAKEN, _KEPT = 0, 1
_Node = tuple[int, int]
"""A value's operands are taken, or it is kept: each value is two nodes."""


class _Network:
    """A flow from the source to needed values (Ford and Fulkerson, 1956).

    Arcs lead from the source to each value's first node, with the cost of computing it
    as capacity; from there to its second node, with that of keeping it; and from there
    to the first nodes of its readers, with any.
    """

    def __init__(self, values: Sequence[Residual]):
        self.values = values
        self.blocked: set[_Node] = set()  # from the source, none of them is reached
        self._compute = [value.compute for value in values]  # left of the capacities
        self._keep = [value.keep for value in values]
        self._read: Sequence[dict[int, int]] = [{} for _ in values]  # flow, by reader

    def saturate(self, needed: _Node) -> None:
        """Adds flow to a node until no path is left.

        Paths are searched from their ends, as few values are between a needed one and
        what it is computed from.
        """
        while needed not in self.blocked:
            following: dict[_Node, _Node | None] = {needed: None}
            first = self._search(following)
            if first is None:
                self.blocked |= following.keys()
            else:
                self._augment(first, following)

    def _search(self, following: dict[_Node, _Node | None]) -> int | None:
        """The value that a path enters first; `following` gets the rest of it."""
        queue = list(following)
        for node in queue:  # grows
            value, side = node
            if side == _TAKEN and self._compute[value]:
                return value
            for other in self._sources(value, side):
                if other not in following and other not in self.blocked:
                    following[other] = node
                    queue.append(other)
        return None

    def _sources(self, value: int, side: int) -> Iterator[_Node]:
        """From where flow could come, or whence less could go."""
        if side == _TAKEN:
            yield from ((operand, _KEPT) for operand in self.values[value].operands)
            if self._keep[value] < self.values[value].keep:
                yield value, _KEPT
        else:
            if self._keep[value]:
                yield value, _TAKEN
            yield from ((r, _TAKEN) for r, flow in self._read[value].items() if flow)

    def _augment(self, first: int, following: dict[_Node, _Node | None]) -> None:
        arcs: list[tuple[_Node, _Node]] = []
        node: _Node = (first, _TAKEN)
        while (after := following[node]) is not None:
            arcs.append((node, after))
            node = after
        most = min([self._compute[first], *(self._left(*arc) for arc in arcs)])
        self._compute[first] -= most
        for (value, side), (other, _) in arcs:
            if value == other:
                self._keep[value] -= most if side == _TAKEN else -most
            elif side == _KEPT:
                self._read[value][other] = self._read[value].get(other, 0) + most
            else:
                self._read[other][value] -= most

    def _left(self, node: _Node, after: _Node) -> int:
        (value, side), (other, _) = node, after
        if value == other:
            keep = self._keep[value]
            return keep if side == _TAKEN else self.values[value].keep - keep
        return NEVER if side == _KEPT else self._read[other][value]
