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
makes the fewest stages that come close to that bound.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from .output_reuse import Reuse
from .problem import Buffer, round_up

MOST = 8
"""The maximum number of stages. Eight take about 20 microseconds longer than one."""
CLOSE = 64
"""Stages may exceed the lower bound by one part in `CLOSE`."""


class Span(NamedTuple):
    """Memory that is in use in a half-open range of steps."""

    start: int
    end: int
    size: int  # bytes


def best_cuts(provided: Sequence[Span], buffers: Sequence[Span] = ()) -> list[int]:
    """The steps at which stages begin, without the first stage.

    Memory that is `provided` takes its bytes in all stages that use it, and so do
    `buffers` that are live in several stages. Buffers of one stage share bytes.
    """
    alone, sharing = (
        [span for span in spans if span.size and span.start < span.end]
        for spans in (provided, buffers)
    )
    if not (every := [*alone, *sharing]):
        return []
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
        are more than `MOST`."""
        cuts: list[int] = []
        first = 0
        while bytes_in(first, count) > limit:
            steps = range(first + 1, count)
            number = bisect_right(steps, limit, key=lambda end: bytes_in(first, end))
            if not number or len(cuts) == MOST - 1:
                return None
            first = steps[number - 1]
            cuts.append(first)
        return cuts

    low, high = peak_of_spans(every), bytes_in(0, count)
    low += low // CLOSE
    if low >= high:
        return []
    best = divided(low)
    while best is None:
        low += max(1, low // (4 * CLOSE), (high - low) // 8)
        best = divided(low)
    return best


def worthwhile(
    buffers: Sequence[Buffer], outputs: Sequence[Buffer], reuses: Mapping[int, Reuse]
) -> Mapping[int, Reuse]:
    """The part of `reuses` that lowers the bytes that are live at once, if an output is
    provided only from its first to its last use.

        output     r: 8 bytes, live [4, 6)
        buffers    a: 8 bytes, live [0, 1)      in r: provides r from the start
                   b: 8 bytes, live [3, 4)      in r: provides r one step earlier
    """
    best, least = reuses, live_bytes(buffers, outputs, reuses)
    used = dict.fromkeys(reuse.output for reuse in reuses.values())
    for output in sorted(used, key=lambda index: -outputs[index].size):
        rest = {i: reuse for i, reuse in best.items() if reuse.output != output}
        if (bytes := live_bytes(buffers, outputs, rest)) < least:
            best, least = rest, bytes
    return {} if live_bytes(buffers, outputs, {}) < least else best


def live_bytes(
    buffers: Sequence[Buffer], outputs: Sequence[Buffer], reuses: Mapping[int, Reuse]
) -> int:
    """The most bytes of buffers and outputs that are live at once, with these
    reuses."""
    spans = _provided(buffers, outputs, reuses)
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


def by_stages(
    buffers: Sequence[Buffer],
    outputs: Sequence[Buffer],
    reuses: Mapping[int, Reuse],
    starts: Sequence[int],
) -> Sequence[Sequence[int]]:
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
    cuts = best_cuts([*map(places, _provided(buffers, outputs, reuses))], spans)
    groups: dict[tuple[int, int], list[int]] = {}
    for index, (start, end, _) in zip(rest, spans, strict=True):
        stages = bisect_right(cuts, start), bisect_left(cuts, end)
        groups.setdefault(stages, []).append(index)
    return [groups[stages] for stages in sorted(groups)]


def _provided(
    buffers: Sequence[Buffer], outputs: Sequence[Buffer], reuses: Mapping[int, Reuse]
) -> list[Span]:
    """The steps in which outputs are in use, by themselves or by buffers."""
    ranges = [[(x.start, x.end)] if x.live else [] for x in outputs]
    for index, reuse in reuses.items():
        ranges[reuse.output].append((buffers[index].start, buffers[index].end))
    return [
        Span(min(s for s, _ in each), max(e for _, e in each), output.size)
        for each, output in zip(ranges, outputs, strict=True)
        if each
    ]
