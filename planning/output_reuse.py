"""Output reuse: places buffers in the memory of outputs that do not need it yet, or no
longer.

    outputs    r: 8 bytes, live [4, 6)
               v: 4 bytes, live [0, 2) and [4, 6)
    buffers    a: 6 bytes, live [0, 3)    lies in r, at 0
               b: 4 bytes, live [2, 4)    lies in v, at 0
               c: 4 bytes, live [2, 4)    the arena's

XLA and IREE also place temporary values in the buffers of results, which do not count
as temporary memory. Here, variables and donated inputs are outputs, too. A buffer that
is computed in place from an output, or an output from a buffer, may also share bytes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from .problem import Buffer, common, round_up


class Reuse(NamedTuple):
    """A place in the memory of an output."""

    output: int  # its index
    offset: int  # bytes


class HandOver(NamedTuple):
    """A step in which a buffer is computed from an output, or the output from the
    buffer, element by element. Both may have the same bytes if the live range of the
    one ends, and that of the other starts, in this step."""

    step: int
    is_to_output: bool


HandOvers: TypeAlias = Mapping[tuple[int, int], Sequence[HandOver]]
"""The hand-overs between a buffer and an output, by the indices of both."""


SHARE = 64
"""A buffer that is placed in advance has at least 1/64 of the bytes at the peak."""


def reuse(
    buffers: Sequence[Buffer],
    outputs: Sequence[Buffer],
    hand_overs: HandOvers | None = None,
) -> Mapping[int, Reuse]:
    """Places buffers in the memory of outputs. Returns the places, by buffer index.

    The memory of an output is free while the output is not live, or is handed over. It
    takes only buffers of the output's `pool`. The search repeats as long as it lowers
    the peak, the largest sum of live bytes of all other buffers. It places the largest
    buffer that is live at the peak and fits (of several, the one that lives longest),
    in the smallest output with room, at the lowest offset; and further buffers until
    the peak is a sixteenth lower.

    In a chain of layers, every other value may lie in the result, but no two neighbors.
    The peak does not tell which values to take. The search therefore also runs with
    large buffers placed in advance wherever they fit, from the first to the last and
    from the last to the first. The run with the lowest peak wins; of equal ones, the
    run without them.
    """
    made = [_Reuses(buffers, outputs, hand_overs or {}) for _ in range(3)]
    at_peak, forwards, backwards = made
    if not at_peak.candidates:
        return {}
    forwards.place_large(lambda buffer: buffer.start)
    backwards.place_large(lambda buffer: -buffer.end)
    for each in made:
        each.lower_peak()
    return min(made, key=lambda each: each.peak).reuses


Item = TypeVar("Item")


class _ByStart(Generic[Item]):
    """Items in groups of similar length, each sorted by start: the items of a group
    that may be live at some time are adjacent."""

    def __init__(self) -> None:
        self._groups: dict[int, tuple[list[int], list[Item]]] = {}
        """Starts and items, by the number of bits of the items' length in steps."""

    def add(self, start: int, end: int, item: Item) -> None:
        bits = (end - start).bit_length()
        starts, items = self._groups.setdefault(bits, ([], []))
        place = bisect_right(starts, start)
        starts.insert(place, start)
        items.insert(place, item)

    def near(self, start: int, end: int) -> Sequence[Item]:
        """All items that are live in [start, end), and maybe some others."""
        found: list[Item] = []
        for bits, (starts, items) in self._groups.items():
            first = bisect_right(starts, start - (1 << bits))
            found += items[first : bisect_left(starts, end)]
        return found


@dataclass(eq=False, slots=True)
class _OutputMemory:
    """An output, and the buffers in its memory, with their offsets."""

    index: int
    output: Buffer
    _placed: _ByStart[tuple[int, Buffer]] = field(
        default_factory=_ByStart[tuple[int, Buffer]]
    )
    _step: int = -1
    _free: int = 0

    def free_in(self, step: int) -> int:
        """The largest number of contiguous bytes that are free in a step."""
        if self._step != step:
            self._step, self._free = step, self._found_free(step)
        return self._free

    def _found_free(self, step: int) -> int:
        if _is_live(self.output, step):
            return 0
        last = 0
        pieces: list[int] = []
        for place, other in self._near(step, step + 1):
            if _is_live(other, step):
                pieces.append(place - last)
                last = place + other.size
        return max(*pieces, self.output.size - last, 0)

    def room(self, buffer: Buffer, hand_overs: Sequence[HandOver]) -> int | None:
        """The lowest offset at which the buffer fits, or None."""
        size, alignment = buffer.size, buffer.alignment
        offset, last = 0, self.output.size - size
        if buffer.overlaps(self.output) and (
            last
            or not hand_overs
            or not _is_handed_over(buffer, self.output, hand_overs)
        ):
            return None
        for place, other in self._near(buffer.start, buffer.end):
            if offset > last or place >= offset + size:
                break
            end = place + other.size
            if end > offset and buffer.overlaps(other):
                offset = round_up(end, alignment)
        return offset if offset <= last else None

    def place(self, buffer: Buffer, offset: int) -> None:
        self._placed.add(buffer.start, buffer.end, (offset, buffer))
        self._step = -1

    def _near(self, start: int, end: int) -> Sequence[tuple[int, Buffer]]:
        """The placed buffers that may be live in [start, end), by offset."""
        return sorted(self._placed.near(start, end), key=itemgetter(0))


