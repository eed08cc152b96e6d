"""Converts commands of IREE to steps with reads and writes of values.

call = Call(3, "main_dispatch_2", "model.mlir:4:5")
call.read(x, range_of_x)
y = call.make(range_of_y, 64)
step = call.command().step
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...support.foreign_plan import Access, Region, Step, Unknown, Value


class Range(NamedTuple):
    """The range of a resource that a command accesses, and its position in a value."""

    resource: Region
    offset: int | None  # in the resource; None if computed at run time
    at: int | None  # in the value; None if computed at run time
    length: int

    @property
    def touched(self) -> Region:
        """The accessed region; the whole resource if the range is unknown."""
        if self.offset is None:
            return self.resource
        at = self.resource.offset + self.offset
        return Region(self.resource.memory, at, self.length)


@dataclass(frozen=True)
class Command:
    step: Step
    touched: Sequence[Region]
    """The part of each written value that the command overwrites."""


@dataclass
class Call:
    """A command under construction."""

    number: int
    what: str
    place: str
    is_copy: bool
    reads: list[Value] = field(default_factory=list[Value])
    windows: list[Region] = field(default_factory=list[Region])
    """The part of each read value that the command accesses."""
    writes: list[Value] = field(default_factory=list[Value])
    touched: list[Region] = field(default_factory=list[Region])
    tied: set[int] = field(default_factory=set[int])
    """The indices of reads whose values are updated in place."""

    def read(self, value: Value, at: Range) -> None:
        is_window = value.region.overlaps(at.touched) and at.offset is not None
        window = at.touched if is_window else value.region
        self.reads.append(value._replace(region=window))
        self.windows.append(at.touched)

    def make(self, at: Range, size: int) -> Value:
        return self._write(at.touched._replace(size=size), at.touched)

    def change(self, old: Value, at: Range, *numbers: int) -> Value:
        """Writes a part of `old`; `numbers` are indices of further reads of `old`."""
        self.tied |= {len(self.reads), *numbers}
        self.reads.append(old)
        self.windows.append(at.touched)
        return self._write(old.region, at.touched)

    def _write(self, region: Region, touched: Region) -> Value:
        name = f"value {self.number}"
        if self.writes:
            name = f"{name}.{len(self.writes)}"
        value = Value(name, region, "", self.what, self.place)
        self.writes.append(value)
        self.touched.append(touched)
        return value

    def command(self) -> Command:
        name = f"command {self.number}"
        is_whole = self.is_copy and self.reads[0].region.size == sum(
            value.region.size for value in self.writes
        )
        step = Step(
            name, self.what, self.reads, self.writes, self.place, self._access, is_whole
        )
        return Command(step, self.touched)

    def _access(self, read: int, write: int) -> Access:
        window, touched = self.windows[read], self.touched[write]
        if read in self.tied or not window.overlaps(touched):
            return None
        if self.is_copy:
            return Unknown("a copy's source and target must share no bytes", True)
        return Unknown("nothing is known about the kernel")


def at_once(commands: Sequence[Command]) -> Command:
    """Merges commands that run concurrently into one."""
    steps = [command.step for command in commands]
    reads = [(step, n) for step in steps for n in range(len(step.reads))]
    writes = [(c, n) for c in commands for n in range(len(c.touched))]

    def access(read: int, write: int) -> Access:
        reader, number = reads[read]
        writer, result = writes[write]
        if reader is writer.step:
            return reader.access(number, result)
        if not reader.reads[number].region.overlaps(writer.touched[result]):
            return None
        return Unknown(f"{reader.name} and {writer.step.name} run at once", True)

    step = Step(
        " and ".join(step.name for step in steps),
        ", ".join(dict.fromkeys(step.operation for step in steps)),
        [value for step in steps for value in step.reads],
        [value for step in steps for value in step.writes],
        steps[0].location if steps else "",
        access,
    )
    return Command(step, [region for c in commands for region in c.touched])
