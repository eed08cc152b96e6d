"""Streams: no reuse that would make an operation wait for one it need not wait for.

With several streams, operations run in the order of their stream and behind what they
depend on; else in any order. Lifespans, which are ranges of one total order, do not say
that two operations may run at the same time. `across_streams` makes them say it:

    step 0  stream 0   writes a
    step 1  stream 0   reads a           a: [0, 2)
    step 2  stream 1   writes b          b: [2, 3)  may run before step 1
    step 3  stream 0   writes c          c: [3, 4)  is behind step 1

`a` is then also live in step 2, the first of another stream that is not ordered behind
all of its accesses: [0, 3). So `b` cannot have its bytes, and `c` can.

The general rule behind NNVM's colouring of nodes and PyTorch Inductor's stream in the
key of reuse, both of which forbid more: any sharing between colours or streams.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tensorplan.planning.problem import Buffer, Steps


@dataclass(frozen=True, slots=True)
class Operation:
    """What runs in one step."""

    stream: int = 0
    depends_on: Sequence[int] = ()  # steps before this one


def across_streams(
    buffers: Sequence[Buffer],
    accesses: Sequence[Sequence[int]],
    operations: Sequence[Operation],
) -> list[Buffer]:
    """The buffers, live also where an operation may run beside one that accesses them.

    `accesses[i]` are the steps of the operations that read or write `buffers[i]`; step
    s runs `operations[s]`. A plan for the result is sound for every order in which the
    streams may run.

    Raises `ValueError` if an operation depends on a step that is not before it.
    """
    done = _done_before(operations)
    streams = {operation.stream for operation in operations}
    result: list[Buffer] = []
    for buffer, steps in zip(buffers, accesses, strict=True):
        last: dict[int, int] = {}  # access of each stream
        for step in sorted(steps):
            last[operations[step].stream] = step
        free: set[int] = set()  # streams that have come behind all accesses
        live: list[Steps] = list(buffer.live)
        for step in range(buffer.end, len(operations)):
            stream = operations[step].stream
            if stream in free:
                continue
            if all(done[step].get(s, -1) >= at for s, at in last.items()):
                free.add(stream)
                if len(free) == len(streams):
                    break
            else:
                live.append((step, step + 1))
        result.append(_living(buffer, live))
    return result


def _done_before(operations: Sequence[Operation]) -> list[dict[int, int]]:
    """For each step and stream, the last step of it that is surely over before."""
    done: list[dict[int, int]] = []
    latest: dict[int, int] = {}  # step of each stream
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
    """The buffer with these ranges of steps, ascending, as its life."""
    gaps = ((end, start) for (_, end), (start, _) in pairwise(live) if end < start)
    return replace(buffer, end=live[-1][1], gaps=tuple(gaps))
