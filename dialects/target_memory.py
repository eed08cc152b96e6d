"""The memories of a target machine, to which the memory spaces of a program refer.

    module attributes {dlti.target_system_spec = #dlti.target_system_spec<
      "sram" = #dlti.target_device_spec<
        "capacity" = 262144 : i64, "base" = 536870912 : i64, "alignment" = 8 : i64,
        "copies" = #dlti.map<"psram" = #dlti.map<"bandwidth" = 0.08 : f64>>>,
      "psram" = #dlti.target_device_spec<"capacity" = 8388608 : i64>>} {

A device of the module's DLTI target system is a memory if it has a capacity. It is the
memory of `memref<16xf32, "sram">` and of `tensor<16xf32, "sram">`: its name is the
memory space, unless the property `space` gives another one. `TargetMemory` lists all
properties.

A file in TOML (or JSON, if its name ends in `.json`) can describe the same:

    [sram]
    capacity = "256KiB"
    base = 0x2000_0000
    alignment = 8
    copies.psram = { bandwidth = 0.08 }

    [psram]
    capacity = "8MiB"
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.dialects.dlti import (
    DLTIEntryMap,
    MapAttr,
    TargetDeviceSpecAttr,
    TargetSystemSpecAttr,
)
from xdsl.ir import Attribute, Operation

from ..support.byte_sizes import parse_size
from ..support.choices import one_of
from .diagnostics import LocatedError

TARGET = "dlti.target_system_spec"
"""The attribute of a module that describes its target."""

BYTES = ("capacity", "base", "alignment", "interleaving")
"""Properties that may be text in files, such as "256KiB"."""


@dataclass(frozen=True, kw_only=True)
class Copies:
    """How data is copied from one memory to another.

    Raises `ValueError` for values out of range.
    """

    bandwidth: float  # bytes per nanosecond, that is GB/s
    latency: float = 0.0  # nanoseconds until the first byte
    asynchronous: bool = False  # in parallel with operations, as by a DMA engine

    def __post_init__(self) -> None:
        _expect("bandwidth", self.bandwidth, self.bandwidth > 0, "more than 0")
        _expect("latency", self.latency, self.latency >= 0, "0 or more")

    def time(self, bytes: int) -> int:
        """The nanoseconds that a copy of `bytes` bytes takes."""
        return round(self.latency + bytes / self.bandwidth)


@dataclass(frozen=True, kw_only=True)
class TargetMemory:
    """A memory of the target.

    Raises `ValueError` for values out of range.
    """

    name: str
    capacity: int  # bytes
    base: int | None = None  # address of the first byte, if known
    alignment: int = 1  # of buffers and arenas, in bytes, a power of two
    banks: int = 1
    interleaving: int = 0  # bytes in one bank before the next; 0: capacity / banks
    readers: Sequence[str] = ("*",)  # patterns of the operations that may read here
    writers: Sequence[str] = ("*",)  # patterns of the operations that may write here
    copies: Mapping[str, Copies] = field(default_factory=dict[str, Copies])
    """Copies from this memory, by the name of the target memory."""
    space: Attribute | None = None
    """The memory space of its memrefs; None: the name as a string; "": no space."""

    def __post_init__(self) -> None:
        power = self.alignment > 0 and not self.alignment & (self.alignment - 1)
        _expect("capacity", self.capacity, self.capacity > 0, "more than 0")
        _expect("alignment", self.alignment, power, "a power of two")
        base = self.base or 0
        is_aligned = base >= 0 and not base % self.alignment
        _expect("base", base, is_aligned, f"a multiple of {self.alignment}, 0 or more")
        _expect("banks", self.banks, self.banks > 0, "1 or more")
        _expect("interleaving", self.interleaving, self.interleaving >= 0, "0 or more")
        row = self.banks * max(self.interleaving, 1)
        wanted = f"a multiple of {row}, the bytes of {self.banks} banks"
        _expect("capacity", self.capacity, not self.capacity % row, wanted)

    @property
    def memory_space(self) -> Attribute:
        """The memory space of its memrefs."""
        space = StringAttr(self.name) if self.space is None else self.space
        return NoneAttr() if space == StringAttr("") else space

    def may_read(self, operation: str) -> bool:
        """Whether an operation with this name may read this memory."""
        return any(fnmatchcase(operation, pattern) for pattern in self.readers)

    def may_write(self, operation: str) -> bool:
        """Whether an operation with this name may write this memory."""
        return any(fnmatchcase(operation, pattern) for pattern in self.writers)


def _expect(name: str, value: object, is_right: bool, expected: str) -> None:
    if not is_right:
        raise ValueError(f"{name} is {value}, expected {expected}")


Table = Mapping[str, object]

TargetMemories = Mapping[Attribute, TargetMemory]
"""The memories by memory space."""

UNDESCRIBED: TargetMemories = MappingProxyType({})


def target_memories(op: Operation) -> TargetMemories:
    """The memories of the nearest target around `op`; empty if there is no target.

    Raises `LocatedError` if their description is invalid.
    """
    around: Operation | None = op
    while around is not None and TARGET not in around.attributes:
        around = around.parent_op()
    if around is None:
        return UNDESCRIBED
    try:
        return _by_space(_memories(_value(around.attributes[TARGET])))
    except ValueError as error:
        raise LocatedError(f"{TARGET}: {error}", around) from None


def slower_memory(
    memory: TargetMemory, memories: TargetMemories
) -> tuple[TargetMemory, Copies, Copies] | None:
    """The memory to spill to from `memory`, with the copies to it and back: of the
    larger memories that `memory` has copies to, the one with the highest bandwidth.
    None if there is no such memory."""
    larger = [m for m in memories.values() if m.capacity > memory.capacity]
    reached = [m for m in larger if m.name in memory.copies]
    if not reached:
        return None
    to = max(reached, key=lambda m: memory.copies[m.name].bandwidth)
    there = memory.copies[to.name]
    return to, there, to.copies.get(memory.name, there)


def read_target(path: str) -> TargetSystemSpecAttr:
    """Reads the memories that a file describes, as the attribute of a module.

    Raises `ValueError` for a file that cannot be read, or an invalid description.
    """
    import json  # here, since few programs have such a file
    import tomllib

    try:
        text = Path(path).read_text(encoding="utf-8")
        tables = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
        for name, table in _expect_table("the file", tables).items():
            if not name or "capacity" not in _expect_table(f"memory {name!r}", table):
                raise ValueError(f"memory {name!r} has no capacity, expected one")
        if not _by_space(_memories(tables)):
            raise ValueError(
                "the file describes no memory, expected a table for each memory"
            )
    except OSError as error:
        raise ValueError(f"{path}: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this is not UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    devices = {
        name: {key: _in_bytes(key, value) for key, value in table.items()}
        for name, table in tables.items()
    }
    return TargetSystemSpecAttr(
        {name: TargetDeviceSpecAttr(_entries(table)) for name, table in devices.items()}
    )


def describe_target(module: ModuleOp, target: TargetSystemSpecAttr) -> None:
    """Adds the devices of `target` to a module's target, in place of equal names."""
    given = module.attributes.get(TARGET)
    others = given.entries if isinstance(given, TargetSystemSpecAttr) else ()
    devices = {e.key: e.value for e in (*others, *target.entries)}
    module.attributes[TARGET] = TargetSystemSpecAttr(cast(Any, devices))


