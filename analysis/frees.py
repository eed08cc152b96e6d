"""Finds uses of memory after it is freed: other frees, reads and writes.

    memref.dealloc %a
    memref.copy %a, %y              always reads it after it is freed
    scf.if %c {
      memref.dealloc %b
    }
    memref.copy %b, %y              reads it after it is freed on one path

A use follows a free if a path leads from the free to the use without allocating the
memory again. A memref that control flow forwards may be the freed one until it is bound
to other memory: the result of a select of %a and another memref, or the %old of a loop
that is the %new of the iteration before.

Ownership-based deallocation decides at run time who frees the memory of forwarded
memrefs: by `bufferization.dealloc`, or, as its lowering writes, by branches that do
nothing but free. Such a free is followed only to uses by the same name as in the free.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from ..dialects.diagnostics import name_of, place_of
from ..dialects.memory import effects_on, freed, is_memref, maker_of
from .control_flow import ControlFlow
from .forwarding import CHOICES, moves, only_moves
from .liveness import Bits
from .references import References

_TOGETHER = 256
"""The number of groups of memories whose paths are followed together. All nodes of a
loop are on such paths, so following each group alone takes quadratic time."""


class UseAfterFree(NamedTuple):
    """A use of memory after it is freed."""

    memory: SSAValue  # the memref that its maker returns
    free: Operation
    use: Operation
    what: str  # what `use` does: `reads`, `writes`, `uses`, or `frees`
    is_sure: bool  # whether `use` always does so after the free

    @property
    def text(self) -> str:
        """Describes the use in an error message."""
        name, free = _name(self.memory), _placed(self.free)
        what = self.what if self.is_sure else f"may {self.what.removesuffix('s')}"
        again = " again" if self.what == "frees" else ""
        where = "" if self.is_sure else ", on some path"
        return f"{name_of(self.use)} {what} {name}{again} after {free} frees it{where}"


def _name(memory: SSAValue) -> str:
    """The name of a memref. In text from mlir-opt, it usually is a number, which xDSL
    does not keep."""
    if memory.name_hint:
        return f"%{memory.name_hint}"
    if isinstance(memory, BlockArgument):
        return f"argument {memory.index}"
    return f"the memory of {_placed(maker_of(memory))}"


def _placed(op: Operation) -> str:
    place = place_of(op)
    return f"{name_of(op)} ({place})" if place else name_of(op)


def uses_after_free(func: FuncOp, flow: ControlFlow) -> Iterator[UseAfterFree]:
    """The uses after each `memref.dealloc` of each memory, in textual order."""
    sources = [s for s in _sources(func) if not _is_freed_last(s, flow)]
    families = list(_families(References(flow, sources)))
    several = [family for family in families if len(family) > 1]
    suspects = {source for family in families for source in family}
    for family, found in zip(several, _used_in(flow, several), strict=True):
        if not any(found):
            suspects.difference_update(family)
    for found in _used_in(flow, [[s] for s in sources if s in suspects]):
        yield from found


def _used_in(
    flow: ControlFlow, groups: Sequence[Sequence[SSAValue]]
) -> Iterator[Iterator[UseAfterFree]]:
    """For each group of memories, the uses after each free."""
    for at in range(0, len(groups), _TOGETHER):
        batch = [_Uses(References(flow, g)) for g in groups[at : at + _TOGETHER]]
        freed = [[_Freed(uses, free) for free in uses.frees] for uses in batch]
        paths = _Paths(flow, list(chain.from_iterable(freed)))
        for each in freed:
            yield chain.from_iterable(one.used(paths) for one in each)


def _families(references: References) -> Iterator[Sequence[SSAValue]]:
    """Groups of sources: two that may reach the same value are in one group."""
    known: dict[SSAValue, SSAValue] = {}

    def first(reference: SSAValue) -> SSAValue:
        while (other := known.setdefault(reference, reference)) is not reference:
            known[reference] = known[other]  # path halving
            reference = other
        return reference

    for one, another, _ in references.moves:
        known[first(another)] = first(one)
    for one, *others in references.of.values():
        for another in others:
            known[first(another)] = first(one)
    found: dict[SSAValue, list[SSAValue]] = {}
    for source in references.sources:
        found.setdefault(first(source), []).append(source)
    yield from found.values()


def _sources(func: FuncOp) -> Iterator[SSAValue]:
    """The memrefs of a function that are not derived from other memrefs."""
    yield from filter(is_memref, func.args)
    for op in func.walk():
        if op.results and not only_moves(op):
            yield from filter(is_memref, op.results)


def _is_freed_last(source: SSAValue, flow: ControlFlow) -> bool:
    """Whether the only free of an allocation is its last use, in its own block and by
    its own name, as is usual."""
    ops = [use.operation for use in source.uses]
    frees = [op for op in ops if isinstance(op, memref.DeallocOp)]
    return len(frees) == 1 and all(
        op.parent is source.owner.parent
        and op.next_op is not None
        and not any(map(is_memref, op.results))
        and flow.step_of(op)[0] <= flow.step_of(frees[0])[0]
        for op in ops
    )


def _only_frees(block: Block | None) -> bool:
    """Whether a block is a branch that only frees memory."""
    if block is None or block.parent is None:
        return False
    if block.prev_block is None:
        around = block.parent_op()
        is_branch = around is not None and name_of(around) in CHOICES
    else:
        branches = [before.last_op for before in block.predecessors()]
        is_branch = all(op is not None and len(op.successors) > 1 for op in branches)
    return is_branch and all(
        isinstance(op, memref.DeallocOp) or (op is block.last_op and not op.operands)
        for op in block.ops
    )


def _what(use: Use) -> str | None:
    """What an operation does to its operand. None if it does not access the memory, as
    a return, or decides at run time (`bufferization.dealloc`)."""
    op = use.operation
    if op.has_trait(IsTerminator, value_if_unregistered=False):
        return None
    if use.index in freed(op):
        return "frees" if isinstance(op, memref.DeallocOp) else None
    match effects_on(op, op.operands[use.index]):
        case True, True:
            return "uses"
        case True, False:
            return "reads"
        case False, True:
            return "writes"
        case _:
            return None


class _Uses:
    """The uses of some memories. References are numbered by the steps in which they
    begin, so those that begin in a range of steps are consecutive bits."""

    def __init__(self, references: References):
        self.references = references
        flow = references.flow
        found = [u for alias in references.of for u in alias.uses if moves(u) is None]
        self.all = sorted(found, key=lambda use: flow.step_of(use.operation)[0])
        self.frees = [
            use
            for use in self.all
            if isinstance(use.operation, memref.DeallocOp)
            and use.operation in flow.step
        ]
        order = sorted(references.all, key=references.begin)
        self.number = {reference: n for n, reference in enumerate(order)}
        self.begins = [references.begin(reference) for reference in order]
        users = (use.operation for alias in references.of for use in alias.uses)
        self.nodes = [flow.node_of[flow.step_of(op)[0]] for op in users]

    def without(self, start: int, end: int) -> Bits:
        """The references that do not begin in steps [start, end)."""
        low, high = bisect_left(self.begins, start), bisect_left(self.begins, end)
        return (1 << len(self.begins)) - (1 << high) + (1 << low) - 1


class _Freed:
    """The memory that a `memref.dealloc` frees."""

    def __init__(self, uses: _Uses, free: Use):
        self.uses = uses
        self.references = uses.references
        self.flow = uses.references.flow
        self.free = free.operation
        self.step = self.flow.step[self.free]
        self.named = self.references.of[self.free.operands[free.index]]
        self.is_conditional = _only_frees(self.free.parent)

    def used(self, paths: "_Paths") -> Iterator[UseAfterFree]:
        """The uses after the free, one for each operation."""
        self.paths = paths
        self.same = self._same()
        """The references that may refer to the memory when it is freed."""
        bound = self._bound()
        said: set[Operation] = set()
        for use in self.uses.all:
            op = use.operation
            references = self.references.of[op.operands[use.index]]
            is_freed = any(r in bound or self._is_freed(r, op) for r in references)
            if not is_freed or op in said:
                continue
            what = _what(use)
            if what is None or (
                not self._has_one_name(references)
                and (
                    self.is_conditional or (what == "frees" and _only_frees(op.parent))
                )
            ):
                continue
            said.add(op)
            step, whole = self.flow.step_of(op)
            is_sure = (
                op is whole
                and op.parent is self.free.parent
                and step > self.step
                and references == self.named
                and len(references) == 1
            )
            memory = self.references.source
            yield UseAfterFree(memory, self.free, op, what, is_sure)

    def _has_one_name(self, references: Sequence[SSAValue]) -> bool:
        """Whether a use and the free have the name that the maker of the memory gave
        it."""
        names = {*references, *self.named}
        return len(names) == 1 and names <= set(self.references.sources)

    def _same(self) -> set[SSAValue]:
        found = dict.fromkeys(self.named)
        pending = list(found)
        for reference in pending:  # grows during the loop
            for source, target, op in (
                *self.references.leaving.get(reference, ()),
                *self.references.entering.get(reference, ()),
            ):
                other = target if source is reference else source
                step = self.flow.step_of(op)[0]
                if other not in found and self.paths.keep_until(self, source, step):
                    found[other] = None
                    pending.append(other)
        return set(found)

    def _bound(self) -> set[SSAValue]:
        """The references that are bound to the memory after the free; wherever they are
        used, it is freed."""
        moves = self.references.leaving
        pending = [
            move.target
            for reference in self.same
            for move in moves.get(reference, ())
            if self._is_freed(reference, move.op)
        ]
        found = set[SSAValue]()
        while pending:
            reference = pending.pop()
            if reference not in found:
                found.add(reference)
                pending += [move.target for move in moves.get(reference, ())]
        return found

    def _is_freed(self, reference: SSAValue, op: Operation) -> bool:
        """Whether `reference` may refer to the freed memory at the operation `op`."""
        return reference in self.same and self.paths.keep_from(
            self, reference, self.flow.step_of(op)[0]
        )


class _Paths:
    """The paths from and to frees on which a reference is not bound again. Each pair of
    a free and a reference to its memories is a bit."""

    def __init__(self, flow: ControlFlow, freed: Sequence[_Freed]):
        self._flow = flow
        nodes = [node for each in freed for node in each.uses.nodes]
        self._used = range(min(nodes, default=0), max(nodes, default=-1) + 1)
        self._shift: dict[_Freed, int] = {}
        self._begun: dict[int, Bits] = {}  # the references that begin in each node
        before, after = dict[int, Bits](), dict[int, Bits]()
        shift = 0
        for each in freed:
            uses, node = each.uses, flow.node_of[each.step]
            start, end = flow.nodes[node].start, flow.ends[node]
            for at, bits in (
                (before, uses.without(start, each.step + 1)),
                (after, uses.without(each.step + 1, end)),
            ):
                at[node] = at.get(node, 0) | bits << shift
            self._shift[each] = shift
            for step in uses.begins:
                begun = flow.node_of[step]
                self._begun[begun] = self._begun.get(begun, 0) | 1 << shift
                shift += 1
        self._to = self._spread(flow.predecessors, before, -1)
        self._from = self._spread(flow.successors, after, 1)

    def keep_until(self, freed: _Freed, reference: SSAValue, step: int) -> bool:
        """Whether some path from after `step` to the free does not rebind
        `reference`."""
        node = self._flow.node_of[step]
        uses = freed.uses
        kept = self._to.get(node, 0) >> self._shift[freed]
        kept &= uses.without(step + 1, self._flow.ends[node])
        if node == self._flow.node_of[freed.step] and step < freed.step:
            kept |= uses.without(step + 1, freed.step + 1)
        return bool(kept >> uses.number[reference] & 1)

    def keep_from(self, freed: _Freed, reference: SSAValue, step: int) -> bool:
        """Whether some path from the free to `step` does not rebind `reference`."""
        node = self._flow.node_of[step]
        uses = freed.uses
        kept = self._from.get(node, 0) >> self._shift[freed]
        kept &= uses.without(self._flow.nodes[node].start, step + 1)
        if node == self._flow.node_of[freed.step] and freed.step < step:
            kept |= uses.without(freed.step + 1, step + 1)
        return bool(kept >> uses.number[reference] & 1)

    def _spread(
        self, links: Sequence[Sequence[int]], kept: dict[int, Bits], along: int
    ) -> Mapping[int, Bits]:
        """By node, the bits that are kept on some path to it along `links`. `kept` has
        the bits that leave the nodes of the frees. The queue is in textual order, or
        its reverse, as most links are."""
        found: dict[int, Bits] = {}
        queue = [along * node for node in kept]
        heapify(queue)
        while queue:
            leaving = kept.pop(node := along * heappop(queue))
            for next in filter(self._is_between, links[node]):
                known = found.get(next, 0)
                if new := leaving & ~known:
                    found[next] = known | new
                    if next not in kept:
                        heappush(queue, along * next)
                    through = new & ~self._begun.get(next, 0)
                    kept[next] = kept.get(next, 0) | through
        return found

    def _is_between(self, node: int) -> bool:
        """Whether a path from one use to another may go through `node`."""
        return node in self._used or self._flow.repeats[node]
