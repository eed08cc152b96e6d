"""Finds buffers that a function reads at the same time, for memories with banks."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import prod
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.memory import effects_on, is_view
from ..dialects.target_memory import TargetMemory
from ..dialects.tgraph.base import AnyMemRef, element_bytes, is_static
from ..planning.banks import Banks, Together


def banks_of(memory: TargetMemory | None) -> Banks | None:
    """The banks of a memory; None if it has only one."""
    if memory is None or memory.banks == 1:
        return None
    width = memory.interleaving or memory.capacity // memory.banks
    return Banks(memory.banks, width, memory.base or 0)


def read_together(func: FuncOp, numbers: Mapping[SSAValue, int]) -> list[Together]:
    """Pairs of buffers that operations read in parallel, taken to be element by
    element, up to the end of the shorter one. `numbers` has the index of each
    buffer."""
    return [pair for op in func.walk() for pair in _pairs(op, numbers)]


def _pairs(op: Operation, numbers: Mapping[SSAValue, int]) -> Iterator[Together]:
    found: dict[int, tuple[int, int]] = {}  # stride and count
    for value in op.operands:
        number = numbers.get(_origin(value, numbers))
        if number is None or is_view(op) or not effects_on(op, value)[0]:
            continue
        given: Attribute = value.type
        if isinstance(given, MemRefType) and is_static(type := cast(AnyMemRef, given)):
            width = element_bytes(type.element_type)
            found.setdefault(number, (width, prod(type.get_shape())))
    for (a, (width, count)), (b, (other, many)) in combinations(found.items(), 2):
        yield Together(a, b, (width, other), min(count, many))


def _origin(value: SSAValue, numbers: Mapping[SSAValue, int]) -> SSAValue:
    """The numbered buffer of which `value` is a view, or else the root of its views."""
    while value not in numbers:
        op = value.owner
        if not isinstance(op, Operation) or not is_view(op):
            break
        value = op.operands[0]
    return value
