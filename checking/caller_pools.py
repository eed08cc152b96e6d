"""Checks buffers that lie in the memory of arguments, for plan-check.

A `memref.reinterpret_cast` with `tgraph.buffer` creates a buffer in the memory of a
result, a variable, or a donated argument. The buffer must be contiguous and within that
memory. The argument itself is a buffer at offset 0: an input owns its bytes when the
function starts, and a result or variable when the function ends. Shares no code with
the planner.
"""

from collections.abc import Iterator
from math import prod
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ..analysis.functions import CallerMemory, caller_memories
from ..dialects.diagnostics import LocatedError
from ..dialects.memory import is_buffer, maker_of
from ..dialects.strides import contiguous_strides
from ..dialects.tgraph.base import AnyMemRef, element_bytes
from .buffers import ArenaBuffer
from .pointees import operations_in


def caller_pools(func: FuncOp) -> list[CallerMemory]:
    """The results, and the other arguments whose memory holds buffers, in order.

    Raises `LocatedError` for buffers in other memory.
    """
    reusable = {memory.argument: memory for memory in caller_memories(func)}
    reused: dict[SSAValue, None] = {}
    for op in operations_in(func):
        if is_buffer(op):
            source = op.operands[0]
            if source not in reusable:
                raise LocatedError(
                    "tgraph.buffer is on a view of other memory, expected a view of a "
                    "result, a variable or a donated argument",
                    op,
                )
            reused[source] = None
    return [m for m in reusable.values() if not m.is_given or m.argument in reused]


def buffers_of(pool: CallerMemory) -> Iterator[ArenaBuffer]:
    """The argument, then its buffers, in program order as far as known."""
    argument = pool.argument
    type = cast(AnyMemRef, argument.type)
    size = _size(type)
    name = f"%{argument.name_hint or pool.title.replace(' ', '_')}"
    yield ArenaBuffer(name, argument, argument, 0, size)
    for use in reversed(list(argument.uses)):
        if is_buffer(op := use.operation):
            assert isinstance(op, memref.ReinterpretCastOp)
            if not isinstance(type.layout, NoneAttr):
                raise LocatedError(
                    f"{pool.title} has type {type}, expected no layout where buffers "
                    "lie in its memory",
                    maker_of(argument),
                )
            yield _buffer(op, pool, size)


def _buffer(
    op: memref.ReinterpretCastOp, pool: CallerMemory, whole: int
) -> ArenaBuffer:
    type = op.result.type
    shape, strides, first = type.get_shape(), type.get_strides(), type.get_offset()
    if (
        DYNAMIC_INDEX in shape
        or first is None
        or strides is None
        or any(
            size > 1 and a != b
            for a, b, size in zip(
                strides, contiguous_strides(shape), shape, strict=True
            )
        )
    ):
        raise LocatedError(
            f"a buffer in {pool.title} has type {type}, expected a contiguous one at a "
            "static offset",
            op,
        )
    name = f"%{op.result.name_hint or '?'}"
    offset = first * element_bytes(type.element_type)
    size = _size(type)
    if offset < 0 or offset + size > whole:
        raise LocatedError(
            f"buffer {name} lies in bytes [{offset}, {offset + size}), expected within "
            f"{pool.title}'s [0, {whole})",
            op,
        )
    return ArenaBuffer(name, op.result, pool.argument, offset, size)


def _size(type: AnyMemRef) -> int:
    """The size in bytes; 0 for an argument of unknown size, which has no buffers."""
    if DYNAMIC_INDEX in type.get_shape():
        return 0
    return prod(type.get_shape()) * element_bytes(type.element_type)
