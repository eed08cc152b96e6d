"""What another compiler's plan uses its bytes for, and how many it wastes.

    account(plan).live      the most bytes that hold a value that is still read

A plan takes the sum of its memories. At the peak, a part of these bytes is live. The
rest is lost by placement: addresses are fragmented, or a memory is unused. Another
order of the same steps may have a lower peak of live bytes: the difference is lost by
order. Removing copies that an alias could replace may lower it further: that difference
is lost by copies.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..planning.scheduling import Task, TaskGraph, peak_of, schedule
from ..support.foreign_plan import (
    Block,
    Branch,
    ForeignPlan,
    Forwarded,
    Loop,
    Region,
    Step,
    Value,
    steps_in,
)

EFFORT = 0.1
"""The fraction of the scheduler's usual work; it takes a tenth of a second at most."""


class LiveValue(NamedTuple):
    """A value and its live range in steps, in the order of the plan."""

    value: Value
    lower: int
    upper: int  # exclusive: one more than the step of the last read


class LiveGroup(NamedTuple):
    """Values at the peak with the same type, and origin in the user's program."""

    bytes: int
    values: int
    type: str
    origin: str
    location: str


@dataclass(frozen=True)
class Account:
    bytes: int
    """The sum of the sizes of all memories."""
    by_kind: Mapping[str, int]
    """The sum of the sizes of the memories of each kind: arguments, results,
    temporaries, constants, host memory. `scratch` are bytes that only workspaces of
    kernels use.
    """
    live: int
    """The largest number of bytes that are live in one step."""
    step: str
    location: str
    """The name and the location of the first step with `live` live bytes."""
    at_peak: Sequence[LiveValue]
    """The values live in that step, largest first; one for each region of bytes."""
    best_order: int | None
    """The fewest live bytes at the peak in the orders of the same steps that the
    scheduler tried. None for a trace, which does not show dependencies.
    """
    best_aliased: int | None
    """`best_order` without the copies that an alias could replace."""

    @property
    def groups(self) -> Sequence[LiveGroup]:
        """The values at the peak by type, origin and location; largest first."""
        sizes: dict[tuple[str, str, str], list[int]] = {}
        for value, *_ in self.at_peak:
            key = value.type, value.origin, value.location
            sizes.setdefault(key, []).append(value.region.size)
        groups = [LiveGroup(sum(n), len(n), *key) for key, n in sizes.items()]
        return sorted(groups, key=lambda group: -group.bytes)

    @property
    def lost_by_placement(self) -> int:
        return self.bytes - self.live - self.by_kind.get("scratch", 0)

    @property
    def lost_by_order(self) -> int | None:
        return None if self.best_order is None else self.live - self.best_order

    @property
    def lost_by_copies(self) -> int | None:
        if self.best_order is None or self.best_aliased is None:
            return None
        return self.best_order - self.best_aliased

    def lost_by_program(self, bytes: int) -> int:
        """The further bytes that a plan of `bytes` for the same program saves: its
        steps differ, or it stores fewer of their results.
        """
        rest = self.live if self.best_aliased is None else self.best_aliased
        return rest - bytes


def account(plan: ForeignPlan) -> Account:
    """Accounts for the bytes of a sound plan: each value is written, then read."""
    names = ["", *(moment.step for moment in _moments(plan.steps))]
    places = ["", *(moment.location for moment in _moments(plan.steps))]
    all_values = lives(plan)
    scratch = {v.name for step in steps_in(plan.steps) for v in step.scratch}
    values = [v for v in all_values if v.value.name not in scratch]
    live, at = _peak(values)
    most, _ = _peak(all_values)
    shown = {v.value.region: v for v in values if v.lower <= at < v.upper}
    at_peak = sorted(shown.values(), key=lambda v: -v.value.region.size)
    kinds = Counter[str]()
    for memory in plan.memories.values():
        kinds[memory.kind] += memory.size
    if only_scratch := _only_scratch(plan, values) + most - live:
        kinds["scratch"] += only_scratch
        kinds["temporary"] -= only_scratch
    return Account(
        plan.bytes,
        kinds,
        live,
        names[at],
        places[at],
        at_peak,
        *((None, None) if plan.is_trace else _best_orders(plan, live, values)),
    )


