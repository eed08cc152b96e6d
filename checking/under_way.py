"""Finds the operations that run while a transfer is in flight, for plan-check.

    scf.for ... {
      memref.dma_wait %tag           ends the transfer of the previous iteration
      memref.dma_start %xi, %b       starts the transfer
      linalg.exp %a                  runs while it is in flight
    }                                and so do operations before the wait in the next
                                     iteration, and before a wait after the loop

The walk starts at the transfer and follows structured control flow up to the waits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region

from ..dialects.diagnostics import name_of
from .pointees import LOOPS, ONE_REGION_RUNS, operations_in

_ALL_LOOPS = (*LOOPS, "scf.while")


def under_way(
    start: Operation, waits: Collection[Operation]
) -> Mapping[Operation, bool]:
    """The operations that may run before one of the waits, each with whether it may run
    in a later iteration, where a value may be another memref."""
    walk = _Walk(start, waits)
    walk.after(start, is_later=False)
    return walk.found


class _Walk:
    def __init__(self, start: Operation, waits: Collection[Operation]):
        self._waits = waits
        self._start = start
        self._around: dict[Operation, None] = {}
        """The waits, and the operations around them."""
        for wait in waits:
            op: Operation | None = wait
            while op is not None:
                self._around[op] = None
                op = op.parent_op()
        self._entered: dict[tuple[Region, bool], bool] = {}
        self.found: dict[Operation, bool] = {}

    def after(self, op: Operation, is_later: bool) -> None:
        """Visits all operations that may run after `op`."""
        assert op.parent is not None
        if not self._run(_after(op), is_later):
            self._leave(op.parent, is_later)

    def _leave(self, block: Block, is_later: bool) -> None:
        """Continues after the last operation of a block."""
        outer, region = block.parent_op(), block.parent
        if outer is None or isinstance(outer, FuncOp) or block.next_block:
            return
        if name_of(outer) in _ALL_LOOPS:
            again = outer.regions[0]
            if len(outer.regions) > 1 and region is again:  # the condition of scf.while
                self._region(outer.regions[1], is_later)
            self._region(again, is_later=True)
        elif name_of(outer) not in ONE_REGION_RUNS:
            return
        self.after(outer, is_later)

    def _region(self, region: Region, is_later: bool) -> bool:
        """Visits a region. Returns whether a wait always comes before its end."""
        key = region, is_later
        if key not in self._entered:
            self._entered[key] = True  # during the visit: this is the next iteration
            block = region.first_block
            self._entered[key] = block is not None and self._run(block.ops, is_later)
        return self._entered[key]

    def _run(self, ops: Iterable[Operation], later: bool) -> bool:
        """Visits operations up to a wait. Returns whether one always comes."""
        for op in ops:
            if op in self._waits:
                return True
            if op not in self._around:
                for each in (op, *operations_in(op)):
                    self._add(each, later)
                continue
            self._add(op, later)
            ends = [self._region(region, later) for region in op.regions]
            if name_of(op) in ONE_REGION_RUNS and all(ends):
                return True
            if name_of(op) in _ALL_LOOPS:
                self._region(op.regions[-1], later)
        return False

    def _add(self, op: Operation, is_later: bool) -> None:
        self.found[op] = self.found.get(op, False) or is_later


def _after(op: Operation) -> Iterator[Operation]:
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op
