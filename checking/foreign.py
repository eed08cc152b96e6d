"""Audits plans of other compilers: which values share bytes, and when.

    audit(plan).findings

The audit runs through the steps of a plan (`support/foreign_plan.py`) and keeps the
values that each byte holds. Reading a value whose bytes hold another one refutes the
plan, whatever live ranges the planner assumed. A step that writes over its operands
must read each element before it overwrites it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..support.foreign_plan import (
    Block,
    Branch,
    Elements,
    ForeignPlan,
    Forwarded,
    Loop,
    Positions,
    Region,
    Step,
    Unknown,
    Value,
    steps_in,
)

if TYPE_CHECKING:
    import numpy as np

Severity: TypeAlias = Literal["unsound", "suspicious"]
_Names: TypeAlias = frozenset[str]

_NONE: _Names = frozenset()


class Finding(NamedTuple):
    """An error in a plan, or something that cannot be shown to be correct."""

    severity: Severity
    step: str  # the step in which it shows
    value: str  # the value that is lost
    other: str  # the value in its bytes; empty if there is none
    message: str
    location: str  # the step's source location


@dataclass(frozen=True)
class Audit:
    plan: ForeignPlan
    findings: Sequence[Finding]
    steps: int
    values: int
    shared: int
    """The number of values that were written over operands of the same step."""

    @property
    def verdict(self) -> str:
        """`unsound`, `suspicious`, `not refuted` if the reader left something out, or
        `proved` under the plan's assumptions."""
        if self.findings:
            return min((f.severity for f in self.findings), key=_RANK.index)
        return "not refuted" if self.plan.not_understood else "proved"


_RANK: Sequence[Severity] = ("unsound", "suspicious")


def audit(plan: ForeignPlan) -> Audit:
    """Checks a plan, and counts its steps and values."""
    walk = _Walk(plan)
    walk.run()
    steps = steps_in(plan.steps)
    values = {v.name for v in plan.given}
    values |= {v.name for step in steps for v in (*step.writes, *step.scratch)}
    return Audit(plan, [*walk.found], len(steps), len(values), len(walk.shared))


class _Contents:
    """The names of the values in each byte of a memory, run-length encoded."""

    def __init__(self) -> None:
        self._starts = [0]
        self._names: list[_Names] = [_NONE]

    def copy(self) -> "_Contents":
        other = _Contents()
        other._starts, other._names = self._starts[:], self._names[:]
        return other

    def runs(self, region: Region) -> Sequence[_Names]:
        begin, end = self._cut(region)
        return self._names[begin:end]

    def write(self, region: Region, name: str) -> None:
        begin, end = self._cut(region)
        if begin < end:
            self._starts[begin:end] = [region.offset]
            self._names[begin:end] = [frozenset((name,))]

    def add(self, region: Region, name: str) -> None:
        begin, end = self._cut(region)
        self._names[begin:end] = [names | {name} for names in self._names[begin:end]]

    def intersect(self, other: "_Contents") -> None:
        """Keeps only the names that both have."""
        for start in other._starts:
            self._split(start)
        for start in self._starts:
            other._split(start)
        pairs = zip(self._names, other._names, strict=True)
        self._names = [one & two for one, two in pairs]

    def _cut(self, region: Region) -> tuple[int, int]:
        return self._split(region.offset), self._split(region.end)

    def _split(self, at: int) -> int:
        """The index of the run that starts at byte `at`; splits a run if needed."""
        index = bisect_right(self._starts, at) - 1
        if self._starts[index] != at:
            index += 1
            self._starts.insert(index, at)
            self._names.insert(index, self._names[index - 1])
        return index


class _Site(NamedTuple):
    """The step that the audit is at."""

    step: str
    location: str = ""  # its source location


