"""Programs whose caller provides memory only while it is used, in stages of steps.

    step              0    1    2    3    4    5
    buffer a, 8 B     x    x                        in the arena of stage 0
    buffer b, 4 B          x    x    x              in the arena of stages 0 and 1
    buffer c, 8 B                    x    x         in the arena of stage 1
    argument d, 8 B   x    x                        freed after stage 0
    result r, 8 B                         x    x    provided before stage 1
    stages            0........|1...............    20 bytes each, 28 in one stage

A caller provides the memory of a result before its first use, and frees that of an
argument after its last use. Buffers that are live in the same stages share an arena,
which is provided for these stages. For a given order of steps, no stages need fewer
bytes than are live at once. Each further stage takes a few microseconds, so `best_cuts`
makes the fewest stages that come close to that bound, and there are several arenas only
if each stage saves enough bytes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from .output_reuse import Reuse
from .problem import Buffer, round_up

MOST = 16
"""The maximum number of stages. Each one takes two or three microseconds."""
CLOSE = 64
"""Stages may exceed the lower bound by one part in `CLOSE`."""
WORTH = 64
"""A further stage with arenas of its own saves one part in `WORTH` of the bytes."""


class Span(NamedTuple):
    """Memory that is in use in a half-open range of steps."""

    start: int
    end: int
    size: int  # bytes


def best_cuts(given: Sequence[Span]) -> list[int]:
    """The steps at which stages begin, without the first stage."""
    return _cuts(given, (), MOST).steps


class _Cuts(NamedTuple):
    """The steps at which stages begin, and the bytes of the largest stage."""

    steps: list[int]
    bytes: int = 0

    @property
    def cost(self) -> int:
        """The bytes, with an allowance for the time of each further stage."""
        return self.bytes * (WORTH + len(self.steps))


def _cuts(given: Sequence[Span], buffers: Sequence[Span], most: int) -> _Cuts:
    """The cuts between at most `most` stages.

    Memory that is `given` takes its bytes in all stages that use it, and so do
    `buffers` that are live in several stages. Buffers of one stage share bytes.
    """
    alone, sharing = (
        [span for span in spans if span.size and span.start < span.end]
        for spans in (given, buffers)
    )
    if not (every := [*alone, *sharing]):
        return _Cuts([])
    starts, ends, sizes = np.array(every, np.int64).T
    is_buffer = np.arange(len(every)) >= len(alone)
    count = int(ends.max())

    def bytes_in(first: int, end: int) -> int:
        """The bytes of a stage."""
        used = (starts < end) & (ends > first)
        inside = used & is_buffer & (starts >= first) & (ends <= end)
        own, length = sizes[inside], end - first + 1
        changes = np.bincount(starts[inside] - first, own, length)
        changes -= np.bincount(ends[inside] - first, own, length)
        return int(sizes[used & ~inside].sum() + changes.cumsum().max())

    def divided(limit: int) -> list[int] | None:
        """The starts of the fewest stages of at most `limit` bytes each; None if they
        are more than `most`."""
        cuts: list[int] = []
        first = 0
        while bytes_in(first, count) > limit:
            steps = range(first + 1, count)
            number = bisect_right(steps, limit, key=lambda end: bytes_in(first, end))
            if not number or len(cuts) == most - 1:
                return None
            first = steps[number - 1]
            cuts.append(first)
        return cuts

    low, high = peak_of_spans(every), bytes_in(0, count)
    low += low // CLOSE
    best = [] if low >= high else divided(low)
    while best is None:
        low += max(1, low // (4 * CLOSE), (high - low) // 8)
        best = divided(low)
    bounds = pairwise([0, *best, count])
    return _Cuts(best, max(bytes_in(first, end) for first, end in bounds))


def worthwhile(
    buffers: Sequence[Buffer], outputs: Sequence[Buffer], reuses: Mapping[int, Reuse]
) -> Mapping[int, Reuse]:
    """The part of `reuses` that lowers the bytes that are live at once, if an output is
    provided only from its first to its last use.

        output     r: 8 bytes, live [4, 6)
        buffers    a: 8 bytes, live [0, 1)      in r: provides r from the start
                   b: 8 bytes, live [3, 4)      in r: provides r one step earlier
    """
    best, least = reuses, _live_bytes(buffers, outputs, reuses)
    used = dict.fromkeys(reuse.output for reuse in reuses.values())
    for output in sorted(used, key=lambda index: -outputs[index].size):
        rest = {i: reuse for i, reuse in best.items() if reuse.output != output}
        if (bytes := _live_bytes(buffers, outputs, rest)) < least:
            best, least = rest, bytes
    return {} if _live_bytes(buffers, outputs, {}) < least else best


def _live_bytes(
    buffers: Sequence[Buffer], outputs: Sequence[Buffer], reuses: Mapping[int, Reuse]
) -> int:
    """The most bytes of buffers and outputs that are live at once, with these
    reuses."""
    spans = [*provided(buffers, outputs, reuses).values()]
    spans += [
        Span(start, end, round_up(buffer.size, buffer.alignment))
        for index, buffer in enumerate(buffers)
        if index not in reuses
        for start, end in buffer.live
    ]
    return peak_of_spans(spans)


def peak_of_spans(spans: Sequence[Span]) -> int:
    """The most bytes that are in use at once."""
    changes: dict[int, int] = {}
    for start, end, size in spans:
        changes[start] = changes.get(start, 0) + size
        changes[end] = changes.get(end, 0) - size
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


class Grouped(NamedTuple):
    """The buffers of each arena, by index, and a measure of bytes and stages."""

    groups: Sequence[Sequence[int]]
    cost: int


def by_stages(
    buffers: Sequence[Buffer],
    outputs: Sequence[Buffer],
    reuses: Mapping[int, Reuse],
    starts: Sequence[int],
) -> Grouped:
    """Groups the buffers that do not lie in outputs by the stages in which they are
    live. A stage begins at a step in `starts`, which are ascending."""

    def places(span: Span) -> Span:
        first, last = (bisect_right(starts, x) - 1 for x in (span.start, span.end - 1))
        return Span(first, last + 1, span.size)

    rest = [index for index in range(len(buffers)) if index not in reuses]
    spans = [
        places(Span(b.start, b.end, round_up(b.size, b.alignment)))
        for b in (buffers[index] for index in rest)
    ]
    given = [*map(places, provided(buffers, outputs, reuses).values())]
    numbers = 1, 2, MOST // 4, MOST // 2, MOST
    found = (_cuts(given, spans, number) for number in numbers)
    cuts = min(found, key=lambda cuts: cuts.cost)
    groups: dict[tuple[int, int], list[int]] = {}
    for index, (start, end, _) in zip(rest, spans, strict=True):
        stages = bisect_right(cuts.steps, start), bisect_left(cuts.steps, end)
        groups.setdefault(stages, []).append(index)
    return Grouped([groups[stages] for stages in sorted(groups)], cuts.cost)


def provided(
    buffers: Sequence[Buffer], outputs: Sequence[Buffer], reuses: Mapping[int, Reuse]
) -> Mapping[int, Span]:
    """The steps in which outputs are in use, by themselves or by buffers, by the
    output's index."""
    ranges = {n: [(x.start, x.end)] for n, x in enumerate(outputs) if x.live}
    for index, reuse in reuses.items():
        steps = buffers[index].start, buffers[index].end
        ranges.setdefault(reuse.output, []).append(steps)
    return {
        n: Span(min(s for s, _ in each), max(e for _, e in each), outputs[n].size)
        for n, each in ranges.items()
    }
