"""Prevents reuse of bytes that would make an operation wait for an unrelated one.

With several streams, operations run in the order of their stream, after the operations
that they depend on, and otherwise in any order. Live ranges are ranges of one total
order, so they cannot express that two operations may run at the same time.
`across_streams` extends them accordingly:

    step 0  stream 0   writes a
    step 1  stream 0   reads a           a: [0, 2)
    step 2  stream 1   writes b          b: [2, 3)  may run before step 1
    step 3  stream 0   writes c          c: [3, 4)  is after step 1

`a` is then also live in step 2, the first step of another stream that is not ordered
after all accesses of `a`: [0, 3). So `b` cannot share its bytes, and `c` can.

The rule generalizes NNVM's coloring of nodes, and the stream in PyTorch Inductor's key
for reuse. Both are stricter: they forbid any sharing between colors or streams.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..problem import Buffer, Steps

EXACT = 4
"""The number of steps of another stream that are added to a live range individually.
Later ones are added as one range, with the steps between them, to save time for streams
that never synchronize."""


@dataclass(frozen=True, slots=True)
class StreamStep:
    """The operation of one step."""

    stream: int = 0
    depends_on: Sequence[int] = ()  # earlier steps


def across_streams(
    buffers: Sequence[Buffer],
    accesses: Sequence[Sequence[int]],
    operations: Sequence[StreamStep],
) -> list[Buffer]:
    """The buffers, also live where an operation may run concurrently with an access.

    `accesses[i]` are the steps of the operations that read or write `buffers[i]`; step
    s runs `operations[s]`. A plan for the result is sound for every order in which the
    streams may run.

    Raises `ValueError` if an operation depends on a step that is not before it.
    """
    done = _done_before(operations)
    streams: dict[int, list[int]] = {}  # the steps of each stream
    for step, operation in enumerate(operations):
        streams.setdefault(operation.stream, []).append(step)
    result: list[Buffer] = []
    for buffer, steps in zip(buffers, accesses, strict=True):
        last: dict[int, int] = {}  # the last access in each stream
        for step in sorted(steps):
            last[operations[step].stream] = step

        def is_over(step: int, last: dict[int, int] = last) -> bool:
            return all(done[step].get(s, -1) >= at for s, at in last.items())

        live: list[Steps] = list(buffer.live)
        for of_stream in streams.values():
            start = bisect_left(of_stream, buffer.end)
            end = bisect_left(of_stream, True, lo=start, key=is_over)
            live += [(s, s + 1) for s in of_stream[start : min(end, start + EXACT)]]
            if end > start + EXACT:
                live.append((of_stream[start + EXACT], of_stream[end - 1] + 1))
        result.append(_living(buffer, sorted(live)))
    return result


def _done_before(operations: Sequence[StreamStep]) -> list[dict[int, int]]:
    """For each step and stream, the stream's last step that is over before the step."""
    done: list[dict[int, int]] = []
    latest: dict[int, int] = {}  # the last step of each stream
    for step, operation in enumerate(operations):
        seen: dict[int, int] = {}
        before = [*operation.depends_on]
        if operation.stream in latest:
            before.append(latest[operation.stream])
        for other in before:
            if not 0 <= other < step:
                raise ValueError(
                    f"step {step} depends on step {other}, expected one before it"
                )
            known = {**done[other], operations[other].stream: other}
            for stream, at in known.items():
                seen[stream] = max(at, seen.get(stream, -1))
        done.append(seen)
        latest[operation.stream] = step
    return done


def _living(buffer: Buffer, live: Sequence[Steps]) -> Buffer:
    """The buffer with these live ranges, which are sorted by their starts."""
    end = live[0][1]
    gaps: list[Steps] = []
    for start, later in live[1:]:
        if start > end:
            gaps.append((end, start))
        end = max(end, later)
    return replace(buffer, end=end, gaps=tuple(gaps))
