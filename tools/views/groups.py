"""Groupings by which buffers are colored: by role, operation, layer, or source line.

In each grouping, the groups with the largest sums of bytes times steps have their own
colors. All other groups share one color.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .model import PlanView, PoolView, ShownBuffer

PALETTE = (
    "#8ecae6",
    "#ffb703",
    "#a7c957",
    "#f4978e",
    "#cdb4db",
    "#80cfa9",
    "#e9c46a",
    "#9fb8ff",
    "#d4a373",
    "#b8d8be",
)
OTHERS = "#c3c9d1"

ROLES = {
    "activation": "#8ecae6",
    "gradient": "#f4978e",
    "temporary": "#ffd166",
    "kernel scratch": "#cdb4db",
    "parameter": "#80cfa9",
    "optimizer state": "#c5d86d",
    "variable": "#b8d8be",
    "input": "#9fb8ff",
    "result": "#d4a373",
    "constant": "#c3c9d1",
}
"""Colors by `Role`."""

_OF_CALLERS = {"parameter", "optimizer state", "variable", "input", "result"}

_LEADING = (
    ("convolution", "convolution"),
    ("dot_general", "matrix product"),
    ("select_and_scatter", "pooling"),
    ("reduce_window", "pooling"),
    ("scatter", "scatter"),
    ("gather", "gather"),
    ("reduce", "reduction"),
)
"""Labels of groups of operations: the first entry that is in the group decides."""


class Group(NamedTuple):
    label: str
    color: str


_CALLER = Group("caller's memory", OTHERS)


class Grouping(NamedTuple):
    """One way to color the buffers of all plans."""

    name: str
    groups: Sequence[Group]
    label: Callable[[ShownBuffer], str]
    numbers: Mapping[str, int]
    """Indices in `groups` by label. Other labels belong to the last group."""

    def of_held(self, role: str) -> Group:
        """The group of the caller's memory: that of its role, or one for all roles."""
        return Group(role, ROLES[role]) if self.name == "role" else _CALLER

    def of(self, placed: ShownBuffer) -> int:
        """The index of a buffer's group."""
        return self.numbers.get(self.label(placed), len(self.groups) - 1)


def groupings(plans: Sequence[PlanView]) -> list[Grouping]:
    """The groupings that distinguish at least two groups of buffers, in the order of
    `_LABELS`; if there are none, one that gives neighbors different colors.
    """
    pools = [pool for plan in plans for pool in plan.pools]
    made = [_grouping(name, label, pools) for name, label in _LABELS.items()]
    found = [
        grouping
        for grouping in made
        if len({group.label for group in grouping.groups} - _OF_CALLERS) > 1
    ]
    return found or [_by_name(pools)]


def _by_name(pools: Sequence[PoolView]) -> Grouping:
    """A grouping that gives neighbors different colors, for buffers without roles."""
    numbers = {
        placed.buffer.id: index % len(PALETTE)
        for pool in pools
        for index, placed in enumerate(pool.buffers)
    }
    groups = [Group("", color) for color in PALETTE]
    return Grouping("buffer", groups, _id, numbers)


def _grouping(
    name: str, label: Callable[[ShownBuffer], str], pools: Sequence[PoolView]
) -> Grouping:
    areas: dict[str, int] = {}
    for placed in (placed for pool in pools for placed in pool.buffers):
        areas[label(placed)] = areas.get(label(placed), 0) + placed.area
    has_others = areas.pop("", None) is not None
    labels = sorted(areas, key=lambda each: -areas[each])
    groups = list(_colored(labels))
    numbers = {group.label: number for number, group in enumerate(groups)}
    if has_others or len(groups) < len(labels):
        groups.append(Group("others", OTHERS))
    return Grouping(name, groups, label, numbers)


def _colored(labels: Sequence[str]) -> Iterator[Group]:
    if all(label in ROLES for label in labels):
        yield from (Group(label, ROLES[label]) for label in ROLES if label in labels)
    else:
        yield from map(Group, labels, PALETTE)


def _id(placed: ShownBuffer) -> str:
    return placed.buffer.id


def _role(placed: ShownBuffer) -> str:
    return placed.role


def operation_of(placed: ShownBuffer) -> str:
    """The kind of the operation that first writes the buffer.

    A group is labeled by its most expensive operation, and an operation of JAX by the
    end of its path.
    """
    name, _, members = placed.op.rpartition("/")[2].partition(" (")
    if name.startswith("workspace of"):
        return "kernel scratch"
    inside = re.findall(r"\w+", members) or [name.rpartition(".")[2]]
    for leading, label in _LEADING:
        if leading in inside:
            return label
    return "elementwise" if members else name.removeprefix("tgraph.")


def line_of(placed: ShownBuffer) -> str:
    """The file and line of the location, without folders: `train.py:12`."""
    file, _, rest = placed.location.rpartition("/")
    return (rest or file).rpartition(":")[0]


def layer_of(placed: ShownBuffer) -> str:
    """The layer in a name with dots: up to the first number, or else the first part.

    The layer of `%blocks.0.fc1` is `blocks.0`. Empty for a name without dots.
    """
    parts = placed.buffer.id.lstrip("%").split(".")
    numbers = (n for n, part in enumerate(parts[:-1], 1) if part.isdecimal())
    return ".".join(parts[: next(numbers, 1)]) if len(parts) > 1 else ""


_LABELS: Mapping[str, Callable[[ShownBuffer], str]] = {
    "role": _role,
    "operation": operation_of,
    "layer": layer_of,
    "source line": line_of,
}
