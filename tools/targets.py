"""What `plan-opt -t` writes of a planned program besides IR: its plan.

json        the report's pools and buffers, for other tools (plan.schema.json)
c-header    arena sizes and offsets as macros, for programs that hold the arenas
"""

import json
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.target import Target

from ..analysis.functions import argument_attributes, is_tensor
from ..dialects.diagnostics import LocatedError
from ..dialects.sizes.dims import BOUNDS
from ..dialects.tgraph.base import (
    DONATED,
    PARAMETER,
    RESULT,
    VARIABLE,
    is_static,
    tensor_type_of,
)

if TYPE_CHECKING:
    from ..reporting.report import BufferReport

SCHEMA = 2
"""The version of the JSON plan, as in plan.schema.json; raised when a field changes its
meaning or goes."""


@dataclass(frozen=True)
class JsonTarget(Target):
    """The plan as JSON."""

    name = "json"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        # With it comes planning.
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
                    for a in _arguments(function)
                ]
                for function in _functions(module)
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
        # With it comes planning.
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
        for function in _functions(module):
            lines += ["", f"/* arguments of {function.sym_name.data}, in order */"]
            arguments = _arguments(function)
            names = _distinct([_macro(argument.name) for argument in arguments])
            for argument, name in zip(arguments, names, strict=True):
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
    """What writes a buffer first, and where that is in the model."""
    text = ", ".join(filter(None, (buffer["op"], buffer["location"])))
    return re.sub(r"(?<=/)(?=\*)|(?<=\*)(?=/)|\s+", " ", text)


@dataclass(frozen=True)
class _Argument:
    name: str
    size: int  # bytes
    role: str  # "input", "variable" or "result"


def _functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]


def _arguments(function: FuncOp) -> list[_Argument]:
    """With symbolic sizes, they have the most bytes that the bounds allow."""
    # With it comes planning.
    from ..checking.symbolic_plan import CountedSizes

    sizes = CountedSizes(function)
    arguments: list[_Argument] = []
    for value, attributes in zip(
        function.body.blocks[0].args, argument_attributes(function), strict=True
    ):
        if is_tensor(value.type):
            raise LocatedError(
                f"argument {value.index} is a tensor, expected a memref: run "
                "plan-pipeline first",
                function,
            )
        if not is_static(tensor_type_of(value.type)) and (
            BOUNDS not in function.attributes
        ):
            raise LocatedError(
                f"argument {value.index} has type {value.type}, expected static sizes, "
                "or a plan for bounds: plan-pipeline{bounds=...}",
                function,
            )
        name = value.name_hint or f"arg{value.index}"
        arguments.append(_Argument(name, sizes.bytes(value), _role(attributes)))
    return arguments


def _role(attributes: Container[str]) -> str:
    """What an argument is to the caller."""
    if VARIABLE in attributes:
        return "variable"
    if RESULT in attributes:
        return "result"
    is_donated = DONATED in attributes and PARAMETER not in attributes
    return "donated" if is_donated else "input"


def _macro(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, those that occurred before with a number after."""
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
    """Our targets' names and factories, as xDSL's tools take them."""
    return {"c-header": lambda: CHeaderTarget, "json": lambda: JsonTarget}