@dataclass
class _Walk:
    """One pass over a plan, in the order of its steps."""

    plan: ForeignPlan
    found: dict[Finding, None] = field(default_factory=dict[Finding, None])
    shared: set[str] = field(default_factory=set[str])
    contents: dict[str, _Contents] = field(default_factory=dict[str, _Contents])
    writers: dict[str, str] = field(default_factory=dict[str, str])

    def run(self) -> None:
        self.contents = {name: _Contents() for name in self.plan.memories}
        for value in self.plan.given:
            self._write(value, _Site("the start"))
        self.writers.clear()  # no step wrote the given values
        self._block(self.plan.steps)
        for value in self.plan.kept:
            self._expect(value, "is lost before the end", _Site("the end"))

    def _block(self, block: Block) -> None:
        for item in block:
            match item:
                case Step():
                    self._step(item)
                case Forwarded(new=new):
                    self._forward([item], _Site(new.name, new.location))
                case Loop():
                    self._loop(item)
                case Branch():
                    self._branch(item)

    def _step(self, step: Step) -> None:
        site = _Site(step.name, step.location)
        for value in dict.fromkeys(step.reads):
            self._expect(value, f"is read by {_named(step)}", site)
        writes = [*step.writes, *step.scratch]
        for write, value in enumerate(writes):
            for read, operand in enumerate(step.reads):
                if operand.region.overlaps(value.region):
                    self._overwrite(step, read, value, write, site)
            for other in writes[:write]:
                if other.region.overlaps(value.region):
                    text = f"{step.name} writes {other.name} and {value.name} into "
                    text += f"the same bytes, {_where(other.region, value.region)}"
                    self._report(site, other, value.name, text)
        for value in writes:
            self._write(value, site)

    def _overwrite(
        self, step: Step, read: int, new: Value, write: int, site: _Site
    ) -> None:
        """Checks a write into bytes of an operand of the same step."""
        old = step.reads[read]
        self.shared.add(new.name)
        if write < len(step.writes):
            access = step.access(read, write)
        else:
            access = Unknown("the kernel has these bytes as scratch memory", True)
        if isinstance(access, Elements):
            access = _judged(access, old.region, new.region)
        if access is None:
            return
        verb = "overwrites" if access.is_refuted else "may overwrite"
        text = (
            f"{_named(step)} {verb} {old.name} before it has read it, "
            f"in {_where(old.region, new.region)}: {access.reason}"
        )
        severity = "unsound" if access.is_refuted else "suspicious"
        self._report(site, old, new.name, text, severity)

    def _loop(self, loop: Loop) -> None:
        """Walks condition and body once: that shows what each iteration leaves."""
        site = _Site(loop.name, loop.location)
        self._forward(loop.entering, site)
        self._block(loop.condition)
        self._block(loop.body)
        self._forward(loop.repeating, site)
        self._block(loop.condition)
        self._forward(loop.leaving, site)

    def _branch(self, branch: Branch) -> None:
        before = self.contents
        joined: dict[str, _Contents] = {}
        for choice in branch.choices:
            self.contents = {name: held.copy() for name, held in before.items()}
            self._block(choice)
            for name, held in self.contents.items():
                joined.setdefault(name, held).intersect(held.copy())
        self.contents = joined or before

    def _forward(self, values: Iterable[Forwarded], site: _Site) -> None:
        for old, new in values:
            self._expect(old, f"is forwarded to {new.name} in {site.step}", site)
            if old.region != new.region:
                text = f"{old.name} is forwarded to {new.name}, but is not in its bytes"
                self._report(site, old, new.name, text)
            elif self._fits(new, site):
                self.contents[new.region.memory].add(new.region, new.name)

    def _write(self, value: Value, site: _Site) -> None:
        if self._fits(value, site):
            self.contents[value.region.memory].write(value.region, value.name)
            self.writers[value.name] = site.step

    def _expect(self, value: Value, what: str, site: _Site) -> None:
        """Reports a value that is missing from some of its bytes."""
        if not self._fits(value, site):
            return
        runs = self.contents[value.region.memory].runs(value.region)
        lost = [names for names in runs if value.name not in names]
        if not lost:
            return
        other = min(lost[0], default="")
        held = "hold nothing yet"
        if other:
            by = self.writers.get(other, other)
            held = f"hold {other}" + (f", which {by} wrote" if by != other else "")
        text = f"{value.name} {what}, but {_where(value.region)} {held}"
        self._report(site, value, other, text)

    def _fits(self, value: Value, site: _Site) -> bool:
        """Whether the value is within a memory of the plan; reports it if not."""
        region = value.region
        memory = self.plan.memories.get(region.memory)
        if memory and 0 <= region.offset and region.end <= memory.size:
            return True
        size = f"has {memory.size} bytes" if memory else "does not exist"
        text = f"{value.name} is in {_where(region)}, but {region.memory} {size}"
        self._report(site, value, "", text)
        return False

    def _report(
        self,
        site: _Site,
        value: Value,
        other: str,
        text: str,
        severity: Severity = "unsound",
    ) -> None:
        finding = Finding(severity, site.step, value.name, other, text, site.location)
        self.found[finding] = None


def _judged(access: Elements, old: Region, new: Region) -> Unknown | None:
    """Checks whether an element is read after it was overwritten; None if none is.

    Elements may be computed in ascending order of the written addresses, or in any
    other order. A plan that is correct only in ascending order is neither refuted nor
    proved.
    """
    import numpy as np  # here, since few plans need it

    written = np.asarray(access.written).reshape(-1) + new.offset
    targets = np.unique(written)
    early = late = 0
    for positions in access.read:
        read = np.asarray(positions).reshape(-1)
        is_read = read >= 0
        read = read[is_read] + old.offset
        other = written[is_read]
        differs = read != other
        read, other = read[differs], other[differs]
        is_hit = _hits(targets, read, access.width)
        early += int(np.count_nonzero(is_hit & (read < other)))
        late += int(np.count_nonzero(is_hit & (read > other)))
    if early:
        return Unknown(f"{early} elements are read after they are overwritten", True)
    if late:
        return Unknown(f"{late} elements are intact only in ascending order")
    return None


def _hits(
    targets: Positions, read: Positions, width: int
) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Whether each element that is read overlaps a written element."""
    import numpy as np

    following = np.searchsorted(targets, read - width, side="right")
    nearest = targets[np.minimum(following, len(targets) - 1)] if len(targets) else read
    return (following < len(targets)) & (nearest < read + width)


def _named(step: Step) -> str:
    return f"{step.name} ({step.operation})" if step.operation else step.name


def _where(region: Region, other: Region | None = None) -> str:
    """Describes the bytes of a region, or the bytes that two regions share."""
    begin, end = region.offset, region.end
    if other is not None:
        begin, end = max(begin, other.offset), min(end, other.end)
    return f"bytes [{begin}, {end}) of {region.memory}"
