"""Finds the waits that end transfers started with a tag, on all paths.

    memref.dma_start %x0, %a, %n, %tag         both waits end it: the loop may not run
    scf.for ... {
      memref.dma_wait %tag, %n                 ends what was started before the loop, or
      memref.dma_start %xi, %b, %n, %tag       in the iteration before
    }
    memref.dma_wait %tag, %n                   ends what the last iteration started

A walk through structured control flow counts the transfers in flight. A wait ends one
of them, but not a particular one: all have ended when as many waits as starts have run.
Where paths meet, the counts must be equal; otherwise nothing is known about the tag.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.ir import Block, Operation, Region

from .diagnostics import name_of

_ONE_REGION_RUNS = (
    "scf.if",
    "scf.index_switch",
    "affine.if",
    "scf.execute_region",
    "memref.alloca_scope",
)
_LOOPS = ("scf.for", "affine.for")


class Fault(NamedTuple):
    """A definite error in a transfer or a wait, and the operation to blame."""

    message: str
    op: Operation


@dataclass(frozen=True, slots=True)
class Waits:
    """How the transfers with one tag element end."""

    of: Mapping[Operation, Sequence[Operation]]
    """Maps each start to the waits of which one ends it on every path; empty if the
    transfer is still in flight at the end of some path."""
    left: Container[Operation] = ()
    """The starts that may be in flight at the end."""
    idle: Operation | None = None
    """A wait that runs with nothing in flight, unless its loop does not run."""

    def fault_of(self, start: Operation, wait: str) -> Fault | None:
        """An error in `start`, or in a wait for its tag; None if there is none."""
        if self.idle:
            return Fault(
                f"{name_of(self.idle)} waits for nothing, expected {name_of(start)} "
                "with its tag before it",
                self.idle,
            )
        if start in self.left:
            return Fault(
                f"nothing waits for {name_of(start)}, expected {wait} with its tag",
                start,
            )
        return None


class _Unknown(Exception):
    """The number of transfers in flight depends on the path."""


_UnderWay = tuple[int, frozenset[int]]
"""The number of transfers in flight, and the numbers of the starts they may be from."""

_NOTHING: _UnderWay = (0, frozenset())


def waits_in(
    region: Region,
    starts: Sequence[Operation],
    waits: Container[Operation],
    users: Sequence[Operation],
    is_same_in_all_iterations: bool,
) -> Waits | None:
    """How the starts of one tag element end in `region`, which makes the tag or has it
    as an argument; None if that depends on the path.

    `users` are all starts and waits. `is_same_in_all_iterations` is false if iterations
    of a loop name different elements.
    """
    walk = _Walk(region, starts, waits, users, is_same_in_all_iterations)
    try:
        left = walk.region(region, _NOTHING)
    except _Unknown:
        return Waits({}, idle=walk.idle) if walk.idle else None
    under_way = {starts[number] for number in left[1]}
    ends = {start: () if start in under_way else walk.ends[start] for start in starts}
    return Waits(ends, under_way)


class _Walk:
    def __init__(
        self,
        region: Region,
        starts: Sequence[Operation],
        waits: Container[Operation],
        users: Sequence[Operation],
        is_same_in_all_iterations: bool,
    ):
        self._starts = starts
        self._number = {start: number for number, start in enumerate(starts)}
        self._waits = waits
        self._is_same = is_same_in_all_iterations
        self._relevant = _by_block(region, users)
        self.ends: dict[Operation, list[Operation]] = {start: [] for start in starts}
        self.idle: Operation | None = None
        self._choices = 0  # the number of enclosing branches, which may not be taken

    def region(self, region: Region, state: _UnderWay) -> _UnderWay:
        blocks = [b for b in region.blocks if b in self._relevant]
        if not blocks:
            return state
        if len(region.blocks) == 1:
            return self._block(blocks[0], state)
        for block in blocks:  # a transfer must end in the block that starts it
            if state != _NOTHING or self._block(block, _NOTHING) != _NOTHING:
                raise _Unknown
        return _NOTHING

    def _block(self, block: Block, state: _UnderWay) -> _UnderWay:
        for op in self._relevant.get(block, ()):
            state = self._op(op, state)
        return state

    def _op(self, op: Operation, state: _UnderWay) -> _UnderWay:
        count, under_way = state
        if op in self._number:
            return count + 1, under_way | {self._number[op]}
        if op in self._waits:
            return self._wait(op, state)
        name = name_of(op)
        if name in _ONE_REGION_RUNS:
            self._choices += 1
            ends = [self.region(region, state) for region in op.regions]
            self._choices -= 1
            return _met(ends)
        if name in _LOOPS or name == "scf.while":
            return self._loop(op, state)
        for region in op.regions:  # may run several times, also in parallel
            if state != _NOTHING or self.region(region, _NOTHING) != _NOTHING:
                raise _Unknown
        return state

    def _wait(self, op: Operation, state: _UnderWay) -> _UnderWay:
        count, under_way = state
        if not count:
            if not self._choices:
                self.idle = op
            raise _Unknown
        if count > 1:
            return count - 1, under_way
        for number in sorted(under_way):
            ends = self.ends[self._starts[number]]
            if op not in ends:
                ends.append(op)
        return _NOTHING

    def _loop(self, loop: Operation, state: _UnderWay) -> _UnderWay:
        first, *then = loop.regions
        while True:
            end = self.region(first, state)
            after = end
            for region in then:
                after = self.region(region, after)
            if after != _NOTHING and not self._is_same:
                raise _Unknown
            met = _met([state, after])
            if met == state:
                return end if then else met
            state = met


def _met(states: Sequence[_UnderWay]) -> _UnderWay:
    """The state where paths meet."""
    count, under_way = states[0]
    for other, others in states[1:]:
        if other != count:
            raise _Unknown
        under_way |= others
    return count, under_way


def _by_block(
    region: Region, users: Sequence[Operation]
) -> Mapping[Block, Sequence[Operation]]:
    """The operations of each block that are users or contain users, in order."""
    found: dict[Block, dict[Operation, None]] = {}
    for user in users:
        op: Operation | None = user
        while op is not None and op.parent is not None:
            found.setdefault(op.parent, {})[op] = None
            if op.parent.parent is region:
                break
            op = op.parent_op()
    return {block: _in_order(ops) for block, ops in found.items()}


def _in_order(ops: Mapping[Operation, None]) -> Sequence[Operation]:
    """Sorts operations of one block. Searches from one of them in both directions,
    since the others are close in a long block."""
    first = next(iter(ops))
    found, before, after = [first], first.prev_op, first.next_op
    while len(found) < len(ops):
        if before is not None and before in ops:
            found.insert(0, before)
        if after is not None and after in ops:
            found.append(after)
        before, after = before and before.prev_op, after and after.next_op
    return found
