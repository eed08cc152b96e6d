"""Finds operations that may write their result over an operand.

linalg.exp ins(%x) outs(%y)           // elementwise: %y may share the memory of %x
linalg.matmul ins(%x, %y) outs(%z)    // %z may share the memory of neither operand
"""

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsolatedFromAbove

from ..dialects.memory import destinations, overwritable, root_of
from ..dialects.tgraph.base import AnyMemRef, TensorOp
from ..planning.problem import Steps, common
from .control_flow import ControlFlow

Live: TypeAlias = tuple[SSAValue, Sequence[Steps]]
"""A memref, and the ranges of steps in which its memory is live."""


def replacements(op: Operation) -> Sequence[tuple[SSAValue, SSAValue]]:
    """Pairs of an operand that `op` may overwrite, and the operand that it writes."""
    written = destinations(op)
    if not written:
        return ()
    target = op.operands[written[0]]
    return [(op.operands[index], target) for index in overwritable(op)]


def may_replace(op: Operation, source: SSAValue, target: SSAValue) -> bool:
    """Whether `op` may compute `target` over `source`, one pair of its `replacements`.
    False for an operation with a workspace, whose size was determined for operands that
    do not overlap."""
    if isinstance(op, TensorOp) and op.workspace is not None:
        return False
    return _shape(source) == _shape(target) and reads_nowhere_else(op, source)


def reads_nowhere_else(op: Operation, memory: SSAValue) -> bool:
    """Whether `op` reads a memory only through operands that it may overwrite."""
    allowed = overwritable(op)
    if not op.has_trait(IsolatedFromAbove) and any(
        isinstance(value.type, MemRefType)
        for region in op.regions
        for inner in region.walk()
        for value in inner.operands
    ):
        return False
    return all(
        index in allowed if value is memory else _is_apart(value, memory)
        for index, value in enumerate(op.operands)
        if isinstance(value.type, MemRefType)
    )


def interfere(flow: ControlFlow, a: Live, b: Live) -> bool:
    """Whether both are live in some step, apart from a step that computes one over the
    other."""
    both = common(a[1], b[1])
    if not both:
        return False
    (start, end), *others = both
    if others or end != start + 1 or flow.barriers or flow.has_streams:
        return True
    op = flow.ops[start]
    pairs = replacements(op)
    return not any(
        (source, target) in pairs
        and any(last == end for _, last in read)
        and any(first == start for first, _ in written)
        and may_replace(op, source, target)
        for (source, read), (target, written) in ((a, b), (b, a))
    )


def _shape(value: SSAValue) -> Sequence[int]:
    return cast(AnyMemRef, value.type).get_shape()


def _is_apart(value: SSAValue, memory: SSAValue) -> bool:
    """Whether a memref is known to share no byte with an allocation or argument."""
    value = root_of(value)
    if value is memory:
        return False
    op = value.owner
    if isinstance(op, Block):  # a function argument is older than an allocation
        return isinstance(op.parent_op(), FuncOp) and op.prev_block is None
    return isinstance(op, memref.AllocOp | memref.GetGlobalOp)