# Tables of values, as in files


def _memories(devices: object) -> Mapping[str, TargetMemory]:
    found: dict[str, TargetMemory] = {}
    for name, table in _expect_table("the target", devices).items():
        if isinstance(table, dict) and "capacity" in table:
            try:
                found[name] = _memory(name, cast(Table, table))
            except ValueError as error:
                raise ValueError(f"memory {name!r}: {error}") from None
    for name, memory in found.items():
        for other in memory.copies:
            if other not in found or other == name:
                others = [word for word in found if word != name]
                if not others:
                    raise ValueError(
                        f"memory {name!r}: copies to {other!r}, expected another "
                        "described memory, but there is none"
                    )
                raise ValueError(f"memory {name!r}: copies to {one_of(other, others)}")
    return found


def _memory(name: str, table: Table) -> TargetMemory:
    copies: dict[str, Copies] = {}
    for to, values in _expect_table("copies", table.get("copies", {})).items():
        try:
            copies[to] = _made(Copies, _expect_table("it", values))
        except ValueError as error:
            raise ValueError(f"copies to {to!r}: {error}") from None
    return _made(TargetMemory, {**table, "copies": copies}, name=name)


Made = TypeVar("Made", TargetMemory, Copies)


def _made(kind: type[Made], values: Table, **given: object) -> Made:
    """An object of `kind` with these properties; `ValueError` if one is wrong."""
    names = [f.name for f in fields(kind) if f.name != "name"]
    for name, value in values.items():
        if name not in names:
            raise ValueError(f"property is {one_of(name, names)}")
        given[name] = _in_bytes(name, value)
        is_right, expected = _KINDS.get(name, (lambda _: True, ""))
        _expect(name, value, is_right(given[name]), expected)
    if kind is Copies and "bandwidth" not in values:
        raise ValueError("bandwidth is missing, expected bytes per nanosecond")
    if "space" in given:
        given["space"] = _attribute(given["space"])
    return cast(Any, kind)(**given)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_integer(value) or isinstance(value, float)


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str) for each in cast(list[object], value)
    )


