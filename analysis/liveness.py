"""Computes the live ranges of buffers, in steps, from the accesses of their memory.

    node 0   alloc %x; fill %x            x  [1, 2) and, on the way to node 2, on
    node 1   (then) ...                      [2, 4)  nobody reads %x here: not live
    node 2   (else) read %x                  [4, 6)  live up to the last access

A buffer is live where it has been accessed before and may be accessed again on some
path, without being allocated again or completely overwritten in between. This is the
usual dataflow analysis (Aho, Lam, Sethi, Ullman: Compilers, 9.2.5) with a bit for each
buffer: forward from the accesses until the next allocation, and backward from them.

So buffers of different branches can share bytes; a buffer from outside that a loop uses
is live in the whole loop; and a buffer that a loop allocates is live in an iteration.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
from typing import Protocol

from xdsl.dialects.builtin import FixedBitwidthType, IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from ..dialects.tgraph.base import AnyMemRef, AnyTensor, is_static
from ..planning.problem import Buffer, Steps
from .control_flow import BasicBlock, ControlFlow


@dataclass(frozen=True, slots=True)
class Uses:
    """The allocation and the accesses of a buffer."""

    allocated: int  # its step
    accesses: Mapping[int, bool]
    """By step: whether it writes the whole buffer and reads nothing of it."""


Bits = int
"""A set of buffers, by their indices."""


class Flow(Protocol):
    """A flow graph: `ControlFlow` of a function, or a prediction of it."""

    @property
    def nodes(self) -> Sequence[BasicBlock]: ...
    @property
    def node_of(self) -> Sequence[int]: ...  # by step


def live_steps(flow: Flow, buffers: Sequence[Uses]) -> list[list[Steps]]:
    """For each buffer, the ranges of steps in which it is live, ascending and separate.

    A buffer that is never accessed is live in the step that allocates it.
    """
    live: list[list[Steps]] = [[] for _ in buffers]
    accessed = _accessed(flow, buffers)
    entering, leaving = _live_around(flow, buffers, accessed)
    since: dict[int, int] = {}  # the start of the range of each live buffer
    now: Bits = 0  # the live buffers
    end = 0  # of the last node with accessed or live buffers
    for number in sorted({*accessed, *entering}):
        node, before = flow.nodes[number], entering.get(number, 0)
        going_on = now & before if node.start == end else 0
        for index in _indices(now & ~going_on):
            live[index].append((since.pop(index), end))
        for index in _indices(before & ~going_on):
            since[index] = node.start
        for index, steps in accessed.get(number, {}).items():
            start = since.pop(index, steps[0])
            for earlier, step in pairwise(steps):
                if buffers[index].accesses[step]:
                    live[index].append((start, earlier + 1))
                    start = step
            if leaving[number] >> index & 1:
                since[index] = start
            else:
                live[index].append((start, steps[-1] + 1))
        now = leaving[number]
        is_last = number + 1 == len(flow.nodes)
        end = len(flow.node_of) if is_last else flow.nodes[number + 1].start
    for index in _indices(now):
        live[index].append((since.pop(index), end))
    for index, uses in enumerate(buffers):
        ranges = live[index] or [(uses.allocated, uses.allocated + 1)]
        live[index] = merged(ranges)
    return live


def for_all_agents(flow: ControlFlow, live: Sequence[list[Steps]]) -> list[list[Steps]]:
    """The ranges in which buffers are live if several agents run the code.

    Between two barriers, each agent may be at any step, so a buffer that is live in one
    of these steps is live in all of them. If a barrier is not directly in the
    function's only block, no barrier divides the function.
    """
    barriers = flow.barriers
    if not barriers:
        return list(live)
    dividing = all(_is_outermost(op) for op in barriers)
    steps = [flow.step[op] for op in barriers] if dividing else []
    bounds = [0, *steps, len(flow.node_of)]
    return [
        merged(
            [
                (
                    bounds[bisect_right(bounds, start) - 1],
                    bounds[bisect_left(bounds, end)],
                )
                for start, end in ranges
            ]
        )
        for ranges in live
    ]


def _is_outermost(op: Operation) -> bool:
    func = op.parent_op()
    return isinstance(func, FuncOp) and len(func.body.blocks) == 1


def is_reusable(result: AnyTensor | AnyMemRef) -> bool:
    """Whether other buffers may use a result's memory while the result is dead."""
    element = result.element_type
    return is_static(result) and isinstance(element, FixedBitwidthType | IndexType)


