"""Spilling in other systems: the choice of values for a fast memory that is too small,
to compare with `planning.scheduling.residency`.

All are written from descriptions. The comparison favors them: moved values need no
offsets.
"""

from collections.abc import Sequence

from ..problem import Buffer, round_up
from ..scheduling.residency import Choice, ResidencyProblem


def banked_greedy(
    buffers: Sequence[Buffer],
    capacities: Sequence[int],
    staged: Sequence[Sequence[int]] = (),
) -> Sequence[int]:
    """The bank of each buffer for its whole lifetime, by position in `capacities`
    (bytes). One more bank holds the buffers that fit nowhere.

    ExecuTorch's `banked_greedy` (#21821): the largest buffer comes first, and takes the
    lowest free offset in the fastest bank that can hold it. If `staged` has the steps
    in which each buffer is used, a buffer outside of the first bank also needs room
    there in these steps, because operations access no other bank.
    """
    banks: list[list[tuple[int, Buffer]]] = [[] for _ in capacities]
    chosen = [len(capacities)] * len(buffers)
    taken = [0] * max((buffer.end for buffer in buffers), default=0)
    for buffer, steps in zip(buffers, staged, strict=False):
        for step in steps:
            taken[step] += buffer.size
    for index in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, i)):
        buffer = buffers[index]
        idle = set(range(buffer.start, buffer.end))
        if staged:
            idle -= set(staged[index])
        for number, (bank, capacity) in enumerate(zip(banks, capacities, strict=True)):
            offset = _lowest(buffer, bank)
            if offset + buffer.size > capacity:
                continue
            if staged and number == 0:
                if any(taken[step] + buffer.size > capacity for step in idle):
                    continue
                for step in idle:
                    taken[step] += buffer.size
            bank.append((offset, buffer))
            chosen[index] = number
            break
    return chosen


def _lowest(buffer: Buffer, bank: Sequence[tuple[int, Buffer]]) -> int:
    offset = 0
    others = [(start, other) for start, other in bank if other.overlaps(buffer)]
    for start, other in sorted(others, key=lambda placed: placed[0]):
        if offset + buffer.size <= start:
            break
        offset = max(offset, round_up(start + other.size, buffer.alignment))
    return offset


def furthest_next_use(problem: ResidencyProblem, all_uses: bool = False) -> Choice:
    """Chooses gaps by Belady's rule: where too much is live, the value with the
    furthest next use is evicted until that use.

    With `all_uses`, it is evicted for its whole lifetime, as in tt-mlir (#7686). A
    value that a step uses is evicted only if no other value is left.
    """
    choice = Choice(problem)
    gaps = problem.gaps
    for step in problem.crowded:
        while choice.excess(step) > 0:
            idle = [i for i, g in enumerate(gaps) if g.start <= step < g.end]
            left = [i for i in idle if not choice.taken[i]] or [
                i
                for i, g in enumerate(gaps)
                if step in (g.start - 1, g.end) and not choice.taken[i]
            ]
            if not left:
                break
            leaves = max(left, key=lambda i: (gaps[i].end, choice.size(i), -i))
            of_value = [i for i, g in enumerate(gaps) if g.value == gaps[leaves].value]
            for index in of_value if all_uses else (leaves,):
                if not choice.taken[index]:
                    choice.take(index)
    return choice
