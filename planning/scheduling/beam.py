"""Beam search: extends only the best few partial orders at each step.

It compares partial orders by their peak so far, then by the bytes that they leave live.
"""

from heapq import nsmallest

from .. import deadline
from .graph import TaskGraph
from .partial import OrderBuilder, Partial


def beam(graph: TaskGraph, width: int, below: int) -> list[int] | None:
    """An order with a peak below `below` bytes, or None if the search finds none."""
    builder = OrderBuilder(graph)
    front = [builder.start] if builder.start.peak < below else []
    for _ in graph.tasks:
        if deadline.passed():
            return None
        found: dict[int, Partial] = {}
        for partial in front:
            for new in builder.grown(partial):
                old = found.get(new.done)
                if new.peak < below and (old is None or new.peak < old.peak):
                    found[new.done] = new
        front = nsmallest(width, found.values(), key=lambda p: (p.peak, p.live))
    return front[0].order if front else None