class _Moment(NamedTuple):
    step: str
    location: str
    reads: Sequence[Value]
    writes: Sequence[Value]
    loops: Sequence[str]
    """The loops around the moment, outer ones first."""
    inside: Sequence[str]
    """The loops around the values that it writes, such as the loop of an argument."""
    scratch: Sequence[Value] = ()


def _moments(block: Block, loops: tuple[str, ...] = ()) -> Iterator[_Moment]:
    """All reads and writes in textual order, by steps and by control flow."""
    for item in block:
        match item:
            case Step(name, _, reads, writes, place, scratch=scratch):
                yield _Moment(name, place, reads, writes, loops, loops, scratch)
            case Forwarded(old, new):
                yield _Moment(new.name, new.location, [old], [new], loops, loops)
            case Loop(name=name, location=place):
                inner = (*loops, name)
                initial, first = _sides(item.entering)
                last, _ = _sides(item.repeating)
                tested, left = _sides(item.leaving)
                yield _Moment(name, place, initial, first, loops, inner)
                yield from _moments(item.condition, inner)
                yield _Moment(name, place, tested, (), inner, inner)
                yield from _moments(item.body, inner)
                yield _Moment(name, place, last, left, inner, loops)
            case Branch():
                for choice in item.choices:
                    yield from _moments(choice, loops)


def _sides(pairs: Sequence[Forwarded]) -> tuple[Sequence[Value], Sequence[Value]]:
    return [old for old, _ in pairs], [new for _, new in pairs]


def _given(plan: ForeignPlan) -> Sequence[Value]:
    """The values that exist before the first step, including values without bytes that
    are read before they are written, which the audit accepts.
    """
    given = [*plan.given]
    known = {value.name for value in given}
    end = _Moment("the end", "", plan.kept, (), (), ())
    for moment in (*_moments(plan.steps), end):
        given += {v.name: v for v in moment.reads if v.name not in known}.values()
        known.update(v.name for v in (*moment.reads, *moment.writes))
    return given


def lives(plan: ForeignPlan) -> Sequence[LiveValue]:
    """The live ranges of all values, in the order of their writes; step 0 is the start.

    Scratch memory is live in its step. A value that several branches write has a live
    range for each.
    """
    given = _given(plan)
    begun: list[tuple[Value, int, Sequence[str]]] = [(v, 0, ()) for v in given]
    latest = {value.name: number for number, value in enumerate(given)}
    loop_ends: dict[str, int] = {}
    over: set[tuple[int, int]] = set()
    """Pairs of a value and a step that overwrites a part of it, which ends its life."""
    reads: list[tuple[int, int, Sequence[str]]] = []
    last = 0
    for last, moment in enumerate(_moments(plan.steps), 1):
        loop_ends |= dict.fromkeys(moment.loops, last)
        reads += [(latest[v.name], last, moment.loops) for v in moment.reads]
        for value in (*moment.writes, *moment.scratch):
            partly = (v for v in moment.reads if _is_partly(v, value))
            over |= {(latest[old.name], last) for old in partly}
            latest[value.name] = len(begun)
            begun.append((value, last, moment.inside))
    ends = [at for _, at, _ in begun]
    for number, at, loops in reads:
        # A value that is defined outside of a loop is live until its last iteration.
        around = [loop_ends[loop] for loop in loops if loop not in begun[number][2]]
        ends[number] = max(ends[number], at, *around)
    for value in plan.kept:
        ends[latest[value.name]] = last
    return [
        LiveValue(value, at, end + ((number, end) not in over))
        for number, ((value, at, _), end) in enumerate(zip(begun, ends, strict=True))
    ]


def _only_scratch(plan: ForeignPlan, values: Sequence[LiveValue]) -> int:
    """The bytes that are only scratch memory of kernels, used in unknown steps."""
    used = [value.value.region for value in values]
    return _covered([*used, *plan.scratch]) - _covered(used)


def _covered(regions: Sequence[Region]) -> int:
    """The number of bytes in the union of `regions`."""
    count = 0
    memory, end = "", 0
    for region in sorted(regions):
        if region.memory != memory:
            memory, end = region.memory, 0
        count += max(0, region.end - max(end, region.offset))
        end = max(end, region.end)
    return count


def _is_partly(old: Value, new: Value) -> bool:
    return old.region != new.region and old.region.overlaps(new.region)


