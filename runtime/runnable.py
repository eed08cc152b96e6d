"""Checks that a program names only devices that can run it: `cpu:0`, `cpu:1`, ...

Each of these devices is a part of this machine's processors. A program may name any
number of them.
"""

import re
from typing import cast

from xdsl.dialects.builtin import MemRefType, NoneAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.tgraph.base import DEVICE, AnyMemRef

RUNNABLE = "cpu:0, cpu:1, ..."
"""The devices that can run programs, for error messages."""


def is_runnable(device: str) -> bool:
    return re.fullmatch("cpu:[0-9]+", device) is not None


def device_of(type: AnyMemRef) -> str:
    """The device of a memref's memory; `cpu:0` if the type names none."""
    space = type.memory_space
    if isinstance(space, StringAttr):
        return space.data
    return "cpu:0" if isinstance(space, NoneAttr) else str(space)


def check_devices(function: Operation) -> None:
    """Raises `LocatedError` if `function`, a program on memrefs, names a device that
    this machine does not have. Planning accepts any device; running does not."""
    checked: set[Attribute] = set()
    for op in function.walk():
        if isinstance(name := op.attributes.get(DEVICE), StringAttr):
            _check(name.data, op)
        arguments = (a for region in op.regions for b in region.blocks for a in b.args)
        for type in (value.type for value in (*op.results, *arguments)):
            if isinstance(type, MemRefType) and type not in checked:
                _check(device_of(cast(AnyMemRef, type)), op)
                checked.add(cast(Attribute, type))


def _check(device: str, op: Operation) -> None:
    if not is_runnable(device):
        raise LocatedError(
            f"{name_of(op)} is on {device}, expected {RUNNABLE}: programs run on "
            "processors only; plan-strip-memory-spaces puts all of a plan in host "
            "memory, where it runs if the indices of its transfers are constant",
            op,
        )
