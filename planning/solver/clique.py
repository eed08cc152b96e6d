"""The heaviest clique: a lower bound for buffers with gaps.

Buffers of which any two overlap lie one above another, so no plan is below the sum of
their sizes. Without gaps, they are all live in some step, and the sum is one of live
bytes. With gaps, there need not be such a step:

    step        0 1 2
    buffer 1    x x
    buffer 2      x x
    buffer 3    x   x

With their gaps filled, they do have a step in common. The search therefore takes only
buffers that are live, gaps filled, in a step with more bytes than the bound so far. It
is the branch and bound of Tomita and Seki, "An Efficient Branch-and-Bound Algorithm for
Finding a Maximum Clique", 2003, with weights: buffers are put into classes in which no
two overlap, so a clique has at most one buffer of each class. Each clique is a proof by
itself, so the search may stop at any time.

All buffers of a clique but the topmost take a multiple of the unit of all offsets.
"""

from collections.abc import Sequence
from math import gcd

from .. import deadline
from ..problem import Buffer, round_up
from .budget import SearchBudget
from .sections import overlapping, parts_of

_TURN_WORK = 10  # work of putting a buffer into a class, in sections of `search.py`
_MOST = 300_000  # buffers that are put into classes: some tenths of a second
_COMPARABLE = 2000  # the most buffers to compare in pairs


def heaviest_clique(buffers: Sequence[Buffer], least: int, budget: SearchBudget) -> int:
    """The bytes that buffers of which any two overlap need, or `least` if it finds none
    that need more."""
    unit = gcd(*(b.alignment for b in buffers))
    sizes = [round_up(b.size, unit) for b in buffers]
    since = budget.seconds
    spent = 0
    for part in parts_of([(b.start, b.end) for b in buffers], sizes):
        loads = zip(part.indices, part.tallest, strict=True)
        chosen = [i for i, load in loads if load > least]
        if len(chosen) <= _COMPARABLE:
            chosen.sort(key=lambda i: (-sizes[i], i))
            members, padded = [buffers[i] for i in chosen], [sizes[i] for i in chosen]
            search = _Search(members, padded, least, spent)
            search.run()
            least, spent = search.best, search.spent
    budget.spend(_TURN_WORK * spent, since)
    return least


class _Search:
    """The search among buffers in descending order of size. Sets have one bit each."""

    def __init__(
        self, buffers: Sequence[Buffer], sizes: Sequence[int], best: int, spent: int
    ) -> None:
        self.best, self.spent = best, spent
        self._sizes = sizes
        each = zip(sizes, buffers, strict=True)
        self._padding = [size - b.size for size, b in each]
        near = overlapping(buffers, range(len(buffers)))
        self._near = [sum(1 << other for other in others) for others in near]

    def run(self) -> None:
        """Extends cliques by buffers that overlap all of their members."""
        everything = (1 << len(self._sizes)) - 1
        stack = [(everything, 0, 0, self._turns(everything, 0))]
        while stack and self.spent <= _MOST and not deadline.passed():
            left, weight, padding, turns = stack.pop()
            if not turns or turns[-1][1] - padding <= self.best:
                continue
            index, _ = turns.pop()
            stack.append((left ^ (1 << index), weight, padding, turns))
            left &= self._near[index]
            weight += self._sizes[index]
            padding = max(padding, self._padding[index])  # above the topmost buffer
            self.best = max(self.best, weight - padding)
            stack.append((left, weight, padding, self._turns(left, weight)))

    def _turns(self, left: int, weight: int) -> list[tuple[int, int]]:
        """The buffers of the set `left`, each with the most that a clique of `weight`
        gets from this buffer and those before it."""
        turns: list[tuple[int, int]] = []
        while left:
            free = left  # those that overlap none in this class
            weight += self._sizes[(free & -free).bit_length() - 1]
            while free:
                index = (free & -free).bit_length() - 1
                turns.append((index, weight))
                left ^= 1 << index
                free = (free ^ (1 << index)) & ~self._near[index]
        self.spent += len(turns)
        return turns
