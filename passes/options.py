"""Defines the options of planning, with their types, defaults, meanings, and checks.

`PlanOptions` has all of them. They are the options of the pass plan-pipeline, the
keywords of `tensorplan.plan`, and the options of plan-run and plan-view. A pass that
takes some of them also derives from one of the classes below. `documented` reads their
meaning from the docstrings.

This module imports nothing eagerly, because `import tensorplan` loads it. Checks import
what they need.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from inspect import cleandoc
from typing import Any

from ..support import processor
from ..support.choices import ChoiceError
from ..support.threads import checked

EFFORTS = {"low": 0.2, "high": 10.0}
"""The option `effort` of tgraph-schedule for each `effort` of planning."""


LARGEST_ALIGNMENT = 2**32
"""In bytes, as in LLVM."""

ARENAS = ("alloc", "argument", "global", "address")
"""The values of the option `arena`."""

BYTES = ("alignment", "bank_slack", "fold_bytes", "tile_bytes")
"""The options of all passes that are whole numbers of bytes, such as 4096. Tools that
read text also accept `4KiB`. `budget` may be text even in Python."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """A set of options. Its constructor raises `ValueError` for an invalid value."""

    def __post_init__(self) -> None:
        """Checks the values. Each subclass checks the options that it adds."""

    def shared(self, kind: type["Options"]) -> dict[str, Any]:
        """The values, by name, of the options that `kind` has, too."""
        names = {field.name for field in fields(kind)}
        own = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in own if name in names}


@dataclass(frozen=True, kw_only=True)
class Aligned(Options):
    """The alignment of buffers.

    alignment: the alignment of every buffer and arena in bytes, a power of two of at
        most 2^32; larger where an element type requires it.
    """

    alignment: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ValueError(f"alignment is {self.alignment}, expected a power of two")
        if self.alignment > LARGEST_ALIGNMENT:
            raise ValueError(
                f"alignment is {self.alignment}, expected at most {LARGEST_ALIGNMENT}"
            )


@dataclass(frozen=True, kw_only=True)
class Packing(Aligned):
    """How buffers share memory.

    reuse_outputs: whether buffers may use the memory of results, variables and donated
        arguments while its contents are not needed.
    """

    reuse_outputs: bool = True


@dataclass(frozen=True, kw_only=True)
class Placing(Packing):
    """The options that determine the size of a program's arenas.

    workspaces: the kernels whose workspaces are planned as well: `native`, `numpy` (see
        plan-workspaces), or `none` if the program will run with other kernels.
    threads: the number of threads that the program uses, each of which needs its own
        workspace; by default TENSORPLAN_THREADS, or else one per processor.
    """

    workspaces: str = "none"
    threads: int | None = None

    def __post_init__(self) -> None:
        from ..dialects.workspaces import check_kernels

        super().__post_init__()
        check_kernels("workspaces", self.workspaces)
        checked(self.threads)
        processor.level()  # raises `ChoiceError` for an unknown level


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(Packing):
    """The options of plan-memory.

    strategy: how to place buffers; one of the strategies in `tensorplan.planning`.
    bounds: the largest symbolic sizes, such as "n<=128,m<=64"; arenas then have a
        static size and constant offsets for all sizes up to these.
    hints: typical symbolic sizes, such as "n=64", for offsets that the program computes
        from the sizes at run time; only without bounds.
    dynamic: how to place buffers of symbolic size without bounds: `offsets` computes
        offsets at run time, `allocator` uses the device's allocator.
    """

    strategy: str = "auto"
    bounds: str = ""
    hints: str = ""
    dynamic: str = "offsets"

    def __post_init__(self) -> None:
        from ..planning import find

        super().__post_init__()
        _ = self.largest, self.typical  # which raise `ValueError`
        if self.dynamic not in ("offsets", "allocator"):
            raise ChoiceError("dynamic", self.dynamic, ("offsets", "allocator"))
        find(self.strategy)

    @cached_property
    def largest(self) -> Mapping[str, int]:
        """`bounds`, by name."""
        from .option_values import parse_values

        return parse_values(self.bounds, "bounds", "<=")

    @cached_property
    def typical(self) -> Mapping[str, int]:
        """`hints`, by name."""
        from .option_values import parse_values

        return parse_values(self.hints, "hints")


@dataclass(frozen=True, kw_only=True)
class Arenas(Options):
    """Who owns arenas.

    arena: `alloc`: each function allocates and frees its own; `argument`: the caller
        passes one per memory space, of the bytes that @<name>_arena_size returns;
        `global`: a memref.global; `address`: the base address of the target's memory.
        Except with `alloc`, the arena of a function that others call lies in the
        arenas of its callers.
    """

    arena: str = "alloc"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.arena not in ARENAS:
            raise ChoiceError("arena", self.arena, ARENAS)


@dataclass(frozen=True, kw_only=True)
class Banking(Options):
    """The memory that a plan may spend to avoid bank conflicts.

    bank_slack: the bytes by which the arena may grow to keep buffers that are read at
        the same time in different banks; by default it does not grow.
    """

    bank_slack: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bank_slack < 0:
            raise ValueError(f"bank-slack is {self.bank_slack}, expected 0 or more")


@dataclass(frozen=True)
class Budget(Options):
    """The limit for arenas.

    budget: the bytes that each arena may have, such as 64MiB.
    """

    budget: int | str

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.bytes_allowed  # which raises `ValueError`

    @cached_property
    def bytes_allowed(self) -> int:
        """`budget` in bytes."""
        from ..support.byte_sizes import parse_size

        return parse_size(self.budget, "budget")


@dataclass(frozen=True, kw_only=True)
class TimeLimit(Options):
    """The limit for searches.

    time_limit: the seconds of wall-clock time that all passes up to this one, and
        planning their result, may take; by default there is no limit.
    """

    time_limit: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time_limit is not None and not self.time_limit >= 0:
            raise ValueError(f"time-limit is {self.time_limit}, expected 0 or more")


@dataclass(frozen=True, kw_only=True)
class GroupDevices(Options):
    """The devices of groups of operations.

    groups: the device of each tgraph.group, as "stage1=cpu:0","stage2=cpu:1".
    """

    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.device_of_group  # which raises `ValueError`

    @cached_property
    def device_of_group(self) -> Mapping[str, str]:
        """The device of each group in `groups`, by the group's name."""
        table: dict[str, str] = {}
        for text in self.groups:
            group, equals, device = text.partition("=")
            if not (group and equals and device):
                raise ValueError(f'groups has {text!r}, expected "GROUP=DEVICE"')
            if table.setdefault(group, device) != device:
                raise ValueError(
                    f"group {group!r} is on {table[group]} and {device}, expected "
                    "one device"
                )
        return table