def _peak(values: Sequence[LiveValue]) -> tuple[int, int]:
    """The largest number of live bytes, and the first step in which they are live."""
    changes: dict[int, list[tuple[Region, int]]] = {}
    for value in values:
        changes.setdefault(value.lower, []).append((value.value.region, 1))
        changes.setdefault(value.upper, []).append((value.value.region, -1))
    counts = Counter[Region]()
    live = most = at = 0
    for step in sorted(changes):
        for region, change in changes[step]:
            before = counts[region]
            counts[region] += change
            live += ((counts[region] > 0) - (before > 0)) * region.size
        if live > most:
            most, at = live, step
    return most, at


def _best_orders(
    plan: ForeignPlan, peak: int, values: Sequence[LiveValue]
) -> tuple[int, int]:
    """The fewest live bytes at the peak in the orders of the outermost steps that the
    scheduler tried: with all copies, and without those that an alias could replace.

    Values that share bytes by taking them over are one buffer. Loops and branches are
    scheduled as a whole.
    """
    graph = _Buffers(plan, {}).graph()
    given = peak_of(graph, range(len(graph.tasks)))
    best = schedule(graph, EFFORT).peak
    if aliases := _aliases(plan, values):
        aliased = schedule(_Buffers(plan, aliases).graph(), EFFORT).peak
    else:
        aliased = best
    found = min(peak, peak - (given - best))
    return found, min(found, peak - (given - aliased))


def _aliases(plan: ForeignPlan, values: Sequence[LiveValue]) -> Mapping[str, str]:
    """The outermost copies that need no bytes, each with the value that it copies.

    Of the copy and its source, only the one that is read last may be overwritten at its
    last read. A result that exists before the first step needs its own bytes.
    """
    ends = {live.value.name: live.upper for live in values}
    kept = {value.name for value in plan.kept}
    overwritten = {
        old.name
        for moment in _moments(plan.steps)
        for old in moment.reads
        if any(old.region.overlaps(new.region) for new in moment.writes)
    }
    found: dict[str, str] = {}
    for step in plan.steps:
        if not isinstance(step, Step) or not step.is_copy:
            continue
        if len(step.reads) != 1 or len(step.writes) != 1:
            continue
        old, new = step.reads[0], step.writes[0]
        first = min(old.name, new.name, key=lambda name: ends[name])
        is_read_first = ends[old.name] != ends[new.name]
        if old.region.size != new.region.size or {old.name, new.name} <= kept:
            continue
        if not overwritten & ({first} if is_read_first else {old.name, new.name}):
            found[new.name] = old.name
    return found


class _Buffers:
    """The values of a plan, merged into buffers where a value takes over the bytes of
    another value or is its alias.
    """

    def __init__(self, plan: ForeignPlan, aliases: Mapping[str, str]):
        self.plan = plan
        self.aliases = aliases
        self._of: dict[str, int] = {}
        self._sizes: list[int] = []
        for value in _given(plan):
            self._new(value)
        self._given = frozenset(self._of.values())

    def _new(self, value: Value) -> int:
        self._of[value.name] = len(self._sizes)
        self._sizes.append(value.region.size)
        return self._of[value.name]

    def _take_over(self, moment: _Moment) -> None:
        """Assigns a buffer to each value that a moment writes."""
        old = {v.region: self._of[v.name] for v in moment.reads if v.name in self._of}
        for value in moment.writes:
            if value.name not in self._of:
                copied = self._of.get(self.aliases.get(value.name, ""))
                taken = old.get(value.region, copied)
                if taken is None:
                    self._new(value)
                else:
                    self._of[value.name] = taken

    def graph(self) -> TaskGraph:
        tasks: list[Task] = []
        readers: dict[int, list[int]] = {}
        writer: dict[int, int] = {}
        written: set[int] = set()
        for number, item in enumerate(self.plan.steps):
            moments = list(_moments([item]))
            for moment in moments:
                self._take_over(moment)
            reads = {self._of[v.name] for m in moments for v in m.reads}
            writes = {self._of[v.name] for m in moments for v in m.writes}
            first = writes - written - self._given
            before = {writer[n] for n in reads | writes if n in writer}
            before.update(r for n in writes for r in readers.pop(n, ()))
            tasks.append(
                Task(sorted((reads | writes) - first), sorted(first), sorted(before))
            )
            written |= first
            writer |= dict.fromkeys(writes, number)
            for buffer in reads:
                readers.setdefault(buffer, []).append(number)
        kept = {self._of[value.name] for value in self.plan.kept}
        return TaskGraph(tasks, self._sizes, kept)
