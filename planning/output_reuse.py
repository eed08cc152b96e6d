"""Output reuse: buffers in memory that is there anyhow, while its owner does not use
it.

    outputs    r: 8 bytes, live [4, 6)
               v: 4 bytes, live [0, 2) and [4, 6)
    buffers    a: 6 bytes, live [0, 3)    lies in r, at 0
               b: 4 bytes, live [2, 4)    lies in v, at 0
               c: 4 bytes, live [2, 4)    the arena's

XLA and IREE place temporary values in the buffers of results in the same way, which do
not count as temporary memory. Here variables and donated inputs are outputs, too, and
what is computed in place from one, or into one, may lie there as well.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from .problem import Buffer, common, round_up


class Reuse(NamedTuple):
    """A place in the memory of an output."""

    output: int  # its index
    offset: int  # bytes


class HandOver(NamedTuple):
    """One of a buffer and an output is computed from the other, element by element:
    both may have the same bytes if the one is done with then, and the other begun."""

    step: int
    is_to_output: bool


HandOvers: TypeAlias = Mapping[tuple[int, int], Sequence[HandOver]]
"""Those of a buffer and an output, by their indices."""


def reuse(
    buffers: Sequence[Buffer],
    outputs: Sequence[Buffer],
    hand_overs: HandOvers | None = None,
) -> Mapping[int, Reuse]:
    """Places buffers, by their indices, in the memory of outputs.

    An output's memory is free where the output is not live, or is handed over; it takes
    buffers of its own `pool` only. Goes on as long as that lowers the largest sum of
    the live bytes of all other buffers: takes the largest buffer that is live there and
    fits (of several the one that lives longest), the smallest output with room for it,
    and the lowest offset; and further ones until that sum is a sixteenth lower.
    """
    memories: dict[str, list[_OutputMemory]] = {}
    for index in sorted(range(len(outputs)), key=lambda i: outputs[i].size):
        output = outputs[index]
        memories.setdefault(output.pool, []).append(_OutputMemory(index, output))
    reuses: dict[int, Reuse] = {}
    candidates = [i for i, b in enumerate(buffers) if b.pool in memories and b.size]
    if not candidates:
        return reuses
    handed: dict[int, dict[int, Sequence[HandOver]]] = {}
    for (index, output_index), steps in (hand_overs or {}).items():
        handed.setdefault(index, {})[output_index] = steps
    load = _Load(buffers)
    spans = {i: load.span(i) for i in candidates}
    while True:
        peak, bytes = load.peak()
        live = [i for i, (start, end) in spans.items() if start <= peak < end]
        live = [i for i in live if load.has(i, peak)]
        live.sort(key=lambda i: (-buffers[i].size, -buffers[i].end, i))
        moved = 0
        for index in live:
            del spans[index]  # what finds no room now will never do
            buffer = buffers[index]
            there = memories[buffer.pool]
            handed_over = handed.get(index, {})
            if reused := _reuse(buffer, there, handed_over, load.steps[peak]):
                reuses[index] = reused
                load.remove(index)
                moved += buffer.size
                if 16 * moved > bytes:
                    break
        if not moved:
            return reuses


@dataclass(eq=False, slots=True)
class _OutputMemory:
    """An output, and what lies in its memory."""

    index: int
    output: Buffer
    placed: list[tuple[int, Buffer]] = field(default_factory=list[tuple[int, Buffer]])
    """With the offsets, ascending."""
    _step: int = -1
    _free: int = 0

    def free_in(self, step: int) -> int:
        """The most bytes in one piece that are free in a step."""
        if self._step != step:
            self._step, self._free = step, self._found_free(step)
        return self._free

    def _found_free(self, step: int) -> int:
        if _is_live(self.output, step):
            return 0
        last = 0
        pieces: list[int] = []
        for place, other in self.placed:
            if _is_live(other, step):
                pieces.append(place - last)
                last = place + other.size
        return max(*pieces, self.output.size - last, 0)

    def room(self, buffer: Buffer, hand_overs: Sequence[HandOver]) -> int | None:
        """The lowest offset at which the buffer fits."""
        size, alignment = buffer.size, buffer.alignment
        offset, last = 0, self.output.size - size
        if buffer.overlaps(self.output):
            if last or not _is_handed_over(buffer, self.output, hand_overs):
                return None
        for place, other in self.placed:
            if offset > last or place >= offset + size:
                break
            end = place + other.size
            if end > offset and buffer.overlaps(other):
                offset = round_up(end, alignment)
        return offset if offset <= last else None

    def place(self, buffer: Buffer, offset: int) -> None:
        insort(self.placed, (offset, buffer), key=itemgetter(0))
        self._step = -1


def _is_live(buffer: Buffer, step: int) -> bool:
    if not buffer.start <= step < buffer.end:
        return False
    return not any(start <= step < end for start, end in buffer.gaps)


def _reuse(
    buffer: Buffer,
    memories: Sequence[_OutputMemory],
    hand_overs: Mapping[int, Sequence[HandOver]],
    step: int,
) -> Reuse | None:
    """In the first memory with room for a buffer that is live in a step.

    hand_overs: of the buffer and an output, by the output's index.
    """
    size = buffer.size
    for memory in memories:
        if memory.output.size < size:
            continue
        if memory.index not in hand_overs and memory.free_in(step) < size:
            continue
        offset = memory.room(buffer, hand_overs.get(memory.index, ()))
        if offset is not None:
            memory.place(buffer, offset)
            return Reuse(memory.index, offset)
    return None


def _is_handed_over(
    buffer: Buffer, output: Buffer, hand_overs: Sequence[HandOver]
) -> bool:
    """Whether bytes are handed over wherever both are live."""
    steps = {
        (step, step + 1)
        for step, is_to_output in hand_overs
        for one, other in [(buffer, output) if is_to_output else (output, buffer)]
        if any(end == step + 1 for _, end in one.live)
        and any(start == step for start, _ in other.live)
    }
    return steps.issuperset(common(buffer.live, output.live))


class _Load:
    """The sum of the live bytes, step by step."""

    def __init__(self, buffers: Sequence[Buffer]):
        self.steps = sorted({at for b in buffers for range in b.live for at in range})
        places = {step: place for place, step in enumerate(self.steps)}
        self._live = [[(places[s], places[e]) for s, e in b.live] for b in buffers]
        self._sizes = [round_up(b.size, b.alignment) for b in buffers]
        self._changes = [0] * len(self.steps)
        for index in range(len(buffers)):
            self._add(index, self._sizes[index])

    def peak(self) -> tuple[int, int]:
        """The first place at which the sum is largest, and the sum."""
        sums = list(accumulate(self._changes))
        most = max(sums)
        return sums.index(most), most

    def span(self, index: int) -> tuple[int, int]:
        """From the first place at which a buffer lives to after the last one."""
        live = self._live[index]
        return live[0][0], live[-1][1]

    def has(self, index: int, place: int) -> bool:
        return any(start <= place < end for start, end in self._live[index])

    def remove(self, index: int) -> None:
        self._add(index, -self._sizes[index])

    def _add(self, index: int, size: int) -> None:
        for start, end in self._live[index]:
            self._changes[start] += size
            self._changes[end] -= size
