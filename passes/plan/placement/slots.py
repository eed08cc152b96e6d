"""Finds the slots of an arena: which allocations share one, and which have several.

Allocations that the same value refers to, on one path each, share a slot unless both
are live at once, other than while the one is computed over the other
(analysis/overwriting.py). What a loop hands on has as many slots as there are of it at
a time. The loop carries them as bytes, and each iteration takes the next:

    %slot = memref.view %arena[%c0][] : memref<128xi8> to memref<64xi8>
    %slot_1 = memref.view %arena[%c64][] : memref<128xi8> to memref<64xi8>
    %first = memref.view %arena[%c0][] : memref<128xi8> to memref<16xf32>
    ...
    %last, ... = scf.for ... iter_args(%old = %first, %a = %slot_1, %b = %slot) ... {
      %new = memref.view %a[%zero][] : memref<64xi8> to memref<16xf32>
      ...
      scf.yield %new, %b, %a
    }
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ....analysis.allocations import Allocation
from ....analysis.control_flow import ControlFlow
from ....analysis.liveness import for_all_agents, live_steps, merged
from ....analysis.overwriting import meet
from ....analysis.references import Ages, ages_in_loop
from ....planning.problem import Steps, common

Live = Mapping[SSAValue, Sequence[Steps]]
"""The steps in which an allocation is live, by reference to it."""


@dataclass(slots=True)
class Slot:
    """A place for one allocation at a time."""

    allocations: list[Allocation]
    live: list[Live]  # of each
    alignment: int
    rotation: "Rotation | None" = None

    @property
    def steps(self) -> list[Steps]:
        """When something in it is live."""
        ranges = (steps for live in self.live for of in live.values() for steps in of)
        return merged(sorted(ranges))

    def take(self, other: "Slot", flow: ControlFlow) -> bool:
        """Joins what lies in another slot, if the two are never live at once."""
        if not self._may_take(other, flow):
            return False
        self.allocations += other.allocations
        self.live += other.live
        self.alignment = max(self.alignment, other.alignment)
        return True

    def _may_take(self, other: "Slot", flow: ControlFlow) -> bool:
        (one, *_), (another, *_) = self.allocations, other.allocations
        if one.size != another.size:
            return False
        if self.rotation:
            first, *rest = self.live
            return all(map(self.rotation.admits, other.allocations)) and all(
                self.rotation.is_apart(first, live)
                and all(_is_apart(each, live) for each in rest)
                for live in other.live
            )
        pairs = [(a, b) for a in self.live for b in other.live]
        is_handed_on = any(a.keys() & b.keys() for a, b in pairs)
        return is_handed_on and not any(
            meet(flow, x, y)
            for a, b in pairs
            for x in a.items()
            for y in b.items()
            if x[0] is not y[0]
        )


@dataclass(frozen=True, slots=True)
class Rotation:
    """One of the slots of an allocation that a loop hands on."""

    allocation: Allocation
    ages: Ages
    position: int  # among the slots, when the loop begins

    def admits(self, other: Allocation) -> bool:
        """Whether a loop begins with the other as if it came from the iterations before
        the first, in this slot."""
        loop = self.allocation.alloc.parent_op()
        entries = [
            self.ages.get(move.target, set())
            for move in other.references.moves
            if move.op is loop and move.target.owner is not loop
        ]
        known = [age for ages in entries for age in ages]
        return len(known) == 1 and -known[0] % self.allocation.slots == self.position

    def is_apart(self, mine: Live, other: Live) -> bool:
        """Whether the two are not live at once where the loop does not keep them in
        different slots."""
        of_mine = {r: steps for r, steps in mine.items() if r not in self.ages}
        of_other = {r: steps for r, steps in other.items() if r not in self.ages}
        return _is_apart(mine, of_other) and _is_apart(of_mine, other)


def _is_apart(a: Live, b: Live) -> bool:
    """Whether two allocations are live in the same step through the same value only:
    which is either of them."""
    return not any(
        common(x, y) for r, x in a.items() for s, y in b.items() if r is not s
    )


def find_slots(
    allocations: Sequence[Allocation],
    alignments: Sequence[int],
    flow: ControlFlow,
    is_joined: bool,
) -> list[Slot]:
    """The slots of a memory, with what lies in them; one for each allocation unless
    `is_joined`."""
    every = [uses for a in allocations for uses in a.uses_by.values()]
    ranges = iter(for_all_agents(flow, live_steps(flow, every)))
    slots: list[Slot] = []
    others: list[Slot] = []
    for allocation, alignment in zip(allocations, alignments, strict=True):
        live = {reference: next(ranges) for reference in allocation.uses_by}
        if allocation.slots == 1:
            others.append(Slot([allocation], [live], alignment))
            continue
        ages = ages_in_loop(allocation.references) or {}
        for position in range(allocation.slots):
            rotation = Rotation(allocation, ages, position)
            slots.append(Slot([allocation], [live], alignment, rotation))
    for other in others:
        handed_on = other.allocations[0].references.moves
        if not (
            is_joined and handed_on and any(slot.take(other, flow) for slot in slots)
        ):
            slots.append(other)
    return slots


def carry(alloc: memref.AllocOp, slots: Sequence[SSAValue]) -> SSAValue:
    """Makes the loop around an allocation carry its slots; the one to take."""
    loop = alloc.parent_op()
    assert loop is not None
    taken: list[SSAValue] = []
    for region in loop.regions:
        block, last = region.block, region.block.last_op
        assert last is not None
        args = [block.insert_arg(slot.type, len(block.args)) for slot in slots]
        is_back = region is loop.regions[-1]
        passed = [*args[1:], args[0]] if is_back else args
        last.operands = [*last.operands, *passed]
        if block is alloc.parent:
            taken += args
    carrying = type(loop).create(
        operands=[*loop.operands, *slots],
        result_types=[*loop.result_types, *(slot.type for slot in slots)],
        attributes=loop.attributes,
        properties=loop.properties,
        regions=[loop.detach_region(region) for region in list(loop.regions)],
    )
    carrying.location = loop.location
    for old, new in zip(loop.results, carrying.results, strict=False):
        new.name_hint = old.name_hint
    Rewriter.replace_op(loop, carrying, carrying.results[: len(loop.results)])
    return taken[0]