class _Reuses:
    """The buffers that lie in outputs so far."""

    def __init__(
        self,
        buffers: Sequence[Buffer],
        outputs: Sequence[Buffer],
        hand_overs: HandOvers,
    ):
        self.reuses: dict[int, Reuse] = {}
        self._buffers = buffers
        self._memories: dict[str, list[_OutputMemory]] = {}
        for index in sorted(range(len(outputs)), key=lambda i: outputs[i].size):
            memory = _OutputMemory(index, outputs[index])
            self._memories.setdefault(memory.output.pool, []).append(memory)
        self.candidates = [
            i for i, b in enumerate(buffers) if b.pool in self._memories and b.size
        ]
        self._handed: dict[int, dict[int, Sequence[HandOver]]] = {}
        """The hand-overs by buffer index, then by output index."""
        for (index, output), steps in hand_overs.items():
            self._handed.setdefault(index, {})[output] = steps
        self._load = _Load(buffers)

    @property
    def peak(self) -> int:
        """The largest sum of live bytes of the buffers that do not lie in outputs."""
        return self._load.peak()[1]

    def place_large(self, order: Callable[[Buffer], int]) -> None:
        """Places the buffers that make up much of the peak wherever they fit, the
        largest first."""
        buffers, least = self._buffers, self.peak // SHARE
        large = [i for i in self.candidates if buffers[i].size >= least]
        for index in sorted(large, key=lambda i: (-buffers[i].size, order(buffers[i]))):
            self._place(index, buffers[index].start)

    def lower_peak(self) -> None:
        """Places buffers that are live at the peak, as long as any of them fits."""
        buffers, load = self._buffers, self._load
        waiting = _ByStart[int]()
        for index in sorted(self.candidates, key=lambda i: buffers[i].start):
            waiting.add(buffers[index].start, buffers[index].end, index)
        done = set(self.reuses)
        while True:
            step, bytes = load.peak()
            near = waiting.near(step, step + 1)
            live = [i for i in near if i not in done and _is_live(buffers[i], step)]
            live.sort(key=lambda i: (-buffers[i].size, -buffers[i].end, i))
            moved = 0
            for index in live:
                done.add(index)  # a buffer that does not fit now never will
                if self._place(index, step):
                    moved += buffers[index].size
                    if 16 * moved > bytes:
                        break
            if not moved:
                return

    def _place(self, index: int, step: int) -> bool:
        """Places a buffer that is live in `step` in the first memory with room. Returns
        whether there was one."""
        buffer, handed = self._buffers[index], self._handed.get(index, {})
        for memory in self._memories[buffer.pool]:
            if memory.output.size < buffer.size:
                continue
            if memory.index not in handed and memory.free_in(step) < buffer.size:
                continue
            offset = memory.room(buffer, handed.get(memory.index, ()))
            if offset is not None:
                memory.place(buffer, offset)
                self.reuses[index] = Reuse(memory.index, offset)
                self._load.remove(index)
                return True
        return False


def _is_live(buffer: Buffer, step: int) -> bool:
    if not buffer.start <= step < buffer.end:
        return False
    return not any(start <= step < end for start, end in buffer.gaps)


def _is_handed_over(
    buffer: Buffer, output: Buffer, hand_overs: Sequence[HandOver]
) -> bool:
    """Whether bytes are handed over in all steps in which both are live."""
    steps = {
        (step, step + 1)
        for step, is_to_output in hand_overs
        for one, other in [(buffer, output) if is_to_output else (output, buffer)]
        if any(end == step + 1 for _, end in one.live)
        and any(start == step for start, _ in other.live)
    }
    return steps.issuperset(common(buffer.live, output.live))


class _Load:
    """The sum of live bytes in each step, as a segment tree.

    Each node has the sum of the changes in its steps, and the largest sum of the
    changes from its first step to one of its steps.
    """

    def __init__(self, buffers: Sequence[Buffer]):
        self._buffers = buffers
        self._steps = sorted({at for b in buffers for range in b.live for at in range})
        self._places = {step: place for place, step in enumerate(self._steps)}
        self._leaves = leaves = 1 << len(self._steps).bit_length()
        self._change = [0] * (2 * leaves)
        for buffer in buffers:
            for place, bytes in self._changes_of(buffer):
                self._change[place] += bytes
        self._most = list(self._change)
        for node in range(leaves - 1, 0, -1):
            self._update(node)

    def peak(self) -> tuple[int, int]:
        """The first step in which the sum is largest, and the sum."""
        node = 1
        while node < self._leaves:
            node *= 2
            after = self._change[node] + self._most[node + 1]
            if after > self._most[node]:
                node += 1
        return self._steps[node - self._leaves], self._most[1]

    def remove(self, index: int) -> None:
        for node, bytes in self._changes_of(self._buffers[index]):
            self._change[node] -= bytes
            self._most[node] -= bytes
            while node > 1:
                node //= 2
                self._update(node)

    def _changes_of(self, buffer: Buffer) -> Iterator[tuple[int, int]]:
        """The leaves in which a live range of a buffer starts or ends, and the changes
        in bytes."""
        size = round_up(buffer.size, buffer.alignment)
        for start, end in buffer.live:
            yield self._leaves + self._places[start], size
            yield self._leaves + self._places[end], -size

    def _update(self, node: int) -> None:
        change, most = self._change, self._most
        left, right = 2 * node, 2 * node + 1
        change[node] = change[left] + change[right]
        most[node] = max(most[left], change[left] + most[right])
