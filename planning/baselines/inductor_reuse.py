"""PyTorch Inductor's reuse of buffers: an allocation takes a freed buffer of its kind.

`memory_plan_reuse` of torch 2.13 (`torch/_inductor/codegen/wrapper.py`). The input is
the lines of a program that allocate, free and use buffers. The output is the same lines
with some allocations replaced by reuses:

    step 0  allocate a, 64 bytes        allocate a
    step 0  run f                       run f
    step 0  free a                      free a, into reuse
    step 1  allocate b, 64 bytes        b reuses a
    step 1  run g                       run g
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

from .. import deadline
from ..problem import Limits, Placement, Problem
from ..registry import strategy
from ..solver.greedy import best_fit


@dataclass(frozen=True, slots=True)
class Allocate:
    buffer: str
    size: int  # bytes
    kind: Hashable = ()  # device, element type, alignment, stream: whatever must agree
    step: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    buffer: str
    step: int = 0
    is_reused: bool = False  # a later line takes it, so this one frees nothing


@dataclass(frozen=True, slots=True)
class Reuse:
    """From here on, `new` has the memory of `buffer`."""

    buffer: str
    new: str


@dataclass(frozen=True, slots=True)
class Run:
    """Any line that is not about memory."""

    text: str


MemoryLine: TypeAlias = Allocate | Free | Reuse
Line: TypeAlias = MemoryLine | Run


def plan_reuse(
    lines: Sequence[Line],
    outputs: Collection[str] = (),
    removed: Collection[str] = (),
    memory: Sequence[int] | None = None,
) -> list[Line]:
    """Returns the lines with reuse, without the lines of removed buffers.

    An allocation considers only the last freed buffer of its size and kind. It takes
    this buffer if it was freed in the preceding step, or if keeping it in the steps
    between does not raise the peak of `memory`, an estimate of the bytes in use in each
    step without any reuse. Without an estimate, it always takes the buffer. Memory
    lines at the end that name none of the outputs are dropped.
    """
    lines = list(lines)
    while lines and not isinstance(lines[-1], Run) and lines[-1].buffer not in outputs:
        lines.pop()
    pool = _Pool(memory)
    kinds: dict[str, Hashable] = {}
    freed: dict[str, int] = {}  # lines of the result
    result: list[Line] = []
    for line in lines:
        if not isinstance(line, Run) and line.buffer in removed:
            continue
        if isinstance(line, Allocate):
            kinds[line.buffer] = (line.size, line.kind)
            old = pool.take(kinds[line.buffer], line.size, line.step)
            if old is not None:
                at = freed.pop(old.buffer)
                result[at] = replace(old, is_reused=True)
                line = Reuse(old.buffer, line.buffer)
        elif isinstance(line, Free):
            freed[line.buffer] = len(result)
            if line.buffer in kinds:
                pool.give(kinds[line.buffer], line)
        elif isinstance(line, Reuse) and line.buffer in kinds:
            kinds[line.new] = kinds[line.buffer]
        result.append(line)
    return result


class _Pool:
    """The free buffers of each kind, and the bytes in use in each step."""

    def __init__(self, memory: Sequence[int] | None) -> None:
        self._free: defaultdict[Hashable, list[Free]] = defaultdict(list)
        self._memory = None if memory is None else list(memory)
        self._peak = max(memory or (), default=0)

    def give(self, kind: Hashable, line: Free) -> None:
        self._free[kind].append(line)

    def take(self, kind: Hashable, size: int, step: int) -> Free | None:
        free = self._free[kind]
        if not free:
            return None
        between = slice(free[-1].step + 1, step)
        if self._memory is not None and free[-1].step + 1 != step:
            if deadline.passed():
                return None
            if size + max(self._memory[between], default=0) > self._peak:
                return None
            self._memory[between] = [used + size for used in self._memory[between]]
        return free.pop()


@strategy("inductor-reuse")
def inductor_reuse(problem: Problem, limits: Limits) -> Placement:
    """PyTorch Inductor's reuse of equal buffers (`plan_reuse`).

    Sizes and alignments must be equal. The memory estimate is the live bytes of each
    step. A chain of buffers that reuse one another is a single buffer, live from its
    first allocation to its last use. Unlike NNVM's storages, which are kept for the
    whole run, a chain is freed after its last use: the generated code deletes it, and
    it returns to PyTorch's caching allocator, here modeled as best fit. Gaps in
    lifetimes are not used. Buffers with a given offset are not reused, and do not reuse
    others.
    """
    buffers = problem.buffers
    first = list(range(len(buffers)))  # the buffer whose memory each one has
    end = [b.end for b in buffers]  # of the last buffer in its memory
    lines, memory = _lines(problem)
    for line in plan_reuse(lines, memory=memory):
        if isinstance(line, Reuse):
            i = int(line.new)
            first[i] = first[int(line.buffer)]
            end[first[i]] = buffers[i].end
    kept = [i for i, other in enumerate(first) if other == i]
    whole = [replace(buffers[i], end=end[i], gaps=()) for i in kept]
    found = best_fit(Problem(whole), limits).offsets
    offset_of = dict(zip(kept, found, strict=True))
    return Placement([offset_of[i] for i in first])


def _lines(problem: Problem) -> tuple[list[Line], list[int]]:
    """The lines of a problem, and the estimate. Buffers are named by their numbers, and
    each step has a line.

    The last line is not about memory, so that none is dropped.
    """
    planned = [(i, b) for i, b in enumerate(problem.buffers) if b.offset is None]
    steps = sorted({step for _, b in planned for step in (b.start, b.end - 1)})
    place = {step: n for n, step in enumerate(steps)}
    changes = [0] * (len(steps) + 1)  # of the bytes live
    allocations: list[Allocate] = []
    frees: list[Free] = []
    for i, b in planned:
        start, last = place[b.start], place[b.end - 1]
        changes[start] += b.size
        changes[last + 1] -= b.size
        allocations.append(Allocate(str(i), b.size, b.alignment, start))
        frees.append(Free(str(i), last))
    lines: list[Allocate | Free] = [*allocations, *frees]
    lines.sort(key=lambda line: line.step)
    return [*lines, Run("")], list(accumulate(changes))
