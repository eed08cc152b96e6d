"""Results with buffers in their memory, for plan-check: pools that the caller gives.

A `memref.reinterpret_cast` with `tgraph.buffer` makes a buffer in the memory of a
result. It must be contiguous and within it. The result itself lies there as well, at 0,
and must have its bytes when the function ends. Shares no code with what plans.
"""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ..analysis.functions import argument_attributes
from ..dialects.diagnostics import LocatedError
from ..dialects.memory import is_buffer
from ..dialects.strides import contiguous_strides
from ..dialects.tgraph.base import RESULT, VARIABLE, AnyMemRef, element_bytes
from .buffers import ArenaBuffer
from .pointees import operations_in


class ResultPool(NamedTuple):
    """A result, which may have buffers in its memory."""

    number: int
    argument: SSAValue
    is_reused: bool

    @property
    def type(self) -> AnyMemRef:
        return cast(AnyMemRef, self.argument.type)


def result_pools(func: FuncOp) -> list[ResultPool]:
    """In order. Raises `LocatedError` for buffers in other memory."""
    numbers: dict[SSAValue, int] = {}
    entry = func.body.blocks[0]
    for argument, attributes in zip(entry.args, argument_attributes(func), strict=True):
        number = attributes.get(RESULT)
        if (
            isinstance(number, IntegerAttr)
            and isinstance(argument.type, MemRefType)
            and VARIABLE not in attributes
        ):
            numbers[argument] = number.value.data
    reused: dict[SSAValue, None] = {}
    for op in operations_in(func):
        if is_buffer(op):
            source = op.operands[0]
            if source not in numbers:
                raise LocatedError(
                    "tgraph.buffer is on a view of other memory, expected that of a "
                    "result",
                    op,
                )
            reused[source] = None
    return [ResultPool(n, value, value in reused) for value, n in numbers.items()]


def buffers_of(pool: ResultPool) -> Iterator[ArenaBuffer]:
    """The result, then the buffers in its memory, in program order as far as known."""
    if pool.is_reused and not isinstance(pool.type.layout, NoneAttr):
        raise LocatedError(
            f"result {pool.number} has type {pool.type}, expected no layout where "
            "buffers lie in its memory",
            _function(pool),
        )
    size = _size(pool.type)
    name = f"%{pool.argument.name_hint or f'result_{pool.number}'}"
    yield ArenaBuffer(name, pool.argument, pool.argument, 0, size)
    for use in reversed(list(pool.argument.uses)):
        if is_buffer(op := use.operation):
            assert isinstance(op, memref.ReinterpretCastOp)
            yield _buffer(op, pool, size)


def _buffer(op: memref.ReinterpretCastOp, pool: ResultPool, whole: int) -> ArenaBuffer:
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
            f"a buffer in result {pool.number} has type {type}, expected a contiguous "
            "one at a static offset",
            op,
        )
    name = f"%{op.result.name_hint or '?'}"
    offset = first * element_bytes(type.element_type)
    size = _size(type)
    if offset < 0 or offset + size > whole:
        raise LocatedError(
            f"buffer {name} lies in bytes [{offset}, {offset + size}), expected within "
            f"result {pool.number}'s [0, {whole})",
            op,
        )
    return ArenaBuffer(name, op.result, pool.argument, offset, size)


def _size(type: AnyMemRef) -> int:
    """In bytes; 0 if it is not known, of a result without buffers."""
    if DYNAMIC_INDEX in type.get_shape():
        return 0
    return prod(type.get_shape()) * element_bytes(type.element_type)


def _function(pool: ResultPool) -> FuncOp:
    func = pool.argument.owner.parent_op()
    assert isinstance(func, FuncOp)
    return func
