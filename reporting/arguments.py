"""The arguments that the caller of a planned function passes, with their bytes."""

from collections.abc import Container
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ..analysis.functions import argument_attributes, is_tensor
from ..checking.symbolic_plan import CountedSizes
from ..dialects.diagnostics import LocatedError
from ..dialects.sizes.dims import BOUNDS
from ..dialects.tgraph.base import (
    DONATED,
    PARAMETER,
    RESULT,
    VARIABLE,
    AnyMemRef,
    is_static,
    tensor_type_of,
)


class Argument(NamedTuple):
    name: str
    type: str  # of the memref, in the text of the IR
    size: int  # bytes
    device: str  # the memory space; "" if the type names none
    role: str  # "input", "donated", "variable" or "result"
    is_parameter: bool  # an input that is the same in every call


def functions(module: ModuleOp) -> list[FuncOp]:
    """Returns the functions of `module` that have a body."""
    return [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]


def arguments(function: FuncOp) -> list[Argument]:
    """Returns the arguments of `function` in order.

    Symbolic sizes take the values that need the most bytes within the bounds. Raises
    `LocatedError` for a tensor, and for symbolic sizes without bounds.
    """
    sizes = CountedSizes(function)
    found: list[Argument] = []
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
        space = cast(AnyMemRef, value.type).memory_space
        found.append(
            Argument(
                value.name_hint or f"arg{value.index}",
                str(value.type),
                sizes.bytes(value),
                space.data if isinstance(space, StringAttr) else "",
                _role(attributes),
                PARAMETER in attributes,
            )
        )
    return found


def _role(attributes: Container[str]) -> str:
    """How the caller uses an argument; see `Argument.role`."""
    if VARIABLE in attributes:
        return "variable"
    if RESULT in attributes:
        return "result"
    is_donated = DONATED in attributes and PARAMETER not in attributes
    return "donated" if is_donated else "input"
