"""What the colors of buffers stand for: what they are for, what computes them, where in
the source, in which layer of the model.

Of each, the groups with the most bytes times steps have colors of their own, the others
one in common.
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
"""By `Role`."""

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
"""What a group of operations is called by, the first that is in it."""


class Group(NamedTuple):
    label: str
    color: str


_CALLER = Group("caller's memory", OTHERS)


class Grouping(NamedTuple):
    """One way to color all plans."""

    name: str
    groups: Sequence[Group]
    label: Callable[[ShownBuffer], str]
    numbers: Mapping[str, int]
    """Of groups, by label; the last group is that of all other labels."""

    def of_held(self, role: str) -> Group:
        """That of the caller's memory: all of it in one color, unless it is by role."""
        return Group(role, ROLES[role]) if self.name == "role" else _CALLER

    def of(self, placed: ShownBuffer) -> int:
        """The number of a buffer's group."""
        return self.numbers.get(self.label(placed), len(self.groups) - 1)


def groupings(plans: Sequence[PlanView]) -> list[Grouping]:
    """Those that tell buffers apart; the most telling one first."""
    pools = [pool for plan in plans for pool in plan.pools]
    made = [_grouping(name, label, pools) for name, label in _LABELS.items()]
    found = [
        grouping
        for grouping in made
        if len({group.label for group in grouping.groups} - _OF_CALLERS) > 1
    ]
    return found or [_by_name(pools)]


def _by_name(pools: Sequence[PoolView]) -> Grouping:
    """Neighbors in different colors, where nothing is known of buffers but names."""
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
    """What kind of operation writes the buffer first; a group goes by what takes the
    longest in it, and one of JAX by the end of its path."""
    name, _, members = placed.op.rpartition("/")[2].partition(" (")
    if name.startswith("workspace of"):
        return "kernel scratch"
    inside = re.findall(r"\w+", members) or [name.rpartition(".")[2]]
    for leading, label in _LEADING:
        if leading in inside:
            return label
    return "elementwise" if members else name.removeprefix("tgraph.")


def line_of(placed: ShownBuffer) -> str:
    """`train.py:12`: file and line of its place, without folders."""
    file, _, rest = placed.location.rpartition("/")
    return (rest or file).rpartition(":")[0]


def layer_of(placed: ShownBuffer) -> str:
    """`blocks.0` of `%blocks.0.fc1`: of a name with dots the part up to the first
    number, or else the first part."""
    parts = placed.buffer.id.lstrip("%").split(".")
    numbers = (n for n, part in enumerate(parts[:-1], 1) if part.isdecimal())
    return ".".join(parts[: next(numbers, 1)]) if len(parts) > 1 else ""


_LABELS: Mapping[str, Callable[[ShownBuffer], str]] = {
    "role": _role,
    "operation": operation_of,
    "layer": layer_of,
    "source line": line_of,
}
