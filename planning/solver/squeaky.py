"""Squeaky wheel optimization: repeats skyline placement in orders that it learns.

Each section has a weight, and buffers are placed in descending order of the sum of the
weights of their sections. The initial weight of a section depends on its load
(`orders.py`). After each plan, the sections in which the plan is high gain weight. The
next plan therefore places the buffers that are live there earlier. This is cheap and
proves nothing. It helps most where the load varies and thousands of buffers are live at
once, too many for an exact search.

The method is that of Joslin and Clements, "Squeaky Wheel Optimization", 1999, with
prices of sections in place of prices of tasks.
"""

from collections.abc import Sequence

from . import orders
from .sections import Part
from .skyline import Skyline

_GAIN = 0.1  # relative growth of the weight of a section in which a plan is highest
_SQUARINGS = 7  # the gain of a section is the 128th power of its relative height
_PATIENCE = 100  # plans without a lower peak after which the search ends


class SqueakyWheel:
    """Plans of one part, each in an order that depends on the plans before."""

    WORK = 50  # of a step, per buffer, in sections of `search.py`

    def __init__(self, part: Part) -> None:
        self._part = part
        self._skyline = Skyline(part)
        self._weights = orders.load_weights(part)
        self._least: int | None = None  # the lowest peak so far, in units
        self._since = 0  # plans since then

    @property
    def is_over(self) -> bool:
        """Whether a plan reached the load, or too many plans did not lower the peak."""
        return self._least == max(self._part.load) or self._since > _PATIENCE

    def step(self) -> Sequence[int]:
        """The offsets of the next plan, in units."""
        part = self._part
        offsets = self._skyline.place(orders.by_weights(part, self._weights))
        peak = part.peak(offsets)
        self._since += 1
        if self._least is None or peak < self._least:
            self._least, self._since = peak, 0
        shares = [height / peak for height in _heights(part, offsets)]
        for _ in range(_SQUARINGS):
            shares = [share * share for share in shares]
        grown = [w + w * _GAIN * s for w, s in zip(self._weights, shares, strict=True)]
        most = max(grown)
        self._weights = [weight / most for weight in grown]
        return offsets


def _heights(part: Part, offsets: Sequence[int]) -> list[int]:
    """The end of the topmost buffer of a plan in each section, in units."""
    tops = list(map(int.__add__, offsets, part.size))
    heights = [0] * part.sections
    following = list(range(part.sections + 1))  # leads to the next section without one
    for index in sorted(range(len(tops)), key=tops.__getitem__, reverse=True):
        end, top = part.end[index], tops[index]
        section = part.first[index]
        while True:
            while following[section] != section:
                following[section] = following[following[section]]
                section = following[section]
            if section >= end:
                break
            heights[section] = top
            following[section] = section + 1
    return heights
