"""The targets of `plan-opt -t` that write the plan of a planned program.

json        the report's pools and buffers, for other tools (plan.schema.json)
c-header    arena sizes and offsets as macros, for programs that hold the arenas
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

if TYPE_CHECKING:
    from ..reporting.report import BufferReport

SCHEMA = 2
"""The version of the JSON plan, as in plan.schema.json. It is increased when a field is
removed or changes its meaning.
"""


@dataclass(frozen=True)
class JsonTarget(Target):
    """The plan as JSON."""

    name = "json"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        # Imported late: they import the planner.
        from ..reporting.arguments import arguments, functions
        from ..reporting.report import buffers, report

        figures = report(module)
        plan = {
            "schema": SCHEMA,
            "pools": figures["pools"],
            "reused": figures["reused"],
            "buffers": buffers(module),
            "functions": {
                function.sym_name.data: [
                    {"name": a.name, "bytes": a.size, "role": a.role}
                    for a in arguments(function)
                ]
                for function in functions(module)
            },
        }
        json.dump(plan, output, indent=2)
        output.write("\n")


@dataclass(frozen=True)
class CHeaderTarget(Target):
    """The plan as C macros.

    prefix: what all names begin with.
    """

    name = "c-header"

    prefix: str = "plan"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.prefix):
            raise ValueError(f"prefix is {self.prefix!r}, expected a C identifier")

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        # Imported late: they import the planner.
        from ..reporting.arguments import arguments, functions
        from ..reporting.report import buffers, report

        prefix = _macro(self.prefix)
        placed = buffers(module)
        lines = [
            "/* Offsets of buffers in arenas, and the sizes of arguments, in bytes. */",
            f"#ifndef {prefix}_PLAN_H",
            f"#define {prefix}_PLAN_H",
        ]
        figures = report(module)
        pools = figures["pools"]
        names = _distinct([_macro(pool["device"]) for pool in pools])
        for index, (pool, name) in enumerate(zip(pools, names, strict=True)):
            arena = f"{prefix}_{name}"
            lines += ["", f"/* {pool['device']}: {pool['buffers']} buffers */"]
            lines.append(f"#define {arena}_ARENA_BYTES {pool['bytes']}")
            lines.append(f"#define {arena}_ARENA_ALIGNMENT {pool['alignment']}")
            lines += _offsets(arena, [b for b in placed if b["pool"] == index])
        for index, reused in enumerate(figures["reused"], len(pools)):
            memory, count = reused["memory"], reused["buffers"]
            lines += ["", f"/* {memory}: its memory is reused by {count} buffers */"]
            own = [buffer for buffer in placed if buffer["pool"] == index]
            lines += _offsets(f"{prefix}_{_macro(memory)}", own[1:])
        for function in functions(module):
            lines += ["", f"/* arguments of {function.sym_name.data}, in order */"]
            given = arguments(function)
            names = _distinct([_macro(argument.name) for argument in given])
            for argument, name in zip(given, names, strict=True):
                macro = f"{prefix}_{_macro(function.sym_name.data)}_{name}_BYTES"
                lines.append(f"#define {macro} {argument.size}  /* {argument.role} */")
        lines += ["", f"#endif /* {prefix}_PLAN_H */"]
        output.write("\n".join(lines) + "\n")


def _offsets(pool: str, buffers: Sequence["BufferReport"]) -> list[str]:
    ids = _distinct([_macro(buffer["id"].lstrip("%")) for buffer in buffers])
    return [
        f"#define {pool}_BUFFER_{id}_OFFSET {buffer['offset']}"
        f"  /* {buffer['size']} bytes, {_comment(buffer)} */"
        for buffer, id in zip(buffers, ids, strict=True)
    ]


def _comment(buffer: "BufferReport") -> str:
    """The operation that first writes a buffer, and its location in the model."""
    text = ", ".join(filter(None, (buffer["op"], buffer["location"])))
    return re.sub(r"(?<=/)(?=\*)|(?<=\*)(?=/)|\s+", " ", text)


def _macro(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _distinct(names: Sequence[str]) -> list[str]:
    """Makes names unique: a repeated name gets a numeric suffix."""
    taken: set[str] = set()
    result: list[str] = []
    for name in names:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        result.append(unique)
    return result


def get_all_targets() -> dict[str, Callable[[], type[Target]]]:
    """Names and factories of tensorplan's targets, as xDSL's tools expect them."""
    return {"c-header": lambda: CHeaderTarget, "json": lambda: JsonTarget}