_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys((*BYTES, "banks"), (_is_integer, "an integer")),
    **dict.fromkeys(("bandwidth", "latency"), (_is_number, "a number")),
    **dict.fromkeys(("readers", "writers"), (_are_names, "a list of operations")),
    "asynchronous": (lambda value: isinstance(value, bool), "true or false"),
}
"""The check of each property's value, and the name of valid values."""


def _in_bytes(name: str, value: object) -> object:
    is_text = name in BYTES and isinstance(value, str)
    return parse_size(cast(str, value), name) if is_text else value


def _expect_table(what: str, value: object) -> Table:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {value}, expected a table")
    return cast(Table, value)


def _by_space(memories: Mapping[str, TargetMemory]) -> TargetMemories:
    found: dict[Attribute, TargetMemory] = {}
    for memory in memories.values():
        other = found.setdefault(memory.memory_space, memory)
        if other is not memory:
            raise ValueError(
                f"memories {other.name!r} and {memory.name!r} have the same memory "
                "space, expected different memory spaces"
            )
    placed = [m for m in memories.values() if m.base is not None]
    for a, b in pairwise(sorted(placed, key=lambda m: m.base or 0)):
        if (end := (a.base or 0) + a.capacity) > (b.base or 0):
            raise ValueError(
                f"memory {b.name!r} has base {b.base}, expected at least {end}, the "
                f"end of memory {a.name!r}"
            )
    return found


# Conversion between values and attributes


def _value(attribute: Attribute) -> object:
    match attribute:
        case DLTIEntryMap():
            entries = cast(Any, attribute).entries
            return {
                getattr(e.key, "data", str(e.key)): _value(e.value) for e in entries
            }
        case ArrayAttr():
            return [_value(each) for each in attribute]
        case IntegerAttr():
            number = attribute.value.data
            return bool(number) if attribute.type == i1 else number
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case _:
            return attribute


def _attribute(value: object) -> Attribute:
    match value:
        case Attribute():
            return value
        case bool():
            return IntegerAttr(value, i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case list():
            return ArrayAttr(map(_attribute, cast(list[object], value)))
        case dict():
            return MapAttr(_entries(cast(Table, value)))
        case _:
            raise ValueError(f"{value} is neither a string nor a number")


def _entries(table: Table) -> Any:
    return {name: _attribute(value) for name, value in table.items()}
