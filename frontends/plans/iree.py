"""Reads plans of IREE from the IR that `iree-compile` prints before and after planning.

    iree-compile model.mlir ... --compile-to=stream -o /dev/null
        --mlir-print-ir-before=iree-stream-schedule-allocation
        --mlir-print-ir-after=iree-stream-layout-slices
        --mlir-print-op-generic ... 2> model.iree.mlir

Before planning, an execution is a graph of values:
`%2 = stream.async.dispatch @f(%0, %1)`. After planning, it is a list of commands in the
same order, which access ranges of allocations:
`stream.cmd.dispatch @f {ro %a[0 for 64], wo %b[64 for 64]}`. The graph shows which
values a command reads, and the command where it reads them. Both are in generic form.

Does not: follow values through `scf`, `cf` and calls. Their results get separate bytes,
and count as not understood.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...support.foreign_plan import (
    ForeignPlan,
    ForeignPlanError,
    Forwarded,
    Memory,
    Region,
    Step,
    Value,
)
from .iree_commands import Call, Command, Range, at_once
from .iree_dump import (
    DynamicError,
    all_ops,
    awaited,
    constant_of,
    functions,
    kernel_of,
    lifetime_of,
    number_of,
    op_name,
    operand_groups,
    property_of,
    resources_in,
    source_of,
    tied_operands,
)
from .text import text_of

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

ENDINGS = (".iree.mlir",)

ASSUMPTIONS = (
    "IREE's executions run in the order of the program",
    "arguments of the program share no bytes",
    "a dispatch accesses the ranges of its bindings only",
    "a dispatch that updates an operand reads each element before it overwrites it",
)

_COMMANDS = {
    **{"dispatch": "dispatch", "concurrent": "concurrent"},
    **dict.fromkeys(("clone", "slice", "transfer", "copy", "update"), "copy"),
    **dict.fromkeys(("splat", "fill"), "fill"),
}
"""The command for each operation of the graph."""

_WITHOUT_EFFECT = ("yield", "cmd.flush", "cmd.invalidate", "cmd.discard")
_EXECUTION = ("stream.async.execute",)
_EXECUTED = ("stream.cmd.dispatch", "stream.cmd.fill", "stream.cmd.copy")
_EXPORTS = ("stream.tensor.export",)
_LOADS = ("stream.async.load", "stream.resource.load")
_STORES = ("util.global.store",)
_HANDING_ON = ("scf.", "cf.", "util.call", "util.global.store")


def read_file(path: Path) -> ForeignPlan:
    """The plan in a dump. Raises `ForeignPlanError` for other files, and `OSError`."""
    text = text_of(path)
    before, after = functions(text, str(path))
    reader = _Reader()
    try:
        for graph, planned in zip(before, after, strict=True):
            reader.take(graph, planned)
    except DynamicError:
        reason = "sizes are not constant, which the audit does not understand"
        raise ForeignPlanError(reason, str(path)) from None
    except (LookupError, ValueError, TypeError, AttributeError, StopIteration):
        reason = "the IR before planning does not match the IR after it"
        raise ForeignPlanError(reason, str(path)) from None
    return reader.plan(path.name.removesuffix(ENDINGS[0]))


@dataclass
class _Reader:
    memories: dict[str, Memory] = field(default_factory=dict[str, Memory])
    steps: list[Step | Forwarded] = field(default_factory=list[Step | Forwarded])
    given: list[Value] = field(default_factory=list[Value])
    kept: list[Value] = field(default_factory=list[Value])
    not_understood: Counter[str] = field(default_factory=Counter[str])
    regions: "dict[SSAValue, Region]" = field(default_factory=dict["SSAValue", Region])
    """The regions of resources in the program after planning."""
    values: "dict[SSAValue, Value]" = field(default_factory=dict["SSAValue", Value])
    """The values of resources in the program before planning."""
    globals: dict[str, tuple[Region, Value | None]] = field(
        default_factory=dict[str, tuple[Region, Value | None]]
    )
    """The regions and values that initializers store in globals, by name."""
    freed: set[str] = field(default_factory=set[str])
    """The memories that were freed."""
    commands: int = 0

    def plan(self, name: str) -> ForeignPlan:
        return ForeignPlan(
            name,
            self.memories,
            self.steps,
            self.given,
            self.kept,
            ASSUMPTIONS,
            self.not_understood,
        )

    def take(self, graph: "Operation", planned: "Operation") -> None:
        """Reads a function, given before and after planning."""
        is_initializer = op_name(planned) == "util.initializer"
        if is_initializer and not any(all_ops(planned, *_EXECUTED)):
            return  # it stores only literals
        executions, exports, loads, stores = (
            all_ops(graph, *names) for names in (_EXECUTION, _EXPORTS, _LOADS, _STORES)
        )
        for op in planned.walk():
            match op_name(op):
                case "stream.resource.dealloca":
                    size = number_of(op.operands[1])
                    self.freed.add(self._region(op.operands[0], size).memory)
                case "stream.tensor.import":
                    size = number_of(op.operands[-1])
                    region = self._region(op.results[0], size)
                    shape = str(property_of(op, "result_encoding"))
                    value = Value(f"contents of {region.memory}", region, shape)
                    self.given.append(value)
                    self.kept.append(value)
                case "stream.cmd.execute":
                    self._execute(next(executions), op)
                case name if name in _EXPORTS:
                    self.kept.append(self._used(next(exports), op, op.operands[-1]))
                case name if name in _LOADS:
                    read = self._used(next(loads), op, op.operands[1])
                    self.steps.append(Step("the program", name, [read]))
                case name if name in _STORES and is_initializer:
                    self._store(next(stores), op)
                case name if name.startswith(_HANDING_ON):
                    if count := len(resources_in([*op.results, *op.operands])):
                        self.not_understood[f"resources in {name}"] += count
                case _:
                    pass
        if [*executions, *exports, *loads]:
            raise ValueError

    # Regions of resources

    def _region(self, resource: "SSAValue", size: int) -> Region:
        """The region of a resource; `size` is used unless an operation states it."""
        if resource not in self.regions:
            self.regions[resource] = self._found(resource, size)
        region = self.regions[resource]
        if region.memory in self.freed:
            return region._replace(memory=f"{region.memory}, which was freed")
        return region

    def _found(self, resource: "SSAValue", size: int) -> Region:
        op: Any = resource.owner
        match op_name(op):
            case "stream.timepoint.await":
                return self._region(awaited(resource), size)
            case "stream.resource.subview":
                base, base_size, at, length = op.operands
                whole = self._region(base, number_of(base_size))
                at, length = number_of(at), number_of(length)
                return Region(whole.memory, whole.offset + at, length)
            case "stream.tensor.import":
                memory, kind = f"argument {len(self.memories)}", "argument"
            case "util.global.load":
                memory, kind = property_of(op, "global").string_value(), "constant"
                if memory in self.globals:
                    return self.globals[memory][0]
            case "stream.resource.alloca" | "stream.resource.alloc":
                memory = f"allocation {len(self.memories)}"
                kind = "result" if lifetime_of(resource) == "external" else "temporary"
                size = number_of(op.operands[0])
            case _:
                memory, kind = f"resource {len(self.memories)}", "temporary"
        self.memories[memory] = Memory(size, kind)
        return Region(memory, 0, size)

    def _range(
        self,
        resource: "SSAValue",
        offset: "SSAValue",
        length: "SSAValue",
        at: "SSAValue | None",
    ) -> Range:
        """The range that a command accesses; `at` is its start in the value."""
        place, size = constant_of(offset), constant_of(length)
        part = 0 if at is None else constant_of(at)
        whole = self.regions[resource]
        if place is None or part is None or size is None:
            self.not_understood["ranges that the program computes"] += 1
            return Range(whole, None, None, whole.size)
        return Range(whole, place, part, size)

    # Values of resources

    def _used(self, before: "Operation", after: "Operation", size: "SSAValue") -> Value:
        """The value that an operation outside of executions uses."""
        [operand], [resource] = (resources_in(op.operands) for op in (before, after))
        return self._captured(operand, resource, number_of(size))

    def _captured(self, operand: "SSAValue", resource: "SSAValue", size: int) -> Value:
        """The value of `operand`, which must lie in `resource`."""
        source = source_of(operand)
        region = self._region(resource, size)
        value = self.values.get(source)
        if op_name(source.owner) == "util.global.load":
            name = property_of(source.owner, "global").string_value()
            value = self.globals.get(name, (region, value))[1]
        if value is None:
            value = Value(f"contents of {region.memory}", region)
            if region.offset:
                value = value._replace(name=f"{value.name} from {region.offset}")
            self.values[source] = value
            if value.name not in {given.name for given in self.given}:
                self.given.append(value)
        elif value.region != region:
            moved = value._replace(name=f"{value.name}, forwarded", region=region)
            self.steps.append(Forwarded(value, moved))
            return moved
        return value

    def _store(self, before: "Operation", after: "Operation") -> None:
        """An initializer stores a resource or a timepoint in a global."""
        for operand, resource in zip(
            resources_in(before.operands), resources_in(after.operands), strict=True
        ):
            name = property_of(after, "global").string_value()
            found = self.values.get(source_of(operand))
            if resource in self.regions or found is not None:
                size = found.region.size if found else 0
                self.globals[name] = self._region(resource, size), found
                self.kept += [found] if found else []

    def _placed(self, operand: "SSAValue", range: Range, size: int) -> Value:
        """The whole value of `operand`, at the address where a command accesses it."""
        value = self.values.get(operand)
        offset = None
        if range.offset is not None and range.at is not None:
            offset = range.resource.offset + range.offset - range.at
        if value is None:  # nothing has written it
            region = Region(range.resource.memory, offset or 0, size)
            value = Value(f"value {self.commands}, as it was", region)
            self.values[operand] = value
            self.steps.append(Step(value.name, "", (), [value]))
        elif offset is not None:
            region = value.region._replace(memory=range.resource.memory, offset=offset)
            value = value._replace(region=region)
        return value

    # Executions

    def _execute(self, graph: "Operation", planned: "Operation") -> None:
        operands = resources_in(graph.operands)
        resources, sizes, *_ = operand_groups(planned)
        inner, commands = graph.regions[0].blocks[0], planned.regions[0].blocks[0]
        for arg, resource, size in zip(commands.args, resources, sizes, strict=True):
            self.regions[arg] = self._region(resource, number_of(size))
        pairs = zip(inner.args, operands, strict=True)
        for (arg, operand), resource, size in zip(
            pairs, resources, sizes, strict=False
        ):
            self.values[arg] = self._captured(operand, resource, number_of(size))
        self.steps += (command.step for command in self._block(inner, commands))
        self._yield(graph, inner)

    def _yield(self, op: "Operation", inner: "Block") -> None:
        """Maps the results of an operation to the values that its region yields."""
        yielded = resources_in(inner.last_op.operands) if inner.last_op else ()
        for result, value in zip(op.results, yielded, strict=False):
            if value in self.values:
                self.values[result] = self.values[value]

    def _block(self, inner: "Block", commands: "Block") -> Iterator[Command]:
        """The steps of the commands, which are in the order of the graph."""
        planned = iter(
            op
            for op in commands.ops
            if op_name(op).removeprefix("stream.") not in _WITHOUT_EFFECT
        )
        for op in inner.ops:
            kind = op_name(op).removeprefix("stream.async.")
            if kind in ("constant", "alloca", "cast", "stream.yield"):
                continue
            command = next(planned, None)
            wanted = _COMMANDS.get(kind)
            if command is None or (
                wanted and op_name(command) != f"stream.cmd.{wanted}"
            ):
                raise ValueError
            match wanted:
                case "dispatch":
                    yield self._dispatch(op, command)
                case "copy":
                    yield self._copy(op, command, kind)
                case "fill":
                    yield self._fill(op, command, kind)
                case "concurrent":
                    yield self._concurrent(op, command)
                case _:
                    self.not_understood[op_name(op)] += 1
        if [*planned]:
            raise ValueError

    def _concurrent(self, op: "Operation", command: "Operation") -> Command:
        [inner], [commands] = op.regions[0].blocks, command.regions[0].blocks
        for arg, operand in zip(inner.args, resources_in(op.operands), strict=True):
            if operand in self.values:
                self.values[arg] = self.values[operand]
        found = [*self._block(inner, commands)]
        self._yield(op, inner)
        return at_once(found)

    def _dispatch(self, op: "Operation", command: "Operation") -> Command:
        _, operands, sizes, starts, _, _, result_sizes = operand_groups(op)
        _, _, resources, _, offsets, lengths = operand_groups(command)
        starts = [*starts, *[None] * len(resources)]
        ranges = [
            self._range(*row)
            for row in zip(resources, offsets, lengths, starts, strict=False)
        ]
        call = self._call(kernel_of(command), command)
        taken = resources_in(operands)
        rows = zip(taken, ranges, sizes, strict=False)
        whole = [self._placed(value, at, number_of(size)) for value, at, size in rows]
        for value, at in zip(whole, ranges, strict=False):
            call.read(value, at)
        made = ranges[len(taken) :]
        for result, tied, size in zip(
            op.results, tied_operands(op), result_sizes, strict=True
        ):
            if tied < 0:
                self.values[result] = call.make(made.pop(0), number_of(size))
            else:
                number = taken.index(operands[tied])
                new = call.change(whole[number], ranges[number], number)
                self.values[result] = new
        if made:
            raise ValueError
        return call.command()

    def _copy(self, op: "Operation", command: "Operation", kind: str) -> Command:
        source, _, at, target, _, target_at, length = command.operands
        call = self._call("copy", command, is_copy=True)
        match kind, op.operands:
            case "copy", (old, size, start, _, value, source_size, part, _, _):
                pass
            case "update", (old, size, start, _, value, source_size):
                part = None
            case "slice", (value, source_size, part, _, size):
                old = start = None
            case _, (value, source_size, size):
                old = start = part = None
            case _:
                raise ValueError
        read = self._range(source, at, length, part)
        written = self._range(target, target_at, length, start)
        call.read(self._placed(value, read, number_of(source_size)), read)
        if old is None:
            made = call.make(written, number_of(size))
        else:
            made = call.change(self._placed(old, written, number_of(size)), written)
        self.values[op.results[0]] = made
        return call.command()

    def _fill(self, op: "Operation", command: "Operation", kind: str) -> Command:
        target, _, at, length, _ = command.operands
        call = self._call("fill", command)
        if kind == "splat":
            written = self._range(target, at, length, None)
            made = call.make(written, number_of(op.operands[1]))
        else:
            old, size, start, *_ = op.operands
            written = self._range(target, at, length, start)
            made = call.change(self._placed(old, written, number_of(size)), written)
        self.values[op.results[0]] = made
        return call.command()

    def _call(self, what: str, op: "Operation", *, is_copy: bool = False) -> "Call":
        from ...dialects.diagnostics import place_of

        self.commands += 1
        return Call(self.commands, what, place_of(op) or "", is_copy)