@dataclass(frozen=True, kw_only=True)
class PlanOptions(TimeLimit, GroupDevices, Placing, MemoryOptions):
    """All options of planning a program.

    device: the device of operations and arguments that name none.
    budget: the bytes that each arena may have, such as 64MiB; peak memory is lowered
        until the arenas fit (see tgraph-fit), and an arena that does not fit is an
        error.
    effort: `low`, or `high` to search fusion, order, tiles and recomputation together
        for the smallest arenas (see tgraph-search).
    streams: the number of streams per device (see tgraph-color-streams); with 1,
        operations run in program order.
    offload: a device that values of `device` may be moved to, to meet the budget (see
        tgraph-offload); its arena is unlimited.
    target_memory: a TOML or JSON file that describes the memories of the target, with
        their capacities, addresses and alignments (see plan-attach-target).
    """

    device: str = "cpu:0"
    budget: int | str | None = None
    effort: str = "low"
    streams: int = 1
    offload: str = ""
    target_memory: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.effort not in EFFORTS:
            raise ChoiceError("effort", self.effort, EFFORTS)
        check_streams(self.streams)
        if self.budget is not None:
            Budget(self.budget)
        if self.offload and self.budget is None:
            raise ValueError(f"offload is {self.offload!r}, which requires a budget")
        if self.offload and self.streams != 1:
            raise ValueError(f"streams is {self.streams}, expected 1 with offload")
        if self.offload:
            check_offload(self.device, self.offload)
        is_search = self.effort == "high" or self.budget is not None
        if self.time_limit is not None and not is_search:
            raise ValueError(
                f"time-limit is {self.time_limit}, which requires effort=high or "
                "a budget"
            )


def check_streams(streams: int) -> None:
    """Raises `ValueError` if `streams` is less than 1."""
    if streams < 1:
        raise ValueError(f"streams is {streams}, expected 1 or more")


def check_offload(device: str, to: str) -> None:
    """Raises `ValueError` if `to`, the target of moves, is `device` itself."""
    if to == device:
        raise ValueError(f"to is {to!r}, the source device, expected another device")


_OPTION = re.compile(r"^([a-z]\w*): (.*(?:\n(?![a-z]\w*: ).+)*)", re.M)
"""The description of an option in a docstring: `name: its meaning.`"""


def documented(cls: type) -> Mapping[str, str]:
    """The meaning of each option of `cls` by name, from the docstrings of the class and
    its bases."""
    texts = (vars(base).get("__doc__") or "" for base in reversed(cls.__mro__))
    return {
        name: text for doc in texts for name, text in _OPTION.findall(cleandoc(doc))
    }
