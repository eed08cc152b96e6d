"""Uses of memory after it is freed: what frees it again, reads it or writes it.

    memref.dealloc %a
    memref.copy %a, %y              surely reads it after it is freed
    scf.if %c {
      memref.dealloc %b
    }
    memref.copy %b, %y              may do so, on one path

A use follows a free if a path leads from the one to the other, and does not allocate
the memory anew in between. What control flow hands on may be what is freed, as long as
it is not bound to something else: a select of %a and another one, or the %old of a loop
that is the %new of the iteration before.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from ..dialects.diagnostics import name_of, place_of
from ..dialects.memory import effects_on, freed, is_memref
from .control_flow import ControlFlow, moves, passes_on
from .liveness import Bits
from .references import References


class UseAfterFree(NamedTuple):
    """Memory is freed, and used after that."""

    memory: SSAValue  # what makes it
    free: Operation
    use: Operation
    what: str  # it does: `reads`, `writes`, `uses`, or `frees`
    is_sure: bool  # whether it does so whenever the free has run

    @property
    def text(self) -> str:
        """Which operation does what."""
        name = f"%{self.memory.name_hint or '?'}"
        place = place_of(self.free)
        free = f"{name_of(self.free)} ({place})" if place else name_of(self.free)
        what = self.what if self.is_sure else f"may {self.what.removesuffix('s')}"
        again = " again" if self.what == "frees" else ""
        where = "" if self.is_sure else ", on some path"
        return f"{name_of(self.use)} {what} {name}{again} after {free} frees it{where}"


def uses_after_free(func: FuncOp, flow: ControlFlow) -> Iterator[UseAfterFree]:
    """Those of each memory and each `memref.dealloc` of it, in order of the text."""
    sources = [s for s in _sources(func) if not _is_freed_last(s, flow)]
    suspects: set[SSAValue] = set()
    for family in _families(References(flow, sources)):
        if len(family) == 1 or any(_used_in(References(flow, family))):
            suspects.update(family)
    for source in sources:
        if source in suspects:
            yield from _used_in(References(flow, [source]))


def _used_in(references: References) -> Iterator[UseAfterFree]:
    """The uses of what is referred to, of each after it is freed."""
    flow = references.flow
    uses = [use for alias in references.of for use in alias.uses if moves(use) is None]
    uses.sort(key=lambda use: flow.step_of(use.operation)[0])
    frees = [
        use
        for use in uses
        if isinstance(use.operation, memref.DeallocOp) and use.operation in flow.step
    ]
    begins = _Begins(references)
    for free in frees:
        yield from _Freed(references, begins, free).used(uses)


def _families(references: References) -> Iterator[Sequence[SSAValue]]:
    """The sources in groups: what may be one value is in one of them."""
    known: dict[SSAValue, SSAValue] = {}

    def first(reference: SSAValue) -> SSAValue:
        while (other := known.setdefault(reference, reference)) is not reference:
            known[reference] = known[other]  # half of the way is enough the next time
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
    """The memrefs of a function that are made of no others."""
    yield from filter(is_memref, func.args)
    for op in func.walk():
        if op.results and not passes_on(op):
            yield from filter(is_memref, op.results)


def _is_freed_last(source: SSAValue, flow: ControlFlow) -> bool:
    """Whether the last use of an allocation frees it, as most do: in its own block, and
    by no other name."""
    ops = [use.operation for use in source.uses]
    frees = [op for op in ops if isinstance(op, memref.DeallocOp)]
    return len(frees) == 1 and all(
        op.parent is source.owner.parent
        and op.next_op is not None
        and not any(map(is_memref, op.results))
        and flow.step_of(op)[0] <= flow.step_of(frees[0])[0]
        for op in ops
    )


def _what(use: Use) -> str | None:
    """What an operation does to its operand; None if it leaves the memory alone, as a
    return does, or finds out at run time (`bufferization.dealloc`)."""
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


class _Freed:
    """What a `memref.dealloc` frees."""

    def __init__(self, references: References, begins: "_Begins", free: Use):
        self.references = references
        self.flow = references.flow
        self.free = free.operation
        self.named = references.of[self.free.operands[free.index]]
        self.paths = _Paths(begins, self.flow.step[self.free])
        self.same = self._same()
        """The references to it when it is freed."""
        self.bound = self._bound()
        """Those that are bound to it after that: it is freed wherever they are used."""

    def used(self, uses: Sequence[Use]) -> Iterator[UseAfterFree]:
        """By which of some uses, each operation once."""
        said: set[Operation] = set()
        for use in uses:
            op = use.operation
            references = self.references.of[op.operands[use.index]]
            is_freed = any(r in self.bound or self._is_freed(r, op) for r in references)
            if not is_freed or op in said:
                continue
            what = _what(use)
            if what is None:
                continue
            said.add(op)
            step, whole = self.flow.step_of(op)
            is_sure = (
                op is whole
                and op.parent is self.free.parent
                and step > self.flow.step[self.free]
                and references == self.named
                and len(references) == 1
            )
            memory = self.references.source
            yield UseAfterFree(memory, self.free, op, what, is_sure)

    def _same(self) -> set[SSAValue]:
        found = dict.fromkeys(self.named)
        pending = list(found)
        for reference in pending:  # grows
            for source, target, op in (
                *self.references.leaving.get(reference, ()),
                *self.references.entering.get(reference, ()),
            ):
                other = target if source is reference else source
                step = self.flow.step_of(op)[0]
                if other not in found and self.paths.keep_until(source, step):
                    found[other] = None
                    pending.append(other)
        return set(found)

    def _bound(self) -> set[SSAValue]:
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
        """Whether what was freed may be what the reference is to at an operation."""
        return reference in self.same and self.paths.keep_from(
            reference, self.flow.step_of(op)[0]
        )


class _Begins:
    """Where references begin. They are numbered in this order, so those that begin in
    some steps are a run of bits."""

    def __init__(self, references: References):
        self.flow = references.flow
        order = sorted(references.all, key=references.begin)
        self.number = {reference: n for n, reference in enumerate(order)}
        self._steps = [references.begin(reference) for reference in order]
        uses = [use.operation for alias in references.of for use in alias.uses]
        nodes = [self.flow.node_of[self.flow.step_of(op)[0]] for op in uses]
        self._used = range(min(nodes, default=0), max(nodes, default=-1) + 1)
        self._all = (1 << len(order)) - 1

    def without(self, start: int, end: int) -> Bits:
        """The references that do not begin in these steps."""
        low, high = bisect_left(self._steps, start), bisect_left(self._steps, end)
        return self._all - (1 << high) + (1 << low)

    def are_between(self, node: int) -> bool:
        """Whether a path from one use to another may go through a node."""
        return node in self._used or self.flow.repeats[node]


class _Paths:
    """The paths to a step, and from it, on which a reference does not begin anew."""

    def __init__(self, begins: _Begins, step: int):
        self._begins = begins
        self._flow = flow = begins.flow
        self._step = step
        self._node = flow.node_of[step]
        start, end = flow.nodes[self._node].start, flow.ends[self._node]
        self._to = self._spread(flow.predecessors, begins.without(start, step + 1))
        self._from = self._spread(flow.successors, begins.without(step + 1, end))

    def keep_until(self, reference: SSAValue, step: int) -> bool:
        """Whether some path to it, from after another step, leaves a reference."""
        node = self._flow.node_of[step]
        kept = self._to.get(node, 0) & self._begins.without(
            step + 1, self._flow.ends[node]
        )
        if node == self._node and step < self._step:
            kept |= self._begins.without(step + 1, self._step + 1)
        return bool(kept >> self._begins.number[reference] & 1)

    def keep_from(self, reference: SSAValue, step: int) -> bool:
        """Whether some path from it, to another step, leaves a reference."""
        node = self._flow.node_of[step]
        kept = self._from.get(node, 0) & self._begins.without(
            self._flow.nodes[node].start, step + 1
        )
        if node == self._node and self._step < step:
            kept |= self._begins.without(self._step + 1, step + 1)
        return bool(kept >> self._begins.number[reference] & 1)

    def _spread(self, links: Sequence[Sequence[int]], kept: Bits) -> Mapping[int, Bits]:
        """By node, what is kept on some path up to it along links, which leaves so much
        in the step's own node."""
        found: dict[int, Bits] = {}
        pending = [(self._node, kept)]
        while pending:
            node, kept = pending.pop()
            for next in filter(self._begins.are_between, links[node]):
                known = found.get(next, 0)
                if new := kept & ~known:
                    found[next] = known | new
                    start, end = self._flow.nodes[next].start, self._flow.ends[next]
                    pending.append((next, new & self._begins.without(start, end)))
        return found
