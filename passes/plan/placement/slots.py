"""Finds the slots of an arena: which allocations share one, and which have several.

A slot is a range of bytes that holds one allocation at a time; `planning` then gives
each slot an offset. Most allocations have a slot of their own, and slots that are never
live at once share bytes through their offsets. Two cases need more than offsets:

* A value that control flow forwards, such as the result of an `scf.if`, is one of
  several allocations. One slot for all of them takes the bytes of one.
* A loop that replaces a buffer in each iteration needs the old and the new one at once,
  though a single `memref.alloc` makes both. This one allocation needs two slots, which
  swap places in each iteration: a rotation. The age of a reference is how many
  iterations ago its memory was allocated, so ages that differ, modulo the number of
  slots, mean different slots.

Times are the steps of `analysis/control_flow.py`.

Allocations that the same value refers to on different paths share a slot if they are
never live at once, except while one is computed over the other
(analysis/overwriting.py). An allocation that a loop forwards has as many slots as
instances of it are live at once. The loop carries the slots as bytes, and each
iteration takes the next one. Allocations on different paths of an iteration share these
slots:

    %slot = memref.view %arena[%c0][] : memref<128xi8> to memref<64xi8>
    %slot_1 = memref.view %arena[%c64][] : memref<128xi8> to memref<64xi8>
    %first = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
    ...
    %last, ... = scf.for ... iter_args(%old = %first, %a = %slot_1, %b = %slot) ... {
      %new = memref.view %a[%zero][] : memref<64xi8> to memref<16xf32>
      ...
      scf.yield %new, %b, %a
    }

Outer loops that forward the results of a loop carry the slots as the loop leaves them.
In loops of `cf` blocks, the first block of each has the slots as arguments.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from ....analysis.allocations import Allocation
from ....analysis.control_flow import BlockLoop, ControlFlow
from ....analysis.forwarding import pass_to
from ....analysis.liveness import for_all_agents, live_steps, merged, without
from ....analysis.overwriting import interfere
from ....analysis.references import (
    Ages,
    ages_in_loops,
    enters,
    loops_around,
    loops_of,
)
from ....planning.problem import Steps

Live = Mapping[SSAValue, Sequence[Steps]]
"""The steps in which an allocation is live through each reference to it."""


class Lives:
    """The steps in which the contents of a slot are live through each reference.

    Many values may refer to one slot, so ranges are sorted for binary search.
    """

    def __init__(self, live: Live):
        self.by: dict[SSAValue, Sequence[Steps]] = {}
        self._references: list[SSAValue] = []
        self._ranges: list[tuple[int, int, int]] = []
        """Start, end, and the number of the live reference, ascending."""
        self._until: list[int] = []
        """For each range, the latest end of it and of all ranges before."""
        self.add(live)

    def add(self, live: Live) -> None:
        changed = len(self._ranges)
        for reference, steps in live.items():
            known = self.by.get(reference, ())
            for start, end in without(steps, known):
                range = start, end, len(self._references)
                changed = min(changed, bisect_left(self._ranges, range))
                insort(self._ranges, range)
                self._references.append(reference)
            self.by[reference] = merged(sorted([*known, *steps])) if known else steps
        del self._until[changed:]
        for _, end, _ in self._ranges[changed:]:
            self._until.append(max([end, *self._until[-1:]]))

    def beside(self, steps: Sequence[Steps]) -> Sequence[SSAValue]:
        """The references that are live in some of these steps."""
        found: dict[SSAValue, None] = {}
        for start, end in steps:
            at = bisect_left(self._ranges, (end,))
            while at and self._until[at - 1] > start:
                at -= 1
                _, last, number = self._ranges[at]
                if last > start:
                    found[self._references[number]] = None
        return list(found)


@dataclass(slots=True)
class Slot:
    """A range of bytes for one allocation at a time."""

    allocations: list[Allocation]
    lives: Lives
    alignment: int
    rotation: "Rotation | None" = None

    @property
    def steps(self) -> list[Steps]:
        """The steps in which something in the slot is live."""
        return merged(sorted(chain.from_iterable(self.lives.by.values())))

    def take(self, other: "Slot", flow: ControlFlow) -> bool:
        """Takes the allocations of another slot, if they can share one slot. Returns
        whether it did."""
        if not self._may_take(other, flow):
            return False
        if self.rotation:
            self.rotation = self.rotation.together(other)
        self.allocations += other.allocations
        self.lives.add(other.lives.by)
        self.alignment = max(self.alignment, other.alignment)
        return True

    def _may_take(self, other: "Slot", flow: ControlFlow) -> bool:
        (one, *_), (another, *_) = self.allocations, other.allocations
        if one.size != another.size:
            return False
        mine, theirs = self.lives.by, other.lives.by
        meeting = (  # in some step, through different values
            (a, b)
            for b, live in theirs.items()
            for a in self.lives.beside(live)
            if a is not b
        )
        if self.rotation:
            both = self.rotation.together(other)
            is_turned = self.rotation.admits(other)
            return is_turned and all(both.differ(a, b) for a, b in meeting)
        return not mine.keys().isdisjoint(theirs) and not any(
            interfere(flow, (a, mine[a]), (b, theirs[b])) for a, b in meeting
        )


@dataclass(frozen=True, slots=True)
class Rotation:
    """One of the slots of an allocation that a loop forwards."""

    allocation: Allocation
    ages: Ages  # by reference: iterations since the allocation
    position: int  # among the slots, when the loop begins

    def admits(self, other: Slot) -> bool:
        """Whether the loop rotates the allocations of `other` in this slot, too, or
        begins with them as if they came from iterations before the first."""
        loops, count = loops_of(self.allocation.references), self.allocation.slots
        loop = loops[-1]
        if turn := other.rotation:
            is_same = loops_of(turn.allocation.references) == loops
            turns = turn.allocation.slots, turn.position
            return is_same and turns == (count, self.position)
        entries = [
            self.ages.get(move.target, set())
            for allocation in other.allocations
            for move in allocation.references.moves
            if enters(move, loop)
        ]
        known = {-age % count for ages in entries for age in ages}
        return known == {self.position}

    def together(self, other: Slot) -> "Rotation":
        """This rotation with the references of the other slot added."""
        if not other.rotation:
            return self
        mine, theirs = self.ages, other.rotation.ages
        both = {r: mine.get(r, set()) | theirs.get(r, set()) for r in (*mine, *theirs)}
        return replace(self, ages=both)

    def differ(self, one: SSAValue, another: SSAValue) -> bool:
        """Whether two references are never to the same slot."""
        ages = list(product(self.ages.get(one, ()), self.ages.get(another, ())))
        return bool(ages) and all((x - y) % self.allocation.slots for x, y in ages)


def find_slots(
    allocations: Sequence[Allocation],
    alignments: Sequence[int],
    flow: ControlFlow,
    is_joined: bool,
) -> list[Slot]:
    """The slots of a memory space, with their allocations. Allocations share slots only
    if `is_joined`."""
    every = [uses for a in allocations for uses in a.uses_by.values()]
    ranges = iter(for_all_agents(flow, live_steps(flow, every)))
    turning: list[list[Slot]] = []
    others: list[Slot] = []
    for allocation, alignment in zip(allocations, alignments, strict=True):
        live = {reference: next(ranges) for reference in allocation.uses_by}
        if allocation.slots == 1:
            others.append(Slot([allocation], Lives(live), alignment))
            continue
        ages = ages_in_loops(allocation.references) or {}
        turns = [
            Slot([allocation], Lives(live), alignment, Rotation(allocation, ages, n))
            for n in range(allocation.slots)
        ]
        if not (is_joined and any(_take_all(group, turns, flow) for group in turning)):
            turning.append(turns)
    slots = [slot for turns in turning for slot in turns]
    holders: dict[SSAValue, set[int]] = {}
    """For each reference, the numbers of the slots that it may refer to."""
    for number, slot in enumerate(slots):
        for allocation in slot.allocations:
            for reference in allocation.references.all:
                holders.setdefault(reference, set()).add(number)
    for other in others:
        references = other.allocations[0].references.all
        near = {n for r in references for n in holders.get(r, ())} if is_joined else ()
        taken = (n for n in sorted(near) if slots[n].take(other, flow))
        if (number := next(taken, len(slots))) == len(slots):
            slots.append(other)
        for reference in references:
            holders.setdefault(reference, set()).add(number)
    return slots


def _take_all(group: Sequence[Slot], turns: Sequence[Slot], flow: ControlFlow) -> bool:
    """Merges the slots of one rotation into those of another, all or none."""
    first, *_ = turns
    return group[0].take(first, flow) and all(
        mine.take(turn, flow) for mine, turn in zip(group[1:], turns[1:], strict=True)
    )


def carry(allocation: Allocation, slots: Sequence[SSAValue]) -> SSAValue:
    """Makes the loops around an allocation carry its slots. Returns the slot to use in
    the current iteration."""
    alloc, count = allocation.alloc, len(slots)
    loops = loops_around(alloc, allocation.loops, allocation.references.flow)
    if of_blocks := [loop for loop in loops if isinstance(loop, BlockLoop)]:
        return _carry_by_blocks(of_blocks, slots)
    values = slots
    for loop in reversed(loops):
        assert not isinstance(loop, BlockLoop)
        carrying = _carrying(loop, values)
        if loop is not loops[-1]:  # the outer loop forwards its results
            _forward(carrying.parent, carrying.results[-count:])
        (block,) = (r.block for r in carrying.regions if r.is_ancestor(alloc))
        values = block.args[-count:]
        if loop is loops[0]:
            last = carrying.regions[-1].block
            first, *others = last.args[-count:]
            _forward(last, [*others, first])
    return values[0]


def _carry_by_blocks(loops: Sequence[BlockLoop], slots: Sequence[SSAValue]) -> SSAValue:
    """Makes loops of `cf` blocks, the innermost first, carry `slots` as arguments of
    their heads. The innermost loop rotates them in each iteration. Returns the slot to
    use in the current iteration."""
    values = slots
    carried: list[Sequence[SSAValue]] = []
    for loop in reversed(loops):
        args = [loop.head.insert_arg(s.type, len(loop.head.args)) for s in slots]
        for op in loop.entries:
            pass_to(loop.head, op, values)
        carried.insert(0, values := args)
    first, *others = values
    nexts = [[*others, first], *carried]  # by loop: what an iteration passes on
    for loop, values in zip(loops, nexts, strict=False):
        for op in loop.backs:
            pass_to(loop.head, op, values)
    return first


def _carrying(
    loop: scf.ForOp | scf.WhileOp, values: Sequence[SSAValue]
) -> scf.ForOp | scf.WhileOp:
    """Adds values that a loop carries unchanged. Returns the new loop."""
    for region in loop.regions:
        block, last = region.block, region.block.last_op
        assert last is not None
        args = [block.insert_arg(value.type, len(block.args)) for value in values]
        last.operands = [*last.operands, *args]
    carrying = type(loop).create(
        operands=[*loop.operands, *values],
        result_types=[*loop.result_types, *(value.type for value in values)],
        attributes=loop.attributes,
        properties=loop.properties,
        regions=[loop.detach_region(region) for region in list(loop.regions)],
    )
    carrying.location = loop.location
    for old, new in zip(loop.results, carrying.results, strict=False):
        new.name_hint = old.name_hint
    Rewriter.replace_op(loop, carrying, carrying.results[: len(loop.results)])
    return carrying


def _forward(block: Block | None, values: Sequence[SSAValue]) -> None:
    """Replaces the last operands of a block's terminator by `values`."""
    last = block.last_op if block is not None else None
    assert last is not None
    last.operands = [*last.operands[: -len(values)], *values]
