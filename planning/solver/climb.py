"""Hill climbing: a local search over the order in which first fit places buffers.

A step moves one buffer in the order, and keeps the new order if its peak is not higher.
It moves only a buffer that ends at the peak, or one that is live together with such a
buffer. The hill climbs of Arm's Vela and of TVM's USMP do the same. Buffers may be of
any kind. The search proves nothing, and finds only plans of first fit.
"""

import random
from collections.abc import Iterator, Sequence

from ..problem import Buffer, peak_of
from .gaps import WAITING, Gaps


class Climb:
    """The state of a climb: the current order, and the buffers that may be moved."""

    def __init__(
        self, buffers: Sequence[Buffer], best: Sequence[int], seed: int
    ) -> None:
        """Begins with the buffers ordered by their offsets in the plan `best`."""
        self._buffers = buffers
        self._gaps = Gaps(buffers)
        self._chance = random.Random(seed)
        self._order = sorted(range(len(buffers)), key=lambda i: (best[i], i))
        self._movable = self._order
        self._given = [WAITING if b.offset is None else b.offset for b in buffers]

    def step(self, highest: int) -> Sequence[int] | None:
        """Moves a random buffer. Returns the plan; None if it ends above `highest`."""
        trial = list(self._order)
        moved = self._chance.choice(self._movable)
        trial.remove(moved)
        trial.insert(self._chance.randrange(len(self._order)), moved)
        found = self._gaps.place_around(self._given, trial, capacity=highest)
        if WAITING in found or peak_of(self._buffers, found) > highest:
            return None
        self._order = trial
        self._movable = list(self._near_peak(found))
        return found

    def _near_peak(self, offsets: Sequence[int]) -> Iterator[int]:
        """The buffers that end at the peak, and those that overlap one of them."""
        buffers = self._buffers
        ends = [offset + b.size for offset, b in zip(offsets, buffers, strict=True)]
        peak = max(ends)
        tops = [b for end, b in zip(ends, buffers, strict=True) if end == peak]
        for i, buffer in enumerate(buffers):
            if any(buffer.overlaps(top) for top in tops):
                yield i