def buffer_of(
    name: str, size: int, live: Sequence[Steps], alignment: int, pool: str = ""
) -> Buffer:
    """A buffer that is live in these ranges of steps; sizes are in bytes."""
    gaps = [(end, start) for (_, end), (start, _) in pairwise(live)]
    start, end = live[0][0], live[-1][1]
    return Buffer(name, size, start, end, alignment, gaps, pool=pool)


@lru_cache(maxsize=64)
def pool_of(element: Attribute) -> str:
    """The pool of buffers that may share bytes within a step: one per element type."""
    return str(element)


def _accessed(
    flow: Flow, buffers: Sequence[Uses]
) -> Mapping[int, Mapping[int, Sequence[int]]]:
    """By node: the buffers accessed there, each with its steps, ascending."""
    found: dict[int, dict[int, list[int]]] = {}
    for index, uses in enumerate(buffers):
        for step in sorted(uses.accesses):
            here = found.setdefault(flow.node_of[step], {})
            here.setdefault(index, []).append(step)
    return found


def _live_around(
    flow: Flow,
    buffers: Sequence[Uses],
    accessed: Mapping[int, Mapping[int, Sequence[int]]],
) -> tuple[Mapping[int, Bits], Mapping[int, Bits]]:
    """The buffers live before each node, and after each node, as bits. Visits only
    nodes with accessed or live buffers."""
    if len(flow.nodes) == 1:
        return {}, {0: 0}
    allocated: dict[int, Bits] = {}
    for index, uses in enumerate(buffers):
        node = flow.node_of[uses.allocated]
        allocated[node] = allocated.get(node, 0) | 1 << index
    touched = {n: _bits(steps) for n, steps in accessed.items()}
    exposed = {  # buffers whose contents from before the node may be read
        n: _bits(i for i, s in steps.items() if not buffers[i].accesses[s[0]])
        & ~allocated.get(n, 0)
        for n, steps in accessed.items()
    }
    needed_before: dict[int, Bits] = {}
    needed_after: dict[int, Bits] = {}
    pending = sorted(-n for n in exposed)
    while pending:
        n = -heappop(pending)
        after = needed_after.get(n, 0) & ~(allocated.get(n, 0) | touched.get(n, 0))
        before = exposed.get(n, 0) | after
        if before == needed_before.get(n, 0):
            continue
        needed_before[n] = before
        for other in flow.nodes[n].predecessors:
            known = needed_after.get(other, 0)
            if before & ~known:
                needed_after[other] = known | before
                heappush(pending, -other)
    entering: dict[int, Bits] = {}  # accessed on some path to the node, and needed
    leaving: dict[int, Bits] = {}
    pending = sorted(touched)
    while pending:
        n = heappop(pending)
        after = touched.get(n, 0) | (entering.get(n, 0) & ~allocated.get(n, 0))
        after &= needed_after.get(n, 0)
        if after == leaving.get(n):
            continue
        leaving[n] = after
        for other in flow.nodes[n].successors:
            known = entering.get(other, 0)
            if new := after & needed_before.get(other, 0) & ~known:
                entering[other] = known | new
                heappush(pending, other)
    return entering, leaving


def _bits(indices: Iterable[int]) -> Bits:
    bits = 0
    for index in indices:
        bits |= 1 << index
    return bits


def _indices(bits: Bits) -> Iterator[int]:
    """The indices in a set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def merged(ranges: Sequence[Steps]) -> list[Steps]:
    """Merges ranges that overlap or touch; `ranges` must be ascending."""
    merged = [ranges[0]]
    for start, end in ranges[1:]:
        if start > merged[-1][1]:
            merged.append((start, end))
        else:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    return merged


def without(ranges: Sequence[Steps], others: Iterable[Steps]) -> list[Steps]:
    """The steps in `ranges` that are not in `others`."""
    left = list(ranges)
    for start, end in others:
        parts = [
            part for s, e in left for part in ((s, min(e, start)), (max(s, end), e))
        ]
        left = [(s, e) for s, e in parts if s < e]
    return left
